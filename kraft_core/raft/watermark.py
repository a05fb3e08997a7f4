"""The high watermark: up to where a leader knows its log to be stored by a majority of the voters.

KIP-595: the leader learns each follower's log end from its fetch offsets; the high watermark is the highest
offset that a majority has reached. It is exposed only once it passes the start of the leader's own epoch, for
an older epoch's record that a majority holds can still be overwritten (Raft, figure 8). KIP-853: the voter
set may change while a leader leads; the high watermark never goes back for that, and a leader outside the set
does not count itself. Source of the details: Kafka's LeaderState.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kraft_core.raft.voters import ReplicaKey, Voter, VoterSet


@dataclass(frozen=True, slots=True)
class ReplicaProgress:
    """A leader's view of a replica: its log end (None: nothing in this epoch yet), whether it follows."""

    key: ReplicaKey
    end_offset: int | None = None
    has_acknowledged: bool = False


@dataclass(frozen=True, slots=True)
class LeaderProgress:
    """A leader's view of one epoch. `high_watermark` is exclusive and None until it is known."""

    leader: ReplicaKey
    epoch_start_offset: int
    voters: tuple[ReplicaProgress, ...]
    observers: tuple[ReplicaProgress, ...] = ()
    high_watermark: int | None = None

    def progress_of(self, replica: ReplicaKey) -> ReplicaProgress | None:
        """The entry of a replica; a voter's entry without directory id is that of any directory of its id."""
        for voter in self.voters:
            if _is(voter, replica):
                return voter
        return next((observer for observer in self.observers if observer.key == replica), None)

    def followers_by_end_offset(self) -> tuple[ReplicaKey, ...]:
        """The voters but the leader, furthest first."""
        ordered = sorted(self.voters, key=_furthest_first)
        return tuple(voter.key for voter in ordered if not _is(voter, self.leader))


def majority_end_offset(end_offsets: Iterable[int | None]) -> int | None:
    """The highest offset that a majority of these log ends has reached; None: unknown, nobody: unknown.

    Of n log ends, descending, the one at index floor(n/2); an unknown one sorts last.
    """
    descending = sorted(end_offsets, key=lambda end: -1 if end is None else end, reverse=True)
    return descending[len(descending) // 2] if descending else None


def counted_end_offsets(progress: LeaderProgress) -> tuple[int | None, ...]:
    """The log ends that count for the high watermark: one per voter, None while it is unknown.

    Rule 24: a leader that its own VotersRecord removed is an observer here and does not count itself
    (KIP-853, High watermark), though it holds everything and still leads until the removal commits.
    """
    return tuple(voter.end_offset for voter in progress.voters)


def begin_leading(leader: ReplicaKey, epoch_start_offset: int, voters: VoterSet) -> LeaderProgress:
    """The view of a new leader: no log end is known, and so no high watermark."""
    entries = tuple(ReplicaProgress(voter.key, has_acknowledged=voter.matches(leader)) for voter in voters)
    return LeaderProgress(leader, epoch_start_offset, entries)


def leader_reached(progress: LeaderProgress, end_offset: int, voters: VoterSet) -> LeaderProgress:
    """The leader's log now ends at `end_offset`, and `voters` are in force.

    Raises ValueError if the log end went back: a leader only appends.
    """
    known = progress.progress_of(progress.leader) or ReplicaProgress(progress.leader)
    if known.end_offset is not None and known.end_offset > end_offset:
        raise ValueError(f"the leader's log end went back from {known.end_offset} to {end_offset}")
    grown = _with(progress, replace(known, end_offset=end_offset))
    return _advanced(_with_voters(grown, voters))


def follower_fetched(progress: LeaderProgress, replica: ReplicaKey, offset: int) -> LeaderProgress:
    """A replica asked for records from `offset` on, and so holds what is below.

    Raises ValueError for the leader's own id. A negative id is a consumer and counts for nothing.
    """
    if replica.id < 0:
        return progress
    if replica.id == progress.leader.id:
        raise ValueError(f"{replica} has the leader's id")
    known = progress.progress_of(replica) or ReplicaProgress(replica)
    if progress.progress_of(progress.leader) is None:
        progress = _with(progress, ReplicaProgress(progress.leader))
    fetched = _with(progress, replace(known, end_offset=offset, has_acknowledged=True))
    return _advanced(fetched) if known in progress.voters else fetched


def _advanced(progress: LeaderProgress) -> LeaderProgress:
    reached = majority_end_offset(counted_end_offsets(progress))
    if reached is None or reached <= progress.epoch_start_offset:
        return progress
    return replace(progress, high_watermark=max(reached, progress.high_watermark or 0))


def _with(progress: LeaderProgress, entry: ReplicaProgress) -> LeaderProgress:
    """With one replica's entry replaced, or added to the observers."""
    if any(voter.key == entry.key for voter in progress.voters):
        voters = tuple(entry if voter.key == entry.key else voter for voter in progress.voters)
        return replace(progress, voters=voters)
    others = (observer for observer in progress.observers if observer.key != entry.key)
    return replace(progress, observers=(*others, entry))


def _with_voters(progress: LeaderProgress, voters: VoterSet) -> LeaderProgress:
    """With another set of voters: who stays keeps its log end, who was removed is observed from now on.

    An entry that gained its directory id keeps its log end; one whose directory was exchanged starts unknown.
    Who never fetched is not observed; the leader, which never fetches, only under its own full key.
    """
    entries = tuple(_entry_of(progress, voter) for voter in voters)
    observers = tuple(observer for observer in progress.observers if observer.key not in voters.keys)
    removed = tuple(
        voter
        for voter in progress.voters
        if voter.key.id not in voters.ids
        and all(voter.key != observer.key for observer in observers)
        and (
            voter.key == progress.leader
            or (voter.end_offset is not None and voter.key.id != progress.leader.id)
        )
    )
    return replace(progress, voters=entries, observers=(*observers, *removed))


def _entry_of(progress: LeaderProgress, voter: Voter) -> ReplicaProgress:
    known = progress.progress_of(voter.key)
    return replace(known, key=voter.key) if known else ReplicaProgress(voter.key)


def _is(entry: ReplicaProgress, replica: ReplicaKey) -> bool:
    return Voter(entry.key).matches(replica)


def _furthest_first(entry: ReplicaProgress) -> tuple[int, int, str]:
    end_offset = -1 if entry.end_offset is None else entry.end_offset
    return -end_offset, entry.key.id, entry.key.directory_id or ""
