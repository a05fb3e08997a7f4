"""A consistent copy of a live controller's directory, made without stopping the controller.

Kafka appends to the last segment, now and then begins a new one, writes checkpoints and deletes what lies
below them, and truncates when another leader's log differs. So the order of files matters:
1 checkpoints before segments: a segment is deleted only once a newer checkpoint covers it, and step 4 detects
  what is deleted after the first segment was copied;
2 segments, each up to its size when it is opened: the copy is the log as of one moment, perhaps with an
  incomplete last batch;
3 leader-epoch-checkpoint, then quorum-state: its epoch is at least that of the copied log;
4 the segments again: if one was deleted or truncated, the copied files may never have existed together, and
  all is copied again, as it is if meta.properties has other ids, those of a new disk. By log matching an
  equal tail is an equal log, so the edges of each file suffice;
5 the epochs: Kafka raises the first one's start before it deletes the segments and checkpoints below it, so a
  copy may hold both. It is copied again, except by the last try: the controller itself may be in that state.
captured_at is when the first segment was opened: the copied log ended no earlier than it did then.
Each file is on disk before the copy is complete: cut off by a power loss, it would show a shorter log.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kraft_core.format.capture import CAPTURE_JSON, file_identity, missing_ids
from kraft_core.format.controller_dir import ControllerDir, find_controller_dirs
from kraft_core.format.log_dirs import LOG_DIR_NAME, is_folder_name
from kraft_core.format.side_files import read_leader_epoch_checkpoint

TRIES = 7
# Before the second try, and doubled before each further one, in s: Kafka may delete many segments in a row.
FIRST_PAUSE_S = 0.05
CHUNK_BYTES = 1024 * 1024
# What the folder of a copy is called until it is complete.
COPYING = ".copying-"
STATE_FILES = ("partition.metadata", "leader-epoch-checkpoint", "quorum-state")


class CopyError(Exception):
    """A directory that could not be copied; the message says why."""


@dataclass(frozen=True, slots=True)
class Copied:
    """A finished copy: its folder, the content of its capture.json, and its size."""

    path: Path
    capture: dict[str, Any]
    size_bytes: int


class ChangedError(Exception):
    """The source changed in a way that requires a new copy."""


def copy_controller(source: Path, target: Path, host: str) -> Copied:
    """Copy the controller directory `source` to target/CLUSTER/node-N/TIME. Raises CopyError, OSError."""
    reason = ""
    for attempt in range(1, TRIES + 1):
        if attempt > 1:
            time.sleep(FIRST_PAUSE_S * 2 ** (attempt - 2))
        directory = one_directory(source)
        meta = directory.meta
        fault = next((fault for fault in directory.faults if fault.file == "meta.properties"), None)
        if fault is not None:
            raise CopyError(f"{fault.file}: {fault.reason}")
        if meta is None or meta.cluster_id is None or meta.node_id is None:
            raise CopyError(f"its meta.properties has {missing_ids(directory)}")
        if not is_folder_name(meta.cluster_id):
            raise CopyError(f"its cluster id cannot be a folder name: {meta.cluster_id[:80]!r}")
        if directory.unreadable:
            lost = directory.unreadable[0]
            raise CopyError(f"{lost.file}: {lost.reason}; run it as the user that Kafka runs as")
        if not directory.segments and not directory.checkpoints:
            raise CopyError(
                f"its {LOG_DIR_NAME} contains neither a segment nor a checkpoint: there is no log to copy"
            )
        home = target / meta.cluster_id / f"node-{meta.node_id}"
        # Until the copy is complete its log directory has another name, so that no run finds it.
        partial = home / f"{COPYING}{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
        partial.mkdir(parents=True)
        try:
            moment = copy_files(directory, partial)
            if attempt < TRIES:
                check_epochs(directory, partial / "log")
            capture = write_capture_json(partial, moment, host, source, tries=attempt)
            size = sum(_forced(file) for file in partial.rglob("*") if file.is_file())
            (partial / "log").rename(partial / LOG_DIR_NAME)
            return Copied(partial.rename(home / f"{moment:%Y%m%dT%H%M%S.%fZ}"), capture, size)
        except (ChangedError, FileNotFoundError) as error:
            reason = str(error)
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    raise CopyError(f"it changed during each of {TRIES} attempts; in the last one, {reason}")


def write_capture_json(
    folder: Path, moment: datetime, host: str, source: Path, **more: Any
) -> dict[str, Any]:
    """Write the capture.json of a copy, made of `source` at a moment (UTC); returns its content."""
    captured_at = moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    content = {"captured_at": captured_at, "host": host, "source": str(source.absolute()), **more}
    (folder / CAPTURE_JSON).write_text(json.dumps(content) + "\n")
    return content


def one_directory(source: Path) -> ControllerDir:
    """The controller directory as it is now. Raises CopyError where it has gone."""
    found = find_controller_dirs([source]).directories
    if not found:
        raise CopyError("the metadata log is gone")
    return found[0]


def copy_files(directory: ControllerDir, partial: Path) -> datetime:
    """Copy in the order that the module describes. Returns captured_at. Raises ChangedError."""
    log = partial / "log"
    log.mkdir()
    copy_if_there(directory.path / "meta.properties", partial)
    if directory.bootstrap is not None:
        copy_if_there(directory.bootstrap.path, partial)
    for checkpoint in directory.checkpoints:
        copy(checkpoint.path, log)
    moment = datetime.now(UTC)
    copies = [copy(segment.path, log) for segment in directory.segments]
    for name in STATE_FILES:
        copy_if_there(directory.log_dir / name, log)
    now = one_directory(directory.path)
    if now.meta != directory.meta:
        raise ChangedError("it was formatted again")
    check_segments(now, copies)
    return moment


def copy(source: Path, folder: Path) -> Path:
    """Copy a file up to its size now. Raises FileNotFoundError where Kafka has deleted it meanwhile."""
    target = folder / source.name
    with source.open("rb") as reader, target.open("wb") as writer:
        left = source.stat().st_size
        while left > 0 and (chunk := reader.read(min(left, CHUNK_BYTES))):
            writer.write(chunk)
            left -= len(chunk)
    return target


def _forced(path: Path) -> int:
    """Force a file to disk. Returns its size."""
    with path.open("rb+") as file:
        os.fsync(file.fileno())
        return os.fstat(file.fileno()).st_size


def copy_if_there(source: Path, folder: Path) -> None:
    """Copy a small file if it exists: Kafka replaces such files atomically."""
    if source.is_file():
        copy(source, folder)


def check_segments(now: ControllerDir, copies: list[Path]) -> None:
    """Raises ChangedError where the log no longer begins with what was copied."""
    if [s.path.name for s in now.segments][: len(copies)] != [c.name for c in copies]:
        raise ChangedError("segments were deleted")
    for segment, copied in zip(now.segments, copies, strict=False):
        size = copied.stat().st_size
        if segment.size_bytes < size or file_identity(segment.path, size) != file_identity(copied, size):
            raise ChangedError(f"{copied.name} was truncated")


def check_epochs(directory: ControllerDir, log: Path) -> None:
    """Raises ChangedError where the copied leader-epoch-checkpoint begins above the copied log."""
    try:
        epochs = read_leader_epoch_checkpoint((log / "leader-epoch-checkpoint").read_text())
    except (FileNotFoundError, ValueError):  # absent or unreadable: no reason to copy again
        return
    starts = [s.base_offset for s in directory.segments[:1]]
    starts += [c.id.end_offset for c in directory.checkpoints[:1] if c.id is not None]
    if epochs and epochs[0][1] > max(starts, default=0):
        raise ChangedError("its start moved")
