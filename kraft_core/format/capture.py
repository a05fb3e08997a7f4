"""The identity of a captured controller directory, and when it was captured.

The capture id contains no path and no file time, so a copy of the directory elsewhere is the same capture.
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
    """The replica that the directory belongs to. directory_id: the zero uuid if unknown."""

    cluster_id: str
    node_id: int
    directory_id: str


def identity(
    directory: ControllerDir, cluster_id: str | None = None, node_id: int | None = None
) -> Identity | None:
    """The identity by meta.properties; None if an id is missing.

    cluster_id and node_id are used only where meta.properties has none.
    """
    meta = directory.meta
    cluster = (meta.cluster_id if meta else None) or cluster_id
    node = meta.node_id if meta and meta.node_id is not None else node_id
    if cluster is None or node is None:
        return None
    return Identity(cluster, node, (meta.directory_id if meta else None) or ZERO_UUID)


def file_identity(path: Path, size_bytes: int) -> FileIdentity:
    """Reads the first and last 64 KiB of a file of that size. OSError if it cannot be read."""
    with path.open("rb") as file:
        head = file.read(min(EDGE_BYTES, size_bytes))
        file.seek(max(0, size_bytes - EDGE_BYTES))
        tail = file.read(min(EDGE_BYTES, size_bytes))
    return FileIdentity(
        path.name, size_bytes, hashlib.sha256(head).hexdigest(), hashlib.sha256(tail).hexdigest()
    )


def capture_id(who: Identity, directory: ControllerDir, files: list[FileIdentity]) -> str:
    """SHA-256 (hex) of the identity, quorum-state, leader-epoch-checkpoint and files of a directory."""
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
    """When the directory was captured, in ms since the epoch, and the source of that time, best first."""
    if flag_ms is not None:
        return flag_ms, "flag"
    if directory.captured_at is not None:
        return directory.captured_at, "capture.json"
    return directory.newest_file_at or 0, "file_time"
