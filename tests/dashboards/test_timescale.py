"""Time on the axis: in order, in proportion, long quiet periods folded."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from dashboards.report.formatting import DAY, MINUTE, SECOND
from dashboards.report.timescale import FOLD_WIDTH, LEFT, RIGHT, time_scale

NIGHT = 1_795_219_200_000

moments = st.lists(st.integers(0, 400 * DAY), min_size=1, max_size=40)


@given(moments)
def test_later_is_to_the_right_and_all_of_it_in_sight(times: list[int]) -> None:
    scale = time_scale(times)
    assert scale is not None
    places = [scale.x(t) for t in sorted(set(times))]
    assert places == sorted(places)
    assert len(set(places)) == len(places)
    assert places[0] >= LEFT - 1e-9
    assert places[-1] <= RIGHT + 1e-9
    assert scale.segments[0].left == LEFT
    if len(places) > 1:
        assert abs(places[0] - LEFT) + abs(places[-1] - RIGHT) < 1e-6


@given(moments)
def test_outside_a_fold_the_same_time_takes_the_same_room(times: list[int]) -> None:
    scale = time_scale(times)
    assert scale is not None
    rates = [
        (s.right - s.left) / (s.end - s.start) for s in scale.segments if not s.folded and s.end > s.start
    ]
    assert all(abs(rate / rates[0] - 1) < 1e-6 for rate in rates)


@given(moments)
def test_labels_keep_their_distance(times: list[int]) -> None:
    scale = time_scale(times)
    assert scale is not None
    places = [tick.x for tick in scale.ticks()]
    assert all(b - a >= 9.4 for a, b in pairwise(places))
    assert all(not (f.left < x < f.right) for x in places for f in scale.folds)


def test_a_quiet_year_is_folded() -> None:
    """Born in a minute, one change a year later: both bursts can be read."""
    birth = [NIGHT + n * SECOND for n in (0, 5, 20, 60)]
    year = [NIGHT + 365 * DAY + n * SECOND for n in (0, 30, 50)]
    scale = time_scale(birth + year)
    assert scale is not None
    (fold,) = scale.folds
    assert (fold.start, fold.end) == (birth[-1], year[0])
    assert abs(fold.right - fold.left - FOLD_WIDTH) < 1e-9
    assert scale.x(birth[-1]) - scale.x(birth[0]) > 40
    assert scale.x(year[-1]) - scale.x(year[0]) > 30


def test_what_happens_evenly_is_not_folded() -> None:
    scale = time_scale(NIGHT + n * MINUTE for n in range(50))
    assert scale is not None
    assert scale.folds == []
    labels = [tick.label for tick in scale.ticks()]
    assert labels[:3] == ["00:00", "00:05", "00:10"]
    assert [tick.day for tick in scale.ticks()][:2] == ["2026-11-21", None]


def test_nothing_and_a_single_moment() -> None:
    assert time_scale([]) is None
    scale = time_scale([NIGHT])
    assert scale is not None
    assert scale.x(NIGHT) == LEFT
    assert scale.ticks() == []
