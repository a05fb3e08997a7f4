"""Compact small files, so that neither their number nor the time of a run grows every night."""

from __future__ import annotations

from collections.abc import Iterable

from jobs.runtime.progress import Counted, Progress
from transforms.lake import delta_rs
from transforms.lake.commits import TableWriter
from transforms.lake.joined_files import SMALL_BYTES
from transforms.lake.storage.location import Location, StoreUrl
from transforms.lake.storage.table_folders import may_have_grown
from transforms.lake.tables import RUNS, TABLES, Table

# A table is compacted once more than this many of its files are small; in a store, each takes a request to
# read it, and kraftlake follow reads them in every pass.
MOST_SMALL_FILES, MOST_IN_STORE, MOST_FOLLOWED = 50, 12, 12


def compact_written(writer: TableWriter, progress: Progress, most: int) -> None:
    """Compact the tables of which this run may have made the small files too many: more than `most`."""
    lake = writer.lake
    compact(writer, progress, most, [table for table in TABLES if may_have_grown(lake, table)])


def compact(
    writer: TableWriter,
    progress: Progress,
    most: int,
    tables: Iterable[Table] = TABLES,
    *,
    whole: bool = False,
) -> list[str]:
    """Compact the tables that have more than `most` small files. Returns their names. whole: all of each."""
    wanted = _fragmented(writer.lake, tables, most)
    if wanted:
        counted = Counted()
        with progress.stage("compact", ", ".join(t.name for t in wanted), counted, "tables"):
            for table in counted.each(wanted, len(wanted)):
                writer.compact(table, whole)
    return [t.name for t in wanted]


def compact_runs(lake: Location) -> None:
    """Compact `runs`, the only table that a run with nothing new writes."""
    for table in _fragmented(lake, [RUNS], most_files(lake)):
        TableWriter(lake, None).compact(table)


def most_files(lake: Location) -> int:
    """How many small files a table may have."""
    return MOST_IN_STORE if isinstance(lake, StoreUrl) else MOST_SMALL_FILES


def _fragmented(lake: Location, tables: Iterable[Table], most: int) -> list[Table]:
    return [t for t in tables if delta_rs.small_files(lake, t, SMALL_BYTES) > most]
