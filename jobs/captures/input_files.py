"""The files that a reading opens: segments and checkpoints of captured copies, numbered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa

from jobs.captures.planning import PlannedCapture
from kraft_core.format.capture import FileIdentity, file_identity
from kraft_core.format.controller_dir import CheckpointFile, SegmentFile
from transforms.ingest.decoding import SourceFile
from transforms.ingest.epoch_ranges import FileEpochRange
from transforms.ingest.scanning import FILES

Row = dict[str, Any]
FILES_PER_TASK = 512
BYTES_PER_TASK = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class KnownSegment:
    """What the lake holds of a segment already: its first bytes, every one of them good."""

    size_bytes: int = 0
    pieces: tuple[FileEpochRange, ...] = ()


NOTHING = KnownSegment()


@dataclass(frozen=True, slots=True)
class CapturedFile:
    """A file of a captured copy. copy: its number in the reading; digests: None if it was unreadable."""

    copy: int
    capture: PlannedCapture
    file: SegmentFile | CheckpointFile
    digests: FileIdentity | None

    @property
    def name(self) -> str:
        return self.capture.directory.relative(self.file.path)

    @property
    def path(self) -> Path:
        return self.file.path


@dataclass(frozen=True, slots=True)
class CopiedSegment(CapturedFile):
    """A segment of a captured copy."""

    file: SegmentFile
    known: KnownSegment = NOTHING

    @property
    def size_bytes(self) -> int:
        """Of what is to be read."""
        return self.file.size_bytes - self.known.size_bytes

    def row(self) -> Row:
        """It as a row of scanning.FILES, but for the number and the task."""
        pieces = self.known.pieces
        return {
            "path": str(self.path.absolute()),
            "start": self.known.size_bytes,
            "first_offset": pieces[-1].end_offset if pieces else self.file.base_offset,
            "size_bytes": self.file.size_bytes,
        }


@dataclass(frozen=True, slots=True)
class CopiedCheckpoint(CapturedFile):
    """A checkpoint of a captured copy."""

    file: CheckpointFile

    @property
    def size_bytes(self) -> int:
        return self.file.size_bytes

    @property
    def columns(self) -> Row:
        """Whose it is, where it lies and what its edges are."""
        return {
            "copy": self.copy,
            "cluster_id": self.capture.who.cluster_id,
            "file": self.name,
            "path": str(self.path.absolute()),
            "head_digest": self.digests.head_digest if self.digests else None,
            "tail_digest": self.digests.tail_digest if self.digests else None,
        }

    def row(self) -> Row:
        """It as a row of scanning.FILES, but for the number and the task."""
        return {"path": str(self.path.absolute()), "start": 0, "size_bytes": self.size_bytes}


def segments_of(copies: Sequence[PlannedCapture]) -> list[CopiedSegment]:
    """Every segment of the copies."""
    return [
        CopiedSegment(number, copy, file, digests.get(file.path.name))
        for number, copy in enumerate(copies)
        for digests in [digests_of(copy)]
        for file in copy.directory.segments
    ]


def checkpoints_of(copies: Sequence[PlannedCapture]) -> list[CopiedCheckpoint]:
    """Every finished checkpoint of the copies, and the bootstrap ones."""
    found = []
    for number, copy in enumerate(copies):
        digests = digests_of(copy)
        for file in copy.directory.checkpoints:
            found.append(CopiedCheckpoint(number, copy, file, digests.get(file.path.name)))
        bootstrap = copy.directory.bootstrap
        if bootstrap is not None:
            found.append(CopiedCheckpoint(number, copy, bootstrap, edges_of(bootstrap)))
    return found


def digests_of(copy: PlannedCapture) -> dict[str, FileIdentity]:
    return {f.name: f for f in copy.files}


def edges_of(file: CheckpointFile) -> FileIdentity | None:
    """The identity of a file that is none of those that make the capture's."""
    try:
        return file_identity(file.path, file.size_bytes)
    except OSError:
        return None


def files_table(
    files: Sequence[CopiedSegment] | Sequence[CopiedCheckpoint], cores: int
) -> tuple[pa.Table, int]:
    """Rows of scanning.FILES and the number of tasks, each with a like share of files and bytes.

    The place in the sequence is a file's number.
    """
    addresses, size = addresses_of(files)
    tasks = max(1, min(len(files), max(len(files) // FILES_PER_TASK, size // BYTES_PER_TASK, cores)))
    by_size = sorted(range(len(files)), key=lambda n: files[n].size_bytes, reverse=True)
    rows = [
        {"file_number": n, "task": place % tasks, "address": addresses[n]} | files[n].row()
        for place, n in enumerate(by_size)
    ]
    return pa.Table.from_pylist(rows, schema=FILES), tasks


def sources_of(segments: Sequence[CopiedSegment]) -> tuple[list[SourceFile], int]:
    """The segments as sources of batches, one after the other, and the bytes of them all."""
    addresses, size = addresses_of(segments)
    sources = [
        SourceFile(address, s.known.size_bytes, str(s.path.absolute()), s.capture.who.cluster_id)
        for address, s in zip(addresses, segments, strict=True)
    ]
    return sources, size


def addresses_of(files: Sequence[CopiedSegment] | Sequence[CopiedCheckpoint]) -> tuple[list[int], int]:
    """Where what is read of each file would begin if it all lay in one piece, and the bytes of that."""
    *addresses, size = accumulate((f.size_bytes for f in files), initial=0)
    return addresses, size
