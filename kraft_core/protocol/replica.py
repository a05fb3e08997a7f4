"""A replica as a value: its identity, log, role in the epoch, and requests in flight.

Every handler returns a `Step`: the next replica, the operations on its log in order, and the messages it
sends. Ticks are of the replica's own clock. Sources: Kafka's QuorumState and its EpochState classes.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Concatenate, ParamSpec

from kraft_core.protocol.messages import (
    CurrentLeader,
    Endpoints,
    FetchRequest,
    FetchResponse,
    RaftMessage,
    Request,
    Response,
)
from kraft_core.protocol.roles import Role
from kraft_core.raft.emulation import EmulatedReplica, emulate, read_anew
from kraft_core.raft.epochs import EpochEnd
from kraft_core.raft.log import ReplicaLog
from kraft_core.raft.replay import InstallSnapshot, Operation
from kraft_core.raft.voters import ReplicaKey, Voter, VoterSet
from kraft_core.raft.watermark import LeaderProgress

P = ParamSpec("P")

NO_VOTERS = VoterSet(())


@dataclass(frozen=True, slots=True)
class ReplicaConfig:
    """Kafka's controller.quorum.* settings, in ticks; the defaults are Kafka's milliseconds.

    `caught_up_for`: a replica that fetched within it can be added; `max_fetch_bytes` bounds a Fetch response.
    """

    election_timeout: int = 1000
    fetch_timeout: int = 2000
    request_timeout: int = 2000
    fetch_max_wait: int = 500
    election_backoff_max: int = 1000
    caught_up_for: int = 3_600_000
    observer_session: int = 300_000
    max_fetch_bytes: int = 1 << 20
    max_snapshot_fetch_bytes: int = 1 << 20


@dataclass(frozen=True, slots=True)
class Votes:
    """The responses of the voters of an election, by id; the nominee grants itself."""

    voters: VoterSet
    granted: frozenset[int] = frozenset()
    rejected: frozenset[int] = frozenset()

    @property
    def has_granted_majority(self) -> bool:
        """Whether the nominee has won (Kafka's EpochElection.isVoteGranted)."""
        return len(self.granted) >= self.voters.majority

    @property
    def is_rejected(self) -> bool:
        """Whether too few voters remain to win (Kafka's EpochElection.isVoteRejected)."""
        return len(self.voters) - len(self.rejected) < self.voters.majority

    @property
    def outstanding(self) -> tuple[ReplicaKey, ...]:
        answered = self.granted | self.rejected
        return tuple(voter.key for voter in self.voters if voter.key.id not in answered)

    def record(self, voter_id: int, *, granted: bool) -> Votes:
        """With one voter's response; non-voters, and voters that granted before, change nothing."""
        if voter_id not in self.voters.ids or voter_id in self.granted:
            return self
        if granted:
            return replace(self, granted=self.granted | {voter_id}, rejected=self.rejected - {voter_id})
        return replace(self, rejected=self.rejected | {voter_id})


@dataclass(frozen=True, slots=True)
class Unattached:
    """Knows its epoch, and perhaps its leader or its own vote, but does not follow a leader."""

    epoch: int
    election_deadline: int
    leader_id: int | None = None
    voted: ReplicaKey | None = None


@dataclass(frozen=True, slots=True)
class Prospective:
    """Requests pre-votes, to find out whether it could win before it raises the epoch (KIP-996)."""

    epoch: int
    election_deadline: int
    votes: Votes
    leader_id: int | None = None
    leader_endpoints: Endpoints = ()
    voted: ReplicaKey | None = None


@dataclass(frozen=True, slots=True)
class Candidate:
    """Has voted for itself in a new epoch."""

    epoch: int
    election_deadline: int
    votes: Votes


@dataclass(frozen=True, slots=True)
class Follower:
    """Fetches from a leader whose endpoints it knows."""

    epoch: int
    leader_id: int
    leader_endpoints: Endpoints
    fetch_deadline: int
    update_deadline: int
    voted: ReplicaKey | None = None
    has_fetched: bool = False
    has_updated_leader: bool = False
    fetching_snapshot: EpochEnd | None = None
    fetched_bytes: int = 0


@dataclass(frozen=True, slots=True)
class PendingAdd:
    """An AddRaftVoter in progress; `offset` is that of the VotersRecord once it is appended."""

    requester: int
    correlation_id: int
    voter: ReplicaKey
    endpoints: Endpoints
    ack_when_committed: bool
    deadline: int
    offset: int | None = None
    is_answered: bool = False


@dataclass(frozen=True, slots=True)
class PendingRemove:
    """A RemoveRaftVoter whose VotersRecord at `offset` has not committed yet."""

    requester: int
    correlation_id: int
    offset: int
    deadline: int


@dataclass(frozen=True, slots=True)
class ParkedFetch:
    """A Fetch that waits for records or a higher high watermark; at the deadline it gets `empty`."""

    requester: int
    correlation_id: int
    request: FetchRequest
    empty: FetchResponse
    deadline: int


@dataclass(frozen=True, slots=True)
class FetchTimes:
    """Ticks at which a replica last fetched, and last reached the log end; -1: never.

    `leader_end_offset` is the leader's log end at the last fetch.
    """

    last_fetch_at: int = -1
    last_caught_up_at: int = -1
    leader_end_offset: int = -1


@dataclass(frozen=True, slots=True)
class Leader:
    """Leads its epoch. `volatile_voters` is kept with kraft.version 0 only, for the upgrade to 1."""

    epoch: int
    progress: LeaderProgress
    granting_voters: frozenset[int]
    check_quorum_deadline: int
    begin_epoch_deadline: int
    fetched_voters: frozenset[int] = frozenset()
    fetch_times: tuple[tuple[ReplicaKey, FetchTimes], ...] = ()
    pending: PendingAdd | PendingRemove | None = None
    volatile_voters: VoterSet | None = None
    resign_requested: bool = False


@dataclass(frozen=True, slots=True)
class Resigned:
    """Led its epoch and still names itself its leader, but only asks the voters to elect another."""

    epoch: int
    election_deadline: int
    unacknowledged: frozenset[int]
    preferred_successors: tuple[ReplicaKey, ...] = ()


State = Unattached | Prospective | Candidate | Follower | Leader | Resigned


@dataclass(frozen=True, slots=True)
class Sent:
    """A request in flight; a replica has at most one to another."""

    destination: int
    correlation_id: int
    body: Request
    deadline: int


@dataclass(frozen=True, slots=True)
class Replica:
    """`endpoints`: the replica's own, the default listener first; `bootstrap`: where it may find the leader.

    `snapshot_sizes` are the bytes of its snapshots; `flushed_offset` is the log end that survives a crash.
    `parked` outlives the leadership; `quorum_state_voters` are the ids that quorum-state version 0 lists,
    None with version 1.
    """

    cluster_id: str
    key: ReplicaKey
    endpoints: Endpoints
    store: EmulatedReplica
    state: State
    settings: ReplicaConfig = ReplicaConfig()
    min_supported_version: int = 0
    max_supported_version: int = 1
    can_become_voter: bool = True
    auto_join: bool = False
    bootstrap: tuple[int, ...] = ()
    now: int = 0
    random: int = 1
    next_correlation_id: int = 0
    sent: tuple[Sent, ...] = ()
    parked: tuple[ParkedFetch, ...] = ()
    quorum_state_voters: tuple[int, ...] | None = None
    snapshot_sizes: tuple[tuple[EpochEnd, int], ...] = ()
    flushed_offset: int = 0

    @property
    def log(self) -> ReplicaLog:
        return self.store.log

    @property
    def epoch(self) -> int:
        return self.state.epoch

    @property
    def voters(self) -> VoterSet:
        """The set by which this replica elects and counts majorities, as Kafka reads it from its log."""
        return self.store.reader.controls.voters.last or NO_VOTERS

    @property
    def voters_offset(self) -> int | None:
        return self.store.reader.controls.voters.last_offset

    @property
    def kraft_version(self) -> int:
        return self.store.reader.controls.kraft_version

    @property
    def is_voter(self) -> bool:
        return self.voters.voter_for(self.key) is not None

    @property
    def as_voter(self) -> Voter:
        """This replica's entry in an up-to-date voter set."""
        return Voter(self.key, self.endpoints, self.min_supported_version, self.max_supported_version)

    @property
    def role(self) -> Role:
        match self.state:
            case Unattached():
                return Role.UNATTACHED
            case Prospective():
                return Role.PROSPECTIVE
            case Candidate():
                return Role.CANDIDATE
            case Follower():
                return Role.FOLLOWER if self.is_voter else Role.OBSERVER
            case Leader():
                return Role.LEADER
            case Resigned():
                return Role.RESIGNED

    @property
    def leader(self) -> CurrentLeader:
        """The leader that this replica names; a resigned replica still names itself."""
        match self.state:
            case Follower() | Prospective():
                return CurrentLeader(self.state.leader_id, self.epoch, self.state.leader_endpoints)
            case Unattached():
                return CurrentLeader(self.state.leader_id, self.epoch)
            case Candidate():
                return CurrentLeader(None, self.epoch)
            case Leader() | Resigned():
                return CurrentLeader(self.key.id, self.epoch, self.endpoints)

    @property
    def voted(self) -> ReplicaKey | None:
        match self.state:
            case Unattached() | Prospective() | Follower():
                return self.state.voted
            case Candidate():
                return self.key
            case Leader() | Resigned():
                return None

    @property
    def log_end(self) -> EpochEnd:
        return EpochEnd(self.log.end_offset, self.log.last_epoch)

    @property
    def is_only_voter(self) -> bool:
        return self.is_voter and len(self.voters) == 1

    def endpoints_of(self, voter_id: int) -> Endpoints:
        """A voter's endpoints by the voter set in force, none for an id that is not a voter."""
        return next((voter.endpoints for voter in self.voters if voter.key.id == voter_id), ())


@dataclass(frozen=True, slots=True)
class Step:
    """The outcome of an event or of a part of its handling."""

    replica: Replica
    operations: tuple[Operation, ...] = ()
    messages: tuple[RaftMessage, ...] = ()

    def then(
        self, handler: Callable[Concatenate[Replica, P], Step], *args: P.args, **kwargs: P.kwargs
    ) -> Step:
        """This step followed by `handler`, applied to its replica."""
        after = handler(self.replica, *args, **kwargs)
        return Step(after.replica, (*self.operations, *after.operations), (*self.messages, *after.messages))

    def leaving(self, replica: Replica) -> Step:
        """The same operations and messages; `replica`: what becomes of this step's."""
        return Step(replica, self.operations, self.messages)


def operate(replica: Replica, operation: Operation) -> Step:
    """One log operation. A Kafka without the stale voter set reads its log again after a fetched snapshot."""
    store = emulate(replica.store, operation)
    if isinstance(operation, InstallSnapshot) and store.reader.rewinds:
        store = read_anew(store)
    flushed = min(max(replica.flushed_offset, store.log.start_offset), store.log.end_offset)
    return Step(replace(replica, store=store, flushed_offset=flushed), (operation,))


def written(replica: Replica) -> Replica:
    """Its quorum-state is rewritten; version 1, with kraft.version 1, has the vote's directory id."""
    return replace(replica, quorum_state_voters=None if replica.kraft_version > 0 else replica.voters.ids)


def is_in_flight(replica: Replica, destination: int) -> bool:
    """Whether a request to that replica waits for its response: a connection carries one at a time."""
    return any(sent.destination == destination for sent in replica.sent)


def respond(replica: Replica, request: RaftMessage, body: Response) -> Step:
    """The response to a request just received."""
    return answer(replica, request.source, request.correlation_id, body)


def answer(replica: Replica, requester: int, correlation_id: int, body: Response) -> Step:
    return Step(replica, messages=(RaftMessage(replica.key.id, requester, correlation_id, body),))


def send(replica: Replica, destination: int, body: Request) -> Step:
    """A request, unless one to the same replica is still in flight."""
    if destination == replica.key.id or is_in_flight(replica, destination):
        return Step(replica)
    correlation_id = replica.next_correlation_id
    sent = Sent(destination, correlation_id, body, replica.now + replica.settings.request_timeout)
    after = replace(replica, next_correlation_id=correlation_id + 1, sent=(*replica.sent, sent))
    return Step(after, messages=(RaftMessage(replica.key.id, destination, correlation_id, body),))


def random_below(replica: Replica, bound: int) -> tuple[Replica, int]:
    """The next number of the replica's own random sequence, from 0 to `bound` (exclusive)."""
    following = zlib.crc32(replica.random.to_bytes(8, "big"))
    return replace(replica, random=following ^ (replica.random << 1) & 0xFFFFFFFF), following % max(1, bound)


def random_election_deadline(replica: Replica) -> tuple[Replica, int]:
    """Kafka's randomElectionTimeoutMs: from one to two election timeouts."""
    timeout = replica.settings.election_timeout
    after, extra = random_below(replica, timeout)
    return after, replica.now + timeout + extra
