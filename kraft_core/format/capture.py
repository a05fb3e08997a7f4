"""The identity of a captured controller directory, and when it was captured.

The capture id contains no path and no file time, so a copy of the directory elsewhere is the same capture.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from kraft_core.format.controller_dir import ControllerDir, FileFault
from kraft_core.format.errors import FileChangedError
from kraft_core.messages.uuid_text import ZERO_UUID

EDGE_BYTES = 64 * 1024
# Instead of a node's id: of what leaders sent to a follower, which is nobody's replica (Fetch's replicaId).
FOLLOWED_NODE_ID = -1
# How names of describe outputs end that kraftlake follow wrote.
LIVE = "-live.txt"
CAPTURE_JSON = "capture.json"
CapturedAtSource = Literal["flag", "capture.json", "file_time"]
# Those that say when a directory was copied; file times do not.
STATED_SOURCES: tuple[Literal["flag", "capture.json"], ...] = ("flag", "capture.json")


def is_live(source: str) -> bool:
    """Whether an output of describe of this name was written by kraftlake follow."""
    return source.endswith(LIVE)


@dataclass(frozen=True, slots=True)
class FileStatus:
    """What the file system says of a file: any write changes modified_ns, a replacement the inode."""

    device: int
    inode: int
    size_bytes: int
    modified_ns: int

    @classmethod
    def of(cls, status: os.stat_result) -> FileStatus:
        return cls(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


@dataclass(frozen=True, slots=True)
class FileIdentity:
    """A segment or checkpoint: name, size in bytes, SHA-256 (hex) of its first and last 64 KiB.

    status: of the file when its digests were taken; it may have grown beyond size_bytes. Copies of a file
    are equal, whatever their status.
    """

    name: str
    size_bytes: int
    head_digest: str
    tail_digest: str
    status: FileStatus = field(compare=False)


@dataclass(frozen=True, slots=True)
class Identity:
    """The replica that the directory belongs to. directory_id: the zero uuid if unknown.

    node_id: FOLLOWED_NODE_ID for what leaders sent.
    """

    cluster_id: str
    node_id: int
    directory_id: str


def identity(
    directory: ControllerDir,
    cluster_id: str | None = None,
    node_id: int | None = None,
    given: str | None = None,
) -> Identity | None:
    """The identity by meta.properties; None if an id is missing.

    cluster_id and node_id are used only where meta.properties has none; given is the cluster id in any case.
    """
    meta = directory.meta
    cluster = given or (meta.cluster_id if meta else None) or cluster_id
    node = meta.node_id if meta and meta.node_id is not None else node_id
    node = FOLLOWED_NODE_ID if directory.followed else node
    if cluster is None or node is None:
        return None
    return Identity(cluster, node, (meta.directory_id if meta else None) or ZERO_UUID)


def missing_ids(directory: ControllerDir) -> str:
    """Which ids of a capture its meta.properties lacks, "no cluster id" for one; an empty one is none."""
    meta = directory.meta
    ids = {"cluster id": meta and meta.cluster_id, "node id": None if meta is None else meta.node_id}
    return " and ".join(f"no {name}" for name, value in ids.items() if value is None)


def file_identity(path: Path, size_bytes: int) -> FileIdentity:
    """The identity of the first size_bytes of a file.

    OSError if it cannot be read, FileChangedError if it has become shorter.
    """
    edge = min(EDGE_BYTES, size_bytes)
    with path.open("rb") as file:
        head = file.read(edge)
        file.seek(size_bytes - edge)
        tail = file.read(edge)
        status = FileStatus.of(os.fstat(file.fileno()))
    if len(head) < edge or len(tail) < edge:
        raise FileChangedError(path)
    head_digest, tail_digest = (hashlib.sha256(part).hexdigest() for part in (head, tail))
    return FileIdentity(path.name, size_bytes, head_digest, tail_digest, status)


def still_holds(path: Path, identified: FileIdentity) -> bool:
    """Whether a file still begins with the bytes that were identified.

    It may have grown, as a log does: by log matching equal last bytes are an equal log. Any other write may
    have changed one of these bytes, and so may a replacement.
    """
    was = identified.status
    try:
        found = file_identity(path, identified.size_bytes)
    except OSError:
        return False
    now = found.status
    is_same_file = (now.device, now.inode) == (was.device, was.inode)
    unwritten = now.modified_ns == was.modified_ns and now.size_bytes == was.size_bytes
    return found == identified and is_same_file and (unwritten or now.size_bytes > was.size_bytes)


def identified_files(directory: ControllerDir) -> tuple[ControllerDir, list[FileIdentity]]:
    """The identities of the segments and checkpoints of a directory, and the directory without those that
    cannot be opened: they are among the unreadable ones then.

    FileChangedError, FileNotFoundError: the directory has changed and must be read again.
    """
    found: dict[Path, FileIdentity] = {}
    faults: list[FileFault] = []
    for file in (*directory.segments, *directory.checkpoints):
        try:
            found[file.path] = file_identity(file.path, file.size_bytes)
        except (FileChangedError, FileNotFoundError):
            raise
        except OSError as error:
            faults.append(FileFault(directory.relative(file.path), error.strerror or str(error)))
    left = replace(
        directory,
        segments=tuple(f for f in directory.segments if f.path in found),
        checkpoints=tuple(f for f in directory.checkpoints if f.path in found),
        unreadable=(*directory.unreadable, *faults),
        faults=(*directory.faults, *faults),
    )
    return left if faults else directory, list(found.values())


def capture_id(who: Identity, directory: ControllerDir, files: list[FileIdentity]) -> str:
    """SHA-256 (hex) of the identity, quorum-state, leader-epoch-checkpoint and files of a directory, and the
    names of what was unreadable: a capture that lacks it is another one.
    """
    state = directory.quorum_state
    parts: dict[str, Any] = {
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
    unreadable = sorted(fault.file for fault in directory.unreadable if fault.file != CAPTURE_JSON)
    if unreadable:
        parts["unreadable"] = unreadable
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def captured_at(directory: ControllerDir, flag_ms: int | None = None) -> tuple[int, CapturedAtSource]:
    """When the directory was captured, in ms since the epoch, and the source of that time, best first."""
    if flag_ms is not None:
        return flag_ms, "flag"
    if directory.captured_at is not None:
        return directory.captured_at, "capture.json"
    return directory.newest_file_at or 0, "file_time"
