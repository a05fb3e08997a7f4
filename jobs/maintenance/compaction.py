"""Small files joined, so that neither their number nor the time of a run grows with the nights."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from jobs.runtime.progress import Progress
from transforms.lake import delta_rs
from transforms.lake.tables import RUNS, TABLES, Table

# A table is compacted when more than so many of its files are smaller than that.
SMALL_BYTES = 16 * 1024 * 1024
MOST_SMALL_FILES = 50


def compact(lake: Any, progress: Progress, most: int = MOST_SMALL_FILES) -> list[str]:
    """Join the small files of the tables that have more than `most`. Returns their names.

    Delta itself joins those of a clustered table of an earlier lake, and lays the rows out by its columns.
    """
    wanted = scattered(lake.path, TABLES, most)
    if wanted:
        with progress.stage("compact", ", ".join(t.name for t in wanted)):
            for table in wanted:
                if delta_rs.is_written_here(lake.path, table):
                    delta_rs.compact(lake.path, table)
                else:
                    lake.spark.sql(f"OPTIMIZE delta.`{lake.location(table)}`")
    return [t.name for t in wanted]


def compact_plain(lake: Path) -> None:
    """The same for what a run without Spark writes."""
    for table in scattered(lake, [RUNS], MOST_SMALL_FILES):
        delta_rs.compact(lake, table)


def scattered(lake: Path, tables: Iterable[Table], most: int) -> list[Table]:
    return [t for t in tables if delta_rs.small_files(lake, t, SMALL_BYTES) > most]
