"""What a follower has read of one quorum, as files that run reads: the committed log, and describe outputs.

A folder of a cluster has copies, each of a stretch of the log: the next one begins when a copy is full, or
where the quorum had deleted what was not read yet, with the snapshot that replaces it. One directory id says
that they are of one log. Segments hold the very bytes of the fetched batches, so that a record is the same
one, whether it was followed or captured. Whoever is killed while writing leaves at most an incomplete batch,
which is cut off when the folder is opened again. A damaged batch is cut off, too, with what follows it.
"""

from __future__ import annotations

import json
import logging
import shutil
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

from kraft_core.columnar.timestamps import representable
from kraft_core.format.batch import BatchHeader
from kraft_core.format.capture import CAPTURE_JSON, LIVE
from kraft_core.format.log_dirs import LOG_DIR_NAME, is_folder_name
from kraft_core.format.side_file_texts import checkpoint_name
from kraft_core.format.side_files import read_meta_properties
from kraft_core.messages.uuid_text import uuid_text
from kraft_core.wire.batches import whole_batches
from kraft_core.wire.errors import RefusedError, WireError
from kraft_core.wire.follower import LogPart, Part, Position, SnapshotPart
from transforms.lake.arrow_rows import EPOCH
from transforms.live.describe_text import replication_text, status_text
from transforms.live.quorum_asker import QuorumSample

# A copy whose segment has reached this size is full.
SEGMENT_BYTES = 64 * 1024 * 1024
OUTPUTS, META_PROPERTIES = "quorum", "meta.properties"
# What the name of a copy begins with, before its first offset.
COPY = "copy-"
log = logging.getLogger("kraftlake.live")


class Spool:
    """The folder of a cluster below `root`; what a killed process left is repaired.

    Raises RefusedError for an id that leads out of the root: a node reports any. OSError.
    """

    def __init__(self, root: Path, cluster_id: str) -> None:
        if not is_folder_name(cluster_id):
            raise RefusedError(f"the cluster id cannot be a folder name: {cluster_id[:80]!r}")
        self.cluster_id = cluster_id
        self.folder = root / cluster_id
        self._snapshot: SnapshotPart | None = None
        (self.folder / OUTPUTS).mkdir(parents=True, exist_ok=True)
        self._copy, self._last = self._found()

    @property
    def position(self) -> Position | None:
        """From where to read on; None: from the beginning."""
        if self._last is None:
            return None
        last = self._last
        return Position(last.next_offset, last.leader_epoch, last.leader_epoch, crc=last.crc)

    def add(self, part: Part) -> None:
        """Write what was read next. A snapshot is kept until the log that follows it comes."""
        if isinstance(part, SnapshotPart):
            self._snapshot = part
        else:
            self._append(part)

    def note(self) -> None:
        """Say that this is what is committed now, by this machine's clock or the leader's, which is later."""
        if self._copy is not None and self._last is not None:
            _note(self._copy, representable(self._last.max_timestamp))

    def add_sample(self, sample: QuorumSample) -> None:
        """Write an answer to DescribeQuorum as describe outputs."""
        times = f"{sample.asked_at}-{sample.answered_at}"
        folder, quorum = self.folder / OUTPUTS, sample.quorum
        _put(folder / f"{times}-replication{LIVE}", replication_text(quorum))
        _put(folder / f"{times}-status{LIVE}", status_text(self.cluster_id, quorum))

    def outputs(self) -> list[Path]:
        """The describe outputs that are there."""
        return sorted((self.folder / OUTPUTS).glob(f"*{LIVE}"))

    def prune(self, before: float, loaded: Mapping[str, Collection[range]]) -> None:
        """Remove copies but the newest that have not grown since a time (seconds) and are loaded.

        loaded: by directory id the offsets that the lake has of a followed log.
        """
        ours = loaded.get(self._directory_id(), ())
        for copy in self.folder.glob(f"{COPY}*"):
            if copy == self._copy or (copy / CAPTURE_JSON).stat().st_mtime >= before:
                continue
            segment = _segment(copy)
            last = None if segment is None else _read(segment).last
            if segment is None or last is None:
                continue
            if any(held.start <= int(segment.stem) and last.next_offset <= held.stop for held in ours):
                shutil.rmtree(copy.rename(self.folder / f".{copy.name}"))

    def _append(self, part: LogPart) -> None:
        if self._snapshot is not None or self._copy is None or _is_full(self._copy):
            self._begin_copy(part.batches[0].base_offset)
        assert self._copy is not None
        first = self._copy / LOG_DIR_NAME / f"{part.batches[0].base_offset:020}.log"
        segment = _segment(self._copy) or first
        with segment.open("ab") as file:
            file.write(part.records)
        self._last = part.batches[-1]

    def _begin_copy(self, offset: int) -> None:
        """A directory that is in place at once, so that a killed process leaves a whole one or none."""
        self.note()
        name = f"{COPY}{offset:020}"
        made = self.folder / f".{name}"
        (made / LOG_DIR_NAME).mkdir(parents=True)
        identity = {"cluster.id": self.cluster_id, "directory.id": self._directory_id(), "version": 1}
        (made / META_PROPERTIES).write_text("".join(f"{key}={value}\n" for key, value in identity.items()))
        if self._snapshot is not None:
            end = self._snapshot.snapshot_id
            checkpoint = checkpoint_name(end.end_offset, end.leader_epoch)
            (made / LOG_DIR_NAME / checkpoint).write_bytes(self._snapshot.content)
        _note(made, 0)
        self._copy = made.rename(self.folder / name)
        self._snapshot, self._last = None, None

    def _directory_id(self) -> str:
        """That of the copies before, or a new one."""
        if self._copy is not None:
            known = read_meta_properties((self._copy / META_PROPERTIES).read_text()).directory_id
            if known is not None:
                return known
        return uuid_text(uuid4().bytes)

    def _found(self) -> tuple[Path | None, BatchHeader | None]:
        """The newest copy, and its last batch. Removes copies that were begun and have no batch."""
        for begun in self.folder.glob(".*"):
            shutil.rmtree(begun)
        for copy in sorted(self.folder.glob(f"{COPY}*"), reverse=True):
            last = _repaired(copy)
            if last is not None:
                return copy, last
            shutil.rmtree(copy)
        return None, None


def _segment(copy: Path) -> Path | None:
    """The only segment of a copy, or none before its first batch is written."""
    return next((copy / LOG_DIR_NAME).glob("*.log"), None)


def _is_full(copy: Path) -> bool:
    segment = _segment(copy)
    return segment is not None and segment.stat().st_size >= SEGMENT_BYTES


def has_log(root: Path) -> bool:
    """Whether there is anything to read below a root."""
    return any(root.glob(f"*/{COPY}*/{LOG_DIR_NAME}/*.log"))


@dataclass(frozen=True, slots=True)
class _Content:
    """A segment up to the first batch that is incomplete, or damaged. damage: what is wrong with that."""

    last: BatchHeader | None
    damage: str | None
    size_bytes: int


def _read(segment: Path) -> _Content:
    content = segment.read_bytes()
    last = None
    try:
        for batch in whole_batches(content):
            last = batch
    except WireError as error:
        return _Content(last, str(error), len(content))
    return _Content(last, None, len(content))


def _repaired(copy: Path) -> BatchHeader | None:
    """The last whole batch of a copy; what follows it is cut off, and will be read again."""
    segment = _segment(copy)
    if segment is None:
        return None
    content = _read(segment)
    end = 0 if content.last is None else content.last.end
    if content.damage is not None:
        log.warning(
            "%s is damaged at position %d: %s; the %d bytes from there on are read from the quorum again, "
            "or, if it has deleted them, replaced by its snapshot",
            *(segment, end, content.damage, content.size_bytes - end),
        )
    if end < content.size_bytes:
        with segment.open("r+b") as file:
            file.truncate(end)
    return content.last


def _note(copy: Path, last_appended_at: int) -> None:
    at = max(time.time_ns() // 1_000_000, last_appended_at)
    note = {"captured_at": (EPOCH + timedelta(milliseconds=at)).isoformat(), "followed": True}
    _put(copy / CAPTURE_JSON, json.dumps(note))


def _put(file: Path, text: str) -> None:
    """Put a file in place whole."""
    written = file.with_name(f".{file.name}")
    written.write_text(text)
    written.replace(file)
