"""When records take effect: the running maximum of timestamps, also where batches conflict."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from kraft_core.image.replay_path import PathCheckpoint, ReplayRange
from transforms.histories.clocks import Clock, clock, merged, on_path
from transforms.histories.replay_plan import ReplayPlan

Batch = tuple[int, int, int]


def of(batches: list[Batch]) -> Clock:
    """The clock of batches: first offset, end offset, time."""
    path = [ReplayRange(0, 1_000, 1, "committed")]
    columns = np.array(batches, dtype=np.int64).reshape(-1, 3)
    return clock(path, [(columns[:, 0], columns[:, 1], columns[:, 2])])


def random_batches(random: Random, conflicts: bool) -> list[Batch]:
    found: list[Batch] = []
    at = 0
    for _ in range(random.randint(1, 30)):
        end = at + random.randint(1, 5)
        found.append((at, end, random.randint(0, 50)))
        at = end - random.randint(0, min(4, end)) if conflicts and random.random() < 0.3 else end
    return random.sample(found, len(found))


@pytest.mark.parametrize("conflicts", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_an_offset_takes_effect_at_the_latest_time_of_all_batches_that_begin_by_it(
    seed: int, conflicts: bool
) -> None:
    batches = random_batches(Random(seed), conflicts)
    plan = ReplayPlan("cluster", [], floors=of(batches).floors())
    for first, end, at in batches:
        for offset in range(first, end):
            expected = max(time for begin, _, time in batches if begin <= offset)
            assert max(at, plan.floor_at(offset)) == expected


def test_where_times_only_rise_there_is_no_floor() -> None:
    assert of([(0, 5, 10), (5, 6, 10), (6, 9, 30)]).floors() == []
    assert of([]).floors([3]) == []


def test_a_checkpoint_without_a_time_takes_effect_at_that_of_what_precedes_it() -> None:
    plan = ReplayPlan("cluster", [], floors=of([(0, 5, 10), (5, 9, 20)]).floors([20]))
    assert [plan.floor_at(offset) for offset in (4, 20, 21)] == [-1, 20, -1]


def test_a_batch_that_ends_where_the_path_begins_is_not_on_it() -> None:
    path = [PathCheckpoint(5, 1, "digest", None), ReplayRange(5, 9, 1, "committed")]
    first, end = np.array([0, 3, 5]), np.array([5, 6, 9])
    assert on_path(path, first, end, np.array([1, 1, 1])).tolist() == [False, True, True]


def test_the_order_of_what_is_read_does_not_matter() -> None:
    batches = [(0, 5, 10), (0, 5, 7), (0, 3, 10), (5, 9, 1), (0, 5, 10)]
    expected = [(0, 3, 10), (0, 5, 7), (0, 5, 10), (5, 9, 1)]
    for seed in range(10):
        columns = np.array(Random(seed).sample(batches, len(batches))).T
        first, end, at = merged([tuple(columns[:, :2]), tuple(columns[:, 2:])])
        assert sorted(zip(first.tolist(), end.tolist(), at.tolist(), strict=True)) == expected
