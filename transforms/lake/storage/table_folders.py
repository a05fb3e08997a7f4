"""Folders of a lake's tables: their Delta logs as delta-rs opens them, and their data files."""

from __future__ import annotations

import atexit
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from threading import Lock, RLock
from typing import Any
from weakref import WeakSet

import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq
from deltalake import DeltaTable

from transforms.lake.storage import files, objects
from transforms.lake.storage.files import FoundFile
from transforms.lake.storage.kept_open import kept_open
from transforms.lake.storage.listing import LOG, FolderListing, LakeListing, commit_name, lake_listing
from transforms.lake.storage.location import Location, StoreUrl
from transforms.lake.storage.table_copies import (
    TableCopy,
    is_checkpoint_due,
    is_in_task,
    note_made,
    put_once,
)
from transforms.lake.tables import TABLES, Table

# Of stores: the tables that this process has found, its copies of them, those that it has written, and who
# reads them now.
_found: set[Location] = set()
_copies: dict[StoreUrl, TableCopy] = {}
_written: set[StoreUrl] = set()
_locks: dict[StoreUrl, RLock] = {}
_opening = Lock()
# Those of which the copy is the newest version: while this process alone writes a lake, or as it is listed.
_newest: set[StoreUrl] = set()
_missing: set[Location] = set()
_alone: set[Location] = set()
_shared: set[str] = set()
# What a listing shows of tables whose copies have not been brought up to it.
_listed: dict[StoreUrl, FolderListing] = {}


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
    found = files.holds(folder / LOG, ".json")
    if found:
        note_table(folder)
    elif lake in _alone and isinstance(folder, StoreUrl):
        _missing.add(folder)
    return found


def note_table(folder: Location) -> None:
    """That there is a table need not be asked again of a store."""
    if isinstance(folder, StoreUrl):
        _found.add(folder)


def delta_table(lake: Location, table: Table, version: int | None = None) -> DeltaTable:
    """A version of a table that exists, the newest by default. Raises DeltaError and OSError."""
    folder = table_folder(lake, table)
    return DeltaTable(str(folder), version=version, storage_options=delta_options(folder))


@contextmanager
def read_table(lake: Location, table: Table) -> Iterator[DeltaTable]:
    """The newest version of a table that exists, to be read within the block, or to make one commit from.

    Of a table in a store a process fetches the log once, and then asks for newer commits only; one on a file
    system is opened again where its log has changed. Nothing moves the version within the block: of a table
    in a store it is for a thread at a time. Raises DeltaError and OSError.
    """
    folder = table_folder(lake, table)
    if is_in_task():
        yield delta_table(lake, table)
        return
    if not isinstance(folder, StoreUrl):
        with kept_open(folder, lambda: delta_table(lake, table)) as held:
            yield held
        return
    with _lock(folder):
        copy = _copy(folder)
        if folder not in _newest:
            listed = _listed.pop(folder, None)
            if listed is None:
                copy.look()
            else:
                copy.bring_up({name: listed.files[f"{LOG}/{name}"] for name in listed.log})
            if listed is not None or (lake in _alone and table.name not in _shared):
                _newest.add(folder)
        yield copy.table


def queried_table(lake: Location, table: Table) -> DeltaTable:
    """The newest version of a table that exists, for an engine that reads its data files by itself.

    Raises DeltaError and OSError.
    """
    # A copy of a stored table's log has no data files beside it.
    if isinstance(table_folder(lake, table), StoreUrl):
        return delta_table(lake, table)
    with read_table(lake, table) as held:
        return held


def _lock(folder: StoreUrl) -> RLock:
    with _opening:
        return _locks.setdefault(folder, RLock())


def _copy(folder: StoreUrl) -> TableCopy:
    """The copy of a table, for who holds its lock."""
    if folder not in _copies:
        _copies[folder] = TableCopy(folder)
    return _copies[folder]


@contextmanager
def as_listed(listed: LakeListing) -> Iterator[None]:
    """Within the block, the tables of a store are read as a listing shows them.

    Who commits to one sees its newest version if another commit came in between.
    """
    _note(listed)
    try:
        yield
    finally:
        _forget()


@contextmanager
def listed_once(lake: Location) -> Iterator[None]:
    """as_listed by a listing that is made now, where the lake is in a store."""
    with as_listed(lake_listing(lake)) if isinstance(lake, StoreUrl) else nullcontext():
        yield


@contextmanager
def written_alone(lake: Location, *shared: Table) -> Iterator[None]:
    """Within the block, no other process commits to a lake, which is fenced, but to the shared tables.

    In a store, newer commits are then looked for once, by a listing. Should another run take the lake over,
    it first commits to every table: a commit from what was the newest version then fails.
    """
    _forget()
    if isinstance(lake, StoreUrl):
        _note(lake_listing(lake), [table for table in TABLES if table not in shared])
    _shared.update(table.name for table in shared)
    _alone.add(lake)
    try:
        yield
    finally:
        _alone.discard(lake)
        _forget()


def _note(listed: LakeListing, tables: Sequence[Table] = TABLES) -> None:
    for table in tables if isinstance(listed.lake, StoreUrl) else ():
        folder, of_table = listed.lake / table.name, listed.of(table)
        assert isinstance(folder, StoreUrl)
        if of_table is not None and of_table.versions:
            _found.add(folder)
            _newest.discard(folder)
            _listed[folder] = of_table
        elif folder not in _found:
            _missing.add(folder)


def _forget() -> None:
    for known in (_newest, _missing, _listed):
        known.clear()


@contextmanager
def committed(folder: Location) -> Iterator[str]:
    """The next version of a table, which delta-rs makes within the block in the folder that this yields.

    In a store it is there after the block. Raises CommitFailedError where another commit has that version,
    and OSError, also where none was made.
    """
    if not isinstance(folder, StoreUrl):
        yield str(folder)
        return
    with _lock(folder):
        copy, is_newest = _copy(folder), folder in _newest or folder in _missing
        _newest.discard(folder)
        _listed.pop(folder, None)
        _missing.discard(folder)
        copy.must_be_whole()
        try:
            yield str(copy.place)
            copy.publish()
        except BaseException:
            copy.forget_unpublished()
            raise
        _written.add(folder)
        if is_newest:
            _newest.add(folder)


def may_have_grown(lake: Location, table: Table) -> bool:
    """Whether this process may have added files to a table; of one in a store it knows."""
    folder = table_folder(lake, table)
    return not isinstance(folder, StoreUrl) or folder in _written


def delta_options(folder: Location) -> dict[str, str] | None:
    """What delta-rs needs to know of the store in which a folder is."""
    return objects.delta_options() if isinstance(folder, StoreUrl) else None


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


def copied_files(folder: Location, sizes: Mapping[str, int]) -> tuple[fs.FileSystem, Collection[str]]:
    """Of data files with these sizes in bytes, those that are on this machine now, and how to read them."""
    if not isinstance(folder, StoreUrl) or is_in_task():
        return arrow_files(folder), ()
    with _lock(folder):
        copy = _copy(folder)
    return fs.SubTreeFileSystem(str(copy.place), fs.LocalFileSystem()), copy.fetch(sizes)


def put_commit(folder: Location, version: int, actions: Iterable[Mapping[str, Any]]) -> FoundFile | None:
    """Make a version of a table by its actions. None if another commit has it. Raises OSError."""
    place = folder / LOG / commit_name(version)
    content = "".join(f"{json.dumps(action)}\n" for action in actions)
    if isinstance(place, StoreUrl):
        stored = put_once(place, content.encode())
        if stored is not None:
            note_made(place, content.encode())
        return stored
    made = files.create(place, content)
    # A file server may have lost its answer, and then finds what it has just made.
    if made is None and files.is_file(place) and files.text_of(place) == content:
        return FoundFile(len(content.encode()), "")
    return made


def put_checkpoint(listed: LakeListing, table: Table) -> dict[str, FoundFile]:
    """Put a checkpoint of a table in a store as it is listed, if one is due. Returns its files by their paths
    in the table's folder. Raises OSError.
    """
    folder, of_table = table_folder(listed.lake, table), listed.of(table)
    assert of_table is not None
    if not isinstance(folder, StoreUrl) or not is_checkpoint_due(folder, of_table.versions[-1]):
        return {}
    with as_listed(listed), read_table(listed.lake, table):
        made = _copy(folder).put_checkpoint()
    return {f"{LOG}/{name}": file for name, file in made.items()}


def count_written(folder: Location, sizes: Iterable[int]) -> None:
    """Count requests for data files with these sizes in bytes, which Spark's tasks have written."""
    for size_bytes in sizes if isinstance(folder, StoreUrl) else ():
        objects.count_written(size_bytes)


# Values of a column that Arrow encodes before it looks whether the page is full. Its own 1,024 take a
# twentieth more of the time that records take, most of whose columns are null.
VALUES_AT_ONCE = 16 * 1024


def _grows(field: pa.Field) -> bool:
    """Whether a plain column is of offsets, times and the like: most rows have a value of their own, close to
    that of the row before. As differences they take a tenth of the space and half the time.
    """
    return pa.types.is_int64(field.type) or pa.types.is_timestamp(field.type)


def _leaves(field: pa.Field) -> Iterator[str]:
    """The names that Parquet has for the columns of a field."""
    if pa.types.is_struct(field.type):
        yield from (f"{field.name}.{leaf}" for child in field.type for leaf in _leaves(child))
    elif pa.types.is_list(field.type):
        element = field.type.value_field.with_name("element")
        yield from (f"{field.name}.list.{leaf}" for leaf in _leaves(element))
    else:
        yield field.name


class DataFile:
    """A new data file in a table's folder, to be written by row groups. Raises OSError."""

    def __init__(self, folder: Location, name: str, schema: pa.Schema, compression: str) -> None:
        self._is_stored = isinstance(folder, StoreUrl)
        self._sink = arrow_files(folder).open_output_stream(name)
        encodings: dict[str, Any] = {
            "use_dictionary": [leaf for field in schema if not _grows(field) for leaf in _leaves(field)],
            "column_encoding": {field.name: "DELTA_BINARY_PACKED" for field in schema if _grows(field)},
        }
        self._writer = pq.ParquetWriter(
            self._sink,
            schema,
            compression=compression,
            store_schema=False,
            write_batch_size=VALUES_AT_ONCE,
            **encodings,
        )
        if self._is_stored:
            _unfinished.add(self)

    def write(self, rows: pa.Table, row_group_size: int) -> None:
        self._writer.write_table(rows, row_group_size=row_group_size)

    def close(self) -> int:
        """Returns the file's size in bytes."""
        self._writer.close()
        size_bytes = self._sink.tell()
        self._sink.close()
        _unfinished.discard(self)
        if self._is_stored:
            objects.count_written(size_bytes)
        return size_bytes

    def abandon(self) -> None:
        """Leave what is written as a file that no commit names."""
        self._writer.is_open = False  # it would write the rest when it is dropped
        with suppress(Exception):
            self._sink.close()


# Of stores. When the process ends, Arrow would wait for its own threads, which are gone by then.
_unfinished: WeakSet[DataFile] = WeakSet()


@atexit.register
def _abandon_unfinished() -> None:
    for file in list(_unfinished):
        file.abandon()


def check_footer(folder: Location, name: str) -> None:
    """Read the footer of a data file. Raises OSError and ArrowException."""
    pq.read_metadata(name, filesystem=arrow_files(folder))
