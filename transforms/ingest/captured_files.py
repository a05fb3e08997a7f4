"""Copies of captures and their files: the segments and checkpoints that an ingest may read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import get_args

from kraft_core.format.capture import CapturedAtSource, FileIdentity, Identity, file_identity
from kraft_core.format.controller_dir import CheckpointFile, ControllerDir, SegmentFile
from transforms.ingest.decoding import SourceFile
from transforms.ingest.epoch_ranges import FileEpochRange
from transforms.lake.arrow_rows import Row

# The sources of captured_at, the most reliable first.
CAPTURED_AT_SOURCES: tuple[CapturedAtSource, ...] = get_args(CapturedAtSource)
FILES_PER_TASK = 512


@dataclass(frozen=True, slots=True)
class CaptureCopy:
    """One copy of a captured controller directory; copies of one capture have equal capture_ids.

    captured_at: ms since the epoch. files: the identities of its segments and checkpoints. bootstrap: that of
    bootstrap.checkpoint, which is no part of the capture's; None if there is none that can be read. life: as
    in table lives; None where the cluster id has one, or its life is not known yet.
    """

    who: Identity
    capture_id: str
    captured_at: int
    captured_at_source: CapturedAtSource
    directory: ControllerDir
    files: tuple[FileIdentity, ...]
    bootstrap: FileIdentity | None = None
    life: str | None = None


@dataclass(frozen=True, slots=True)
class KnownSegment:
    """The part of a segment that the lake holds: its first bytes, all of them good.

    cluster_id, capture_id: under which the lake holds it.
    """

    size_bytes: int = 0
    ranges: tuple[FileEpochRange, ...] = ()
    cluster_id: str = ""
    capture_id: str = ""


UNKNOWN = KnownSegment()


@dataclass(frozen=True, slots=True)
class CapturedFile:
    """A file of a captured copy. copy: the copy's number in the ingest; digests: None if it is unreadable."""

    copy: int
    capture: CaptureCopy
    file: SegmentFile | CheckpointFile
    digests: FileIdentity | None

    @property
    def name(self) -> str:
        """Its path, relative to the captured directory."""
        return self.capture.directory.relative(self.file.path)

    @property
    def path(self) -> Path:
        return self.file.path

    @property
    def cluster_id(self) -> str:
        return self.capture.who.cluster_id


@dataclass(frozen=True, slots=True)
class CapturedSegment(CapturedFile):
    """A segment of a captured copy."""

    file: SegmentFile
    known: KnownSegment = UNKNOWN

    @property
    def size_bytes(self) -> int:
        """Bytes to be read."""
        return self.file.size_bytes - self.known.size_bytes

    def row(self) -> Row:
        """A row of scanning.FILES without number and task."""
        ranges = self.known.ranges
        return {
            "path": str(self.path.absolute()),
            "start": self.known.size_bytes,
            "first_offset": ranges[-1].end_offset if ranges else self.file.base_offset,
            "size_bytes": self.file.size_bytes,
        }


@dataclass(frozen=True, slots=True)
class CapturedCheckpoint(CapturedFile):
    """A checkpoint of a captured copy."""

    file: CheckpointFile

    @property
    def size_bytes(self) -> int:
        return self.file.size_bytes

    @property
    def columns(self) -> Row:
        """Whose it is, where it lies, and the digests of its edges."""
        return {
            "copy": self.copy,
            "cluster_id": self.cluster_id,
            "file": self.name,
            "path": str(self.path.absolute()),
            "head_digest": self.digests.head_digest if self.digests else None,
            "tail_digest": self.digests.tail_digest if self.digests else None,
        }

    def row(self) -> Row:
        """A row of scanning.FILES without number and task."""
        return {"path": str(self.path.absolute()), "start": 0, "size_bytes": self.size_bytes}


def segments_of(copies: Sequence[CaptureCopy]) -> list[CapturedSegment]:
    """Every segment of the copies."""
    return [
        CapturedSegment(number, copy, file, digests.get(file.path.name))
        for number, copy in enumerate(copies)
        for digests in [_digests_of(copy)]
        for file in copy.directory.segments
    ]


def checkpoints_of(copies: Sequence[CaptureCopy]) -> list[CapturedCheckpoint]:
    """Every finished checkpoint of the copies, and the bootstrap ones."""
    found = []
    for number, copy in enumerate(copies):
        digests = _digests_of(copy)
        for file in copy.directory.checkpoints:
            found.append(CapturedCheckpoint(number, copy, file, digests.get(file.path.name)))
        bootstrap = copy.directory.bootstrap
        if bootstrap is not None:
            found.append(CapturedCheckpoint(number, copy, bootstrap, copy.bootstrap))
    return found


def _digests_of(copy: CaptureCopy) -> dict[str, FileIdentity]:
    return {f.name: f for f in copy.files}


def identity_of(file: CheckpointFile | None) -> FileIdentity | None:
    """The identity of a file that is not a part of the capture's; None if it cannot be read."""
    try:
        return None if file is None else file_identity(file.path, file.size_bytes)
    except OSError:
        return None


def checkpoint_edges(file: FileIdentity) -> tuple[int, str, str]:
    """What tells checkpoints of one name apart: size in bytes, digests of the edges."""
    return file.size_bytes, file.head_digest, file.tail_digest


def sources_of(segments: Sequence[CapturedSegment]) -> tuple[list[SourceFile], int]:
    """The segments as sources of batches, in the order of their addresses, and their size in bytes."""
    addresses, size = addresses_of(segments)
    sources = [
        SourceFile(address, s.known.size_bytes, str(s.path.absolute()), s.cluster_id)
        for address, s in zip(addresses, segments, strict=True)
    ]
    return sources, size


def addresses_of(files: Sequence[CapturedSegment] | Sequence[CapturedCheckpoint]) -> tuple[list[int], int]:
    """Where each file would begin if the bytes to be read lay one after the other, and their number."""
    *addresses, size = accumulate((f.size_bytes for f in files), initial=0)
    return addresses, size
