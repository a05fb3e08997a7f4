"""What captures are said to prove, held against executions whose truth is known: no answer is false.

The seed differs from run to run and is in every failure: `python -m tests.soundness --seed N --runs RUNS`
repeats it.
"""

from __future__ import annotations

import random
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from kraft_core.evidence.collect import collect
from kraft_core.evidence.facts import Capture, ClusterFacts
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.plan.actions import Lose
from kraft_core.plan.verdicts import judge
from kraft_core.raft.log import BrokenLogError
from kraft_core.simulation.directories import write_directory
from kraft_core.simulation.setup import Setup
from tests.soundness.__main__ import main
from tests.soundness.captures import Copy, facts_of
from tests.soundness.checker import (
    Checked,
    check,
    report_unsound,
    shrink_unsound,
)
from tests.soundness.claims import ClaimCheck
from tests.soundness.drawing import random_execution
from tests.soundness.execution import BEGAN_AT, Execution, Script, can_be_lost, run_script
from tests.soundness.exhaustive import weigh
from tests.soundness.moves import (
    Append,
    ChangeVoters,
    Elect,
    Pull,
    Reboot,
    WriteCheckpoint,
)
from tests.soundness.unlawful import KINDS, Unlawful, check_unlawful

RUNS = 400
UNLAWFUL_RUNS = 6


def new_seed() -> int:
    return time.time_ns() % 1_000_000_000


def failures(checked: Checked) -> str:
    """Each kind of false answer, shrunk."""
    return "\n\n".join(
        f"seed {seed}: {report_unsound(shrink_unsound(found))}" for seed, found in checked.first.values()
    )


def test_no_answer_is_false() -> None:
    seed = new_seed()
    checked = check(RUNS, seed)
    assert checked.runs >= RUNS
    assert failures(checked) == "", f"from seed {seed}"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_what_kraft_does_not_allow_is_raised(kind: Unlawful) -> None:
    seed = new_seed()
    raised = check_unlawful(kind, UNLAWFUL_RUNS, seed)
    assert raised.shown == UNLAWFUL_RUNS, f"from seed {seed}"
    assert raised.failures == []


def test_what_lies_below_a_gap_of_a_copy_may_be_older_than_what_is_above() -> None:
    """A batch that was truncated lies below it: the one that took its place had been committed."""
    (kind,) = (kind for kind in KINDS if kind.name == "segments of two moments")
    raised = check_unlawful(kind, 1, 1_004_329)
    assert (raised.runs, raised.failures) == (1, [])


def test_a_replica_without_a_last_epoch_is_judged_by_its_batches() -> None:
    """It deleted what a checkpoint covers, restarted, and was truncated to that checkpoint's end."""
    begun = Elect(3, (1, 2)), Pull(1, 3, 1, one=True), WriteCheckpoint(3, True), Append(3, 2)
    elected = Reboot(3), Elect(1, (2, 3)), Pull(3, 1, 0), Pull(2, 1, 3)
    execution = run_script(Script(Setup(1, 3, 0), tuple((10, move) for move in (*begun, *elected))))
    assert len(execution.moments) == 9
    with pytest.raises(BrokenLogError):
        _ = execution.moments[-1][3].log.last_epoch
    for last in (7, 8):
        copies = tuple(Copy(slot, last, last, execution.at[last], 0) for slot in (1, 2, 3))
        assert list(ClaimCheck(execution, copies).unsound()) == []


def test_the_truth_of_a_plan_goes_by_the_newest_epoch() -> None:
    """Leader 2 was deposed by 1 and 3 before its removal of 3 was stored; then leader 1 resigned."""
    deposed = [Elect(2, (1, 3)), Pull(1, 2, 2, one=True), ChangeVoters(2, 3, add=False), Elect(1, (3,))]
    moves = tuple((10, move) for move in (*deposed, Elect(3, (1,))))
    execution = run_script(Script(Setup(1, 3, 0), moves))
    last = len(execution.moments) - 1
    assert last == len(moves)
    copies = tuple(Copy(slot, last, last, execution.at[last], 0) for slot in (1, 3))
    check_ = ClaimCheck(execution, copies)
    assert check_.answers.quorum is not None
    assert judge(check_.answers.quorum, Lose((2,))).verdict.name == "safe"
    assert list(check_.unsound()) == []


def test_a_follower_copied_after_the_leader_shows_no_keeping_up_by_the_leaders_log() -> None:
    """When leader 1 was copied, voter 2 had nothing yet; when 2 was copied, 1 was removing it."""
    pulls = Pull(3, 1, 2), Append(1, 3), ChangeVoters(1, 2, add=False), Pull(2, 1, 1, one=True)
    execution = run_script(Script(Setup(1, 3, 0), tuple((3000, m) for m in (Elect(1, (2, 3)), *pulls))))
    assert len(execution.moments) == 6
    later, earlier = (Copy(slot, at, at, execution.at[at], 0) for slot, at in ((2, 5), (1, 3)))
    check_ = ClaimCheck(execution, (later, earlier))
    assert check_.answers.quorum is not None
    assert judge(check_.answers.quorum, Lose((3,))).verdict.name == "not_known"
    assert list(check_.unsound()) == []


# Voters, whether static, moves, and the most of the provable verdicts that may be left undecided.
EXHAUSTIVE = ((2, True, 6, 0.37), (2, False, 5, 0.22), (3, True, 3, 0.41))


@pytest.mark.parametrize(("voters", "static", "moves", "share"), EXHAUSTIVE)
def test_no_execution_of_a_few_moves_makes_a_verdict_false(
    voters: int, static: bool, moves: int, share: float
) -> None:
    weighed = weigh(Setup(1, voters, 0, static=static), moves)
    assert weighed.verdicts > 300
    assert [words for *_, words in weighed.unsound] == []
    assert weighed.undecided_share <= share


@pytest.mark.parametrize("seed", range(60))
def test_executions_are_lawful(seed: int) -> None:
    """What is committed once cannot be lost from then on, and no two batches are committed at one offset."""
    execution = random_execution(random.Random(seed))
    for nth, time_ in enumerate(execution.at):
        committed = execution.committed_by(time_)
        assert all(one.end_offset <= other.base_offset for one, other in pairwise(committed))
        assert not any(can_be_lost(execution, nth, batch) for batch in committed)


def test_executions_do_all_that_quorums_do() -> None:
    """Elections that are lost and won, batches that are truncated, changes of voters, snapshots, disks."""
    executions = [random_execution(random.Random(seed)) for seed in range(80)]
    moves = {type(move).__name__ for execution in executions for _, move in execution.script.moves}
    assert moves == {
        "Elect",
        "Append",
        "Pull",
        "ChangeVoters",
        "UpdateVoter",
        "UpgradeKRaftVersion",
        "WriteCheckpoint",
        "Reboot",
        "EmptyDisk",
    }
    assert any(max(execution.leaders, default=0) >= 3 for execution in executions)
    lost = [
        execution
        for execution in executions
        for batch in execution.batches.values()
        if not any(
            held == batch for replica in execution.moments[-1].values() for held in replica.log.batches
        )
    ]
    assert lost
    sizes = {len(replica.voters) for e in executions for replica in e.moments[-1].values()}
    assert {1, 2, 3, 4, 5} <= sizes


def test_a_script_repeats_its_execution() -> None:
    for seed in range(20):
        execution = random_execution(random.Random(seed))
        again = run_script(execution.script)
        assert again.moments == execution.moments
        assert again.committed_at == execution.committed_at


@pytest.mark.parametrize("seed", range(12))
def test_facts_are_those_of_the_directories_on_disk(seed: int, tmp_path: Path) -> None:
    execution = random_execution(random.Random(seed))
    last = len(execution.moments) - 1
    copies = tuple(Copy(slot, last, last, execution.at[last], 0) for slot in execution.moments[last])
    (read,) = collect(find_controller_dirs([written(execution, tmp_path)]).directories, execution.at[last])
    assert plain(facts_of((execution,), copies)) == plain(read)


def written(execution: Execution, folder: Path) -> Path:
    appended = {place: at - BEGAN_AT for place, at in execution.appended_at.items()}
    snapshotted = {place: at - BEGAN_AT for place, at in execution.snapshotted_at.items()}
    for slot, replica in execution.moments[-1].items():
        write_directory(replica, appended, snapshotted, folder / f"node-{slot}")
    return folder


def plain(facts: ClusterFacts) -> tuple[object, ...]:
    """Without the names that contents go by; the time is stated by other means."""
    captures = {capture.capture_id: nth for nth, capture in enumerate(_by_node(facts.captures))}
    return (
        [
            replace(
                capture,
                capture_id="",
                epoch_ranges=tuple(replace(each, digest="") for each in capture.epoch_ranges),
                time_source="flag",
                captured_at_source="flag",
            )
            for capture in _by_node(facts.captures)
        ],
        {repr(replace(record, batch_crc=0)) for record in facts.control_records},
        sorted(
            repr(replace(s, content_digest="", held_in=tuple(str(captures[name]) for name in s.held_in)))
            for s in facts.snapshots
        ),
        facts.feature_levels,
    )


def _by_node(captures: tuple[Capture, ...]) -> list[Capture]:
    return sorted(captures, key=lambda capture: capture.node_id)


def test_the_command_prints_what_it_found(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--seed", "3", "--runs", "10"])
    out = capsys.readouterr().out
    assert out.startswith("14 sets of captures of lawful quorums from seed 3: ")
    assert all(f"\n{kind.name}: {kind.what} in " in out for kind in KINDS)
