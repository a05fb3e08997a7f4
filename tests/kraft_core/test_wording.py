"""Numbers of things in sentences."""

from __future__ import annotations

import pytest

from kraft_core.plan.risks import failures
from kraft_core.wording import count, first_named, length, offset_words, range_words


def test_one_is_singular() -> None:
    assert [count(n, "capture") for n in (0, 1, 2, 1_288)] == [
        "0 captures", "1 capture", "2 captures", "1,288 captures",
    ]  # fmt: skip
    assert [count(n, "batch", "batches") for n in (1, 3)] == ["1 batch", "3 batches"]
    assert [failures(n) for n in (0, 1, 2)] == ["no failure", "1 failure", "2 failures"]


@pytest.mark.parametrize(
    ("end", "offsets", "range_"), [(6, "offset 5", "5"), (10, "offsets 5 to 9", "5 to 9")]
)
def test_a_range_of_one_is_its_number(end: int, offsets: str, range_: str) -> None:
    assert (offset_words(5, end), range_words(5, end)) == (offsets, range_)


@pytest.mark.parametrize(
    ("things", "separator", "text"),
    [
        ([], ", ", ""),
        (["a", "b"], ", ", "a, b"),
        (["a", "b", "c"], ", ", "a, b and 1 more"),
        (["a", "b", "c", "d"], "; ", "a; b; and 2 more"),
    ],
)
def test_the_first_are_named_and_the_others_counted(things: list[str], separator: str, text: str) -> None:
    assert first_named(things, 2, separator) == text


@pytest.mark.parametrize(
    ("ms", "digits", "text"),
    [(6_200, 1, "6.2 s"), (7_199_999, 0, "7199 s"), (7_200_000, 1, "2 hours"), (310_993_000, 0, "3 days")],
)
def test_a_length_of_time_has_a_unit_of_its_size(ms: int, digits: int, text: str) -> None:
    assert length(ms, digits) == text
