"""Finds controller directories in a tree of files, and lists what each contains.

A controller directory is a metadata.log.dir, recognized by the log directory __cluster_metadata-0 in it; that
log directory alone suffices. What cannot be listed, opened or read is a fault of the directory, never an
exception, and never absent: conclusions from what a directory lacks must consider what was unreadable.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TypeVar

from kraft_core.format.log_dirs import (
    BOOTSTRAP_NAME,
    LOG_DIR_NAME,
    Seen,
    UnreadPath,
    directories_below,
    is_log_dir,
)
from kraft_core.format.log_files import parse_segment_name
from kraft_core.format.side_files import (
    MetaProperties,
    QuorumState,
    read_capture_json,
    read_leader_epoch_checkpoint,
    read_meta_properties,
    read_partition_metadata,
    read_quorum_state,
    side_file_text,
)
from kraft_core.format.snapshot import SnapshotId, parse_name

# Unreadable and invalid files that fault_lines names of one directory.
MOST_NAMED = 3
NO_METADATA_LOG = (
    f"a log directory of Kafka, perhaps a broker's, without {LOG_DIR_NAME}: a controller has that in its "
    "metadata.log.dir"
)
_INDEX = re.compile(r"(\d{20})\.(?:index|timeindex|txnindex)", re.ASCII)
# A running controller deletes and renames files: a directory that changes while it is listed is listed again.
_TRIES = 3
NONE_UNREADABLE: Mapping[Path, str] = MappingProxyType({})

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
    faults. captured_at: from capture.json; newest_file_at: the latest modification; both in ms. followed: by
    capture.json it is not a copy of a node's directory, but what leaders sent as committed.
    segments by base offset; checkpoints by end offset and epoch, finished ones only; unfinished: the .part
    files; deleted: names of files that Kafka marked for deletion, which no longer belong to the log.
    unreadable: files and folders that could not be listed, opened or read, and last segments of which only
    an index is left; faults: these, and files whose content or name is invalid.
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
    unreadable: tuple[FileFault, ...]
    faults: tuple[FileFault, ...]
    followed: bool = False

    @property
    def log_readable(self) -> bool:
        """Whether the log could be listed, and all its segments and checkpoints opened: else nothing is
        proven by what is absent.
        """
        return not any(map(is_of_log, self.unreadable))

    def relative(self, path: Path) -> str:
        """The name of one of its files in the tables, which does not depend on where the directory is."""
        return path.name if path.parent == self.path else f"{LOG_DIR_NAME}/{path.name}"


@dataclass(frozen=True, slots=True)
class Discovery:
    """directories: each once, in path order under each root; refused: what was skipped.

    without_log: Kafka's log directories that hold no metadata log, such as those of a broker's topics.
    """

    directories: tuple[ControllerDir, ...]
    refused: tuple[UnreadPath, ...]
    without_log: tuple[UnreadPath, ...] = ()


def fault_lines(directory: ControllerDir) -> Iterator[str]:
    """A line for each of the first faults of a directory, and one for the others."""
    for fault in directory.faults[:MOST_NAMED]:
        kind = "unreadable" if fault in directory.unreadable else "invalid"
        yield f"{kind}: {directory.path}/{fault.file}: {fault.reason}"
    others = len(directory.faults) - MOST_NAMED
    if others > 0:
        yield f"unreadable or invalid: {others} more files of {directory.path}"


def is_of_log(fault: FileFault) -> bool:
    """Whether a fault is about the log directory itself, a segment or a checkpoint."""
    is_file = fault.file.endswith((".log", ".checkpoint")) and fault.file != BOOTSTRAP_NAME
    return is_file or fault.file == LOG_DIR_NAME


def find_controller_dirs(
    roots: Iterable[Path | str], unreadable: Mapping[Path, str] = NONE_UNREADABLE
) -> Discovery:
    """Every controller directory at or below the roots; symbolic links are followed, each directory once.

    unreadable: files below the roots that the caller could not supply (an archive's member, an object that
    could not be fetched), with the reason.
    """
    directories: list[ControllerDir] = []
    refused: list[UnreadPath] = []
    without_log: list[UnreadPath] = []
    seen: Seen = set()
    for root in roots:
        for found in directories_below(Path(root), seen):
            if isinstance(found, UnreadPath):
                refused.append(found)
            elif is_log_dir(found):
                directories.append(read_controller_dir(found, unreadable))
            elif _lacks_log(found):
                without_log.append(UnreadPath(found, NO_METADATA_LOG))
    missing = (path for path in unreadable if path.name == LOG_DIR_NAME and not os.path.lexists(path))
    directories += (read_controller_dir(path, unreadable) for path in missing)
    return Discovery(tuple(directories), tuple(refused), tuple(without_log))


def _lacks_log(directory: Path) -> bool:
    """Whether it is a log directory of Kafka, but none of a metadata log."""
    is_kafkas = os.path.lexists(directory / "meta.properties")
    return is_kafkas and not os.path.lexists(directory / LOG_DIR_NAME)


def read_controller_dir(log_dir: Path, unreadable: Mapping[Path, str] = NONE_UNREADABLE) -> ControllerDir:
    """The controller directory of a log directory as it is now; unreadable as in find_controller_dirs."""
    for _ in range(_TRIES - 1):
        reader = _Reader(log_dir, unreadable)
        directory = reader.read()
        if not reader.has_changed:
            return directory
    return _Reader(log_dir, unreadable).read()


class _Reader:
    """Reads one controller directory once; collects faults and the newest file time.

    has_changed: whether something was there when the directory was listed and is gone now.
    """

    def __init__(self, log_dir: Path, unreadable: Mapping[Path, str]) -> None:
        self._log_dir = log_dir
        self._path = log_dir.parent if log_dir.name == LOG_DIR_NAME else log_dir.resolve().parent
        self._not_supplied = unreadable
        self._faults: list[FileFault] = []
        self._unreadable: list[FileFault] = []
        self._newest_ms: int | None = None
        self._log_names: list[str] | None = None
        self.has_changed = False

    def read(self) -> ControllerDir:
        log = _LogFiles()
        self._log_names = self._listed()
        for name in self._log_names or ():
            self._add(self._log_dir / name, log)
        self._note_lost_end()
        meta = self._side_file(self._beside("meta.properties"), read_meta_properties)
        quorum_state = self._side_file(self._in_log("quorum-state"), read_quorum_state)
        epochs = self._side_file(self._in_log("leader-epoch-checkpoint"), partial(self._epochs, log))
        topic_id = self._side_file(self._in_log("partition.metadata"), read_partition_metadata)
        note = self._side_file(self._beside("capture.json"), read_capture_json)
        bootstrap = self._bootstrap()
        self._add_not_supplied()
        return ControllerDir(
            path=self._path,
            log_dir=self._log_dir,
            meta=meta,
            quorum_state=quorum_state,
            leader_epoch_checkpoint=epochs,
            topic_id=topic_id,
            captured_at=note.captured_at if note else None,
            newest_file_at=self._newest_ms,
            segments=tuple(log.segments),
            checkpoints=tuple(c for c in log.checkpoints if c.id and not c.id.suffix),
            unfinished=tuple(c for c in log.checkpoints if c.id and c.id.suffix == ".part"),
            bootstrap=bootstrap,
            deleted=tuple(log.deleted),
            unreadable=tuple(self._unreadable),
            faults=tuple(self._faults),
            followed=note is not None and note.followed,
        )

    def _listed(self) -> list[str] | None:
        """The names in the log directory; None where it cannot be listed."""
        if self._log_dir in self._not_supplied:
            return None
        try:
            # Names have fixed widths, so they sort by offset.
            return sorted(path.name for path in self._log_dir.iterdir())
        except OSError as error:
            self._cannot_read(self._log_dir, error.strerror or str(error))
            with suppress(OSError):
                self._note_time(self._log_dir.lstat())
            return None

    def _add(self, path: Path, log: _LogFiles) -> None:
        """Add a file of the log directory to what it holds."""
        name = path.name
        if name.endswith(".deleted"):
            log.deleted.append(name)
        elif name.endswith(".log"):
            base_offset = parse_segment_name(name)
            size = self._size(path, named=base_offset is not None)
            if size is not None and base_offset is not None:
                log.segments.append(SegmentFile(path, base_offset, size))
        elif name.endswith((".checkpoint", ".checkpoint.part")) and name != BOOTSTRAP_NAME:
            snapshot_id = parse_name(name)
            size = self._size(path, named=snapshot_id is not None)
            if size is not None:
                log.checkpoints.append(CheckpointFile(path, snapshot_id, size))

    def _note_lost_end(self) -> None:
        """Indexes above the last segment: theirs are missing, and the end of the log with them."""
        names = self._log_names or ()
        last = max((base for name in names if (base := parse_segment_name(name)) is not None), default=-1)
        indexes = {int(match[1]) for name in names if (match := _INDEX.fullmatch(name)) is not None}
        lost = (self._log_dir / f"{offset:020d}.log" for offset in sorted(indexes) if offset > last)
        for path in lost:
            if path not in self._not_supplied:
                self.has_changed = True
                self._cannot_read(path, "missing, but not its index")

    def _in_log(self, name: str) -> Path | None:
        """A file of the log directory; None if the listing lacks it."""
        names = self._log_names
        return self._log_dir / name if names is None or name in names else None

    def _beside(self, name: str) -> Path | None:
        """A file beside the log directory, which may have been copied into it."""
        outside = self._path / name
        try:
            outside.lstat()
        except (FileNotFoundError, NotADirectoryError):
            return self._in_log(name)
        except OSError:
            return outside  # it may exist
        return outside

    def _epochs(self, log: _LogFiles, text: str) -> tuple[tuple[int, int], ...]:
        # Kafka creates the file empty, before its log has records (CheckpointFile).
        is_fresh = not (self._unreadable or log.has_records)
        return () if is_fresh and not text else read_leader_epoch_checkpoint(text)

    def _bootstrap(self) -> CheckpointFile | None:
        path = self._beside(BOOTSTRAP_NAME)
        size = None if path is None else self._size(path)
        return None if path is None or size is None else CheckpointFile(path, None, size)

    def _side_file(self, path: Path | None, read: Callable[[str], Content]) -> Content | None:
        if path is None or self._size(path) is None:
            return None
        try:
            return read(side_file_text(path))
        except OSError as error:
            return self._cannot_read(path, error.strerror or str(error))
        except UnicodeDecodeError:
            return self._fault(path, "not UTF-8 text")
        except ValueError as error:
            return self._fault(path, str(error))

    def _size(self, path: Path, named: bool = True) -> int | None:
        """The size of a readable regular file with a valid name; else a fault and None."""
        if not named:
            return self._fault(path, "not a valid Kafka file name")
        if path in self._not_supplied:
            return None
        try:
            status = path.stat()
        except OSError as error:
            # The content of a folder that could not be listed is not known, as its own fault reports.
            if self._log_names is None and path.parent == self._log_dir:
                return None
            if isinstance(error, FileNotFoundError) and not path.is_symlink():
                self.has_changed = True
            return self._cannot_read(path, error.strerror or str(error))
        if not stat.S_ISREG(status.st_mode):
            return self._cannot_read(path, "not a regular file")
        if not os.access(path, os.R_OK):
            return self._cannot_read(path, "Permission denied")
        self._note_time(status)
        return status.st_size

    def _note_time(self, status: os.stat_result) -> None:
        modified_ms = status.st_mtime_ns // 1_000_000
        self._newest_ms = max(modified_ms, self._newest_ms or modified_ms)

    def _add_not_supplied(self) -> None:
        """The caller's unreadable files of this directory."""
        for path, reason in sorted(self._not_supplied.items()):
            if path.parent in (self._path, self._log_dir):
                self._cannot_read(path, reason)

    def _cannot_read(self, path: Path, reason: str) -> None:
        self._fault(path, reason)
        self._unreadable.append(self._faults[-1])

    def _fault(self, path: Path, reason: str) -> None:
        # A name on disk may be any bytes; in a table it is text.
        own = path.name.encode(errors="backslashreplace").decode()
        name = own if path.parent == self._path else f"{LOG_DIR_NAME}/{own}"
        self._faults.append(FileFault(LOG_DIR_NAME if path == self._log_dir else name, reason))


@dataclass(slots=True)
class _LogFiles:
    """What a log directory holds, as ControllerDir has it."""

    segments: list[SegmentFile] = field(default_factory=list[SegmentFile])
    checkpoints: list[CheckpointFile] = field(default_factory=list[CheckpointFile])
    deleted: list[str] = field(default_factory=list[str])

    @property
    def has_records(self) -> bool:
        above_0 = (checkpoint.id is None or checkpoint.id.end_offset > 0 for checkpoint in self.checkpoints)
        return any(segment.size_bytes for segment in self.segments) or any(above_0) or bool(self.deleted)
