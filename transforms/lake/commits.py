"""Commits: the only way in which the tables of a lake change.

A commit is the version after the one it was made from, or it fails: without delta-rs's own retries, with
which a writer that slept would commit over later changes. Each carries the number of the lease it was made
under. A writer that takes over a lease that was not released first commits its own number to every table,
even to those that do not exist yet (`fence`): the next commit of an older writer fails, and when that writer
loads the table again, it finds the greater number and stops.
"""

from __future__ import annotations

import hashlib
import random
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import CommitProperties, DeltaTable, Field, PostCommitHookProperties, Schema, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError

from transforms.lake.arrow_rows import Row
from transforms.lake.clustering import CLUSTER
from transforms.lake.file_changes import FileChange, StoredTable, actions_of, appending
from transforms.lake.storage.conditions import check_conditional_puts
from transforms.lake.storage.files import FoundFile
from transforms.lake.storage.listing import LOG, LakeListing, commit_name, with_files
from transforms.lake.storage.location import Location, StoreUrl
from transforms.lake.storage.table_copies import RUNS_EXPIRE_EVERY
from transforms.lake.storage.table_folders import (
    committed,
    delta_table,
    exists,
    listed_once,
    note_table,
    put_checkpoint,
    put_commit,
    read_table,
    table_folder,
)
from transforms.lake.table_files import TableFile
from transforms.lake.tables import RUNS, TABLES, Table
from transforms.lake.tables.declaration import CHECKPOINT_EVERY, LOG_PROPERTIES

# In the logs: the lease of a table's last commit; in `runs`, the lease that was given back last; how often
# rows of a table were removed for good; the lease under which all that has a name was; the id of a commit.
LEASE, GIVEN_BACK = "kraftlake.lease", "kraftlake.lease_given_back"
REMOVALS, REMOVED, COMMIT_ID = "kraftlake.removals", "kraftlake.removed", "kraftlake.commit_id"
# How often a commit is tried where others come in between.
ATTEMPTS = 10
# Between two attempts a writer waits at random, longer each time, so that none loses every race. Seconds.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.01, 1.0
WRITERS = 4

# The properties of a commit with these transactions besides that of the lease.
Properties = Callable[[Sequence[Transaction]], CommitProperties]
# What makes a commit with its properties.
Write = Callable[[Properties], object]


class FencedError(Exception):
    """Another run has taken over the lease: this one must not write any more."""


@dataclass(frozen=True, slots=True)
class TableWriter:
    """The tables of a lake as the holder of a lease writes them.

    lease: its number. None: of a writer that needs none, as one that only adds its own row to `runs`.
    Every method may raise FencedError.
    """

    lake: Location
    lease: int | None

    def create(self, table: Table) -> None:
        """Create the table with its comments, if it does not exist; of several at once one creates it."""
        if exists(self.lake, table):
            return
        check_conditional_puts(self.lake)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                self._create_once(table)
                break
            except (DeltaError, OSError) as error:
                if exists(self.lake, table):
                    break
                # A store may refuse a commit although there is none.
                if attempt == ATTEMPTS or not isinstance(error, CommitFailedError):
                    raise
        note_table(table_folder(self.lake, table))

    def _create_once(self, table: Table) -> None:
        with committed(table_folder(self.lake, table)) as folder:
            DeltaTable.create(
                folder,
                delta_schema(table),
                description=table.comment,
                configuration=LOG_PROPERTIES,
                commit_properties=self._properties("")(()),
            )

    def append(self, table: Table, rows: Iterable[Row]) -> None:
        """Append rows to a table that exists; columns that they lack become null."""
        some = list(rows)
        self._change(table, lambda held: FileChange(self._stored(table, held).written(some)))

    def append_after(self, table: Table, row: Row, version: int) -> bool:
        """Append a row as version + 1 of a table that exists. False if another commit took that version."""
        check_conditional_puts(self.lake)
        with read_table(self.lake, table) as held:
            if held.version() != version:
                return False
            change = FileChange(self._stored(table, held).written([row]))
            return self._commit_once(table, held, _writing(held, change), uuid.uuid4().hex) is None

    def append_next(self, table: Table, row: Row, listed: LakeListing) -> LakeListing | None:
        """Append a row to a table of the declared columns, as the next version and without opening it.

        Returns the listing with the new files. None, and nothing is committed, where another commit took
        that version, or where delta-rs is to make this one: it removes old commits and writes checkpoints, of
        which only `runs` in a store gets some here.
        """
        stored = listed.of(table)
        assert stored is not None
        version = stored.versions[-1] + 1
        every = RUNS_EXPIRE_EVERY if isinstance(self.lake, StoreUrl) and table == RUNS else CHECKPOINT_EVERY
        if (version + 1) % every == 0:
            return None
        check_conditional_puts(self.lake, listed.files)
        folder, schema = table_folder(self.lake, table), table.arrow_schema
        data = TableFile(folder, schema)
        data.add(pa.Table.from_pylist([row], schema=schema))
        written = data.close()
        assert written is not None
        commit = put_commit(folder, version, appending(written))
        if commit is None:
            return None
        names = (written["path"], f"{LOG}/{commit_name(version)}")
        found = zip(names, (FoundFile(written["size_bytes"], ""), commit), strict=True)
        listed = with_files(listed, {f"{table.name}/{name}": file for name, file in found})
        with suppress(DeltaError, OSError):  # a checkpoint only saves requests
            made = put_checkpoint(listed, table)
            return with_files(listed, {f"{table.name}/{name}": file for name, file in made.items()})
        return listed

    def append_once(self, table: Table, rows: Iterable[Row], load_id: str) -> None:
        """Append the rows of a load, unless the table, which is created if it does not exist, has it."""
        self.create(table)
        some = list(rows)
        self._load(table, load_id, lambda held: self._stored(table, held).written(some))

    def add_files(self, table: Table, files: Sequence[Row], load_id: str) -> None:
        """Make files in a table's folder (rows of table_files.FILES) part of it, unless it has the load."""
        self._load(table, load_id, lambda _: files)

    def is_loaded(self, table: Table, load_id: str) -> bool:
        """Whether the log of a table that exists has the load."""
        with self._loaded(table) as held:
            return held.transaction_version(self._load_name(table, held, load_id)) is not None

    def put(
        self,
        table: Table,
        rows: Iterable[Row],
        by: str,
        clusters: Collection[str] | None = None,
        gives_back: bool = False,
    ) -> None:
        """Insert or update rows of a table that exists by its key, of which `by` is a selective column.

        So is the cluster, if it is in the key: row groups are sorted by it. If it is not, clusters: those of
        which the table may hold rows with one of the keys; None: of any, so that all row groups are read.
        gives_back: this is the last commit of the lease, in `runs`.
        """
        some = list(rows)
        wanted: dict[str, Collection[Any]] = {by: {row[by] for row in some}}
        if CLUSTER in table.key:
            wanted[CLUSTER] = {row[CLUSTER] for row in some}
        elif clusters is not None:
            wanted[CLUSTER] = clusters
        transactions = [Transaction(GIVEN_BACK, self.lease)] if gives_back and self.lease is not None else []

        def change(held: DeltaTable) -> FileChange | None:
            made = self._stored(table, held).merged(some, table.key, wanted)
            return None if made is None else replace(made, transactions=transactions)

        self._change(table, change)

    def replace_where(
        self,
        table: Table,
        where: ds.Expression,
        rows: pa.Table | Iterable[Row] = (),
        files: Sequence[Row] = (),
    ) -> None:
        """Replace all rows that meet a condition (never null) by others that do, and by those of files.

        files: in the folder of the table (rows of table_files.FILES). The table is created if it does not
        exist.
        """
        self.create(table)
        some = rows if isinstance(rows, pa.Table) else list(rows)
        self._change(table, lambda held: self._stored(table, held).replacing(where, some, files))

    def remove_where(
        self, table: Table, where: ds.Expression, files: Sequence[Row] = (), last_of: str | None = None
    ) -> None:
        """Replace rows by fewer, in files: what was loaded can be loaded again, also what others had deleted.

        last_of: the cluster of which these rows are the last, for just_removed.
        """
        lease = [] if last_of is None else [Transaction(_removed(last_of), self.lease or 0)]

        def change(held: DeltaTable) -> FileChange | None:
            made = self._stored(table, held).replacing(where, files=files)
            removals = [Transaction(REMOVALS, (held.transaction_version(REMOVALS) or 0) + 1)]
            is_noted = made is not None or not table.recomputed
            return replace(made or FileChange(), transactions=[*removals, *lease]) if is_noted else None

        self._change(table, change)

    def compact(self, table: Table, whole: bool = False) -> None:
        """Join small files of a table, as far as that is worth it, or all, so that the whole is sorted."""
        self._change(table, lambda held: self._stored(table, held).joined(whole))

    def add_columns(self, table: Table, fields: list[Field]) -> None:
        """Add columns, or fields of structs, to a table that exists."""

        def adding(held: DeltaTable) -> Write:
            return lambda how: held.alter.add_columns(fields, commit_properties=how(()))

        self._commit(table, adding)

    def fence(self) -> None:
        """Stop the writers of older leases: commit this one's number to every table; create those missing."""
        with listed_once(self.lake), ThreadPoolExecutor(WRITERS) as threads:
            list(threads.map(self._fence, TABLES))

    def _fence(self, table: Table) -> None:
        self.create(table)
        with self._loaded(table) as held:
            number = held.transaction_version(LEASE)
        if number != self.lease:
            self._change(table, lambda _: FileChange())

    # --- one commit ---

    @contextmanager
    def _loaded(self, table: Table) -> Iterator[DeltaTable]:
        """The newest version of a table that exists, for one commit."""
        with read_table(self.lake, table) as held:
            number = held.transaction_version(LEASE)
            if self.lease is not None and number is not None and number > self.lease:
                raise FencedError(f"table {table.name} has lease {number}, but this run has {self.lease}")
            yield held

    def _stored(self, table: Table, held: DeltaTable) -> StoredTable:
        return StoredTable(table_folder(self.lake, table), held)

    def _load(self, table: Table, load_id: str, files: Callable[[DeltaTable], Sequence[Row]]) -> None:
        """Add the files of a load to the newest version of a table that exists, unless it has the load."""

        def change(held: DeltaTable) -> FileChange | None:
            load = self._load_name(table, held, load_id)
            if held.transaction_version(load) is not None:
                return None
            return FileChange(files(held), transactions=[Transaction(load, 0)])

        self._change(table, change)

    def _load_name(self, table: Table, held: DeltaTable, load_id: str) -> str:
        """The id of a load in the table's log, until rows are removed."""
        removals = held.transaction_version(REMOVALS) or 0
        return hashlib.sha256(f"{table.name}:{load_id}:{removals}".encode()).hexdigest()

    def _change(self, table: Table, change: Callable[[DeltaTable], FileChange | None]) -> None:
        """Commit what `change` makes of the newest version of a table that exists, if anything."""

        def changing(held: DeltaTable) -> Write | None:
            made = change(held)
            return None if made is None else _writing(held, made)

        self._commit(table, changing)

    def _commit(self, table: Table, making: Callable[[DeltaTable], Write | None]) -> None:
        """Make a commit from the newest version, if it takes one; again where another came in between."""
        check_conditional_puts(self.lake)
        name = uuid.uuid4().hex
        for attempt in range(1, ATTEMPTS + 1):
            with self._loaded(table) as held:
                write = making(held)
                lost = None if write is None else self._commit_once(table, held, write, name)
            if lost is None:
                return
            if attempt == ATTEMPTS:
                raise lost
            time.sleep(random.uniform(0, min(FIRST_PAUSE_S * 2**attempt, LONGEST_PAUSE_S)))

    def _commit_once(
        self, table: Table, held: DeltaTable, write: Write, name: str
    ) -> CommitFailedError | None:
        """Make a commit from a version, or return the error if another one took the next version.

        Where only the answer was lost, the log has the commit's id.
        """
        version = held.version()
        try:
            with committed(table_folder(self.lake, table)):
                write(self._properties(name))
        except (DeltaError, OSError) as error:
            if has_landed(self.lake, table, name, version):
                return None
            if isinstance(error, CommitFailedError):
                return error
            raise
        return None

    def _properties(self, name: str) -> Properties:
        lease = [] if self.lease is None else [Transaction(LEASE, self.lease)]
        return lambda others: CommitProperties({COMMIT_ID: name}, 0, [*lease, *others])


def just_removed(lake: Location, table: Table, cluster: str) -> bool:
    """Whether the last rows of a cluster were removed from a table under a lease that is not given back.

    It is the own one, or that of an interrupted run.
    """
    if not exists(lake, table):
        return False
    with read_table(lake, RUNS) as held:
        given_back = held.transaction_version(GIVEN_BACK) or 0
    with read_table(lake, table) as held:
        return (held.transaction_version(_removed(cluster)) or 0) > given_back


def _removed(cluster: str) -> str:
    """The name of a removal in a table's log, which must not tell the cluster's."""
    return f"{REMOVED}.{hashlib.sha256(cluster.encode()).hexdigest()}"


def has_landed(lake: Location, table: Table, name: str, version: int) -> bool:
    """Whether the log of a table has a commit of that id after a version."""
    newest = delta_table(lake, table)
    later = newest.version() - version
    return later > 0 and any(commit.get(COMMIT_ID) == name for commit in newest.history(later))


def delta_schema(table: Table) -> Schema:
    """The declared schema with its comments, as Delta has it."""
    fields = zip(table.arrow_schema, table.columns, strict=True)
    return Schema.from_arrow(pa.schema([f.with_metadata({"comment": c.comment}) for f, c in fields]))


def _writing(held: DeltaTable, change: FileChange) -> Write:
    """What commits a change, from a version of a table."""
    # Old commits are looked for where a checkpoint is written, not after every one.
    ends = (held.version() + 2) % CHECKPOINT_EVERY == 0
    hooks = PostCommitHookProperties(cleanup_expired_logs=None if ends else False)
    return lambda how: held.create_write_transaction(
        actions_of(change),
        "append",
        held.schema(),
        commit_properties=how(change.transactions),
        post_commithook_properties=hooks,
    )


def own_version(lake: Location, table: Table, after: int | None) -> int | None:
    """The newest version of a table, if only TableWriter has committed after that one; otherwise None.

    after: None for a table that did not exist.
    """
    if not exists(lake, table):
        return None
    with read_table(lake, table) as held:
        version = held.version()
        later = version - (-1 if after is None else after)
        found = held.history(later) if later > 0 else []
    is_own = later == len(found) and all(COMMIT_ID in commit for commit in found)
    return version if is_own else None
