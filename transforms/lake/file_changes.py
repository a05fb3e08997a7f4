"""Which files of a table a commit adds and removes, and the actions that say so in a Delta log.

The rows of files are written piece by piece by Arrow.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
from deltalake import DeltaTable, Transaction
from deltalake.transaction import AddAction, RemoveAction

from transforms.lake.arrow_rows import Row
from transforms.lake.clustering import CLUSTER, sorted_row_groups
from transforms.lake.delta_rs import among, dataset
from transforms.lake.joined_files import StoredFile, files_to_join
from transforms.lake.row_groups import each_row_group, holding
from transforms.lake.storage.location import Location
from transforms.lake.table_files import TableFile, row_groups

# The bytes in memory of the rows of a joined file, which shrink to a fraction of that.
TARGET_MEMORY_BYTES = 1024 * 1024 * 1024
# Of files that are written again, this many rows are decoded at a time.
ROWS_AT_ONCE = 16 * 1024


@dataclass(frozen=True, slots=True)
class FileChange:
    """What a commit does: files that it adds (rows of table_files.FILES) and removes, and its transactions.

    data_change: whether the table's rows are others afterwards.
    """

    added: Sequence[Row] = ()
    removed: Sequence[StoredFile] = ()
    transactions: Sequence[Transaction] = field(default=())
    data_change: bool = True


class StoredTable:
    """One version of a table, of which files are replaced."""

    def __init__(self, folder: Location, held: DeltaTable) -> None:
        self._folder = folder
        self._held = held
        self._schema = pa.schema(held.schema().to_arrow())
        self._opened: tuple[ds.Expression | None, ds.Dataset] | None = None

    def rows(self, where: ds.Expression | None = None) -> ds.Dataset:
        """The table's rows, to be read piece by piece; those that do not meet `where` may be left out.

        Opened once for the same condition: a change reads them, and then replaces what it has read.
        """
        if self._opened is None or self._opened[0] is not where:
            self._opened = where, dataset(self._folder, self._held, where)
        return self._opened[1]

    def fitted(self, rows: pa.Table | Collection[Row]) -> pa.Table:
        """Rows with the columns that the table has on disk: it may lack those of a newer version."""
        if isinstance(rows, Collection):
            return pa.Table.from_pylist(list(rows), schema=self._schema)
        held: dict[str, Any] = dict(zip(rows.column_names, rows.columns, strict=True))
        count = len(rows)
        columns = [
            held[f.name].cast(f.type) if f.name in held else pa.nulls(count, f.type) for f in self._schema
        ]
        return pa.Table.from_arrays(columns, schema=self._schema)

    def written(self, rows: pa.Table | Collection[Row]) -> list[Row]:
        """Write new rows. Returns the files."""
        return self._written(row_groups(iter(self.fitted(rows).to_batches())))

    def replacing(
        self, where: ds.Expression, rows: pa.Table | Collection[Row] = (), files: Sequence[Row] = ()
    ) -> FileChange | None:
        """Replace the rows that meet a condition by others, and by those of files. None: there are neither.

        Files without such rows stay; of the others the rest is written again, together with `rows`.
        """
        files_by_path = {file.path: file for file in self._files()}
        removed: list[StoredFile] = []
        rest: list[ds.Fragment] = []
        for fragment in self.rows(where).get_fragments(filter=where):
            meeting = fragment.scanner(schema=self._schema, filter=where, columns=[]).count_rows()
            if meeting:
                removed.append(files_by_path[fragment.path])
                if meeting < fragment.count_rows():
                    rest.append(fragment)
        new = self.fitted(rows)
        if not removed and not files and not len(new):
            return None
        added = self._written(row_groups(self._batches(new, rest, ~where)))
        return FileChange([*added, *files], removed)

    def merged(
        self, rows: Sequence[Row], key: Sequence[str], wanted: Mapping[str, Collection[Any]]
    ) -> FileChange | None:
        """Insert rows, or put them in place of those with the same key. None if there are none.

        wanted: by column the values that stored rows with one of the keys have.
        """
        where, clusters = among(wanted), wanted.get(CLUSTER)
        held = holding(self.rows(where), where, None if clusters is None else sorted(clusters))
        found = held.to_table(filter=where).to_pylist()
        by_key = {tuple(row[name] for name in key): row for row in (*found, *rows)}
        if found:
            return self.replacing(where, by_key.values())
        # Which files to keep need not be asked.
        return FileChange(self.written(by_key.values())) if by_key else None

    def joined(self, whole: bool) -> FileChange | None:
        """Join files as files_to_join has it. None if it is worth joining none."""
        fragments = {fragment.path: fragment for fragment in self.rows().get_fragments()}
        added: list[Row] = []
        removed: list[StoredFile] = []
        for some in files_to_join(self._files(), whole):
            stored = [fragments[file.path] for file in some]
            rows = sorted_row_groups(partial(self._batches, None, stored, None))
            added += self._written(rows, "zstd")
            removed += some
        return FileChange(added, removed, data_change=False) if removed else None

    def _files(self) -> list[StoredFile]:
        """The files of the version, the oldest first."""
        order = [("modification_time", "ascending"), ("path", "ascending")]
        files = pa.table(self._held.get_add_actions(flatten=True)).sort_by(order).to_pylist()
        bounds = f"min.{CLUSTER}", f"max.{CLUSTER}"
        return [StoredFile(file["path"], file["size_bytes"], *map(file.get, bounds)) for file in files]

    def _batches(
        self,
        new: pa.Table | None,
        stored: Iterable[ds.Fragment],
        where: ds.Expression | None,
        columns: Sequence[str] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The rows of files that meet a condition, then new ones. columns: of files, all by default."""
        names = None if columns is None else list(columns)
        for group in each_row_group(stored, where):
            yield from group.to_batches(
                schema=self._schema, columns=names, filter=where, batch_size=ROWS_AT_ONCE
            )
        if new is not None:
            yield from new.to_batches()

    def _written(self, groups: Iterable[pa.Table], compression: str = "snappy") -> list[Row]:
        """Write row groups to files of about TARGET_MEMORY_BYTES in memory. Returns the files."""
        found: list[Row | None] = []
        file, held_bytes = TableFile(self._folder, self._schema, compression), 0
        for rows in groups:
            if held_bytes >= TARGET_MEMORY_BYTES:
                found.append(file.close())
                file, held_bytes = TableFile(self._folder, self._schema, compression), 0
            file.add(rows.cast(self._schema))
            held_bytes += rows.nbytes
        found.append(file.close())
        return [written for written in found if written is not None]


def appending(file: Row) -> list[dict[str, Any]]:
    """The actions of a commit that adds a file (a row of table_files.FILES), as Delta's protocol has them."""
    done = {"timestamp": file["modified_ms"], "operation": "WRITE", "operationParameters": {"mode": "Append"}}
    added = {
        "path": file["path"],
        "partitionValues": {},
        "size": file["size_bytes"],
        "modificationTime": file["modified_ms"],
        "dataChange": True,
        "stats": file["stats"],
    }
    return [{"commitInfo": done}, {"add": added}]


def actions_of(change: FileChange) -> list[AddAction | RemoveAction]:
    """The actions of a change, as delta-rs takes them."""
    now_ms = time.time_ns() // 1_000_000
    added = [
        AddAction(f["path"], f["size_bytes"], {}, f["modified_ms"], change.data_change, f["stats"])
        for f in change.added
    ]
    removed = [RemoveAction(f.path, change.data_change, now_ms, f.size_bytes, {}) for f in change.removed]
    return [*added, *removed]
