"""The captured quorum as replicas of the protocol engine, which computes what would happen.

What captures do not show is assumed once at its worst (a replica that was not captured is gone) and once at
its best (it has the leader's whole log): the answer is known only if both agree. A follower's captured log
end counts as fetched: its next Fetch, at most half a second later, reports it to the leader.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from kraft_core.plan.captured_quorum import CapturedQuorum
from kraft_core.plan.standings import Member, Standing
from kraft_core.protocol import messages
from kraft_core.protocol.errors import ErrorCode
from kraft_core.protocol.messages import RaftMessage, Request
from kraft_core.protocol.replica import (
    Candidate,
    FetchTimes,
    Leader,
    Prospective,
    Replica,
    Resigned,
    Sent,
    Step,
    Unattached,
)
from kraft_core.protocol.step import AppendRecords, Received, Tick, step
from kraft_core.raft.emulation import ControlReader, EmulatedReplica
from kraft_core.raft.epochs import EpochCache
from kraft_core.raft.history import OffsetHistory
from kraft_core.raft.log import Controls, ReplicaLog, Segment
from kraft_core.raft.voters import Endpoint, ReplicaKey, Voter, VoterHistory, VoterSet
from kraft_core.raft.watermark import (
    begin_leading,
    follower_fetched,
    leader_reached,
    majority_end_offset,
)

ADMIN = -1
NEVER = 1 << 62
# An address that no capture shows.
UNKNOWN_ENDPOINT = Endpoint("CONTROLLER", "", 0)
# Ticks from the fetch timeout to the end of an election: pre-vote, vote, and what they need to settle.
_ROUNDS = 4


@dataclass(frozen=True, slots=True)
class World:
    """One way the quorum can be, given the captures: the leader, and which replicas fetch from it."""

    quorum: CapturedQuorum
    leader: Replica
    fetching: frozenset[ReplicaKey]


@dataclass(frozen=True, slots=True)
class QuorumAnswer:
    """What Kafka answers a request; `world` is the quorum after it."""

    error: ErrorCode
    text: str | None
    world: World

    @property
    def is_refused(self) -> bool:
        return self.error is not ErrorCode.NONE


def worlds(quorum: CapturedQuorum) -> tuple[World, World] | None:
    """The quorum at its least and at its most; None if its leader or voters are unknown."""
    voters = quorum.voters
    if quorum.leader is None or voters is None or quorum.kraft_version is None or quorum.epoch_start is None:
        return None
    least = frozenset(member.key for member in quorum.members if member.standing is Standing.IN_SYNC)
    unknown = frozenset(
        member.key for member in quorum.members if member.is_voter and member.standing is Standing.NOT_KNOWN
    )
    return (
        World(quorum, _leader(quorum, quorum.leader, least, reported=False), least),
        World(quorum, _leader(quorum, quorum.leader, least | unknown, reported=True), least | unknown),
    )


def _leader(
    quorum: CapturedQuorum, key: ReplicaKey, fetching: frozenset[ReplicaKey], *, reported: bool
) -> Replica:
    """The leader, its followers' log ends as captured. reported: voters have sent it their directory ids."""
    assert quorum.voters is not None
    assert quorum.epoch_start is not None
    voters = quorum.voters.voters
    progress = leader_reached(begin_leading(key, quorum.epoch_start, voters), quorum.log_end, voters)
    times: list[tuple[ReplicaKey, FetchTimes]] = []
    for member in quorum.members:
        if member.key.id != key.id and member.standing is not Standing.REPLACED:
            end = _fetched_end(quorum, member, fetching)
            if end is not None:
                progress = follower_fetched(progress, member.key, end)
        if member.key in fetching:
            times.append((member.key, FetchTimes(quorum.as_of, quorum.as_of, quorum.log_end)))
    reached = [proven_watermark(quorum), _reached_before(quorum, key, fetching) if reported else None]
    known = [end for end in (*reached, progress.high_watermark) if end is not None]
    progress = replace(progress, high_watermark=max(known, default=None))
    watermark = progress.high_watermark
    state = Leader(
        quorum.epoch,
        progress,
        frozenset(),
        NEVER,
        NEVER,
        fetch_times=tuple(times),
        volatile_voters=_reported_voters(quorum, reported=reported) if quorum.kraft_version == 0 else None,
    )
    return _replica(quorum, key, quorum.log_end, quorum.log_epochs, watermark, state)


def _reached_before(quorum: CapturedQuorum, key: ReplicaKey, fetching: frozenset[ReplicaKey]) -> int | None:
    """What the leader can have reached by the set before its own VotersRecord; None where that is not known.

    It counts by the new set as soon as it has appended that, but never lowers its high watermark.
    """
    own = quorum.voters
    assert quorum.epoch_start is not None
    if own is None or own.source != "record" or own.batch_base_offset <= quorum.epoch_start:
        return None
    before = quorum.known.in_force.voters_at(quorum.epoch, own.batch_base_offset - 1)
    if before is None:
        return None
    ends = {m.key: _fetched_end(quorum, m, fetching) for m in quorum.members} | {key: quorum.log_end}
    held = [next((end for at, end in ends.items() if v.matches(at)), None) for v in before.voters]
    reached = majority_end_offset(None if end is None else min(end, own.batch_base_offset) for end in held)
    return None if reached is None or reached <= quorum.epoch_start else reached


def _fetched_end(quorum: CapturedQuorum, member: Member, fetching: frozenset[ReplicaKey]) -> int | None:
    """A captured log of the leader's own epoch was fetched from it; one not captured is as assumed."""
    if member.standing is Standing.NOT_KNOWN:
        return quorum.log_end if member.key in fetching else None
    if member.standing is Standing.DIVERGED or member.end_offset is None:
        return None
    return min(member.end_offset, quorum.log_end) if member.in_epoch == quorum.epoch else None


def proven_watermark(quorum: CapturedQuorum) -> int | None:
    """What files prove that this leader reached; None while nothing of its own epoch is proven committed."""
    assert quorum.epoch_start is not None
    bounds = [
        bound.bound
        for bound in quorum.known.lower_bounds
        if not bound.believed and quorum.epoch_start < bound.bound <= quorum.log_end
    ]
    return max(bounds, default=None)


def _reported_voters(quorum: CapturedQuorum, *, reported: bool) -> VoterSet:
    """With kraft.version 0: the static set with what its voters sent to the leader, kept in memory only.

    A voter sends its directory id within a fetch timeout, if its software knows UpdateRaftVoter; its
    registration shows whether it does.
    """
    assert quorum.voters is not None
    entries: list[Voter] = []
    for voter in quorum.voters.voters:
        registered = quorum.registration(voter.key.id)
        captured = [m.key for m in quorum.members_of(voter.key.id) if m.key.directory_id is not None]
        versions = registered.kraft_versions if registered else None
        if versions is None or not (captured or reported):
            entries.append(voter)
            continue
        directory = captured[-1].directory_id if captured else f"(directory of {voter.key.id})"
        endpoints = registered.endpoints if registered else voter.endpoints
        entries.append(Voter(ReplicaKey(voter.key.id, directory), endpoints, *versions))
    return VoterSet.of(entries)


def _replica(
    quorum: CapturedQuorum,
    key: ReplicaKey,
    log_end: int,
    epochs: EpochCache,
    watermark: int | None,
    state: Leader,
) -> Replica:
    log_start = min(quorum.log_start, log_end)
    log = ReplicaLog(
        start_offset=log_start,
        end_offset=log_end,
        high_watermark=watermark or log_start,
        known_high_watermark=watermark,
        epochs=epochs,
        segments=(Segment(log_start, 1),),
    )
    controls = _controls(quorum, log_end, epochs)
    store = EmulatedReplica(log, ControlReader(controls, log_end, rewinds=True, forgets=False))
    endpoints = quorum.endpoints_of(key.id) or (UNKNOWN_ENDPOINT,)
    return Replica(quorum.cluster_id, key, endpoints, store, state, now=quorum.as_of)


def _controls(quorum: CapturedQuorum, log_end: int, epochs: EpochCache) -> Controls:
    """What the log puts in force at its end; nothing if it is empty."""
    if epochs.last_epoch is None:
        return Controls(VoterHistory())
    voters = quorum.known.in_force.voters_at(epochs.last_epoch, log_end - 1)
    version = quorum.known.in_force.at(epochs.last_epoch, log_end - 1).kraft_version
    if voters is None:
        history = VoterHistory()
    elif voters.source == "static":
        history = VoterHistory(voters.voters)
    else:
        history = VoterHistory().add(voters.offset, voters.voters)
    return Controls(history, OffsetHistory().add(-1, version or 0))


def ask(world: World, request: Request) -> QuorumAnswer:
    """What the leader answers. A voter to be added replies at once that it supports kraft.version 0 and 1.

    The request is accepted if there is no answer yet: then the VotersRecord waits for its commit.
    """
    leader = world.leader
    done = step(leader, Received(RaftMessage(ADMIN, leader.key.id, 0, request)))
    for message in done.messages:
        if isinstance(message.body, messages.ApiVersionsRequest):
            reply = messages.ApiVersionsResponse(ErrorCode.NONE, 0, 1)
            back = RaftMessage(message.destination, leader.key.id, message.correlation_id, reply)
            done = step(done.replica, Received(back))
            break
    error, text = _answered(done)
    return QuorumAnswer(error, text, replace(world, leader=done.replica))


def _answered(done: Step) -> tuple[ErrorCode, str | None]:
    for message in done.messages:
        if message.destination == ADMIN:
            body = message.body
            return getattr(body, "error", ErrorCode.NONE), getattr(body, "message", None)
    return ErrorCode.NONE, None


def write(world: World) -> World:
    """The leader appends a record of metadata."""
    return replace(world, leader=step(world.leader, AppendRecords(1)).replica)


def fetch_all(world: World) -> World:
    """Every replica that fetches has reached the log end and reported it."""
    leader = world.leader
    for key in sorted(world.fetching, key=lambda key: (key.id, key.directory_id or "")):
        if key.id == leader.key.id or not isinstance(leader.state, Leader):
            continue
        end = leader.log_end
        request = messages.FetchRequest(
            leader.cluster_id, key, leader.epoch, end.end_offset, end.leader_epoch, max_wait=0
        )
        leader = step(leader, Received(RaftMessage(key.id, leader.key.id, 0, request))).replica
    return replace(world, leader=leader)


def commits(world: World) -> bool:
    """Whether the log commits up to its end by the replicas that fetch."""
    after = fetch_all(world).leader
    if isinstance(after.state, Resigned):
        return True  # a leader whose own removal has committed
    watermark = after.log.known_high_watermark
    return watermark is not None and watermark >= after.log.end_offset


def settled(world: World) -> World | None:
    """When all have fetched. A leader whose own removal has committed has resigned: the others elect another.

    None if they elect nobody.
    """
    after = fetch_all(world)
    return elect(after) if isinstance(after.leader.state, Resigned) else after


def goes_on(world: World) -> bool:
    """Whether what is written from now on commits, also under the next leader if this one resigns."""
    after = settled(world)
    return after is not None and commits(write(after))


def hangs_on(world: World) -> tuple[ReplicaKey, ...]:
    """The voters on each of which every commit depends; none if nothing commits anyway."""
    if not goes_on(world):
        return ()
    voters = [key for key in world.fetching if world.leader.voters.voter_for(key) is not None]
    found = [key for key in voters if not goes_on(replace(world, fetching=world.fetching - {key}))]
    leader = world.leader.key
    if world.leader.is_voter:
        without = lose(world, [leader.id])
        if without is None or not goes_on(without):
            found.append(leader)
    return tuple(sorted(found, key=lambda key: (key.id, key.directory_id or "")))


def lose(world: World, node_ids: Iterable[int]) -> World | None:
    """The quorum without these nodes; None if the others elect no leader."""
    gone = frozenset(node_ids)
    fetching = frozenset(key for key in world.fetching if key.id not in gone)
    if world.leader.key.id not in gone:
        return replace(world, fetching=fetching)
    return elect(replace(world, fetching=fetching))


def elect(world: World) -> World | None:
    """The quorum under the first voter that the others elect, tried by log end, the highest first."""
    ends = {member.key: member.end_offset or 0 for member in world.quorum.members}
    for key in sorted(_running(world), key=lambda key: (-ends.get(key, 0), key.id)):
        elected = _elected(world, key)
        if elected is not None:
            others = world.fetching - {key}
            return fetch_all(World(world.quorum, elected, others))
    return None


def _running(world: World) -> list[ReplicaKey]:
    """What fetches, one directory of each node: the voter's, if one that was not captured is assumed to fetch
    beside another directory of its node.
    """
    voters = world.leader.voters
    by_order = sorted(world.fetching, key=lambda k: (voters.voter_for(k) is not None, k.directory_id or ""))
    return list({key.id: key for key in by_order}.values())


def _elected(world: World, nominee: ReplicaKey) -> Replica | None:
    """The nominee as leader, if its fetch timeout passes first; None if the others do not elect it."""
    replicas = {key.id: _survivor(world, key) for key in _running(world)}
    now = world.quorum.as_of
    for _ in range(_ROUNDS):
        now += 1
        started = step(replicas[nominee.id], Tick(now))
        replicas[nominee.id] = started.replica
        _exchange(replicas, nominee.id, list(started.messages))
        nominated = replicas[nominee.id]
        if isinstance(nominated.state, Leader):
            return nominated
        if not isinstance(nominated.state, Prospective | Candidate):
            return None
    return None


def _exchange(replicas: dict[int, Replica], nominee: int, under_way: list[RaftMessage]) -> None:
    """Deliver the nominee's requests and their answers; what goes to a node that is gone stays unanswered."""
    while under_way:
        message = under_way.pop(0)
        if message.destination in replicas:
            done = step(replicas[message.destination], Received(message))
            replicas[message.destination] = done.replica
            if nominee in (message.source, message.destination):
                under_way += done.messages
        else:
            replicas[nominee] = _without_request(replicas[nominee], message.destination)


def _without_request(replica: Replica, destination: int) -> Replica:
    """A request to a node that is gone stays unanswered."""
    sent: tuple[Sent, ...] = tuple(one for one in replica.sent if one.destination != destination)
    return replace(replica, sent=sent)


def _survivor(world: World, key: ReplicaKey) -> Replica:
    """A replica that kept up with a leader that is gone: it has the leader's log, but follows no leader."""
    leader = world.leader
    store = replace(leader.store, log=replace(leader.log, known_high_watermark=None))
    return replace(
        leader,
        key=key,
        endpoints=world.quorum.endpoints_of(key.id) or leader.endpoints,
        store=store,
        state=Unattached(leader.epoch, world.quorum.as_of),
        sent=(),
    )


def joining(world: World, key: ReplicaKey, *, fetches: bool) -> World:
    """With a replica that had the whole log once and fetched lately; `fetches`: and continues to."""
    state = world.leader.state
    if not isinstance(state, Leader):
        return world
    times = dict(state.fetch_times)
    times[key] = FetchTimes(world.quorum.as_of, world.quorum.as_of, world.leader.log.end_offset)
    leader = replace(world.leader, state=replace(state, fetch_times=tuple(times.items())))
    return replace(world, leader=leader, fetching=world.fetching | ({key} if fetches else frozenset()))


def side_words(world: World) -> str:
    """Which voters are in sync, and how many are needed."""
    voters = world.leader.voters
    up = sorted(
        voter.key.id
        for voter in voters
        if voter.matches(world.leader.key) or any(voter.matches(key) for key in world.fetching)
    )
    names = ", ".join(map(str, up))
    needed = "1 is needed" if voters.majority == 1 else f"{voters.majority} are needed"
    return f"{len(up)} of {len(voters)} voters are in sync ({names}), {needed}"
