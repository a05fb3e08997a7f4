"""Files that an ingest must continue without: they affect only their own capture.

Tasks read many files, so that an exception in one fails the load. Then each file is read alone, as a load
would, to find those at fault; the load is repeated without them. So it is without files of a log with more
epoch ranges than the driver holds of one.
"""

from __future__ import annotations

import errno
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import SparkSession

from kraft_core.format.controller_dir import FileFault
from transforms.ingest import checkpoints
from transforms.ingest.captured_files import CaptureCopy, CapturedFile, sources_of
from transforms.ingest.decoding import SourceFile, decoder
from transforms.ingest.known_files import IngestFiles
from transforms.ingest.pieces import places, scan_to_pieces
from transforms.ingest.scanning import DISORDERED, MOST_RANGES
from transforms.ingest.spark_frames import per_file
from transforms.lake.arrow_rows import Row
from transforms.lake.isolation import place_of
from transforms.lake.spark_rows import to_rows
from transforms.lake.spark_tasks import in_tasks
from transforms.lake.table_files import Task, writing
from transforms.lake.tables import RECORDS, SNAPSHOT_RECORDS, Table

FAULTS = pa.schema([("number", pa.int32()), ("reason", pa.string())])
NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class FilesRefusedError(Exception):
    """Files that an ingest must go on without. faults: by number of the copy."""

    def __init__(self, faults: Mapping[int, Sequence[FileFault]]) -> None:
        self.faults = faults
        super().__init__(", ".join(fault.file for found in faults.values() for fault in found))


class ReadAlone(NamedTuple):
    """A file to be read alone. number: its place among all; source: None of a checkpoint."""

    number: int
    row: Row
    source: SourceFile | None


class Load(NamedTuple):
    """How a load decodes and writes.

    allowed: as in secrets.is_secret_config. constants: as in table_files.writing.
    """

    allowed: Set[str]
    constants: Row


def failing_files(spark: SparkSession, files: IngestFiles, how: Load) -> dict[int, list[FileFault]]:
    """By number of the copy the files that cannot be read, with the exception; empty if each of them can.

    Nothing is written to the lake. The reasons hold no message: that may quote a value.
    """
    sources, _ = sources_of(files.opened)
    both: list[CapturedFile] = [*files.opened, *files.checkpoints]
    rows = [
        {"file_number": n, "address": source.address} | segment.row()
        for n, (segment, source) in enumerate(zip(files.opened, sources, strict=True))
    ]
    rows += [{"file_number": n} | c.columns | c.row() for n, c in enumerate(files.checkpoints)]
    of_segments = [*sources, *(None for _ in files.checkpoints)]
    work = [ReadAlone(n, row, source) for n, (row, source) in enumerate(zip(rows, of_segments, strict=True))]
    found: dict[int, list[FileFault]] = {}
    for fault in to_rows(in_tasks(spark, work, partial(_faults_of, how=how), FAULTS)):
        file = both[fault["number"]]
        found.setdefault(file.copy, []).append(FileFault(file.name, fault["reason"]))
    return found


def check_range_counts(files: IngestFiles, counts: Mapping[int, int]) -> None:
    """Raises FilesRefusedError for the files after the first MOST_RANGES epoch ranges of a captured log.

    counts: of the ranges in each file that was opened, by its number. Every range is a row in the driver.
    """
    numbers = {id(segment): number for number, segment in enumerate(files.opened)}
    held: Counter[int] = Counter()
    refused: dict[int, list[FileFault]] = {}
    reason = f"{DISORDERED}: more than {MOST_RANGES:,} epoch ranges in one log"
    for segment in files.segments:
        held[segment.copy] += len(segment.known.ranges) + counts.get(numbers.get(id(segment), -1), 0)
        if held[segment.copy] > MOST_RANGES:
            refused.setdefault(segment.copy, []).append(FileFault(segment.name, reason))
    if refused:
        raise FilesRefusedError(refused)


def without_files(
    copies: Sequence[CaptureCopy], faults: Mapping[int, Sequence[FileFault]]
) -> list[CaptureCopy]:
    """The copies with some files unreadable; faults: by number of the copy."""
    return [_without(copy, faults.get(number, ())) for number, copy in enumerate(copies)]


def _without(copy: CaptureCopy, faults: Sequence[FileFault]) -> CaptureCopy:
    names, found = {fault.file for fault in faults}, copy.directory
    bootstrap = found.bootstrap
    directory = replace(
        found,
        segments=tuple(s for s in found.segments if found.relative(s.path) not in names),
        checkpoints=tuple(c for c in found.checkpoints if found.relative(c.path) not in names),
        bootstrap=None if bootstrap is None or found.relative(bootstrap.path) in names else bootstrap,
        unreadable=(*found.unreadable, *faults),
        faults=(*found.faults, *faults),
    )
    return replace(copy, directory=directory)


def _faults_of(file: ReadAlone, how: Load) -> Iterator[pa.RecordBatch]:
    """A row of FAULTS if the file cannot be read."""
    try:
        with TemporaryDirectory(prefix="kraftlake-") as folder:
            if file.source is None:
                _read_checkpoint(file.row, folder, how)
            else:
                _read_segment(file.row, file.source, folder, how)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            raise
        yield pa.RecordBatch.from_pylist([{"number": file.number, "reason": place_of(error)}], schema=FAULTS)


def _read_segment(file: Row, source: SourceFile, folder: str, how: Load) -> None:
    batches = places(scan_to_pieces(_frame(file)))
    _exhaust(_written(decoder([source], how.allowed), RECORDS, folder, how), batches)


def _read_checkpoint(file: Row, folder: str, how: Load) -> None:
    (read,) = per_file(checkpoints.read_checkpoint, checkpoints.CHECKPOINTS)(_frame(file))
    (row,) = read.to_pylist()
    if row["content_digest"] is not None:
        decode = per_file(partial(checkpoints.decode_checkpoint, allowed=how.allowed), checkpoints.DECODED)
        _exhaust(_written(decode, SNAPSHOT_RECORDS, folder, how), _frame(file | row))


def _frame(row: Row) -> Iterator[pa.RecordBatch]:
    return iter([pa.RecordBatch.from_pylist([row])])


def _written(decode: Task, table: Table, folder: str, how: Load) -> Task:
    return writing(decode, Path(folder), table.arrow_schema, how.constants)


def _exhaust(task: Task, rows: Iterator[pa.RecordBatch]) -> None:
    for _ in task(rows):
        pass
