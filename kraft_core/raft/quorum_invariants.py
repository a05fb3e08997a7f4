"""KRaft's rules that bind several replicas, or a replica's state to its next one.

Numbers as in rules.RULES. `Committed` is what a replica considers committed: a log and an end offset. It
implies nothing for other logs' batches at the same offsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations

from kraft_core.raft.batches import Batch
from kraft_core.raft.invariants import leader_change_of
from kraft_core.raft.log import ReplicaLog
from kraft_core.raft.rules import Violation
from kraft_core.raft.voters import ReplicaKey, VoterSet


@dataclass(frozen=True, slots=True)
class Committed:
    """The batches of `log` that end at or below `end_offset`."""

    log: ReplicaLog
    end_offset: int

    def __iter__(self) -> Iterator[Batch]:
        return iter(self.log.batches.truncated(self.end_offset))


Logs = Mapping[ReplicaKey, ReplicaLog]


def one_leader_an_epoch(logs: Logs) -> Iterator[Violation]:
    """Rule 1, by the LEADER_CHANGE records of logs."""
    return leaders_agree(
        (batch.leader_epoch, batch.base_offset, change.leader_id)
        for log in logs.values()
        for batch in log.batches
        if (change := leader_change_of(batch))
    )


def leaders_agree(claims: Iterable[tuple[int, int, int]]) -> Iterator[Violation]:
    """Rule 1, by any claims of who leads an epoch: (leader epoch, offset, leader id)."""
    leaders: dict[int, int] = {}
    for leader_epoch, offset, leader_id in claims:
        if leaders.setdefault(leader_epoch, leader_id) != leader_id:
            detail = f"is led by {leaders[leader_epoch]} and by {leader_id}"
            yield Violation(1, offset, leader_epoch, detail)


def logs_match(logs: Logs) -> Iterator[Violation]:
    """Rule 3: below the last batch that two logs share by offset and epoch, they are equal."""
    batches = {key: _by_place(log) for key, log in logs.items()}
    for (one_key, one), (other_key, other) in combinations(batches.items(), 2):
        last = max(one.keys() & other.keys(), default=None)
        if last is None:
            continue
        first = max(min(one), min(other))
        for place in sorted(one.keys() | other.keys()):
            if first <= place <= last and one.get(place) != other.get(place):
                detail = f"differs between {one_key.id} and {other_key.id}, which share {last[0]}"
                yield Violation(3, *place, detail)


def committed_agree(committed: Mapping[ReplicaKey, Committed]) -> Iterator[Violation]:
    """Rule 4."""
    batches = {key: {batch.base_offset: batch for batch in held} for key, held in committed.items()}
    for (one_key, one), (other_key, other) in combinations(batches.items(), 2):
        for offset in one.keys() & other.keys():
            if one[offset] != other[offset]:
                detail = f"is committed by {one_key.id} and, otherwise, by {other_key.id}"
                yield Violation(4, offset, other[offset].leader_epoch, detail)


def committed_stay(before: ReplicaLog, after: ReplicaLog, committed: Committed) -> Iterator[Violation]:
    """Rule 5, over one operation: what was committed is still there, or below the log's start."""
    if (before.start_offset, before.end_offset) == (after.start_offset, after.end_offset):
        return
    for batch in committed:
        if batch.end_offset > after.start_offset and _has(before, batch) and not _has(after, batch):
            yield Violation(5, batch.base_offset, batch.leader_epoch, "was committed and is lost")


def high_watermark_rises(before: ReplicaLog, after: ReplicaLog) -> Iterator[Violation]:
    """Rule 6, over one operation of a leader."""
    was, now = before.known_high_watermark, after.known_high_watermark
    if was is not None and now is not None and now < was:
        yield Violation(6, now, after.epochs.last_epoch or 0, f"high watermark fell from {was}")


def leader_is_complete(leader: ReplicaLog, committed: Committed) -> Iterator[Violation]:
    """Rule 7, at the beginning of an epoch."""
    for batch in committed:
        if batch.end_offset > leader.start_offset and not _has(leader, batch):
            yield Violation(
                7, batch.base_offset, batch.leader_epoch, "is committed and not in the new leader's log"
            )


def majority_holds(logs: Logs, committed: Committed, sets: tuple[VoterSet, ...]) -> Iterator[Violation]:
    """Rule 8: a majority of one of the `sets` (in force, or its predecessor) holds what is committed."""
    last = committed.log.batches.truncated(committed.end_offset).last
    if last is None:
        return
    holders = _holders(logs, last)
    if not any(_counted(voters, holders) >= voters.majority for voters in sets):
        detail = f"can be held only by {[key.id for key in holders]}"
        yield Violation(8, last.base_offset, last.leader_epoch, detail)


def leader_outside_voters_is_not_counted(
    leader: ReplicaKey, logs: Logs, committed: Committed, sets: tuple[VoterSet, ...]
) -> Iterator[Violation]:
    """Rule 24: no majority of one of the `sets` holds it, but one does if a leader outside the set counts.

    `sets`: those the leader can have counted by when the high watermark was reached.
    """
    last = committed.log.batches.truncated(committed.end_offset).last
    if last is None or not list(majority_holds(logs, committed, sets)):
        return
    holders = _holders(logs, last)
    for voters in sets:
        if voters.voter_for(leader) is None and _counted(voters, holders) + 1 >= voters.majority:
            holding = [key.id for key in holders if voters.voter_for(key) is not None]
            detail = f"can be held by {holding} of {list(voters.ids)} only, no majority without it"
            yield Violation(24, last.base_offset, last.leader_epoch, detail)
            return


def high_watermark_is_in_epoch(leader: ReplicaLog, epoch_start_offset: int) -> Iterator[Violation]:
    """Rule 9, of a leader whose epoch began at that offset."""
    known = leader.known_high_watermark
    if known is not None and known <= epoch_start_offset:
        detail = f"high watermark {known} is not above the epoch's start {epoch_start_offset}"
        yield Violation(9, known, leader.epochs.last_epoch or 0, detail)


def changes_follow_a_commit(
    leader: ReplicaLog, epoch_start_offset: int, batches: tuple[Batch, ...]
) -> Iterator[Violation]:
    """Rule 14, of what a leader is about to append; `epoch_start_offset` is where its epoch began.

    The sets beside a LEADER_CHANGE or a KRAFT_VERSION are not changes.
    """
    known = leader.known_high_watermark
    for batch in batches:
        if len(batch.control_records) != 1 or not isinstance(batch.control_records[0].value, VoterSet):
            continue
        if known is None or known <= epoch_start_offset:
            detail = f"changes the voters before a commit in its epoch, which began at {epoch_start_offset}"
            yield Violation(14, batch.base_offset, batch.leader_epoch, detail)


def _by_place(log: ReplicaLog) -> dict[tuple[int, int], Batch]:
    return {(batch.base_offset, batch.leader_epoch): batch for batch in log.batches}


def _has(log: ReplicaLog, batch: Batch) -> bool:
    return log.batches.holding(batch.base_offset) == batch


def _holders(logs: Logs, last: Batch) -> list[ReplicaKey]:
    """Who holds a batch, in its log or in a snapshot that the log begins under."""
    return [key for key, log in logs.items() if _has(log, last) or log.start_offset >= last.end_offset]


def _counted(voters: VoterSet, holders: list[ReplicaKey]) -> int:
    """How many voters hold it; one entry counts once, whatever directories of its id do."""
    return sum(any(voter.matches(holder) for holder in holders) for voter in voters)
