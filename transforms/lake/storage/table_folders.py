"""Folders of a lake's tables: their Delta logs as delta-rs opens them, and their data files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq
from deltalake import DeltaTable

from transforms.lake.storage import files
from transforms.lake.tables import Table


def table_folder(lake: Path, table: Table) -> Path:
    return lake / table.name


def exists(lake: Path, table: Table) -> bool:
    """Whether the table has a commit: a killed run may have left a log without one."""
    return any(commit_files(table_folder(lake, table)))


def commit_files(folder: Path) -> Iterator[Path]:
    """The commits in the log of a table's folder."""
    return files.found(folder / "_delta_log", "*.json")


def checkpoint_files(folder: Path) -> Iterator[Path]:
    """The checkpoints in the log of a table's folder."""
    return files.found(folder / "_delta_log", "*.checkpoint*.parquet")


def data_files(folder: Path) -> Iterator[Path]:
    """The data files in a table's folder, also those that no version has."""
    return files.found(folder, "*.parquet")


def delta_table(lake: Path, table: Table, version: int | None = None) -> DeltaTable:
    """A version of a table that exists, the newest by default. Raises DeltaError and OSError."""
    return DeltaTable(table_folder(lake, table), version=version)


def arrow_files(folder: Path) -> fs.FileSystem:
    """A table's folder, read through Arrow's own file system.

    delta-rs's, which is the default, calls back into Python from Arrow's threads: one process in ten that
    ended while they were still busy was aborted.
    """
    return fs.SubTreeFileSystem(str(files.absolute(folder)), fs.LocalFileSystem())


def parquet_writer(path: Path, schema: pa.Schema, compression: str) -> pq.ParquetWriter:
    """A new data file, to be written by row groups."""
    return pq.ParquetWriter(path, schema, compression=compression, store_schema=False)


def check_footer(path: Path) -> None:
    """Read the footer of a data file. Raises OSError and ArrowException."""
    pq.read_metadata(path)
