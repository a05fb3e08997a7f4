"""Folders of a lake's tables: their Delta logs as delta-rs opens them, and their data files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from typing import Any

import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq
from deltalake import DeltaTable

from transforms.lake.storage import files, objects
from transforms.lake.storage.files import FoundFile
from transforms.lake.storage.listing import LOG, LakeListing, commit_name, is_commit
from transforms.lake.storage.location import Location, StoreUrl
from transforms.lake.tables import Table

# How many commits, at most, come after the last checkpoint of a table in a store.
CHECKPOINT_EVERY = 10
# Of stores: the tables that this process has found, those that it reads, and who reads them now.
_found: set[Location] = set()
_opened: dict[StoreUrl, DeltaTable] = {}
_locks: dict[StoreUrl, Lock] = {}
_opening = Lock()
# Those of which the handle is the newest version while this process alone writes their lake.
_newest: set[StoreUrl] = set()
_missing: set[Location] = set()
_alone: set[Location] = set()
_shared: set[str] = set()


def table_folder(lake: Location, table: Table) -> Location:
    return lake / table.name


def exists(lake: Location, table: Table) -> bool:
    """Whether the table has a commit: a killed run may have left a log without one.

    No table is ever removed: in a store, it is asked once for in a process; and for a missing one, too, while
    this process alone writes the lake.
    """
    folder = table_folder(lake, table)
    if folder in _found or folder in _missing:
        return folder in _found
    found = any(files.found(folder / LOG, "*.json"))
    if found:
        note_table(folder)
    elif lake in _alone and isinstance(folder, StoreUrl):
        _missing.add(folder)
    return found


def note_table(folder: Location) -> None:
    """That there is a table need not be asked again of a store."""
    if isinstance(folder, StoreUrl):
        _found.add(folder)


def note_tables(listed: LakeListing) -> None:
    """What need not be asked for again: the tables that a listing of a store shows."""
    if isinstance(listed.lake, StoreUrl):
        _found.update(
            listed.lake / name.partition("/")[0] for name in listed.files if is_commit(name.partition("/")[2])
        )


def delta_table(lake: Location, table: Table, version: int | None = None) -> DeltaTable:
    """A version of a table that exists, the newest by default. Raises DeltaError and OSError."""
    folder = table_folder(lake, table)
    return DeltaTable(str(folder), version=version, storage_options=delta_options(folder))


@contextmanager
def read_table(lake: Location, table: Table) -> Iterator[DeltaTable]:
    """The newest version of a table that exists, to be read within the block, or to make one commit from.

    Opening one in a store takes two requests for each commit since the last checkpoint, and a dozen for that:
    a process opens it once, and then asks for newer commits only. A thread at a time: nothing moves the
    version within the block. Raises DeltaError and OSError.
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
        elif folder not in _newest:
            held.update_incremental()
        if lake in _alone and table.name not in _shared:
            _newest.add(folder)
        yield held


@contextmanager
def written_alone(lake: Location, *shared: Table) -> Iterator[None]:
    """Within the block, no other process commits to a lake, which is fenced, but to the shared tables.

    In a store, newer commits are then looked for after one's own only. Should another run take the lake over,
    it first commits to every table: a commit from what was the newest version then fails.
    """
    _newest.clear()
    _shared.update(table.name for table in shared)
    _alone.add(lake)
    try:
        yield
    finally:
        _alone.discard(lake)
        _newest.clear()
        _missing.clear()


def expect_commit(folder: Location) -> None:
    """A commit to a table is tried: what is the newest version then has to be asked for."""
    if isinstance(folder, StoreUrl):
        _newest.discard(folder)
        _missing.discard(folder)


def delta_options(folder: Location) -> dict[str, str] | None:
    """What delta-rs needs to know of the store in which a folder is."""
    return objects.delta_options() if isinstance(folder, StoreUrl) else None


def table_properties(folder: Location) -> dict[str, str | None]:
    """Properties of a new table: in a store, each commit since a checkpoint costs two requests to open it."""
    return {"delta.checkpointInterval": str(CHECKPOINT_EVERY)} if isinstance(folder, StoreUrl) else {}


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


def put_commit(folder: Location, version: int, actions: Iterable[Mapping[str, Any]]) -> FoundFile | None:
    """Make a version of a table by its actions. None if another commit has it. Raises OSError."""
    place = folder / LOG / commit_name(version)
    content = "".join(f"{json.dumps(action)}\n" for action in actions)
    made = files.create(place, content)
    # Where an answer is lost, the store is asked again, and then finds what it has just made.
    if made is None and files.is_file(place) and files.text_of(place) == content:
        return FoundFile(len(content.encode()), "")
    return made


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
