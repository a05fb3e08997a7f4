"""Rows of the compiled kernel held against rows of the reference codec, contents compared."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from kraft_core.columnar import fast
from kraft_core.columnar.schema import HEADERS, RECORDS
from tests.kraft_core.columnar import reference


def decoded(reader, path: Path, **options) -> pa.Table:
    return sound(reader, pa.Table.from_batches(list(reader.decode(path, **options)), schema=RECORDS))


def scanned(reader, path: Path, *position) -> pa.Table:
    return sound(reader, pa.Table.from_batches(list(reader.scan_headers(path, *position)), schema=HEADERS))


def sound(reader, table: pa.Table) -> pa.Table:
    """The table, whose buffers hold what they must: the kernel fills its own, the reference lets Arrow."""
    if reader is not reference:
        table.validate(full=True)
    return table


def differing(found: pa.Table, expected: pa.Table) -> list[str]:
    """The columns that are not equal; a NaN is equal to itself."""
    if found.num_rows != expected.num_rows:
        return [f"{found.num_rows} rows, not {expected.num_rows}"]
    return [name for name in expected.schema.names if not _alike(found[name], expected[name])]


def _alike(found: pa.ChunkedArray, expected: pa.ChunkedArray) -> bool:
    # Arrow calls no NaN equal to any.
    return found.equals(expected) or (
        found.type == expected.type and repr(found.to_pylist()) == repr(expected.to_pylist())
    )


def assert_parts(path: Path, expected: pa.Table) -> None:
    """Records read by type are those of both parts: of every other type that the file has, and the rest."""
    types = frozenset(sorted(pc.unique(expected["type"]).to_pylist())[::2])
    first, others = (
        sound(fast, pa.Table.from_batches(list(part), schema=RECORDS))
        for part in fast.decode_by_type(path, [(0, None)], types)
    )
    assert types.isdisjoint(others["type"].to_pylist())
    found = pa.concat_tables([first, others])
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, expected.to_pylist()))


def assert_same(path: Path, next_offset: int | None = None) -> pa.Table:
    """Both readers give the same headers and records, with secrets and without. The records, redacted."""
    expected = decoded(reference, path)
    assert differing(decoded(fast, path), expected) == []
    assert_parts(path, expected)
    assert differing(decoded(fast, path, redact=False), decoded(reference, path, redact=False)) == []
    headers = scanned(reference, path, 0, None, next_offset)
    assert differing(scanned(fast, path, 0, None, next_offset), headers) == []
    return expected
