"""The engine against a second, deliberately simple one, under operations that hypothesis thinks up."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from kraft_core.raft import replay
from kraft_core.raft.batches import Batch, ControlRecord
from kraft_core.raft.emulation import EmulatedReplica, emulate, start, voters_kafka_would_use
from kraft_core.raft.epochs import EpochEnd
from kraft_core.raft.log import ReplicaLog, Snapshot, controls_of_log
from kraft_core.raft.voters import ReplicaKey, Voter, VoterSet, change_between
from kraft_core.raft.watermark import begin_leading, follower_fetched, leader_reached
from tests.kraft_core.raft.simple_model import SimpleLog, majorities_always_meet, majority_reached

VOTERS = tuple(Voter(ReplicaKey(replica, chr(64 + replica))) for replica in range(1, 7))
voter_sets = st.sets(st.sampled_from(VOTERS), min_size=1, max_size=5).map(VoterSet.of)
records = st.lists(st.one_of(st.none(), st.none(), voter_sets), min_size=1, max_size=4)


class LogAgainstModel(RuleBasedStateMachine):
    """One replica's log: appends, truncations, snapshots, restarts, side by side."""

    replica: EmulatedReplica
    model: SimpleLog
    epoch: int = 1
    forgetful: bool = False

    @property
    def log(self) -> ReplicaLog:
        return self.replica.log

    def operate(self, operation: replay.Operation) -> None:
        self.replica = emulate(self.replica, operation)

    @initialize(voters=voter_sets, bootstrapped=st.booleans())
    def begin(self, voters: VoterSet, bootstrapped: bool) -> None:
        if bootstrapped:
            self.replica = start(
                ReplicaLog(snapshots=(Snapshot(0, 0, 1, voters),)), rewinds=True, forgets=False
            )
            self.model = SimpleLog(snapshot=(0, 0, voters))
        else:
            self.replica = start(ReplicaLog(static_voters=voters), rewinds=True, forgets=False)
            self.model = SimpleLog(static=voters)

    @rule(held=records, epochs=st.integers(0, 2))
    def append(self, held: list[VoterSet | None], epochs: int) -> None:
        self.epoch += epochs
        base = self.log.end_offset
        control = tuple(ControlRecord(base + at, voters) for at, voters in enumerate(held) if voters)
        batch = Batch(base, base + len(held) - 1, self.epoch, 10, control_records=control)
        self.operate(replay.AppendAsFollower(self.epoch, (batch,)))
        self.model.append(self.epoch, held)

    @rule(back=st.integers(0, 9))
    def commit(self, back: int) -> None:
        ends = self._batch_ends(self.model.high_watermark)
        offset = ends[-1 - back % len(ends)]
        self.operate(replay.UpdateHighWatermark(offset))
        self.model.high_watermark = offset

    @rule(back=st.integers(0, 9))
    def truncate(self, back: int) -> None:
        committed = self.model.snapshot[0] if self.model.snapshot else 0  # a restart forgets the rest
        ends = self._batch_ends(max(committed, self.log.high_watermark))
        offset = ends[-1 - back % len(ends)]
        self.operate(replay.TruncateTo(offset))
        self.model.truncate(offset)
        self.epoch += 1

    @rule(back=st.integers(0, 9))
    def write_snapshot(self, back: int) -> None:
        lowest = self.model.snapshot[0] if self.model.snapshot else self.model.start
        ends = [end for end in self._batch_ends(lowest) if end <= self.log.high_watermark]
        if not ends:
            return
        offset = ends[-1 - back % len(ends)]
        epochs = [record.epoch for record in self.model.records[: offset - self.model.start]]
        if not epochs:
            return
        voters = self.model.voters_below(offset)
        behind = self.model.records[offset - self.model.start :]
        self.forgetful |= bool(behind and behind[0].voters)
        self.operate(replay.CreateSnapshot(Snapshot(offset, epochs[-1], 1, voters)))
        if self.log.latest_snapshot and self.log.latest_snapshot.end_offset == offset:
            self.model.snapshot = (offset, epochs[-1], voters)

    @rule(beyond=st.integers(1, 5), voters=voter_sets)
    def install_snapshot(self, beyond: int, voters: VoterSet) -> None:
        end = self.log.end_offset + beyond
        self.epoch += 1
        self.operate(replay.InstallSnapshot(Snapshot(end, self.epoch, 1, voters)))
        self.model.install(end, self.epoch, voters)
        self.forgetful = False

    @precondition(lambda self: self.log.start_offset == self.model.start)
    @rule()
    def restart(self) -> None:
        self.operate(replay.Restart())
        self.model.restart()
        self.forgetful = False

    def _batch_ends(self, from_offset: int) -> list[int]:
        bases = {record.batch_base for record in self.model.records} | {self.model.end}
        return sorted(base for base in bases if base >= from_offset) or [from_offset]

    @invariant()
    def same_log(self) -> None:
        assert (self.log.start_offset, self.log.end_offset) == (self.model.start, self.model.end)
        assert self.log.high_watermark == self.model.high_watermark

    @invariant()
    def same_voters(self) -> None:
        truth = controls_of_log(self.log).voters
        assert (truth.last, truth.last_offset) == self.model.voters_in_force()
        uncommitted = truth.last_offset is not None and truth.last_offset >= self.model.high_watermark
        assert truth.is_uncommitted(self.log.high_watermark) == uncommitted

    @invariant()
    def same_epochs(self) -> None:
        assert list(self.log.epochs.entries) == self.model.epochs()
        for epoch in range(self.epoch + 2):
            expected = self.model.end_of_epoch(epoch)
            if expected and epoch <= self.model.epochs()[-1][0]:
                found = self.log.epochs.end_offset_for(epoch, self.log.end_offset)
                assert found == EpochEnd(*expected)

    @invariant()
    def a_kafka_that_reads_back_goes_by_its_log(self) -> None:
        """Unless a VotersRecord at a snapshot's very end made it forget the one before."""
        if not self.forgetful:
            assert voters_kafka_would_use(self.replica) == controls_of_log(self.log).voters.last


def test_log() -> None:
    short = settings(max_examples=60, stateful_step_count=30, deadline=None, derandomize=True)
    run_state_machine_as_test(LogAgainstModel, settings=short)


@pytest.mark.long
def test_log_for_long() -> None:
    run_state_machine_as_test(
        LogAgainstModel, settings=settings(max_examples=3000, stateful_step_count=50, deadline=None)
    )


steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 5)),
        st.tuples(st.sampled_from(VOTERS[1:]), st.floats(0, 1)),
        st.tuples(st.just("voters"), voter_sets),
    ),
    max_size=40,
)


@settings(max_examples=200, deadline=None)
@given(first=voter_sets, steps=steps, epoch_start=st.integers(0, 10))
def test_high_watermark(first: VoterSet, steps: list, epoch_start: int) -> None:
    leader = VOTERS[0].key
    voters, end = first, epoch_start
    ends: dict[ReplicaKey, int | None] = {}
    known: int | None = None
    progress = begin_leading(leader, epoch_start, voters)
    for what, value in steps:
        if isinstance(what, Voter):
            ends[what.key] = int(value * end)
            progress = follower_fetched(progress, what.key, int(value * end))
        else:
            end += value if what == "append" else 1
            ends[leader] = end
            if what == "voters":
                voters = value
            progress = leader_reached(progress, end, voters)
        reached = majority_reached(ends, voters)
        # A fetch by an observer is no occasion to look: the leader waits for a voter's.
        looked = not isinstance(what, Voter) or what in voters.voters
        if looked and reached is not None and reached > epoch_start:
            known = max(known or 0, reached)
        assert progress.high_watermark == known


@given(one=voter_sets, other=voter_sets)
def test_one_step_keeps_majorities_together(one: VoterSet, other: VoterSet) -> None:
    change = change_between(one, other)
    assert {voter.key for voter in change.added} == other.keys - one.keys
    assert {voter.key for voter in change.removed} == one.keys - other.keys
    if change.is_one_step:
        assert majorities_always_meet(one, other)


@given(voters=voter_sets, named=st.sets(st.sampled_from(VOTERS)))
def test_gaining_directory_ids_is_an_update(voters: VoterSet, named: set[Voter]) -> None:
    before = VoterSet.of(
        replace(voter, key=ReplicaKey(voter.key.id)) if voter in named else voter for voter in voters
    )
    change = change_between(before, voters)
    assert change.keeps_members
    assert set(change.updated) == named & set(voters)
