"""The step function: a replica and an event in; the next replica, log operations and messages out.

Pure: the same replica and event give the same step. Raises ProtocolFault where Kafka's process would end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from kraft_core.protocol import epochs, features, fetching, membership, messages, snapshots, voting
from kraft_core.protocol.leading import append
from kraft_core.protocol.messages import RaftMessage
from kraft_core.protocol.records import data_batch
from kraft_core.protocol.replica import Leader, Replica, Step
from kraft_core.protocol.timers import poll, request_resignation, resign_if_asked, shut_down


@dataclass(frozen=True, slots=True)
class Tick:
    """The replica's clock shows `now`."""

    now: int


@dataclass(frozen=True, slots=True)
class Received:
    """A message has arrived. A response without an open request is ignored."""

    message: RaftMessage


@dataclass(frozen=True, slots=True)
class AppendRecords:
    """The controller writes a batch of `record_count` records, if this replica leads."""

    record_count: int


@dataclass(frozen=True, slots=True)
class TakeSnapshot:
    """The replica snapshots what it knows to be committed; it may delete older log and snapshots."""

    delete_older: bool = True


@dataclass(frozen=True, slots=True)
class ShutDown:
    """A graceful shutdown begins."""


@dataclass(frozen=True, slots=True)
class ResignLeadership:
    """The controller gives up leading `epoch`. Raises ValueError if the replica cannot (timers)."""

    epoch: int


Event = Tick | Received | AppendRecords | TakeSnapshot | ShutDown | ResignLeadership

Handler = Callable[[Replica, RaftMessage, Any], Step]

# The handler of each request and response.
HANDLERS: dict[type[Any], Handler] = {
    messages.VoteRequest: voting.handle_vote,
    messages.VoteResponse: voting.handle_vote_response,
    messages.BeginQuorumEpochRequest: epochs.handle_begin_quorum_epoch,
    messages.BeginQuorumEpochResponse: epochs.handle_begin_quorum_epoch_response,
    messages.EndQuorumEpochRequest: epochs.handle_end_quorum_epoch,
    messages.EndQuorumEpochResponse: epochs.handle_end_quorum_epoch_response,
    messages.FetchRequest: fetching.handle_fetch,
    messages.FetchResponse: fetching.handle_fetch_response,
    messages.FetchSnapshotRequest: snapshots.handle_fetch_snapshot,
    messages.FetchSnapshotResponse: snapshots.handle_fetch_snapshot_response,
    messages.AddVoterRequest: membership.handle_add_voter,
    messages.AddVoterResponse: membership.handle_change_response,
    messages.RemoveVoterRequest: membership.handle_remove_voter,
    messages.RemoveVoterResponse: membership.handle_change_response,
    messages.UpdateVoterRequest: membership.handle_update_voter,
    messages.UpdateVoterResponse: membership.handle_update_voter_response,
    messages.DescribeQuorumRequest: features.handle_describe_quorum,
    messages.UpdateFeaturesRequest: features.handle_update_features,
    messages.ApiVersionsRequest: membership.handle_api_versions,
    messages.ApiVersionsResponse: membership.handle_api_versions_response,
}

RESPONSES = (
    messages.VoteResponse,
    messages.BeginQuorumEpochResponse,
    messages.EndQuorumEpochResponse,
    messages.FetchResponse,
    messages.FetchSnapshotResponse,
    messages.AddVoterResponse,
    messages.RemoveVoterResponse,
    messages.UpdateVoterResponse,
    messages.ApiVersionsResponse,
)


def step(replica: Replica, event: Event) -> Step:
    """The outcome of an event. Raises ProtocolFault (errors.py), OperationRefusedError (raft.replay)."""
    return _handle(replica, event).then(resign_if_asked)


def _handle(replica: Replica, event: Event) -> Step:
    match event:
        case Tick():
            return poll(replica, event.now)
        case Received():
            return _receive(replica, event.message)
        case AppendRecords():
            if not isinstance(replica.state, Leader):
                return Step(replica)
            return append(replica, (data_batch(replica, event.record_count),))
        case TakeSnapshot():
            return snapshots.take_snapshot(replica, delete_older=event.delete_older)
        case ShutDown():
            return shut_down(replica)
        case ResignLeadership():
            return request_resignation(replica, event.epoch)


def _receive(replica: Replica, message: RaftMessage) -> Step:
    handler = HANDLERS[type(message.body)]
    if not isinstance(message.body, RESPONSES):
        return handler(replica, message, message.body)
    expected = [sent for sent in replica.sent if sent.correlation_id == message.correlation_id]
    if not expected or expected[0].destination != message.source:
        return Step(replica)
    open_requests = tuple(sent for sent in replica.sent if sent.correlation_id != message.correlation_id)
    return handler(replace(replica, sent=open_requests), message, message.body)
