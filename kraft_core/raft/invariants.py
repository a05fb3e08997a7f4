"""KRaft's rules that the log of one replica can satisfy or violate, one function per rule.

Every function takes engine values and yields a Violation for each breach; rules.RULES has the requirement of
each number and its source. Rules between replicas, and from one state to the next, are in quorum_invariants.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from kraft_core.raft.batches import Batch, ControlRecord, KRaftVersion, LeaderChange
from kraft_core.raft.emulation import EmulatedReplica, voters_kafka_would_use
from kraft_core.raft.log import ReplicaLog, Snapshot, voters_of_log
from kraft_core.raft.rules import Violation
from kraft_core.raft.voters import ReplicaKey, Voter, VoterSet, change_between, kafka_accepts_step


def epochs_never_go_back(log: ReplicaLog) -> Iterator[Violation]:
    """Rule 2."""
    for before, after in pairwise(log.batches):
        if after.leader_epoch < before.leader_epoch:
            yield _at(2, after, f"follows a batch of epoch {before.leader_epoch}")


def epoch_cache_matches_batches(log: ReplicaLog) -> Iterator[Violation]:
    """Rule 10, of the part of the log that is not deleted; a new leader's epoch may have no record yet.

    A restart finds batches below the oldest snapshot again, but not their epochs.
    """
    oldest = log.earliest_snapshot
    start_offset = max(log.start_offset, oldest.end_offset if oldest else 0)
    if start_offset >= log.end_offset:
        return
    starts: dict[int, int] = {}
    for batch in log.batches.starting_at(start_offset):
        starts.setdefault(batch.leader_epoch, max(batch.base_offset, start_offset))
    cached = {
        epoch: max(start, start_offset)
        for epoch, start in log.epochs.raise_start(start_offset).truncate(log.end_offset).entries
    }
    for epoch in sorted(starts.keys() | cached.keys()):
        if starts.get(epoch) != cached.get(epoch):
            detail = f"begins at {starts.get(epoch)} by its batches, at {cached.get(epoch)} by the cache"
            yield Violation(10, starts.get(epoch, cached.get(epoch, 0)), epoch, detail)


def epochs_begin_with_leader_change(log: ReplicaLog) -> Iterator[Violation]:
    """Rule 11. The first batch of a log that begins above 0 may lie anywhere in its epoch.

    Before release 3.6 the leader of an empty log may write records before its LEADER_CHANGE (KAFKA-15345).
    """
    first = log.batches.first
    epoch = first.leader_epoch if first and (first.base_offset or _may_follow(log, first.leader_epoch)) else 0
    for batch in log.batches:
        if batch.leader_epoch != epoch and leader_change_of(batch) is None:
            yield _at(11, batch, "is the first of its epoch and has no LEADER_CHANGE")
        epoch = batch.leader_epoch


def _may_follow(log: ReplicaLog, leader_epoch: int) -> bool:
    """Whether the LEADER_CHANGE of the first epoch is there, or the log ends before it could be."""
    of_epoch = [batch for batch in log.batches if batch.leader_epoch == leader_epoch]
    return any(leader_change_of(batch) for batch in of_epoch) or of_epoch[-1] == log.batches.last


def one_change_uncommitted(log: ReplicaLog, high_watermark: int) -> Iterator[Violation]:
    """Rule 12. `high_watermark` must be the quorum's: a follower's own may lag behind."""
    pending: int | None = None
    for batch, record, before in _control_records(log):
        after = record.value
        if not isinstance(after, VoterSet) or not before or change_between(before, after).keeps_members:
            continue
        if leader_change_of(batch):
            yield _record_at(12, batch, record, "changes the voters in the batch of a LEADER_CHANGE")
        elif record.offset >= high_watermark:
            if pending is not None:
                detail = f"changes the voters while the change at {pending} is uncommitted"
                yield _record_at(12, batch, record, detail)
            pending = record.offset


def one_voter_at_a_time(log: ReplicaLog) -> Iterator[Violation]:
    """Rule 13, from the second VotersRecord on: bootstrap and static sets are the operator's."""
    previous: VoterSet | None = None
    for batch, record, _ in _control_records(log):
        if not isinstance(record.value, VoterSet):
            continue
        if previous is not None and not change_between(previous, record.value).is_one_step:
            change = change_between(previous, record.value)
            added, removed = (_names(VoterSet(side)) for side in (change.added, change.removed))
            verdict = "passes" if kafka_accepts_step(previous, record.value) else "fails"
            detail = f"adds {added} and removes {removed} at once; it {verdict} Kafka's own check"
            yield _record_at(13, batch, record, detail)
        previous = record.value


def kraft_version_allows_voters(log: ReplicaLog) -> Iterator[Violation]:
    """Rule 15; skipped where neither the log nor a snapshot says which kraft.version is in force."""
    yield from kraft_version_never_falls(log)
    for batch, record, level in _with_kraft_version(log):
        if isinstance(record.value, VoterSet) and level == 0:
            yield _record_at(15, batch, record, "is a VotersRecord with kraft.version 0")


def kraft_version_never_falls(log: ReplicaLog) -> Iterator[Violation]:
    """Rule 26, reported as a part of rule 15."""
    for batch, record, level in _with_kraft_version(log):
        if isinstance(record.value, KRaftVersion) and level is not None and record.value.level < level:
            yield _record_at(15, batch, record, f"lowers kraft.version from {level}")


def kafka_goes_by_its_log(replica: EmulatedReplica) -> Iterator[Violation]:
    """Rule 16, a verdict on the emulated Kafka: no capture shows what a process holds in memory."""
    used, written = voters_kafka_would_use(replica), voters_of_log(replica.log)
    if used != written:
        detail = f"uses {_names(used)} where its log has {_names(written)}"
        yield Violation(16, replica.log.end_offset, replica.log.epochs.last_epoch or 0, detail)


def snapshots_carry_the_log(log: ReplicaLog) -> Iterator[Violation]:
    """Rule 17, for snapshots below whose end the log still has the voters or the kraft.version."""
    for snapshot in log.snapshots:
        below = [
            record.value for _, record, _ in _control_records(log) if record.offset < snapshot.end_offset
        ]
        voters = next((value for value in reversed(below) if isinstance(value, VoterSet)), None)
        if snapshot.kraft_version and voters and snapshot.voters != voters:
            held, wanted = _names(snapshot.voters), _names(voters)
            other = f"carries {held} where the log has {wanted}"
            detail = (
                other if held != wanted else f"carries other endpoints or versions of {held} than the log"
            )
            yield Violation(17, snapshot.end_offset, snapshot.leader_epoch, detail)
        version = next((value.level for value in reversed(below) if isinstance(value, KRaftVersion)), None)
        if version is not None and (snapshot.kraft_version or 0) != version:
            detail = f"carries kraft.version {snapshot.kraft_version or 0} where the log has {version}"
            yield Violation(17, snapshot.end_offset, snapshot.leader_epoch, detail)


def snapshots_are_aligned(log: ReplicaLog) -> Iterator[Violation]:
    """Rule 18; alignment only with kraft.version 1: earlier releases did not ensure it."""
    for snapshot in log.snapshots:
        if (
            snapshot.end_offset > max(log.high_watermark, log.start_offset)
            and log.known_high_watermark is not None
        ):
            detail = f"ends above the high watermark {log.high_watermark}"
            yield Violation(18, snapshot.end_offset, snapshot.leader_epoch, detail)
        batch = log.batches.holding(snapshot.end_offset)
        if snapshot.kraft_version and batch and batch.base_offset != snapshot.end_offset:
            detail = f"ends within the batch at {batch.base_offset}"
            yield Violation(18, snapshot.end_offset, snapshot.leader_epoch, detail)


def starts_under_a_snapshot(log: ReplicaLog) -> Iterator[Violation]:
    """Rule 19."""
    base_offset = log.segments[0].base_offset
    ends = [snapshot.end_offset for snapshot in log.snapshots]
    if base_offset and not any(base_offset <= end <= log.end_offset for end in ends):
        detail = f"no snapshot ends between {base_offset} and the log end {log.end_offset}"
        yield Violation(19, base_offset, log.epochs.last_epoch or 0, detail)


def removed_leader_changes_no_more(log: ReplicaLog) -> Iterator[Violation]:
    """Rule 20: its removal commits before another change is allowed, and then it resigns.

    Kafka 4.3.1 breaks it without further harm: a leader resigns only while the request to remove it is
    pending, so one that timed out before the commit leaves the removed leader leading (RemoveVoterHandler).
    """
    leader: ReplicaKey | None = None
    removed_at: int | None = None
    for batch, record, before in _control_records(log):
        if isinstance(record.value, LeaderChange):
            leader = leader_key(record.value, before)
            removed_at = None
        elif isinstance(record.value, VoterSet) and leader:
            if removed_at is not None:
                detail = f"comes from leader {leader.id}, which was removed at {removed_at}"
                yield _record_at(20, batch, record, detail)
            elif not any(voter.matches(leader) or _is_unnamed(voter, leader) for voter in record.value):
                removed_at = record.offset


def epoch_is_not_behind_log(log: ReplicaLog, replica_epoch: int) -> Iterator[Violation]:
    """Rule 21. `replica_epoch` is the quorum-state's."""
    if log.batches.last and replica_epoch < log.batches.last.leader_epoch:
        yield _at(21, log.batches.last, f"is newer than the replica's epoch {replica_epoch}")


def leader_change_names_the_set(log: ReplicaLog) -> Iterator[Violation]:
    """Rule 23; skipped where the set in force below the record is not known."""
    for batch, record, voters in _control_records(log):
        if isinstance(record.value, LeaderChange) and voters is not None:
            yield from judged_election(batch.leader_epoch, record.offset, record.value, voters)


def judged_election(
    leader_epoch: int, offset: int, change: LeaderChange, voters: VoterSet
) -> Iterator[Violation]:
    """Rule 23 of one LEADER_CHANGE; `voters` are in force just below it."""
    named = tuple(sorted(voter.id for voter in change.voters))
    if named != voters.ids:
        detail = f"names the voters {list(named)} where the log has {list(voters.ids)}"
        yield Violation(23, offset, leader_epoch, detail)
    yield from granting_voters_are_a_majority(leader_epoch, offset, change, voters)


def granting_voters_are_a_majority(
    leader_epoch: int, offset: int, change: LeaderChange, voters: VoterSet
) -> Iterator[Violation]:
    """Rule 25, reported as a part of rule 23: who granted the vote and is not a voter does not count."""
    granting = {voter.id for voter in change.granting_voters} & set(voters.ids)
    if len(granting) < voters.majority:
        detail = f"was granted by {sorted(granting)} of {list(voters.ids)}, which is not a majority"
        yield Violation(23, offset, leader_epoch, detail)


def leader_change_of(batch: Batch) -> LeaderChange | None:
    """The LEADER_CHANGE that the batch begins with, if it does."""
    first = batch.control_records[0].value if batch.control_records else None
    return first if isinstance(first, LeaderChange) else None


def leader_key(change: LeaderChange, voters: VoterSet | None) -> ReplicaKey | None:
    """The leader, with the directory that the set in force gives its id; None if it is not in the set."""
    return next((voter.key for voter in voters or () if voter.key.id == change.leader_id), None)


def _control_records(log: ReplicaLog) -> Iterator[tuple[Batch, ControlRecord, VoterSet | None]]:
    """Each control record with its batch and the voter set in force just below it, None where not known.

    Records take precedence over snapshots, which a stale replica may have written.
    """
    written: VoterSet | None = None
    for batch in log.batches:
        for record in batch.control_records:
            yield batch, record, written or _carried(log, record.offset)
            if isinstance(record.value, VoterSet):
                written = record.value


def _with_kraft_version(log: ReplicaLog) -> Iterator[tuple[Batch, ControlRecord, int | None]]:
    """Each control record with its batch and the kraft.version in force just below it, None where unknown."""
    level = 0 if _begins_at_zero(log) else None
    snapshots = {snapshot.end_offset - 1: snapshot for snapshot in log.snapshots}
    for batch in log.batches:
        level = _snapshot_level(snapshots, batch.base_offset, level)
        for record in batch.control_records:
            yield batch, record, level
            if isinstance(record.value, KRaftVersion):
                level = record.value.level


def _carried(log: ReplicaLog, offset: int) -> VoterSet | None:
    """The set that is in force at `offset` without any record: a snapshot's, or the static one."""
    carried = [held for held in log.snapshots if held.end_offset <= offset and held.voters is not None]
    if carried:
        return max(carried, key=lambda s: s.end_offset).voters
    return log.static_voters if _begins_at_zero(log) else None


def _is_unnamed(voter: Voter, leader: ReplicaKey) -> bool:
    """Whether the voter may be a leader whose directory the set it was elected by did not name."""
    return leader.directory_id is None and voter.key.id == leader.id


def _begins_at_zero(log: ReplicaLog) -> bool:
    return log.segments[0].base_offset == 0


def _snapshot_level(snapshots: dict[int, Snapshot], base_offset: int, level: int | None) -> int | None:
    held = snapshots.get(base_offset - 1)
    return held.kraft_version if held and held.kraft_version is not None else level


def _at(rule: int, batch: Batch, detail: str) -> Violation:
    return Violation(rule, batch.base_offset, batch.leader_epoch, detail)


def _record_at(rule: int, batch: Batch, record: ControlRecord, detail: str) -> Violation:
    return Violation(rule, record.offset, batch.leader_epoch, detail)


def _names(voters: VoterSet | None) -> str:
    keys = (voter.key for voter in voters or ())
    return ", ".join(f"({key.id}, {key.directory_id or 'any'})" for key in keys) or "no voter"
