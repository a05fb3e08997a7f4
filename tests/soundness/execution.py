"""An execution: a quorum's moves, the moments between them, and what was true at each.

Time is in ms since the epoch. Offsets first_ and base_ are inclusive, end_ exclusive.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace

from kraft_core.protocol.replica import Leader, Replica
from kraft_core.raft.batches import Batch, KRaftVersion, LeaderChange
from kraft_core.raft.log import BrokenLogError
from kraft_core.raft.voters import Voter
from kraft_core.simulation.setup import Setup
from tests.soundness.clocks import Clock
from tests.soundness.moves import EmptyDisk, Move
from tests.soundness.scripted import Impossible, Reached, first_replicas, perform

BEGAN_AT = 1_700_000_000_000

Place = tuple[int, int]
"""A batch: base offset and leader epoch."""


@dataclass(frozen=True, slots=True)
class Script:
    """A quorum and its moves, each with the ms before it."""

    setup: Setup
    moves: tuple[tuple[int, Move], ...]


@dataclass(slots=True)
class Execution:
    """What happened, move by move; entry 0 of the lists is the quorum as formatted.

    at: when each moment began, rising. high_watermarks: the highest that any leader had reached by then.
    appended_at, snapshotted_at: by batch, and by (end offset, leader epoch) of a checkpoint. committed_at,
    stored_at: when a leader's high watermark, and when a majority of the set that the leader of its epoch
    used, first reached the batch's end. leaders: by epoch, with the offset of its LEADER_CHANGE. writers: the
    nodes that wrote a checkpoint first. clocks: of nodes, by id; those of others are true.
    """

    script: Script
    at: list[int] = field(default_factory=list[int])
    moments: list[Mapping[int, Replica]] = field(default_factory=list[Mapping[int, Replica]])
    high_watermarks: list[int] = field(default_factory=list[int])
    appended_at: dict[Place, int] = field(default_factory=dict[Place, int])
    snapshotted_at: dict[Place, int] = field(default_factory=dict[Place, int])
    batches: dict[Place, Batch] = field(default_factory=dict[Place, Batch])
    committed_at: dict[Place, int] = field(default_factory=dict[Place, int])
    stored_at: dict[Place, int] = field(default_factory=dict[Place, int])
    leaders: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    writers: dict[Place, int] = field(default_factory=dict[Place, int])
    clocks: Mapping[int, Clock] = field(default_factory=dict[int, Clock])

    def moment_at(self, time: int) -> int:
        """The moment that held at a time; the first one for all before it."""
        return max(0, bisect_right(self.at, time) - 1)

    def batch_timestamp(self, place: Place) -> int:
        """When a batch was appended, by the leader's clock."""
        leader_id, _ = self.leaders[place[1]]
        return self._by_clock(leader_id, self.appended_at[place])

    def header_timestamp(self, place: Place) -> int:
        """When a checkpoint was written, by its writer's clock; place: its end offset and epoch."""
        return self._by_clock(self.writers[place], self.snapshotted_at[place])

    def _by_clock(self, node: int, time: int) -> int:
        clock = self.clocks.get(node)
        return time if clock is None else time + clock.fast_at(self.moment_at(time))

    def high_watermark_at(self, time: int) -> int:
        return self.high_watermarks[self.moment_at(time)] if time >= self.at[0] else 0

    def committed_by(self, time: int) -> list[Batch]:
        """What leaders had committed by a time, by offset."""
        places = sorted(place for place, at in self.committed_at.items() if at <= time)
        return [self.batches[place] for place in places]


def begin(setup: Setup) -> Execution:
    """A quorum as formatted, with nothing done yet."""
    execution = Execution(Script(setup, ()))
    _enter(execution, BEGAN_AT, Reached(first_replicas(setup), ()))
    return execution


def go_on(execution: Execution, gap: int, move: Move) -> bool:
    """Perform a move after this many ms; False, and nothing done, where it is impossible or not lawful."""
    if isinstance(move, EmptyDisk) and not may_lose_disk(execution, move.slot, static=move.static):
        return False
    try:
        reached = perform(execution.script.setup, execution.moments, move)
    except Impossible:
        return False
    execution.script = replace(execution.script, moves=(*execution.script.moves, (gap, move)))
    _enter(execution, execution.at[-1] + gap, reached)
    return True


def run_script(script: Script) -> Execution:
    """Perform the moves; those that are impossible where they stand are left out."""
    execution = begin(script.setup)
    for gap, move in script.moves:
        go_on(execution, gap, move)
    return execution


def may_lose_disk(execution: Execution, slot: int, *, static: bool = False) -> bool:
    """Whether no replica can take a new disk of this slot for the one that it had.

    A static voter knows the others by their ids. So the upgrade of kraft.version must be committed, and on
    the disk of each other voter of the static set; and one that votes must be left. If the new disk has the
    static voters itself, all of these nodes must have the upgrade: else those with new disks may elect it.
    """
    if not execution.script.setup.static:
        return True
    upgrades = (execution.batches[place] for place in sorted(execution.committed_at))
    upgrade = next((batch for batch in upgrades if finalizes_kraft_version(batch)), None)
    others = [replica for other, replica in execution.moments[-1].items() if other != slot]
    return (
        upgrade is not None
        and any(replica.is_voter for replica in others)
        and all(
            replica.flushed_offset >= upgrade.end_offset and holds(replica, upgrade, execution.committed_at)
            for replica in others
            if replica.key.id <= execution.script.setup.voters
            and (static or replica.log.static_voters is not None)
        )
    )


def finalizes_kraft_version(batch: Batch) -> bool:
    return any(isinstance(record.value, KRaftVersion) for record in batch.control_records)


def is_upgraded(execution: Execution) -> bool:
    """Whether kraft.version was 0 at first, and some leader finalized 1."""
    return execution.script.setup.static and any(map(finalizes_kraft_version, execution.batches.values()))


def _enter(execution: Execution, time: int, reached: Reached) -> None:
    before = execution.moments[-1] if execution.moments else dict[int, Replica]()
    execution.at.append(time)
    execution.moments.append(reached.replicas)
    for slot, replica in reached.replicas.items():
        known = before.get(slot)
        if known is None or known.log is not replica.log:
            _note_log(execution, time, replica)
    _note_commits(execution, time, reached)
    _note_stored(execution, time, reached.replicas)


def _note_log(execution: Execution, time: int, replica: Replica) -> None:
    for batch in replica.log.batches:
        place = (batch.base_offset, batch.leader_epoch)
        if place in execution.appended_at:
            continue
        execution.appended_at[place] = time
        execution.batches[place] = batch
        for record in batch.control_records:
            if isinstance(record.value, LeaderChange):
                execution.leaders[batch.leader_epoch] = (record.value.leader_id, batch.base_offset)
    for snapshot in replica.log.snapshots:
        place = (snapshot.end_offset, snapshot.leader_epoch)
        execution.snapshotted_at.setdefault(place, time)
        execution.writers.setdefault(place, replica.key.id)


def _note_commits(execution: Execution, time: int, reached: Reached) -> None:
    highest = execution.high_watermarks[-1] if execution.high_watermarks else 0
    for leader, offset in reached.commits:
        for batch in leader.log.batches.truncated(offset):
            execution.committed_at.setdefault((batch.base_offset, batch.leader_epoch), time)
        highest = max(highest, offset)
    execution.high_watermarks.append(highest)


def _note_stored(execution: Execution, time: int, replicas: Mapping[int, Replica]) -> None:
    """What a majority stored in the epoch of its leader (Raft 5.3), known to the leader or not."""
    for leader in replicas.values():
        if not isinstance(leader.state, Leader):
            continue
        ends = [_end_in_epoch(leader, voter, replicas.values()) for voter in leader.voters]
        end = sorted(ends, reverse=True)[leader.voters.majority - 1]
        if end > leader.state.progress.epoch_start_offset:
            for batch in leader.log.batches.truncated(end):
                execution.stored_at.setdefault((batch.base_offset, batch.leader_epoch), time)


def _end_in_epoch(leader: Replica, voter: Voter, replicas: Iterable[Replica]) -> int:
    """Up to where a voter holds the leader's log, if it stored the end of it in the leader's epoch."""
    found = [r for r in replicas if r.epoch == leader.epoch and voter.matches(r.key)]
    return max((common_end(leader, replica) for replica in found), default=0)


def common_end(one: Replica, other: Replica) -> int:
    """Up to where two logs are the same."""
    end = min(one.log.end_offset, other.log.end_offset)
    mine = {(b.base_offset, b.leader_epoch) for b in one.log.batches}
    for batch in reversed(tuple(other.log.batches.truncated(end))):
        if (batch.base_offset, batch.leader_epoch) in mine:
            return batch.end_offset
    return min(end, max(one.log.start_offset, other.log.start_offset))


def holds(replica: Replica, batch: Batch, committed: Container[Place]) -> bool:
    """Whether a log has the batch, or a checkpoint that covers it: those are of `committed` batches."""
    place = (batch.base_offset, batch.leader_epoch)
    found = replica.log.batches.holding(batch.base_offset)
    if found is not None:
        return (found.base_offset, found.leader_epoch) == place
    latest = replica.log.latest_snapshot
    return latest is not None and latest.end_offset >= batch.end_offset and place in committed


def electable(replicas: Mapping[int, Replica]) -> list[Replica]:
    """The replicas that the others, all reachable, would elect: what they lack can be lost.

    Epochs and votes hinder nobody, for a nominee's epoch is the next one.
    """
    return [replica for replica in replicas.values() if replica.is_voter and _wins(replica, replicas)]


def log_order(replica: Replica) -> tuple[int, int]:
    """By what a vote compares logs. Also of a replica whose process ended for want of an epoch, once mended.

    A log that was truncated to the end of its snapshot, with batches below it, has no epoch: Kafka's
    KafkaRaftLog.lastFetchedEpoch throws.
    """
    log = replica.log
    try:
        return log.last_epoch, log.end_offset
    except BrokenLogError:
        return max((batch.leader_epoch for batch in log.batches), default=0), log.end_offset


def _wins(nominee: Replica, replicas: Mapping[int, Replica]) -> bool:
    own = log_order(nominee)
    granting = {
        voter.key
        for voter in nominee.voters
        for replica in replicas.values()
        if voter.matches(replica.key) and log_order(replica) <= own
    }
    return len(granting) >= nominee.voters.majority


def can_be_lost(execution: Execution, moment: int, batch: Batch) -> bool:
    """Whether a replica without the batch can still be elected; then its majority replaces it."""
    committed = execution.committed_at
    return any(not holds(one, batch, committed) for one in electable(execution.moments[moment]))


def can_commit(execution: Execution, moment: int, batch: Batch) -> bool:
    """Whether a replica with the batch can still be elected; then its majority commits it."""
    committed = execution.committed_at
    return any(holds(one, batch, committed) for one in electable(execution.moments[moment]))


def without(script: Script, first: int, count: int) -> Script:
    """The script without some of its moves."""
    return replace(script, moves=script.moves[:first] + script.moves[first + count :])
