"""Where a quorum stood when it was captured: who led, what its log ended with, who kept up.

The newest capture of each replica counts. The state of a replica that was captured long before or after the
leader is not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.facts import Capture
from kraft_core.evidence.in_force import InForce
from kraft_core.evidence.states import SetInForce
from kraft_core.plan.registrations import Registration, Registrations
from kraft_core.protocol.replica import ReplicaConfig
from kraft_core.raft.epochs import EpochCache
from kraft_core.raft.voters import Endpoint, ReplicaKey, Voter

# A capture further from the leader's (ms) shows where a replica was, not where it is.
SAME_MOMENT_MS = 60_000
FETCH_TIMEOUT_MS = ReplicaConfig().fetch_timeout


class Standing(Enum):
    LEADER = "leader"
    KEEPS_UP = "keeps up"
    BEHIND = "behind"
    DIVERGED = "diverged"
    REPLACED = "replaced"
    NOT_KNOWN = "not known"


@dataclass(frozen=True, slots=True)
class Member:
    """A replica as captured. lag_ms: by append times of the leader's clock; None if unknown."""

    key: ReplicaKey
    is_voter: bool
    standing: Standing
    end_offset: int | None
    lag_records: int | None
    lag_ms: int | None
    captured_at: int | None
    words: str


@dataclass(frozen=True, slots=True)
class CapturedQuorum:
    """What the captures show of a quorum at `as_of` (ms): its last epoch and the log of that epoch's leader.

    leader: None if the last epoch has no leader yet. log_end: of the longest captured log of its epoch.
    log_epochs: where each epoch begins in it. voters, kraft_version: in force at its end, None if unknown.
    epoch_start: offset of the LEADER_CHANGE.
    """

    known: Conclusions
    registrations: Registrations
    as_of: int
    epoch: int
    leader: ReplicaKey | None
    leader_is_captured: bool
    epoch_start: int | None
    log_start: int
    log_end: int
    log_epochs: EpochCache
    voters: SetInForce | None
    kraft_version: int | None
    members: tuple[Member, ...]

    @property
    def cluster_id(self) -> str:
        return self.known.facts.cluster_id

    def member(self, key: ReplicaKey) -> Member | None:
        return next((member for member in self.members if member.key == key), None)

    def members_of(self, node_id: int) -> tuple[Member, ...]:
        return tuple(member for member in self.members if member.key.id == node_id)

    def voter_of(self, node_id: int) -> Voter | None:
        """The entry of a voter set by its id."""
        if self.voters is None:
            return None
        return next((voter for voter in self.voters.voters if voter.key.id == node_id), None)

    def endpoints_of(self, node_id: int) -> tuple[Endpoint, ...]:
        """By the voter set, else by what the controller registered."""
        voter = self.voter_of(node_id)
        if voter is not None and voter.endpoints:
            return voter.endpoints
        registration = self.registrations.newest.get(node_id)
        return registration.endpoints if registration else ()

    def registration(self, node_id: int) -> Registration | None:
        return self.registrations.newest.get(node_id)


def quorum_of(known: Conclusions, registrations: Registrations) -> CapturedQuorum | None:
    """The quorum as captured, None where no captured log holds a batch."""
    newest = [captures[-1] for captures in known.holdings.captures.values()]
    holders = [capture for capture in newest if capture.runs]
    if not holders:
        return None
    log_epoch = max(capture.runs[-1].leader_epoch for capture in holders)
    epoch = max([log_epoch, *(c.quorum_state_epoch for c in newest if c.quorum_state_epoch is not None)])
    leader_id = _leader_id(known, newest, epoch)
    of_epoch = [capture for capture in holders if capture.runs[-1].leader_epoch == log_epoch]
    source = max(of_epoch, key=lambda c: (c.runs[-1].end_offset, c.node_id == leader_id))
    log_end = source.runs[-1].end_offset
    voters = known.in_force.voters_at(log_epoch, log_end - 1)
    leader = None if leader_id is None else _leader_key(known.in_force, voters, newest, leader_id, epoch)
    captured = next((capture for capture in newest if capture.replica == leader), None)
    election = known.elections.get(epoch)
    as_of = (captured or source).captured_at
    quorum = CapturedQuorum(
        known,
        registrations,
        as_of,
        epoch,
        leader,
        captured is not None,
        election.offset if election else None,
        source.log_start_offset or 0,
        log_end,
        epochs_of(source),
        voters,
        known.in_force.at(log_epoch, log_end - 1).kraft_version,
        (),
    )
    return _with_members(quorum, newest, source)


def _leader_id(known: Conclusions, newest: Iterable[Capture], epoch: int) -> int | None:
    election = known.elections.get(epoch)
    if election is not None:
        return election.leader_id
    named = {c.quorum_state_leader_id for c in newest if c.quorum_state_epoch == epoch}
    return next((leader_id for leader_id in named if leader_id is not None and leader_id >= 0), None)


def _leader_key(
    in_force: InForce, voters: SetInForce | None, newest: Iterable[Capture], leader_id: int, epoch: int
) -> ReplicaKey:
    """The leader, with its directory id if the voter set or a single capture shows it."""
    entry = in_force.leader_among(voters.voters, epoch) if voters else None
    if entry is not None and entry.key.directory_id is not None:
        return entry.key
    captured = [capture.replica for capture in newest if capture.node_id == leader_id]
    return captured[0] if len(captured) == 1 else ReplicaKey(leader_id)


def epochs_of(capture: Capture) -> EpochCache:
    """Where each epoch begins in a captured log."""
    epochs = EpochCache()
    for run in capture.runs:
        epochs = epochs.assign(run.leader_epoch, run.first_offset)
    return epochs


def _with_members(quorum: CapturedQuorum, newest: Iterable[Capture], source: Capture) -> CapturedQuorum:
    captured = {capture.replica: capture for capture in newest}
    entries = list(quorum.voters.voters) if quorum.voters else []
    keys = set(captured)
    for voter in entries:
        if not any(voter.matches(key) for key in captured):
            keys.add(voter.key)
    voters = [key for key in keys if any(voter.matches(key) for voter in entries)]
    ordered = sorted(keys, key=lambda key: (key not in voters, key.id, key.directory_id or ""))
    members = tuple(_member(quorum, key, key in voters, captured.get(key), source) for key in ordered)
    return replace(quorum, members=_without_replaced(members))


def _without_replaced(members: tuple[Member, ...]) -> tuple[Member, ...]:
    """A directory whose node was captured later with another one is gone: it neither leads nor keeps up."""
    newest: dict[int, int] = {}
    for member in members:
        newest[member.key.id] = max(newest.get(member.key.id, 0), member.captured_at or 0)
    return tuple(
        replace(member, standing=Standing.REPLACED, words="another directory of this id was captured later")
        if member.captured_at is not None and member.captured_at < newest[member.key.id]
        else member
        for member in members
    )


def _member(
    quorum: CapturedQuorum, key: ReplicaKey, is_voter: bool, capture: Capture | None, source: Capture
) -> Member:
    if capture is None:
        return Member(key, is_voter, Standing.NOT_KNOWN, None, None, None, None, "not captured")
    end = capture.known_end
    lag = max(0, quorum.log_end - end) if end is not None else None
    lag_ms = _lag_ms(capture, source) if lag else 0
    standing, words = _standing(quorum, capture, lag, lag_ms)
    return Member(key, is_voter, standing, end, lag, lag_ms, capture.captured_at, words)


def _lag_ms(capture: Capture, source: Capture) -> int:
    """How far its last batch is behind what the leader had appended by the time of the capture."""
    if not capture.runs:
        return max(0, capture.captured_at - source.runs[-1].first_appended_at)
    until = min(source.runs[-1].last_appended_at, capture.captured_at)
    return max(0, until - capture.runs[-1].last_appended_at)


def _standing(quorum: CapturedQuorum, capture: Capture, lag: int | None, lag_ms: int) -> tuple[Standing, str]:
    if capture.replica == quorum.leader:
        return Standing.LEADER, f"leads epoch {quorum.epoch}"
    apart = capture.captured_at - quorum.as_of
    if abs(apart) > SAME_MOMENT_MS:
        when = "before" if apart < 0 else "after"
        return Standing.NOT_KNOWN, f"captured {abs(apart) // 1000} s {when} the leader"
    if capture.known_end is None or lag is None:
        return Standing.NOT_KNOWN, "its log end cannot be read"
    if _has_diverged(quorum, capture):
        return (
            Standing.DIVERGED,
            f"holds a tail of epoch {capture.runs[-1].leader_epoch} that will be truncated",
        )
    in_epoch = capture.in_epoch
    if lag and lag_ms > FETCH_TIMEOUT_MS:
        return Standing.BEHIND, f"lacks the last {_records(lag)}, for {lag_ms / 1000:.1f} s or more"
    if in_epoch is not None and in_epoch < quorum.epoch:
        elected = quorum.known.elections.get(quorum.epoch)
        late = elected is not None and capture.captured_at - elected.elected_at > FETCH_TIMEOUT_MS
        words = f"was still in epoch {in_epoch}"
        return (Standing.BEHIND if late else Standing.NOT_KNOWN), words
    return Standing.KEEPS_UP, "has the whole log" if not lag else f"lacks the last {_records(lag)}"


def _records(count: int) -> str:
    return "record" if count == 1 else f"{count} records"


def _has_diverged(quorum: CapturedQuorum, capture: Capture) -> bool:
    """Whether its last batch lies above the end of that epoch in the leader's log."""
    if not capture.runs:
        return False
    last = capture.runs[-1]
    end = quorum.log_epochs.end_offset_for(last.leader_epoch, quorum.log_end)
    return end is not None and (end.leader_epoch != last.leader_epoch or end.end_offset < last.end_offset)
