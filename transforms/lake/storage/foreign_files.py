"""Data files that other programs have written into a table, such as delta-rs's own DELETE.

Their texts may be of Arrow's type string_view, by whose statistics Arrow cannot leave rows out: a filter
fails. Such a file is read from a plain copy on this machine, until compaction writes it again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs

from transforms.lake.storage.location import Location

ROWS_AT_ONCE = 16 * 1024
_lock = Lock()


def readable(found: ds.FileSystemDataset, table: Location) -> ds.FileSystemDataset:
    """The same rows of a table, of files that can be filtered. Raises OSError."""
    fragments: list[ds.Fragment] = list(found.get_fragments())
    foreign = {f.path for f in fragments if _is_foreign(f.path) and _has_views(f)}
    if not foreign:
        return found
    folder = Path(_copies().name, hashlib.sha256(str(table).encode()).hexdigest())
    here = fs.SubTreeFileSystem(str(folder), fs.LocalFileSystem())

    def plain(fragment: ds.Fragment) -> ds.Fragment:
        _copy(fragment, found.schema, folder / fragment.path)
        return found.format.make_fragment(fragment.path, here, fragment.partition_expression)

    fragments = [plain(f) if f.path in foreign else f for f in fragments]
    return ds.FileSystemDataset(fragments, found.schema, found.format, found.filesystem)


def _is_foreign(path: str) -> bool:
    """Whether a file has not the name that TableFile gives; as Spark's and delta-rs's have not."""
    return "-c000." in path


def _has_views(file: ds.Fragment) -> bool:
    """Not of one that cannot be opened: that fails whoever needs its rows, and nobody else."""
    try:
        return any(map(pa.types.is_string_view, _types(file.physical_schema)))
    except (pa.ArrowException, OSError):
        return False


def _types(fields: pa.Schema | pa.StructType) -> Iterator[pa.DataType]:
    for field in fields:
        yield field.type
        inner = field.type.value_type if pa.types.is_list(field.type) else field.type
        if pa.types.is_struct(inner):
            yield from _types(inner)


@cache
def _copies() -> TemporaryDirectory[str]:
    """Removed when the process ends."""
    return TemporaryDirectory(prefix="kraftlake-plain-")


def _copy(fragment: ds.Fragment, schema: pa.Schema, to: Path) -> None:
    """Write the rows of a file with the types of the table, unless they are there: data files stay."""
    with _lock:
        if to.exists():
            return
        to.parent.mkdir(parents=True, exist_ok=True)
        partly = to.with_name(f"{to.name}.partly")
        with pq.ParquetWriter(partly, schema) as writer:
            for batch in fragment.to_batches(schema=schema, batch_size=ROWS_AT_ONCE, batch_readahead=1):
                writer.write_batch(batch)
        partly.rename(to)
