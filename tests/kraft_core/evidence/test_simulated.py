"""Verdicts on captures of simulated quorums, held against what became of every batch.

A quorum of one to seven replicas lives through elections, crashes, changes of voters and lost disks;
captures are taken of some replicas at some moments. Whatever subset of them is looked at: nothing is called
committed that is not in the log at the end, nothing truncated for good that is, and no bound of the high
watermark is on the wrong side of the true one.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_core.evidence.commit import CommitVerdict
from kraft_core.evidence.conclusions import Conclusions, conclude
from kraft_core.evidence.derive import derive
from kraft_core.evidence.facts import ClusterFacts
from tests.kraft_core.evidence.golden import union
from tests.kraft_core.evidence.simulated_quorum import Batch, Quorum, Replica, ReplicaName

SEEDS = st.integers(min_value=0, max_value=2**32)


class Life:
    """A quorum's life: the facts of each capture in order, every batch a capture holds, the settled log.

    reported: (ms, leader, epoch, high watermark) after each step, of all that lead or do not know yet that
    they lead no more.
    """

    def __init__(self, seed: int) -> None:
        random = Random(seed)
        self.random = random
        self.quorum = Quorum(
            random,
            voters=random.randint(1, 5),
            observers=random.randint(0, 2),
            dynamic=random.random() < 0.6,
            old=random.random() < 0.5,
        )
        self.captures: list[ClusterFacts] = []
        self.held: list[list[Batch]] = []
        self.reported: list[tuple[int, ReplicaName, int, int]] = []
        often = random.choice((0.05, 0.2, 0.5))
        for _ in range(random.randint(5, 250)):
            self.quorum.step()
            self._hear_leaders()
            if random.random() < often:
                self._capture(self.quorum.replicas[random.choice(sorted(self.quorum.replicas))])
            if random.random() < 0.02:
                for replica in self.quorum.replicas.values():
                    self._capture(replica)
        self.settled = self.quorum.settle()

    def _hear_leaders(self) -> None:
        self.reported += [
            (self.quorum.now, replica.name, replica.epoch, replica.leader_high_watermark)
            for replica in self.quorum.replicas.values()
            if replica.leads_from is not None and replica.leader_high_watermark is not None
        ]

    def _capture(self, replica: Replica) -> None:
        self.captures.append(self.quorum.capture(replica))
        self.held.append(list(replica.log))

    def subsets(self) -> Iterator[list[int]]:
        """Some captures, then some more, then all."""
        some = [nth for nth in range(len(self.captures)) if self.random.random() < 0.4]
        more = sorted({*some, *(nth for nth in range(len(self.captures)) if self.random.random() < 0.4)})
        yield from (chosen for chosen in (some, more, list(range(len(self.captures)))) if chosen)

    def survived(self, batch: Batch) -> bool | None:
        """Whether a batch is in the log at the end, None where that was snapshotted away."""
        if batch.base < self.settled.start:
            return None
        return self.settled.epoch_at(batch.base) == batch.epoch


def verdicts(known: Conclusions, batches: list[Batch]) -> dict[Batch, CommitVerdict]:
    return {batch: known.commit.of_batch(batch.epoch, batch.base, batch.end) for batch in batches}


def check_verdict(life: Life, batch: Batch, verdict: CommitVerdict) -> None:
    survived = life.survived(batch)
    if verdict.status == "committed":
        assert survived is not False, (batch, verdict)
    if verdict.status == "truncated":
        assert survived is not True, (batch, verdict)
    if verdict.status == "uncommitted" and survived:
        assert verdict.as_of is not None
        assert life.quorum.high_watermark_at(verdict.as_of) <= batch.base, (batch, verdict)
    assert verdict.evidence
    assert verdict.as_of is not None


def check_bounds(life: Life, facts: ClusterFacts) -> None:
    for row in derive(facts).high_watermarks:
        true = life.quorum.high_watermark_at(row.as_of)
        assert row.believed_bound is None
        assert row.lower_bound is None or row.lower_bound <= true, row
        assert row.upper_bound is None or row.upper_bound >= true, row


def check_life(seed: int) -> None:
    life = Life(seed)
    before: dict[Batch, CommitVerdict] = {}
    for chosen in life.subsets():
        facts = union(life.captures[nth] for nth in chosen)
        held = sorted({batch for nth in chosen for batch in life.held[nth]}, key=lambda b: (b.base, b.epoch))
        found = verdicts(conclude(facts), held)
        for batch, verdict in found.items():
            check_verdict(life, batch, verdict)
            if batch in before and before[batch].status in ("committed", "truncated"):
                assert verdict.status == before[batch].status, (batch, verdict)
        check_bounds(life, facts)
        before = found


@settings(max_examples=100, deadline=None)
@given(seed=SEEDS)
def test_verdicts_and_bounds_agree_with_what_happened(seed: int) -> None:
    check_life(seed)


@pytest.mark.long
@settings(max_examples=5000, deadline=None)
@given(seed=SEEDS)
def test_verdicts_and_bounds_agree_with_what_happened_many_times(seed: int) -> None:
    check_life(seed)


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_the_rows_are_one_whole(seed: int) -> None:
    """Ranges cover what the captures hold, status by status as single batches; keys are unique."""
    life = Life(seed)
    if not life.captures:
        return
    facts = union(life.captures)
    evidence = derive(facts)
    held = {batch for log in life.held for batch in log}
    offsets = {(batch.epoch, offset) for batch in held for offset in range(batch.base, batch.end)}
    status: dict[tuple[int, int], str] = {}
    for row in evidence.log_ranges:
        for offset in range(row.first_offset, row.end_offset):
            assert status.setdefault((row.leader_epoch, offset), row.commit_status) == row.commit_status
    assert set(status) == offsets
    assert not any("disagree" in row.evidence for row in evidence.log_ranges)
    for batch, verdict in verdicts(conclude(facts), sorted(held, key=lambda b: (b.base, b.epoch))).items():
        assert {status[batch.epoch, offset] for offset in range(batch.base, batch.end)} == {verdict.status}
    for neighbour, row in zip(evidence.log_ranges, evidence.log_ranges[1:], strict=False):
        touching = neighbour.leader_epoch == row.leader_epoch and neighbour.end_offset == row.first_offset
        assert not touching or neighbour.commit_status != row.commit_status
    check_keys(facts)


def check_keys(facts: ClusterFacts) -> None:
    evidence = derive(facts)
    keys = {
        "log_ranges": [(r.leader_epoch, r.first_offset) for r in evidence.log_ranges],
        "replica_ranges": [
            (r.node_id, r.directory_id, r.leader_epoch, r.first_offset) for r in evidence.replica_ranges
        ],
        "epochs": [(r.leader_epoch,) for r in evidence.epochs],
        "voter_sets": [(r.offset, r.leader_epoch, r.source) for r in evidence.voter_sets],
        "voter_changes": [
            (r.offset, r.leader_epoch, r.kind, r.voter_id, r.directory_id) for r in evidence.voter_changes
        ],
        "high_watermarks": [(r.evidence, r.source, r.as_of) for r in evidence.high_watermarks],
    }
    for table, rows in keys.items():
        assert len(set(rows)) == len(rows), table
        assert rows == sorted(rows), table


@settings(max_examples=40, deadline=None)
@given(seed=SEEDS)
def test_neither_order_nor_repetition_counts(seed: int) -> None:
    life = Life(seed)
    if not life.captures:
        return
    expected = derive(union(life.captures))
    parts = [*life.captures, *life.random.choices(life.captures, k=3)]
    life.random.shuffle(parts)
    assert derive(union(parts)) == expected
