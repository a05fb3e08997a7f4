"""Judges every step of a simulated quorum by the rules of raft.invariants and raft.quorum_invariants.

The judge remembers what leaders have committed; the rest it reads from the replicas before and after a step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from kraft_core.protocol.replica import Leader, Replica, Step
from kraft_core.raft import invariants, quorum_invariants
from kraft_core.raft.batches import Batch, Batches
from kraft_core.raft.log import ReplicaLog, controls_of_log
from kraft_core.raft.quorum_invariants import Committed
from kraft_core.raft.replay import AppendAsLeader, UpdateHighWatermark
from kraft_core.raft.rules import Violation
from kraft_core.raft.voters import ReplicaKey, VoterSet


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """The first broken rule of a run (0: a process ended), its step and node."""

    step: int
    node: int
    rule: int
    detail: str


class Judge:
    """Judges one quorum from its first step on. `tolerated` rules are not failures."""

    def __init__(self, tolerated: frozenset[int]) -> None:
        self.tolerated = tolerated
        self.committed: list[Batch] = []
        self.leaders: dict[int, ReplicaKey] = {}
        self.lost_disks: dict[ReplicaKey, ReplicaLog] = {}

    @property
    def committed_end(self) -> int:
        return self.committed[-1].end_offset if self.committed else 0

    def _committed(self) -> Committed:
        return Committed(ReplicaLog(batches=Batches(self.committed)), self.committed_end)

    def lose_disk(self, replica: Replica) -> None:
        """Its log still counts towards a majority: records lost with a disk are not the quorum's fault."""
        self.lost_disks[replica.key] = replica.log

    def judge(
        self, number: int, node: int, before: Replica, outcome: Step, replicas: Mapping[int, Replica]
    ) -> BrokenRule | None:
        """The first rule that this step broke, if any."""
        for violation in self._violations(before, outcome, replicas):
            if violation.rule not in self.tolerated:
                detail = f"offset {violation.offset} epoch {violation.leader_epoch}: {violation.detail}"
                return BrokenRule(number, node, violation.rule, detail)
        return None

    def _violations(
        self, before: Replica, outcome: Step, replicas: Mapping[int, Replica]
    ) -> Iterator[Violation]:
        after = outcome.replica
        yield from self._one_leader(before, after)
        if after.log is before.log:
            return
        yield from self._commit(before, outcome, replicas)
        if after.log.batches is not before.log.batches:
            yield from self._batches_changed(before, outcome, replicas)
        if after.log.snapshots != before.log.snapshots:
            yield from invariants.snapshots_are_aligned(after.log)
            yield from invariants.snapshots_carry_the_log(after.log)
            yield from invariants.starts_under_a_snapshot(after.log)

    def _one_leader(self, before: Replica, after: Replica) -> Iterator[Violation]:
        """Rules 1 and 7, at the beginning of an epoch."""
        if not isinstance(after.state, Leader):
            return
        known = self.leaders.setdefault(after.epoch, after.key)
        if known != after.key:
            yield Violation(1, after.log.end_offset, after.epoch, f"is led by {known} and {after.key}")
        if not isinstance(before.state, Leader) or before.epoch != after.epoch:
            yield from quorum_invariants.leader_is_complete(after.log, self._committed())

    def _commit(self, before: Replica, outcome: Step, replicas: Mapping[int, Replica]) -> Iterator[Violation]:
        """Rules 4, 6, 8, 9 and 24, where a leader's high watermark moves.

        A sole voter commits in the step that elects it; a removed leader resigns in the step that commits its
        removal.
        """
        after = outcome.replica
        leader = before.state if isinstance(before.state, Leader) else after.state
        moved = [one.offset for one in outcome.operations if isinstance(one, UpdateHighWatermark)]
        if not isinstance(leader, Leader) or not moved:
            return
        reached = replace(after.log, known_high_watermark=moved[-1])
        if isinstance(before.state, Leader):
            yield from quorum_invariants.high_watermark_rises(before.log, reached)
        start = leader.progress.epoch_start_offset
        yield from quorum_invariants.high_watermark_is_in_epoch(reached, start)
        logs = self.lost_disks | {replica.key: replica.log for replica in replicas.values()}
        claimed = Committed(reached, moved[-1])
        sets = _sets_in_force(reached)
        yield from quorum_invariants.majority_holds(logs, claimed, sets)
        yield from quorum_invariants.leader_outside_voters_is_not_counted(
            leader.progress.leader, logs, claimed, sets[-1:]
        )
        yield from self._remember_committed(after, moved[-1])

    def _remember_committed(self, leader: Replica, watermark: int) -> Iterator[Violation]:
        known = {batch.base_offset: batch for batch in self.committed}
        for batch in leader.log.batches.truncated(watermark):
            other = known.get(batch.base_offset, batch)
            if other != batch:
                detail = f"is committed by {leader.key.id}, and {other} was committed there before"
                yield Violation(4, batch.base_offset, batch.leader_epoch, detail)
            elif batch.base_offset >= self.committed_end:
                self.committed.append(batch)

    def _batches_changed(
        self, before: Replica, outcome: Step, replicas: Mapping[int, Replica]
    ) -> Iterator[Violation]:
        after = outcome.replica
        log = after.log
        yield from invariants.epochs_never_go_back(log)
        yield from invariants.epoch_cache_matches_batches(log)
        yield from invariants.epochs_begin_with_leader_change(log)
        yield from invariants.one_change_uncommitted(log, self.committed_end)
        yield from invariants.one_voter_at_a_time(log)
        yield from invariants.kraft_version_allows_voters(log)
        yield from invariants.kafka_goes_by_its_log(after.store)
        yield from invariants.removed_leader_changes_no_more(log)
        yield from invariants.epoch_is_not_behind_log(log, after.epoch)
        yield from invariants.leader_change_names_the_set(log)
        if before.is_voter or before.can_become_voter:  # others do not flush what they fetch
            yield from quorum_invariants.committed_stay(before.log, log, self._committed())
        if isinstance(before.state, Leader):
            start = before.state.progress.epoch_start_offset
            for operation in outcome.operations:
                if isinstance(operation, AppendAsLeader):
                    yield from quorum_invariants.changes_follow_a_commit(before.log, start, operation.batches)
        for other in replicas.values():
            if other.key != after.key:
                yield from quorum_invariants.logs_match({after.key: log, other.key: other.log})


def _sets_in_force(log: ReplicaLog) -> tuple[VoterSet, ...]:
    """The newest voter set of the log and its predecessor, or the static set."""
    voters = controls_of_log(log).voters
    newest = [entry for _, entry in voters.sets.entries[-2:]]
    return tuple(newest) or ((voters.static,) if voters.static else ())
