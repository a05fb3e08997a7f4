"""Folders of a lake's tables: their Delta logs as delta-rs opens them, and their data files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq
from deltalake import DeltaTable

from transforms.lake.storage import files, objects
from transforms.lake.storage.location import Location, StoreUrl
from transforms.lake.tables import Table

LOG = "_delta_log"
# Of stores: the tables that this process has found, those that it reads, and who reads them now.
_found: set[Location] = set()
_opened: dict[StoreUrl, DeltaTable] = {}
_locks: dict[StoreUrl, Lock] = {}
_opening = Lock()


def table_folder(lake: Location, table: Table) -> Location:
    return lake / table.name


def exists(lake: Location, table: Table) -> bool:
    """Whether the table has a commit: a killed run may have left a log without one.

    No table is ever removed: in a store, it is asked once for in a process.
    """
    folder = table_folder(lake, table)
    found = folder in _found or any(files.found(folder / LOG, "*.json"))
    if found and isinstance(folder, StoreUrl):
        _found.add(folder)
    return found


def listing(lake: Location, table: Table) -> files.FolderListing | None:
    """The files in a table's folder, also those that no version has; None where there is no folder.

    Raises NotADirectoryError, and OSError where it may not be read.
    """
    return files.listing(table_folder(lake, table), LOG)


def delta_table(lake: Location, table: Table, version: int | None = None) -> DeltaTable:
    """A version of a table that exists, the newest by default. Raises DeltaError and OSError."""
    folder = table_folder(lake, table)
    return DeltaTable(str(folder), version=version, storage_options=delta_options(folder))


@contextmanager
def read_table(lake: Location, table: Table) -> Iterator[DeltaTable]:
    """The newest version of a table that exists, to be read within the block, never written.

    Opening one in a store takes two requests for each commit since the last checkpoint: a process opens it
    once, and then asks for newer commits only. Raises DeltaError and OSError.
    """
    folder = table_folder(lake, table)
    if not isinstance(folder, StoreUrl):
        yield delta_table(lake, table)
        return
    with _opening:
        lock = _locks.setdefault(folder, Lock())
    with lock:
        held = _opened.get(folder)
        if held is None:
            held = _opened[folder] = delta_table(lake, table)
        else:
            held.update_incremental()
        yield held


def delta_options(folder: Location) -> dict[str, str] | None:
    """What delta-rs needs to know of the store in which a folder is."""
    return objects.delta_options() if isinstance(folder, StoreUrl) else None


def table_properties(folder: Location) -> dict[str, str | None]:
    """Properties of a new table: in a store, each commit since a checkpoint costs two requests to open it."""
    return {"delta.checkpointInterval": "10"} if isinstance(folder, StoreUrl) else {}


def arrow_files(folder: Location) -> fs.FileSystem:
    """A table's folder, read through Arrow's own file system.

    delta-rs's, which is the default, calls back into Python from Arrow's threads: one process in ten that
    ended while they were still busy was aborted.
    """
    if isinstance(folder, StoreUrl):
        return fs.SubTreeFileSystem(f"{folder.bucket}/{folder.key}", objects.arrow_files())
    return fs.SubTreeFileSystem(str(folder.resolve()), fs.LocalFileSystem())


def spark_location(folder: Location) -> str:
    """A table's folder, as Spark takes it."""
    return f"s3a://{folder.bucket}/{folder.key}" if isinstance(folder, StoreUrl) else str(folder)


class DataFile:
    """A new data file in a table's folder, to be written by row groups. Raises OSError."""

    def __init__(self, folder: Location, name: str, schema: pa.Schema, compression: str) -> None:
        self._sink = arrow_files(folder).open_output_stream(name)
        self._writer = pq.ParquetWriter(self._sink, schema, compression=compression, store_schema=False)

    def write(self, rows: pa.Table, row_group_size: int) -> None:
        self._writer.write_table(rows, row_group_size=row_group_size)

    def close(self) -> int:
        """Returns the file's size in bytes."""
        self._writer.close()
        size_bytes = self._sink.tell()
        self._sink.close()
        return size_bytes


def check_footer(folder: Location, name: str) -> None:
    """Read the footer of a data file. Raises OSError and ArrowException."""
    pq.read_metadata(name, filesystem=arrow_files(folder))
