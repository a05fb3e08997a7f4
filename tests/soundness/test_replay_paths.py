"""The log from which histories are replayed is one that a replica had: it mixes no epochs."""

from __future__ import annotations

import random
from collections.abc import Iterator

from kraft_core.evidence.conclusions import conclude
from kraft_core.evidence.derive import tables
from kraft_core.image.replay_path import PathCheckpoint, ReplayRange, Step, replay_path
from tests.soundness.captures import Copy, facts_of
from tests.soundness.drawing import random_copies, random_execution
from tests.soundness.execution import Execution

SEEDS = range(1000)


def path_of(execution: Execution, source: random.Random) -> list[Step]:
    """The replay path by copies of all directories at the end, or of some, as a lake has it."""
    last = len(execution.moments) - 1
    copies = tuple(Copy(slot, last, last, execution.at[last], 0) for slot in execution.moments[last])
    facts = facts_of((execution,), source.choice((copies, random_copies(source, execution))))
    evidence = tables(conclude(facts))
    previous = {row.leader_epoch: row.previous_epoch for row in evidence.epochs}
    return replay_path(
        [
            ReplayRange(r.first_offset, r.end_offset, r.leader_epoch, r.commit_status)
            for r in evidence.log_ranges
        ],
        [PathCheckpoint(s.end_offset, s.leader_epoch, "", None) for s in facts.snapshots if s.proves],
        {epoch: below for epoch, below in previous.items() if below is not None},
    )


def epochs_below(execution: Execution, offset: int, epoch: int) -> dict[int, int]:
    """By offset the epochs of all that lies below a record, in each log that has it."""
    return {
        held: batch.leader_epoch
        for replicas in execution.moments
        for replica in replicas.values()
        if any(
            b.base_offset <= offset < b.end_offset and b.leader_epoch == epoch for b in replica.log.batches
        )
        for batch in replica.log.batches
        for held in range(batch.base_offset, min(batch.end_offset, offset + 1))
    }


def mixed(execution: Execution, path: list[Step]) -> Iterator[str]:
    """Where a path has another epoch than the log of its last record, down to what it says is missing."""
    ranges = [step for step in path if isinstance(step, ReplayRange)]
    below = epochs_below(execution, ranges[-1].end_offset - 1, ranges[-1].leader_epoch) if ranges else {}
    reached = ranges[-1].end_offset if ranges else 0
    for step in reversed(ranges):
        if step.end_offset < reached:
            return
        reached = step.first_offset
        for offset in range(step.first_offset, step.end_offset):
            if below.get(offset, step.leader_epoch) != step.leader_epoch:
                yield f"offset {offset}: epoch {step.leader_epoch}, not {below[offset]}"


def test_histories_follow_a_log_that_a_replica_had() -> None:
    undecided = 0
    for seed in SEEDS:
        source = random.Random(seed)
        execution = random_execution(source)
        path = path_of(execution, source)
        assert not list(mixed(execution, path)), f"seed {seed}"
        undecided += sum(isinstance(step, ReplayRange) and step.commit_status != "committed" for step in path)
    assert undecided > len(SEEDS) / 2
