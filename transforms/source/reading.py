"""The work of a task: its part of the files to rows, with the scan and the decoder of ingest."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from kraft_core.format.mapped_file import mapped
from kraft_core.format.snapshot import read_snapshot
from transforms.ingest.decoding import decode_file
from transforms.ingest.inputs import SCHEME, InputError, fetched, opened_inputs
from transforms.ingest.scanning import scan_file
from transforms.lake.arrow_rows import Row
from transforms.lake.isolation import place_of
from transforms.source.columns import LOG
from transforms.source.errors import SourceError
from transforms.source.filters import Wanted
from transforms.source.options import FileOptions
from transforms.source.planning import FileRange, FilesPart, PathPart, Unread, nothing_found, plan_of
from transforms.source.rows import BatchPlaces, Int64s, Origin, corrupt_records, damage_rows, record_rows

# Rows that go to Spark at once.
ROWS = 32_768
_DAMAGE = ("position", "size_bytes", "sha256", "reason", "lost_from_offset", "lost_to_offset")


@dataclass(frozen=True)
class Reading:
    """How the parts of a query are read."""

    options: FileOptions
    wanted: Wanted
    schema: pa.Schema

    def rows(self, part: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of a part. Raises SourceError in mode FAILFAST at the first byte that cannot be read."""
        if isinstance(part, PathPart):
            yield from self._archive(part)
        elif isinstance(part, FilesPart):
            yield from self._parts(part.pieces, part.unread)

    def _archive(self, part: PathPart) -> Iterator[pa.RecordBatch]:
        try:
            with opened_inputs([part.name], None) as inputs:
                plan = plan_of(inputs, self.options, self.wanted)
                if not plan.found and part.is_all:
                    raise nothing_found([part.name], plan.unread)
                yield from self._parts(plan.pieces, plan.unread)
        except InputError as error:
            raise SourceError(str(error)) from None

    def _parts(self, pieces: Iterable[FileRange], unread: Iterable[Unread]) -> Iterator[pa.RecordBatch]:
        for piece in pieces:
            yield from self._piece(piece)
        for each in unread:
            yield from self._damage([each.row], each.origin)

    def _piece(self, piece: FileRange) -> Iterator[pa.RecordBatch]:
        if not SCHEME.match(piece.path):
            yield from self._file(piece, piece.path)
            return
        with TemporaryDirectory(prefix="kraftlake-") as folder:
            path = Path(folder, piece.path.rsplit("/", 1)[-1])
            try:
                fetched(piece.path, path, piece.size_bytes)
            except InputError as error:
                unread = Unread(piece.origin, f"unreadable: {error}")
                yield from self._damage([unread.row], piece.origin)
                return
            yield from self._file(piece, str(path))

    def _file(self, piece: FileRange, path: str) -> Iterator[pa.RecordBatch]:
        """The rows of a piece whose file is on this machine."""
        batches, damage = _scanned(piece, path)
        unread = [row for row in damage if row["reason"].startswith("unreadable")]
        for row in unread:  # of the whole file: each piece says so of itself
            row["size_bytes"] = piece.end
        yield from self._damage(damage if unread else [*damage, *_missing(piece, path)], piece.origin)
        if piece.origin.source != LOG and piece.start == 0:
            yield from self._incomplete(piece, path)
        if piece.origin.last_offset is None:
            batches = batches.select(self.wanted.batches(batches.base_offsets, batches.last_offsets))
        try:
            yield from self._records(piece.origin, path, batches)
        except (_ChangedError, FileNotFoundError):
            words = "it changed while it was read; run the query again"
            raise SourceError(f"{piece.origin.file}: {words}") from None
        except (SourceError, OSError):
            raise
        except Exception as error:  # its message may quote a value
            raise SourceError(
                f"{piece.origin.file}: internal error, please report it: {place_of(error)}"
            ) from None

    def _records(self, origin: Origin, path: str, batches: ScannedBatches) -> Iterator[pa.RecordBatch]:
        if not len(batches.starts):
            return
        follow = Following(batches)
        for records in decode_file(path, batches.starts, batches.starts + batches.sizes):
            places = follow.places(records)
            mask = self.wanted.records(records, origin)
            if mask is not None and not mask.all():
                if not mask.any():
                    continue
                records, places = records.filter(pa.array(mask)), places.select(mask)
            if self.options.mode == "FAILFAST":
                self._must_be_none(corrupt_records(records, places), origin)
            for first in range(0, len(records), ROWS):
                part = slice(first, first + ROWS)
                last_offsets, positions = places.last_offsets[part], places.positions[part]
                some = records.slice(first, ROWS)
                yield record_rows(some, origin, self.schema, last_offsets, positions)
        follow.end()

    def _incomplete(self, piece: FileRange, path: str) -> Iterator[pa.RecordBatch]:
        """A row for a checkpoint that is not a complete snapshot, beside those of its damage."""
        try:
            with mapped(path) as buf:
                incomplete = read_snapshot(buf).incomplete
        except OSError:  # the scan has said so
            return
        if incomplete:
            row = Unread(piece.origin, f"incomplete: {incomplete}").row
            yield from self._damage([row | {"position": piece.size_bytes}], piece.origin)

    def _damage(self, damage: list[Row], origin: Origin) -> Iterator[pa.RecordBatch]:
        found = [row for row in damage if self.wanted.damage(row, origin)]
        if self.options.mode == "FAILFAST":
            self._must_be_none(found, origin)
        if found:
            yield damage_rows(found, origin, self.schema)

    @staticmethod
    def _must_be_none(damage: list[Row], origin: Origin) -> None:
        for row in damage:
            place = f"{origin.file}: {row['reason']} at byte {row['position']} ({row['size_bytes']} bytes)"
            raise SourceError(
                f"{place}{_lost(row)}; mode FAILFAST stops here, mode PERMISSIVE returns a row with "
                f"_corrupt_range"
            )


def _lost(damage: Row) -> str:
    """Which offsets damage lost, as the end of a sentence."""
    first, end = damage["lost_from_offset"], damage["lost_to_offset"]
    if first is None:
        return ""
    return f"; lost from offset {first}" + (" on" if end is None else f" to {end - 1}")


@dataclass(frozen=True, slots=True)
class ScannedBatches:
    """Good batches of a file in its order; last_offsets inclusive."""

    starts: Int64s
    sizes: Int64s
    base_offsets: Int64s
    last_offsets: Int64s
    crcs: Int64s
    record_counts: Int64s

    def select(self, rows: Any) -> ScannedBatches:
        if rows.all():
            return self
        return ScannedBatches(*(getattr(self, field.name)[rows] for field in fields(self)))


def _scanned(piece: FileRange, path: str) -> tuple[ScannedBatches, list[Row]]:
    """The batches of a piece, and its damage: those that begin in it.

    Where batches begin is known from the file's beginning only: what lies before the piece is scanned, too.
    """
    file = {
        "file_number": 0,
        "path": path,
        "start": 0,
        "address": 0,
        "first_offset": piece.first_offset,
        "size_bytes": piece.size_bytes,
    }
    good: list[pa.RecordBatch] = []
    damage: list[Row] = []
    for headers in scan_file(file):
        positions = headers["position"].to_numpy()
        is_good = np.asarray(headers["reason"].is_null())
        inside = (positions >= piece.start) & (positions < piece.end)
        if inside.any():
            good.append(headers.filter(pa.array(inside & is_good)))
            damage += headers.filter(pa.array(inside & ~is_good)).select(list(_DAMAGE)).to_pylist()
        # Damage comes after the good batch that follows it has been seen.
        if (is_good & (positions >= piece.end)).any():
            break
    if piece.origin.last_offset is not None:
        damage = [row | {"lost_from_offset": None, "lost_to_offset": None} for row in damage]
    columns = ("position", "size_bytes", "base_offset", "last_offset", "crc", "record_count")
    return ScannedBatches(*(_joined(good, name) for name in columns)), damage


def _missing(piece: FileRange, path: str) -> Iterator[Row]:
    """What a piece lacks of a file that went away or became shorter after the query was planned, as damage.

    Without it a file that ends after a batch would look whole.
    """
    reason, size = "the file became shorter", 0
    try:
        with Path(path).open("rb") as file:
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        reason = error.strerror or str(error)
    begins = max(size, piece.start)
    if begins < piece.end:
        row = Unread(piece.origin, f"unreadable: {reason}").row
        yield row | {"position": begins, "size_bytes": piece.end - begins}


def _joined(parts: list[pa.RecordBatch], name: str) -> Int64s:
    held = [part[name].to_numpy() for part in parts]
    return np.concatenate([np.empty(0, np.int64), *held]).astype(np.int64)


class _ChangedError(Exception):
    """The batches that were decoded are not those that the scan found."""


class Following:
    """Finds the batch of each record while batches are decoded in their order. Raises _ChangedError."""

    def __init__(self, batches: ScannedBatches) -> None:
        self._batches = batches
        self._at = -1
        self._begun = 0

    def places(self, records: pa.RecordBatch) -> BatchPlaces:
        """Of the next records: each batch begins with position_in_batch 0, and some have no record."""
        bases, crcs = (records[name].to_numpy() for name in ("batch_base_offset", "batch_crc"))
        begins = records["position_in_batch"].to_numpy() == 0
        self._begun += int(np.count_nonzero(begins))
        numbers = self._at + np.cumsum(begins)
        if not self._fits(numbers, bases, crcs):
            numbers = self._one_by_one(begins, bases, crcs)
        self._at = int(numbers[-1])
        return BatchPlaces(self._batches.starts[numbers], self._batches.last_offsets[numbers])

    def end(self) -> None:
        """All is decoded: every batch that has records has been found."""
        if self._begun < np.count_nonzero(self._batches.record_counts > 0):
            raise _ChangedError

    def _fits(self, numbers: Int64s, bases: Int64s, crcs: Int64s) -> bool:
        found = self._batches
        inside = numbers[0] >= 0 and numbers[-1] < len(found.starts)
        return inside and bool(((found.base_offsets[numbers] == bases) & (found.crcs[numbers] == crcs)).all())

    def _one_by_one(self, begins: Any, bases: Int64s, crcs: Int64s) -> Int64s:
        numbers = np.empty(len(begins), np.int64)
        found, at = self._batches, self._at
        for row in range(len(begins)):
            at += bool(begins[row])
            batch = bases[row], crcs[row]
            while at < len(found.crcs) and (found.base_offsets[at], found.crcs[at]) != batch:
                at += 1
            if at == len(found.crcs):
                raise _ChangedError
            numbers[row] = at
        return numbers
