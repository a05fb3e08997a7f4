"""Values of Arrow arrays numbered without making Python values of them."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.transforms.lake.test_arrow_rows import TYPES, values
from transforms.lake.arrow_numbers import numbered


@st.composite
def arrays(draw: st.DrawFn) -> pa.Array:
    """Values of any type, many of them equal, a slice of them."""
    type_ = draw(TYPES)
    few = draw(st.lists(values(type_), min_size=1, max_size=4))
    found = pa.array(draw(st.lists(st.sampled_from(few), max_size=12)), type_)
    return found.slice(draw(st.integers(0, 2)))


@settings(max_examples=300, deadline=None)
@given(arrays())
def test_equal_values_and_only_they_have_one_number(array: pa.Array) -> None:
    numbers, found = numbered(array).tolist(), array.to_pylist()
    assert len(numbers) == len(found)
    assert all(
        (one == other) == (number == another)
        for one, number in zip(found, numbers, strict=True)
        for other, another in zip(found, numbers, strict=True)
    )


def test_zeros_of_both_signs_differ() -> None:
    assert len(set(numbered(pa.array([0.0, -0.0, None, 0.0])).tolist())) == 3


def test_many_fields_of_many_values() -> None:
    """Of which products would not fit into 64 bits."""
    columns = [pa.array([n * k % 997 for n in range(2000)]) for k in range(1, 9)]
    array = pa.StructArray.from_arrays(columns, [f"f{n}" for n in range(8)])
    assert len(set(numbered(array).tolist())) == 997
