"""Copies that lack some of a directory's files: what they do not show is not taken for shown."""

from __future__ import annotations

from collections import Counter
from random import Random

from kraft_core.evidence.facts import Capture
from kraft_core.findings.recovery import RecoveryAdvice
from kraft_core.simulation.setup import Setup
from tests.soundness.captures import Copy, facts_of
from tests.soundness.claims import ClaimCheck
from tests.soundness.drawing import random_copies, random_execution
from tests.soundness.execution import Execution, Script, run_script
from tests.soundness.missing import NOTHING, Missing
from tests.soundness.moves import (
    Append,
    ChangeVoters,
    Elect,
    LawfulMove,
    Pull,
    Reboot,
    WriteCheckpoint,
)

ALL = (0, 1 << 40)


def executed(setup: Setup, *moves: LawfulMove) -> Execution:
    """The moves, 100 s apart."""
    execution = run_script(Script(setup, tuple((100_000, move) for move in moves)))
    assert len(execution.moments) == len(moves) + 1
    return execution


def copied(execution: Execution, slot: int, at: int, missing: Missing = NOTHING) -> Copy:
    return Copy(slot, at, at, execution.at[at], 0, missing=missing)


def sound(execution: Execution, *copies: Copy) -> ClaimCheck:
    check = ClaimCheck(execution, copies)
    assert [*check.unsound()] == []
    return check


def best_nodes(advice: RecoveryAdvice) -> list[int]:
    return [candidate.node_id for candidate in advice.best]


def test_damaged_first_segments_are_a_gap() -> None:
    """The first segment is named after its first batch: the log of 2 does not begin at 5."""
    appended = Elect(1, (2,)), Append(1, 3), Append(1, 1), Append(1, 3), Pull(2, 1, 2)
    execution = executed(Setup(1, 1, 1, static=True), *appended)
    whole = sound(execution, copied(execution, 2, 5), copied(execution, 1, 5))
    assert whole.answers.recovery.is_safe
    assert best_nodes(whole.answers.recovery) == [1, 2]
    check = sound(execution, copied(execution, 2, 5, Missing((0, 5), "damaged")), copied(execution, 1, 5))
    assert check.answers.recovery.is_safe
    assert best_nodes(check.answers.recovery) == [1]
    alone = sound(execution, copied(execution, 1, 5, Missing((0, 5), "damaged")))
    assert not alone.answers.recovery.is_safe
    assert [(f.rule, f.first_offset, f.end_offset) for f in alone.answers.errors] == [(0, 0, 5)]


def test_an_empty_log_above_offset_0_needs_its_checkpoint() -> None:
    moves = Elect(1, ()), WriteCheckpoint(1, True), Reboot(1)
    execution = executed(Setup(1, 1, 0), *moves)
    whole = copied(execution, 1, 3)
    assert sound(execution, whole).answers.recovery.is_safe
    check = sound(execution, copied(execution, 1, 3, Missing(checkpoints=True)), whole)
    assert not check.answers.recovery.is_safe
    assert [finding.rule for finding in check.answers.errors] == [19]


def test_a_leader_whose_log_cannot_be_read_may_have_appended_a_next_set() -> None:
    """Leader 1 removed voter 2 at offset 9 and committed alone; that record could not be read."""
    appends = Append(1, 3), Append(1, 2), Pull(3, 1, 1), Append(1, 1)
    execution = executed(
        Setup(1, 2, 1), Elect(1, (2,)), Pull(2, 1, 3), *appends, ChangeVoters(1, 2, add=False), Append(1, 2)
    )
    others = copied(execution, 2, 7), copied(execution, 3, 7)
    batch = next(batch for batch in execution.batches.values() if batch.base_offset == 3)
    whole = sound(execution, *others, copied(execution, 1, 8))
    assert whole.verdict_on(batch).status == "committed"
    check = sound(execution, *others, copied(execution, 1, 8, Missing((0, 10), "unreadable")))
    assert check.verdict_on(batch).status == "undecided"


def test_a_snapshot_that_ends_below_a_pending_voter_set_keeps_the_one_before() -> None:
    """Kafka forgets it, and after the truncation goes by no set (kraft_core.raft.emulation): a defect."""
    begun = Elect(1, (2, 3)), Pull(2, 1, 1), ChangeVoters(1, 1, add=False), WriteCheckpoint(1, True)
    execution = executed(Setup(1, 3, 0), *begun, Elect(2, (1, 3)), Pull(1, 2, 1))
    truncated = execution.moments[-1][1]
    assert [batch.leader_epoch for batch in truncated.log.batches][-1] == 2
    assert truncated.voters is not None
    assert sorted(voter.key.id for voter in truncated.voters) == [1, 2, 3]


def test_an_unusable_copy_that_ends_where_the_best_claim_does_is_not_advised() -> None:
    """The log of voter 1 without a directory id, and that of observer 3: each may lack the first segments."""
    moves = Elect(1, (2, 3)), Pull(2, 1, 1), Append(1, 3), Pull(2, 1, 1), Pull(3, 1, 2)
    execution = executed(Setup(1, 2, 1), *moves)
    voters = copied(execution, 1, 5), copied(execution, 2, 5)
    unnamed = copied(execution, 1, 5, Missing(directory_id=True))
    partial = copied(execution, 1, 5, Missing((0, 3), directory_id=True))
    both = sound(execution, *voters, unnamed).answers.recovery
    assert both.is_safe
    assert best_nodes(both) == [1, 2, 1]
    one = sound(execution, *voters, partial).answers.recovery
    assert not one.is_safe  # it may be a copy of voter 1's own directory, which then is broken
    assert best_nodes(one) == [1, 2]
    observer = sound(execution, *voters, copied(execution, 3, 5)).answers.recovery
    assert observer.is_safe
    assert best_nodes(observer) == [1, 2, 3]
    broken = sound(execution, *voters, copied(execution, 3, 5, Missing((0, 3)))).answers.recovery
    assert broken.is_safe
    assert best_nodes(broken) == [1, 2]


def test_what_is_missing_is_not_in_the_facts() -> None:
    execution = executed(Setup(1, 1, 0), Elect(1, ()), Append(1, 3), WriteCheckpoint(1, False), Append(1, 2))

    def capture(missing: Missing) -> Capture:
        return facts_of((execution,), (copied(execution, 1, 4, missing),)).captures[0]

    def bounds(missing: Missing) -> tuple[object, ...]:
        one = capture(missing)
        epoch_ranges = [
            (epoch_range.first_offset, epoch_range.end_offset) for epoch_range in one.epoch_ranges
        ]
        return one.log_start_offset, one.log_end_offset, epoch_ranges, one.readable, one.tail_damaged

    assert bounds(NOTHING) == (0, 8, [(0, 8)], True, False)
    assert bounds(Missing((0, 3))) == (3, 8, [(3, 8)], True, False)
    assert bounds(Missing((3, 6), "damaged")) == (0, 8, [(0, 3), (6, 8)], True, False)
    assert bounds(Missing((6, 8), "damaged")) == (0, 6, [(0, 6)], True, True)
    assert bounds(Missing((0, 3), "unreadable")) == (0, 8, [(3, 8)], False, False)
    assert bounds(Missing(ALL)) == (None, 6, [], True, False)
    assert bounds(Missing(ALL, checkpoints=True)) == (None, None, [], True, False)
    assert bounds(Missing(ALL, "unreadable", checkpoints=True)) == (None, None, [], False, False)
    assert capture(Missing(quorum_state=True)).quorum_state_epoch is None
    assert capture(Missing(leader_epoch_checkpoint=True)).leader_epoch_checkpoint is None
    assert capture(Missing(directory_id=True)).replica.directory_id is None


def test_every_kind_of_missing_file_is_drawn() -> None:
    drawn: Counter[str] = Counter()
    for seed in range(200):
        source = Random(seed)
        for copy in random_copies(source, random_execution(source)):
            drawn.update(str(copy.missing).split(", ")[-1:])
            drawn[copy.missing.how] += copy.missing.segments[1] > 0
    kinds = {"nothing", "checkpoints", "quorum_state", "leader_epoch_checkpoint", "directory_id"}
    assert {*kinds, "absent", "unreadable", "damaged"} <= drawn.keys()
    assert drawn["nothing"] > 100
