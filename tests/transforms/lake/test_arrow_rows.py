"""Rows of Arrow tables as Python values, read by column."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import chain

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from transforms.lake.arrow_rows import of_each, python_rows
from transforms.lake.tables import CAPTURES

TIMES = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30)).map(lambda time: time.replace(tzinfo=UTC))
SCALARS = {
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.string(): st.text(max_size=3),
    pa.bool_(): st.booleans(),
    pa.timestamp("us", "UTC"): TIMES,
    pa.timestamp("us"): TIMES.map(lambda time: time.replace(tzinfo=None)),
    pa.binary(): st.binary(max_size=3),
}
TYPES = st.recursive(
    st.sampled_from(list(SCALARS)),
    lambda inner: (
        inner.map(pa.list_)
        | st.lists(inner, max_size=3).map(
            lambda types: pa.struct([(f"f{n}", t) for n, t in enumerate(types)])
        )
    ),
    max_leaves=4,
)


def values(type_: pa.DataType) -> st.SearchStrategy:
    if pa.types.is_list(type_):
        return st.none() | st.lists(values(type_.value_type), max_size=3)
    if pa.types.is_struct(type_):
        return st.none() | st.fixed_dictionaries({f.name: values(f.type) for f in type_})
    return st.none() | SCALARS[type_]


@st.composite
def tables(draw: st.DrawFn) -> pa.Table:
    """Some columns of any types, in chunks, a slice of them."""
    schema = pa.schema([(f"c{n}", type_) for n, type_ in enumerate(draw(st.lists(TYPES, max_size=3)))])
    row = st.fixed_dictionaries({field.name: values(field.type) for field in schema})
    chunks = draw(st.lists(st.lists(row, max_size=4), max_size=3))
    parts = [pa.Table.from_pylist(chunk, schema=schema) for chunk in chunks]
    whole = pa.concat_tables(parts) if parts else schema.empty_table()
    return whole.slice(draw(st.integers(0, 2)), draw(st.integers(0, 6)))


@settings(max_examples=200, deadline=None)
@given(tables())
def test_rows_are_those_of_arrow(table: pa.Table) -> None:
    assert python_rows(table) == table.to_pylist()


@settings(max_examples=50, deadline=None)
@given(tables())
def test_equal_structs_and_lists_of_many_rows_are_one_object(table: pa.Table) -> None:
    many = pa.concat_tables([table] * 40).combine_chunks()
    rows = python_rows(many)
    assert rows == many.to_pylist()
    if len(rows) > 40:
        for one, same in zip(rows, rows[len(table) :], strict=False):
            assert all(one[n] is same[n] for n in one if isinstance(one[n], dict | list))


def test_times_are_in_utc() -> None:
    """In the zone itself, not only the same moment."""
    table = pa.table(
        {"at": pa.array([datetime(2026, 1, 1)], pa.timestamp("us")).cast(pa.timestamp("us", "UTC"))}
    )
    assert [row["at"].tzinfo for row in python_rows(table)] == [UTC]


def test_no_rows() -> None:
    assert python_rows(CAPTURES.arrow_schema.empty_table()) == []


@given(st.lists(st.lists(st.sampled_from("abc"), max_size=6), max_size=4))
def test_rows_of_each_value(chunks: list[list[str]]) -> None:
    """In any number of chunks; sorted by value, mixed, or none."""
    values = list(chain.from_iterable(chunks))
    names = pa.chunked_array(chunks, pa.string())
    rows = pa.table({"name": names, "place": pa.array(range(len(values)), pa.int64())})
    found = [(name, some.to_pylist()) for name, some in of_each(rows, "name")]
    places = {name: [n for n, each in enumerate(values) if each == name] for name in dict.fromkeys(values)}
    assert found == [(name, [{"name": name, "place": n} for n in of]) for name, of in places.items()]
