"""How a replica comes from one role to another without an operation of its log: a search for the messages.

A trace records states, not what led to them. A state is explained if some ticks, votes and announcements of
leaders lead the engine's replica to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from kraft_core.protocol import messages
from kraft_core.protocol.errors import ErrorCode
from kraft_core.protocol.messages import CurrentLeader, RaftMessage, Request
from kraft_core.protocol.replica import Candidate, Leader, Prospective, Replica, Sent, Step
from kraft_core.protocol.step import Event, Received, ResignLeadership, Tick, step
from kraft_core.raft import replay
from kraft_core.raft.voters import ReplicaKey
from tests.conformance.recorded import deadline

STRANGER = ReplicaKey(1000, "AAAAAAAAAAAAAAAAAAAD6A")
FAR = 1 << 40
DEPTH = 9


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What else is recorded of an epoch: its leader, and the candidate that the replica voted for."""

    leader: CurrentLeader
    candidate: ReplicaKey | None


def reach(replica: Replica, around: Surroundings, accept: Callable[[Replica], bool]) -> Step | None:
    """The shortest way to an accepted state, as one step; None if no way leads there."""
    frontier, seen = [Step(replica)], {_state(replica)}
    for _ in range(DEPTH):
        for way in frontier:
            if accept(way.replica):
                return way
        following: list[Step] = []
        for way in frontier:
            for more in _moves(way.replica, around):
                if _state(more.replica) not in seen and _is_without_records(more):
                    seen.add(_state(more.replica))
                    following.append(Step(more.replica, (*way.operations, *more.operations)))
        frontier = following
    return next((way for way in frontier if accept(way.replica)), None)


def _state(replica: Replica) -> tuple[object, ...]:
    watermark = replica.log.known_high_watermark
    return type(replica.state), replica.role, replica.epoch, replica.leader, replica.voted, watermark


def _is_without_records(way: Step) -> bool:
    return all(isinstance(operation, replay.Resign) for operation in way.operations)


def _moves(replica: Replica, around: Surroundings) -> Iterator[Step]:
    yield from _taken(replica, Tick(deadline(replica.state)))
    if isinstance(replica.state, Leader):
        yield from _taken(replica, ResignLeadership(replica.epoch))
    if isinstance(replica.state, Prospective | Candidate):
        yield granted(replica, replica.voters.ids)
    epoch, leader_id = around.leader.leader_epoch, around.leader.leader_id
    for later in (epoch - 1, epoch):
        if later > replica.epoch:
            yield from _received(replica, STRANGER.id, nomination(replica, later))
    if around.candidate is not None and around.candidate.id != replica.key.id and epoch >= replica.epoch:
        request = nomination(replica, epoch, around.candidate)
        yield from _received(replica, around.candidate.id, request)
    if leader_id is not None and leader_id != replica.key.id and epoch >= replica.epoch:
        announced = messages.BeginQuorumEpochRequest(
            replica.cluster_id, None, leader_id, epoch, around.leader.endpoints
        )
        yield from _received(replica, leader_id, announced)


def _taken(replica: Replica, event: Event) -> Iterator[Step]:
    """None if Kafka's process would end."""
    try:
        yield step(replica, event)
    except ValueError:
        return


def _received(replica: Replica, source: int, body: Request) -> Iterator[Step]:
    yield from _taken(replica, Received(RaftMessage(source, replica.key.id, 0, body)))


def nomination(replica: Replica, epoch: int, candidate: ReplicaKey | None = None) -> messages.VoteRequest:
    """A candidate with the best log; without one, a pre-vote, which tells the epoch and nothing else."""
    if candidate is None:
        return messages.VoteRequest(replica.cluster_id, replica.key, STRANGER, epoch, 0, 0, pre_vote=True)
    return messages.VoteRequest(replica.cluster_id, replica.key, candidate, epoch, epoch - 1, FAR)


def granted(replica: Replica, voter_ids: tuple[int, ...] | list[int]) -> Step:
    """Votes, or pre-votes, one by one until they suffice."""
    before, way = type(replica.state), Step(replica)
    for voter_id in voter_ids:
        if type(way.replica.state) is before and voter_id != replica.key.id:
            way = way.then(_vote_granted, voter_id, pre_vote=before is Prospective)
    return way


def _vote_granted(replica: Replica, voter_id: int, *, pre_vote: bool) -> Step:
    end = replica.log_end
    asked = messages.VoteRequest(
        replica.cluster_id, None, replica.key, replica.epoch, end.leader_epoch, end.end_offset, pre_vote
    )
    body = messages.VoteResponse(ErrorCode.NONE, CurrentLeader(None, replica.epoch), vote_granted=True)
    number = replica.next_correlation_id
    sent = (Sent(voter_id, number, asked, FAR * FAR),)
    waiting = replace(replica, next_correlation_id=number + 1, sent=sent)
    return step(waiting, Received(RaftMessage(voter_id, replica.key.id, number, body)))
