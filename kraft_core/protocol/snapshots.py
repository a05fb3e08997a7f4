"""FetchSnapshot, and a replica's own snapshots.

KIP-630, FetchSnapshot; KIP-853, Snapshots (voters and kraft.version in them). A slice carries the
snapshot's content as a value instead of its bytes; positions count bytes.
"""

from __future__ import annotations

from dataclasses import astuple, replace

from kraft_core.protocol.checks import common_response, followed, has_cluster_id, leader_request_error
from kraft_core.protocol.errors import ErrorCode, ProtocolFault
from kraft_core.protocol.fetch_validation import BOOTSTRAP_SNAPSHOT
from kraft_core.protocol.fetching import learn_high_watermark, reset_fetch_timeout
from kraft_core.protocol.leading import update_check_quorum
from kraft_core.protocol.messages import FetchSnapshotRequest, FetchSnapshotResponse, RaftMessage
from kraft_core.protocol.replica import Follower, Replica, Step, operate, respond, send
from kraft_core.raft.emulation import snapshot_kafka_would_write
from kraft_core.raft.log import Snapshot
from kraft_core.raft.replay import CreateSnapshot, DeleteBefore, InstallSnapshot

SNAPSHOT_BYTES = 400


def handle_fetch_snapshot(replica: Replica, message: RaftMessage, request: FetchSnapshotRequest) -> Step:
    """A slice of a snapshot that this leader holds; never of the bootstrap checkpoint."""
    if not has_cluster_id(replica, request.cluster_id):
        return respond(replica, message, FetchSnapshotResponse(ErrorCode.INCONSISTENT_CLUSTER_ID))
    error = leader_request_error(replica, request.current_leader_epoch)
    if error is not ErrorCode.NONE:
        return respond(replica, message, FetchSnapshotResponse(error, replica.leader))
    held = _held(replica, request)
    if held is None or held.id == BOOTSTRAP_SNAPSHOT:
        response = FetchSnapshotResponse(ErrorCode.SNAPSHOT_NOT_FOUND, replica.leader)
        return respond(replica, message, response)
    size_bytes = dict(replica.snapshot_sizes).get(held.id, SNAPSHOT_BYTES)
    if not 0 <= request.position < size_bytes:
        response = FetchSnapshotResponse(ErrorCode.POSITION_OUT_OF_RANGE, replica.leader)
        return respond(replica, message, response)
    slice_bytes = min(request.max_bytes, size_bytes - request.position)
    response = FetchSnapshotResponse(
        ErrorCode.NONE, replica.leader, held.id, size_bytes, request.position, slice_bytes, held
    )
    return update_check_quorum(replica, request.replica).then(respond, message, response)


def _held(replica: Replica, request: FetchSnapshotRequest) -> Snapshot | None:
    return next((held for held in replica.log.snapshots if held.id == request.snapshot_id), None)


def fetch_snapshot(replica: Replica, state: Follower) -> Step:
    """Request the next slice from the leader."""
    if state.fetching_snapshot is None:
        return Step(replica)
    request = FetchSnapshotRequest(
        replica.cluster_id,
        replica.key,
        replica.epoch,
        state.fetching_snapshot,
        state.fetched_bytes,
        replica.settings.max_snapshot_fetch_bytes,
    )
    return send(replica, state.leader_id, request)


def handle_fetch_snapshot_response(replica: Replica, _: RaftMessage, response: FetchSnapshotResponse) -> Step:
    """Add the slice. After the last one the log restarts at the end of the snapshot."""
    step, done = common_response(replica, response.error, response.leader)
    state = followed(step.replica)
    if done or state is None:
        return step
    if _leader_has_no_snapshot(response):
        return step.then(_stop_snapshot_fetch).then(reset_fetch_timeout)
    if response.error is not ErrorCode.NONE or response.snapshot is None:
        return step
    if (state.fetching_snapshot, state.fetched_bytes) != (response.snapshot_id, response.position):
        raise ProtocolFault(f"{replica.key.id} got a slice of {response.snapshot_id} that it did not ask for")
    return step.then(_take_slice, state, response.snapshot, response).then(reset_fetch_timeout)


def _leader_has_no_snapshot(response: FetchSnapshotResponse) -> bool:
    """A negative offset or epoch is not a snapshot's, whatever the error; an error may come without an id."""
    if response.snapshot_id is None:
        return response.error in (ErrorCode.NONE, ErrorCode.SNAPSHOT_NOT_FOUND)
    return response.error is ErrorCode.SNAPSHOT_NOT_FOUND or min(astuple(response.snapshot_id)) < 0


def _stop_snapshot_fetch(replica: Replica) -> Step:
    """The leader no longer has the snapshot: the next Fetch response names another."""
    state = followed(replica)
    if state is None:
        return Step(replica)
    return Step(replace(replica, state=replace(state, fetching_snapshot=None, fetched_bytes=0)))


def _take_slice(
    replica: Replica, state: Follower, snapshot: Snapshot, response: FetchSnapshotResponse
) -> Step:
    fetched_bytes = state.fetched_bytes + response.slice_bytes
    if fetched_bytes < response.size_bytes:
        return Step(replace(replica, state=replace(state, fetched_bytes=fetched_bytes)))
    sizes = (*replica.snapshot_sizes, (snapshot.id, response.size_bytes))
    step = Step(replace(replica, snapshot_sizes=sizes)).then(_stop_snapshot_fetch)
    step = step.then(operate, InstallSnapshot(snapshot))
    if step.replica.log.end_offset != snapshot.end_offset:
        raise ProtocolFault(f"{replica.key.id} fetched {snapshot.id}, which is not ahead of its log")
    step = step.leaving(replace(step.replica, flushed_offset=snapshot.end_offset))
    return step.then(learn_high_watermark, step.replica.log.high_watermark)


def take_snapshot(replica: Replica, *, delete_older: bool) -> Step:
    """Snapshot what is committed, with the voters that this replica uses; then delete the log below.

    Does nothing if the newest snapshot ends there already, or the high watermark is unknown.
    """
    end_offset = replica.log.known_high_watermark
    latest = replica.log.latest_snapshot
    if not end_offset or (latest and latest.end_offset >= end_offset):
        return Step(replica)
    batch = replica.log.batches.holding(end_offset - 1)
    if batch is None or end_offset > replica.store.reader.next_offset:
        return Step(replica)
    snapshot = snapshot_kafka_would_write(replica.store, end_offset, batch.leader_epoch)
    sizes = (*replica.snapshot_sizes, (snapshot.id, SNAPSHOT_BYTES))
    step = operate(replace(replica, snapshot_sizes=sizes), CreateSnapshot(snapshot))
    if delete_older:
        step = step.then(operate, DeleteBefore(snapshot.end_offset, snapshot.leader_epoch))
    return step
