"""Fetch: a leader's response, and how a follower applies it.

KIP-595, Fetch; KIP-853, Fetch (replica directory id). Kafka throws if a leader asks to truncate below the
high watermark; the KIPs call this impossible.
"""

from __future__ import annotations

from dataclasses import astuple, replace

from kraft_core.protocol.checks import (
    common_response,
    followed,
    has_cluster_id,
    learn_leader,
)
from kraft_core.protocol.errors import ErrorCode, ProtocolFault
from kraft_core.protocol.fetch_validation import fetch_error, is_worth_sending
from kraft_core.protocol.leading import complete_fetch
from kraft_core.protocol.messages import FetchRequest, FetchResponse, RaftMessage
from kraft_core.protocol.replica import (
    Follower,
    ParkedFetch,
    Replica,
    Step,
    Unattached,
    operate,
    respond,
    send,
)
from kraft_core.protocol.transitions import to_follower
from kraft_core.raft.epochs import EpochEnd
from kraft_core.raft.replay import AppendAsFollower, TruncateToDivergence, UpdateHighWatermark


def handle_fetch(replica: Replica, message: RaftMessage, request: FetchRequest) -> Step:
    """Answer at once with an error, records, a divergence, a snapshot id or a higher watermark; else park."""
    if not has_cluster_id(replica, request.cluster_id):
        return respond(replica, message, FetchResponse(ErrorCode.INCONSISTENT_CLUSTER_ID))
    if _is_malformed(request):
        return respond(replica, message, fetch_error(replica, ErrorCode.INVALID_REQUEST))
    step, response = complete_fetch(replica, request)
    if is_worth_sending(response, request):
        return step.then(respond, message, response)
    return step.then(_park, message, request, response)


def _is_malformed(request: FetchRequest) -> bool:
    return (
        request.max_wait < 0
        or request.fetch_offset < 0
        or not 0 <= request.last_fetched_epoch <= request.current_leader_epoch
    )


def _park(replica: Replica, message: RaftMessage, request: FetchRequest, empty: FetchResponse) -> Step:
    deadline = replica.now + request.max_wait
    parked = ParkedFetch(message.source, message.correlation_id, request, empty, deadline)
    return Step(replace(replica, parked=(*replica.parked, parked)))


def fetch(replica: Replica, destination: int) -> Step:
    """Fetch from the log end; also used to find the leader."""
    watermark = replica.log.known_high_watermark
    request = FetchRequest(
        replica.cluster_id,
        replica.key,
        replica.epoch,
        replica.log.end_offset,
        replica.log.last_epoch,
        -1 if watermark is None else watermark,
        replica.settings.fetch_max_wait,
        replica.settings.max_fetch_bytes,
    )
    return send(replica, destination, request)


def handle_fetch_response(replica: Replica, _: RaftMessage, response: FetchResponse) -> Step:
    """Follow the leader it names; then truncate, fetch a snapshot, or append and learn the watermark.

    A snapshot id with a negative offset or epoch is not a successful fetch (both: no id, None here).
    """
    step = _learn_leader_endpoints(replica, response)
    found, done = common_response(step.replica, response.error, response.leader)
    step = Step(found.replica, (*step.operations, *found.operations), (*step.messages, *found.messages))
    if done or response.error is not ErrorCode.NONE:
        return step
    if not isinstance(step.replica.state, Follower):
        raise ProtocolFault(f"{replica.key.id} is {replica.role.value} and was answered a Fetch")
    if response.snapshot_id is not None and min(astuple(response.snapshot_id)) < 0:
        return step
    return step.then(_take, response).then(reset_fetch_timeout)


def _learn_leader_endpoints(replica: Replica, response: FetchResponse) -> Step:
    """An unattached replica that knows the leader by id only learns its endpoints from any replica."""
    leader = response.leader
    knows_endpoints = leader and leader.leader_id is not None and leader.endpoints
    if not (leader and knows_endpoints and leader.leader_epoch == replica.epoch):
        return Step(replica)
    if not isinstance(replica.state, Unattached) or leader.leader_id == replica.key.id:
        return Step(replica)
    if replica.state.leader_id not in (None, leader.leader_id):
        return learn_leader(replica, leader.leader_id, leader.leader_epoch, leader.endpoints)
    return to_follower(replica, replica.epoch, leader.leader_id or 0, leader.endpoints)


def _take(replica: Replica, response: FetchResponse) -> Step:
    if response.diverging_epoch is not None:
        return _truncate(replica, response.diverging_epoch)
    if response.snapshot_id is not None:
        return _begin_snapshot_fetch(replica, response.snapshot_id)
    step = _append(replica, response)
    if response.high_watermark < 0:
        return step
    return step.then(learn_high_watermark, response.high_watermark)


def _truncate(replica: Replica, end: EpochEnd) -> Step:
    known = replica.log.known_high_watermark
    if known is not None and end.end_offset < known:
        raise ProtocolFault(f"truncate {replica.key.id} to {end}, below its high watermark {known}")
    return operate(replica, TruncateToDivergence(end.end_offset, end.leader_epoch))


def _begin_snapshot_fetch(replica: Replica, snapshot_id: EpochEnd) -> Step:
    """Fetch the snapshot next, unless it is held already."""
    state = followed(replica)
    held = any(snapshot.id == snapshot_id for snapshot in replica.log.snapshots)
    if state is None or held:
        return Step(replica)
    return Step(replace(replica, state=replace(state, fetching_snapshot=snapshot_id, fetched_bytes=0)))


def _append(replica: Replica, response: FetchResponse) -> Step:
    """Append; flush if the replica is, or may become, a voter: the leader counts on it."""
    if not response.batches:
        return Step(replica)
    step = operate(replica, AppendAsFollower(replica.epoch, response.batches))
    if not (replica.is_voter or replica.can_become_voter):
        return step
    return step.leaving(replace(step.replica, flushed_offset=step.replica.log.end_offset))


def learn_high_watermark(replica: Replica, high_watermark: int) -> Step:
    """A follower's high watermark is the leader's, bounded by its own log end; it never falls."""
    reached = min(high_watermark, replica.log.end_offset)
    known = replica.log.known_high_watermark
    if known is not None and reached <= known:
        return Step(replica)
    return operate(replica, UpdateHighWatermark(reached))


def reset_fetch_timeout(replica: Replica) -> Step:
    """After a successful fetch: restart the fetch timeout, and refuse pre-votes from now on."""
    state = followed(replica)
    if state is None:
        return Step(replica)
    deadline = replica.now + replica.settings.fetch_timeout
    return Step(replace(replica, state=replace(state, fetch_deadline=deadline, has_fetched=True)))
