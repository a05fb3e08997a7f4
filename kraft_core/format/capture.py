"""Who a captured controller directory is: its identity, when it was copied, and what its files are.

The identity holds no path and no file time, so that the same directory copied elsewhere is the same capture.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kraft_core.format.controller_dir import ControllerDir
from kraft_core.messages.uuid_text import ZERO_UUID

EDGE_BYTES = 64 * 1024
CapturedAtSource = Literal["flag", "capture.json", "file_time"]


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """A segment or checkpoint: name, size in bytes, SHA-256 (hex) of its first and last 64 KiB."""

    name: str
    size_bytes: int
    head_digest: str
    tail_digest: str


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose directory it is. directory_id: the zero uuid where none is known."""

    cluster_id: str
    node_id: int
    directory_id: str


def identity(
    directory: ControllerDir, cluster_id: str | None = None, node_id: int | None = None
) -> Identity | None:
    """The identity by meta.properties, completed by what the caller knows; None where an id is missing.

    What meta.properties says wins over cluster_id and node_id, which fill in only what it lacks.
    """
    meta = directory.meta
    cluster = (meta.cluster_id if meta else None) or cluster_id
    node = meta.node_id if meta and meta.node_id is not None else node_id
    if cluster is None or node is None:
        return None
    return Identity(cluster, node, (meta.directory_id if meta else None) or ZERO_UUID)


def file_identity(path: Path, size_bytes: int) -> FileIdentity:
    """Read the edges of a file of that size. OSError when it cannot be read."""
    with path.open("rb") as file:
        head = file.read(min(EDGE_BYTES, size_bytes))
        file.seek(max(0, size_bytes - EDGE_BYTES))
        tail = file.read(min(EDGE_BYTES, size_bytes))
    return FileIdentity(
        path.name, size_bytes, hashlib.sha256(head).hexdigest(), hashlib.sha256(tail).hexdigest()
    )


def capture_id(who: Identity, directory: ControllerDir, files: list[FileIdentity]) -> str:
    """SHA-256 (hex) of who it is, its quorum-state, its leader-epoch-checkpoint and its files."""
    state = directory.quorum_state
    parts = {
        "cluster_id": who.cluster_id,
        "node_id": who.node_id,
        "directory_id": who.directory_id,
        "quorum_state": None
        if state is None
        else [
            state.data_version,
            state.leader_id,
            state.leader_epoch,
            state.voted_id,
            state.voted_directory_id,
            state.applied_offset,
            state.current_voters,
        ],
        "leader_epoch_checkpoint": directory.leader_epoch_checkpoint,
        "files": sorted([f.name, f.size_bytes, f.head_digest, f.tail_digest] for f in files),
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def captured_at(directory: ControllerDir, flag_ms: int | None = None) -> tuple[int, CapturedAtSource]:
    """When the directory was copied, in ms since the epoch, and how that is known, best source first."""
    if flag_ms is not None:
        return flag_ms, "flag"
    if directory.captured_at is not None:
        return directory.captured_at, "capture.json"
    return directory.newest_file_at or 0, "file_time"
