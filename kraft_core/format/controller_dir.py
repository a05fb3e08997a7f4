"""Finds controller directories in a tree of files, and lists what each contains.

A controller directory is a metadata.log.dir, recognized by the log directory __cluster_metadata-0 in it; that
log directory alone suffices. Unreadable side files are faults of the directory, never exceptions.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from kraft_core.format.side_files import (
    MetaProperties,
    QuorumState,
    read_capture_json,
    read_leader_epoch_checkpoint,
    read_meta_properties,
    read_partition_metadata,
    read_quorum_state,
)
from kraft_core.format.snapshot import BOOTSTRAP_NAME, SnapshotId, parse_name

LOG_DIR_NAME = "__cluster_metadata-0"
# Kafka 2.8's preview wrote another record format into a log of this name.
OLD_LOG_DIR_NAME = "@metadata-0"

_SEGMENT = re.compile(r"(\d{20})\.log", re.ASCII)
_MAX_OFFSET = (1 << 63) - 1
_MAX_SIDE_FILE_BYTES = 1024 * 1024

Content = TypeVar("Content")


@dataclass(frozen=True, slots=True)
class FileFault:
    """A file that is unreadable or invalid. file: relative to the controller directory."""

    file: str
    reason: str


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """A segment: base_offset by its name, size_bytes when it was listed."""

    path: Path
    base_offset: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class CheckpointFile:
    """A checkpoint; id is None for bootstrap.checkpoint."""

    path: Path
    id: SnapshotId | None
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ControllerDir:
    """A controller directory as found.

    path: the metadata.log.dir; log_dir: the __cluster_metadata-0 in it. meta, quorum_state,
    leader_epoch_checkpoint ((epoch, start offset) ...), topic_id: None if the file is absent or among the
    faults. captured_at: from capture.json; newest_file_at: the latest modification; both in ms.
    segments by base offset; checkpoints by end offset and epoch, finished ones only; unfinished: the .part
    files; deleted: names of files that Kafka marked for deletion, which no longer belong to the log.
    """

    path: Path
    log_dir: Path
    meta: MetaProperties | None
    quorum_state: QuorumState | None
    leader_epoch_checkpoint: tuple[tuple[int, int], ...] | None
    topic_id: str | None
    captured_at: int | None
    newest_file_at: int | None
    segments: tuple[SegmentFile, ...]
    checkpoints: tuple[CheckpointFile, ...]
    unfinished: tuple[CheckpointFile, ...]
    bootstrap: CheckpointFile | None
    deleted: tuple[str, ...]
    faults: tuple[FileFault, ...]

    def relative(self, path: Path) -> str:
        """The name of one of its files in the tables, which does not depend on where the directory is."""
        return path.name if path.parent == self.path else f"{LOG_DIR_NAME}/{path.name}"


@dataclass(frozen=True, slots=True)
class RefusedPath:
    """A path that could not be searched, or holds a log format that is not supported."""

    path: Path
    reason: str


@dataclass(frozen=True, slots=True)
class Discovery:
    """directories: each once, in path order under each root; refused: what was skipped."""

    directories: tuple[ControllerDir, ...]
    refused: tuple[RefusedPath, ...]


def parse_segment_name(name: str) -> int | None:
    """The base offset in a segment's file name; None for any other name."""
    match = _SEGMENT.fullmatch(name)
    return int(match[1]) if match is not None and int(match[1]) <= _MAX_OFFSET else None


def find_controller_dirs(roots: Iterable[Path | str]) -> Discovery:
    """Every controller directory at or below the roots; symbolic links are followed, each directory once."""
    directories: list[ControllerDir] = []
    refused: list[RefusedPath] = []
    seen: set[tuple[int, int]] = set()
    for root in roots:
        for found in _directories(Path(root), seen):
            if isinstance(found, RefusedPath):
                refused.append(found)
            elif _name(found) == LOG_DIR_NAME:
                directories.append(_Reader(found).read())
    return Discovery(tuple(directories), tuple(refused))


def find_log_files(root: Path) -> Iterator[Path | RefusedPath]:
    """The finished checkpoints, then the segments, of each directory at or below a root."""
    for found in _directories(root, set()):
        if isinstance(found, RefusedPath):
            yield found
            continue
        try:
            names = sorted(path.name for path in found.iterdir())
        except OSError as error:
            yield RefusedPath(found, error.strerror or str(error))
            continue
        yield from (found / name for name in names if name == BOOTSTRAP_NAME or _is_finished(name))
        yield from (found / name for name in names if parse_segment_name(name) is not None)


def refuse_old(directory: Path) -> RefusedPath | None:
    """Refuses the log directory of Kafka 2.8; None for any other."""
    if _name(directory) != OLD_LOG_DIR_NAME:
        return None
    return RefusedPath(directory, "a metadata log of Kafka 2.8, whose format no later Kafka reads")


def _name(directory: Path) -> str:
    """The name of what a path leads to. Resolving a whole path takes a system call for each of its parts."""
    is_plain = directory.name not in ("", "..") and not directory.is_symlink()
    return directory.name if is_plain else directory.resolve().name


def _is_finished(name: str) -> bool:
    snapshot_id = parse_name(name)
    return snapshot_id is not None and not snapshot_id.suffix


def _directories(root: Path, seen: set[tuple[int, int]]) -> Iterator[Path | RefusedPath]:
    """Every directory at or below a root in path order, but none below a log directory."""
    pending = [root]
    while pending:
        directory = pending.pop()
        try:
            status = directory.stat()
            if (status.st_dev, status.st_ino) in seen:
                continue
            seen.add((status.st_dev, status.st_ino))
            refusal = refuse_old(directory)
            if refusal is None and not stat.S_ISDIR(status.st_mode):
                refusal = RefusedPath(directory, "not a directory")
            if refusal is None and _name(directory) != LOG_DIR_NAME:
                pending += sorted(_subdirectories(directory), reverse=True)
            yield refusal or directory
        except OSError as error:
            yield RefusedPath(directory, error.strerror or str(error))


def _subdirectories(directory: Path) -> list[Path]:
    with os.scandir(directory) as entries:
        # A dangling link is not a directory. A directory without permission is one, and is refused later.
        return [directory / entry.name for entry in entries if entry.is_dir()]


class _Reader:
    """Reads one controller directory; collects faults and the newest file time."""

    def __init__(self, log_dir: Path) -> None:
        self._log_dir = log_dir
        self._path = log_dir.parent if log_dir.name == LOG_DIR_NAME else log_dir.resolve().parent
        self._faults: list[FileFault] = []
        self._newest_ms: int | None = None

    def read(self) -> ControllerDir:
        segments: list[SegmentFile] = []
        checkpoints: list[CheckpointFile] = []
        deleted: list[str] = []
        for name in self._log_names():
            path = self._log_dir / name
            if name.endswith(".deleted"):
                deleted.append(name)
            elif name.endswith(".log"):
                base_offset = parse_segment_name(name)
                size = self._size(path, named=base_offset is not None)
                if size is not None and base_offset is not None:
                    segments.append(SegmentFile(path, base_offset, size))
            elif name.endswith((".checkpoint", ".checkpoint.part")) and name != BOOTSTRAP_NAME:
                snapshot_id = parse_name(name)
                size = self._size(path, named=snapshot_id is not None)
                if size is not None:
                    checkpoints.append(CheckpointFile(path, snapshot_id, size))
        meta = self._side_file(self._beside("meta.properties"), read_meta_properties)
        quorum_state = self._side_file(self._log_dir / "quorum-state", read_quorum_state)
        epochs = self._side_file(self._log_dir / "leader-epoch-checkpoint", read_leader_epoch_checkpoint)
        topic_id = self._side_file(self._log_dir / "partition.metadata", read_partition_metadata)
        captured_at = self._side_file(self._beside("capture.json"), read_capture_json)
        bootstrap = self._bootstrap()
        return ControllerDir(
            path=self._path,
            log_dir=self._log_dir,
            meta=meta,
            quorum_state=quorum_state,
            leader_epoch_checkpoint=epochs,
            topic_id=topic_id,
            captured_at=captured_at,
            newest_file_at=self._newest_ms,
            segments=tuple(segments),
            checkpoints=tuple(c for c in checkpoints if c.id and not c.id.suffix),
            unfinished=tuple(c for c in checkpoints if c.id and c.id.suffix == ".part"),
            bootstrap=bootstrap,
            deleted=tuple(deleted),
            faults=tuple(self._faults),
        )

    def _log_names(self) -> list[str]:
        try:
            # Names have fixed widths, so they sort by offset.
            return sorted(path.name for path in self._log_dir.iterdir())
        except OSError as error:
            self._faults.append(FileFault(LOG_DIR_NAME, error.strerror or str(error)))
            return []

    def _beside(self, name: str) -> Path:
        """A file beside the log directory, which may have been copied into it."""
        outside = self._path / name
        return outside if os.path.lexists(outside) else self._log_dir / name

    def _bootstrap(self) -> CheckpointFile | None:
        path = self._beside(BOOTSTRAP_NAME)
        size = self._size(path) if os.path.lexists(path) else None
        return None if size is None else CheckpointFile(path, None, size)

    def _side_file(self, path: Path, read: Callable[[str], Content]) -> Content | None:
        size = self._size(path) if os.path.lexists(path) else None
        if size is None:
            return None
        if size > _MAX_SIDE_FILE_BYTES:
            return self._fault(path, f"{size} bytes")
        try:
            return read(path.read_bytes().decode())
        except OSError as error:
            return self._fault(path, error.strerror or str(error))
        except UnicodeDecodeError:
            return self._fault(path, "not UTF-8 text")
        except ValueError as error:
            return self._fault(path, str(error))

    def _size(self, path: Path, named: bool = True) -> int | None:
        """The size of a readable regular file with a valid name; else a fault and None."""
        if not named:
            return self._fault(path, "not a valid Kafka file name")
        try:
            status = path.stat()
        except OSError as error:
            return self._fault(path, error.strerror or str(error))
        if not stat.S_ISREG(status.st_mode):
            return self._fault(path, "not a regular file")
        if not os.access(path, os.R_OK):
            return self._fault(path, "Permission denied")
        modified_ms = status.st_mtime_ns // 1_000_000
        self._newest_ms = max(modified_ms, self._newest_ms or modified_ms)
        return status.st_size

    def _fault(self, path: Path, reason: str) -> None:
        name = path.name if path.parent == self._path else f"{LOG_DIR_NAME}/{path.name}"
        self._faults.append(FileFault(name, reason))
