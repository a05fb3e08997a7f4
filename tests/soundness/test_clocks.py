"""What is drawn of clocks, and of copies that take a while."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from kraft_core.simulation.setup import Setup
from tests.soundness.captures import Copy, clock_error, facts_of, is_disordered
from tests.soundness.claims import ClaimCheck
from tests.soundness.clocks import MOST_CLOCK_ERROR_MS, Clock, random_clock
from tests.soundness.drawing import copies_while_running, random_execution
from tests.soundness.execution import Execution, begin, go_on
from tests.soundness.following import Ask, Follower, observations_of
from tests.soundness.moves import Append, Elect, LawfulMove, Pull, WriteCheckpoint

BACK = Clock(20_000, -10_000, 4)
COMMITTED = Elect(1, (2, 3)), Pull(2, 1, 2), Pull(3, 1, 2), Append(1, 2), Pull(2, 1, 2), Append(1, 1)


def executed(clocks: dict[int, Clock], *moves: LawfulMove) -> Execution:
    """Of three dynamic voters, a second between two moves."""
    execution = begin(Setup(1, 3, 0))
    execution.clocks = clocks
    assert all(go_on(execution, 1_000, move) for move in moves)
    return execution


def test_a_leader_s_clock_that_is_set_back_shows_in_its_log() -> None:
    execution = executed({1: BACK, 2: Clock(then=7)}, *COMMITTED)
    (capture,) = facts_of((execution,), (Copy(1, 6, 6, execution.at[6], 0),)).captures
    (held,) = capture.epoch_ranges
    begun = execution.at[0]
    assert (held.first_appended_at, held.last_appended_at) == (begun + 21_000, begun + 21_000)
    assert held.first_data_appended_at == begun + 4_000 - 10_000
    assert execution.appended_at[3, 1] == begun + 4_000


def test_a_follower_s_clock_that_is_set_back_shows_in_its_answers() -> None:
    execution = executed({}, *COMMITTED)
    asks = Ask(1, 3, 3, 3), Ask(1, 5, 3, 5)
    first, _, second, _ = observations_of(execution, [Follower(1, asks, BACK)])
    assert (first.observed_from, first.observed_to) == (execution.at[3] + 20_000,) * 2
    assert (second.observed_from, second.observed_to) == (execution.at[3] + 20_000,) * 2


def test_clocks_are_set_back_and_forward_within_what_is_assumed() -> None:
    clocks = [random_clock(Random(seed), 10) for seed in range(100)]
    assert {clock.goes_back for clock in clocks} == {True, False}
    assert MOST_CLOCK_ERROR_MS * 0.9 < max(clock.error for clock in clocks) <= MOST_CLOCK_ERROR_MS


def test_copies_that_take_a_while_hold_what_came_after_their_time() -> None:
    """The copy of 1 is stated to be older than its last batch, and than its checkpoint."""
    execution = executed({}, *COMMITTED, WriteCheckpoint(1, True))
    copy = Copy(1, 6, 7, execution.at[3], 0, begun_at=3, checkpoints_at=7)
    (capture,) = facts_of((execution,), (copy,)).captures
    assert capture.captured_from == execution.at[3] < capture.epoch_ranges[-1].last_appended_at
    assert clock_error(execution, copy) == 0
    check = ClaimCheck(execution, (copy, Copy(2, 6, 6, execution.at[6], 0)))
    assert (check.apart, check.later) == (0, 3_000)
    assert [*check.unsound()] == []


def test_a_checkpoint_that_was_copied_later_than_its_copy_began_bounds_nothing_before() -> None:
    """Two copies began at one moment; of 1 alone, the log commits what it appends."""
    execution = begin(Setup(1, 1, 0))
    moves = (Elect(1, ()), Append(1, 2), WriteCheckpoint(1, False))
    assert all(go_on(execution, 1_000, move) for move in moves)
    earlier = Copy(1, 1, 3, execution.at[1], 0, checkpoints_at=1)
    later = replace(earlier, checkpoints_at=3)
    assert [*ClaimCheck(execution, (earlier, later)).unsound()] == []


def test_copies_that_take_a_while_are_drawn() -> None:
    copies: list[Copy] = []
    for seed in range(100):
        source = Random(seed)
        execution = random_execution(source)
        drawn = copies_while_running(source, execution)
        assert all(copy.begun <= copy.log_at <= copy.files_at for copy in drawn)
        copies += drawn
    assert sum(copy.begun < copy.log_at for copy in copies) > 50
    assert sum(copy.log_at < copy.files_at for copy in copies) > 50
    assert {copy.has_other_checkpoints for copy in copies} == {True, False}


def test_two_copies_of_one_directory_that_are_made_at_once_have_no_order() -> None:
    execution = executed({}, *COMMITTED)
    long, short = Copy(1, 6, 6, execution.at[3], 0, begun_at=3), Copy(1, 4, 4, execution.at[4], 0)
    assert is_disordered((long, short))
    assert not is_disordered((long, Copy(2, 4, 4, execution.at[4], 0)))
    assert not is_disordered((long, Copy(1, 6, 6, execution.at[6], 0)))
