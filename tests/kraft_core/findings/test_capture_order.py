"""The order of a replica's captures, found without comparing each with each."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_core.evidence.facts import CLOCK_SKEW_MS, Capture, EpochRange
from kraft_core.findings.capture_order import is_later, newest_readable, successive

# ms, apart by less than clocks differ, and by more.
TIMES = st.none() | st.integers(0, 6).map(lambda n: n * 40_000)
EPOCHS = st.none() | st.integers(0, 4)


@st.composite
def captures(draw: st.DrawFn) -> list[Capture]:
    """A replica's captures in any order, with times and epochs that may contradict each other."""
    found: list[Capture] = []
    for number in range(draw(st.integers(0, 8))):
        epoch = draw(EPOCHS)
        found.append(
            Capture(
                str(number),
                1,
                "directory",
                0,
                0,
                10,
                () if epoch is None else (EpochRange(epoch, 0, 10, "", 0, draw(st.integers(0, 6)) * 40_000),),
                quorum_state_epoch=draw(EPOCHS),
                consistent=draw(st.booleans()),
                readable=draw(st.integers(0, 4)) > 0,
                captured_from=draw(TIMES),
                captured_until=draw(TIMES),
            )
        )
    return found


def is_stated(capture: Capture) -> bool:
    return capture.captured_until is not None


@given(captures())
def test_newest_are_those_that_no_other_is_later_than(some: list[Capture]) -> None:
    readable = [capture for capture in some if capture.readable]
    expected = [c for c in readable if not any(is_later(other, c) for other in readable)]
    assert list(newest_readable(some)) == expected


@given(captures())
def test_a_capture_without_a_time_is_paired_with_its_nearest(some: list[Capture]) -> None:
    expected: list[tuple[Capture, Capture]] = []
    for capture in some:
        if not is_stated(capture):
            earlier = [c for c in some if is_later(capture, c)]
            later = [c for c in some if is_later(c, capture)]
            expected += [(c, capture) for c in earlier[-1:]]
            expected += [(capture, c) for c in later[:1] if is_stated(c)]
    found = [pair for pair in successive(some) if not all(map(is_stated, pair))]
    assert found == expected


@given(captures())
def test_stated_times_are_paired_with_the_next(some: list[Capture]) -> None:
    stated = [capture for capture in some if is_stated(capture)]
    found = list(successive(some))
    assert all(is_later(after, before) for before, after in found)
    assert {pair for pair in pairwise(stated) if is_later(pair[1], pair[0])} <= set(found)


@pytest.mark.parametrize("damaged_first", [True, False])
def test_a_damaged_copy_of_the_same_moment_hides_no_other(damaged_first: bool) -> None:
    whole = Capture("1", 1, "directory", 0, 0, 10, (EpochRange(2, 0, 10, "", 0, 0),), 2)
    whole = replace(whole, captured_from=1, captured_until=1)
    damaged = replace(whole, capture_id="2", epoch_ranges=(), tail_damaged=True)
    after = replace(whole, capture_id="3", captured_from=5, captured_until=5, quorum_state_epoch=1)
    same = [damaged, whole] if damaged_first else [whole, damaged]
    assert (whole, after) in successive([*same, after])


@pytest.mark.parametrize(("apart", "later"), [(1, False), (CLOCK_SKEW_MS, False), (CLOCK_SKEW_MS + 1, True)])
def test_a_timestamp_inside_a_copy_is_by_another_clock_than_stated_times(apart: int, later: bool) -> None:
    """Who made the first copy states its time; what the second one holds has the leader's."""
    log = (EpochRange(2, 0, 10, "", 0, 100),)
    stated = Capture("1", 1, "directory", 0, 0, 10, log, 2, captured_from=200, captured_until=200)
    unstated = replace(stated, capture_id="2", captured_from=200 + apart, captured_until=None)
    assert is_later(unstated, stated) is later
    assert (newest_readable([unstated, stated]) == (unstated,)) is later
    again = replace(unstated, captured_until=200 + apart)
    assert is_later(again, stated)
