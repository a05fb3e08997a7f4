"""AddRaftVoter, RemoveRaftVoter and UpdateRaftVoter: one change of the voters at a time.

KIP-853, AddVoter, RemoveVoter, UpdateVoter. In Kafka's code, unlike the text: the leader does not wait, a
check that fails for now is REQUEST_TIMED_OUT at once; a voter's id alone makes it a duplicate; "caught up"
means once, with a fetch within the last hour; the last voter cannot be removed (VOTER_NOT_FOUND);
UpdateRaftVoter is answered at the append. With kraft.version 0 the leader keeps an update in memory only, for
the upgrade.
"""

from __future__ import annotations

from dataclasses import replace

from kraft_core.protocol import kafka_text
from kraft_core.protocol.checks import common_response, followed, has_cluster_id, leader_request_error
from kraft_core.protocol.errors import ErrorCode
from kraft_core.protocol.fetching import reset_fetch_timeout
from kraft_core.protocol.leading import append, leader_of, update_check_quorum
from kraft_core.protocol.messages import (
    AddVoterRequest,
    AddVoterResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    Endpoints,
    RaftMessage,
    RemoveVoterRequest,
    RemoveVoterResponse,
    UpdateVoterRequest,
    UpdateVoterResponse,
)
from kraft_core.protocol.records import control_batch, with_updated
from kraft_core.protocol.replica import (
    FetchTimes,
    PendingAdd,
    PendingRemove,
    Replica,
    Step,
    answer,
    is_in_flight,
    respond,
    send,
)
from kraft_core.protocol.transitions import reset_update_timer
from kraft_core.raft.voters import ReplicaKey, Voter, VoterSet

TIMED_OUT = "The request timed out."
_WAITING = "Request timed out waiting for"


def handle_add_voter(replica: Replica, message: RaftMessage, request: AddVoterRequest) -> Step:
    """Check, then request the new voter's kraft.versions; its response decides.

    In Kafka's code, unlike the text, the leader does not wait for a connection that is in use.
    """
    error, text = _cluster_or_leader_error(replica, request.cluster_id)
    if error is ErrorCode.NONE:
        error, text = _add_error(replica, request)
    if error is not ErrorCode.NONE:
        return respond(replica, message, AddVoterResponse(error, text))
    if is_in_flight(replica, request.voter.id):
        text = f"New voter {kafka_text.replica_key(request.voter)} is not ready to receive requests"
        return respond(replica, message, AddVoterResponse(ErrorCode.REQUEST_TIMED_OUT, text))
    pending = PendingAdd(
        message.source,
        message.correlation_id,
        request.voter,
        request.endpoints,
        request.ack_when_committed,
        replica.now + replica.settings.request_timeout,
    )
    asking = replace(replica, state=replace(leader_of(replica), pending=pending))
    return send(asking, request.voter.id, ApiVersionsRequest())


def _cluster_or_leader_error(replica: Replica, cluster_id: str | None) -> tuple[ErrorCode, str | None]:
    if not has_cluster_id(replica, cluster_id):
        text = f'The given id "{cluster_id}" doesn\'t match the cluster id "{replica.cluster_id}"'
        return ErrorCode.INCONSISTENT_CLUSTER_ID, text
    error = leader_request_error(replica, replica.epoch)
    return error, None if error is ErrorCode.NONE else ""


def _is_valid(voter: ReplicaKey) -> bool:
    return voter.id >= 0 and voter.directory_id is not None


def _has_default_listener(replica: Replica, endpoints: Endpoints) -> bool:
    return any(end.name == replica.endpoints[0].name for end in endpoints)


def _add_error(replica: Replica, request: AddVoterRequest) -> tuple[ErrorCode, str | None]:
    if not _is_valid(request.voter):
        return ErrorCode.INVALID_REQUEST, "Add voter request didn't include a valid voter"
    if not _has_default_listener(replica, request.endpoints):
        given, listener = kafka_text.endpoints(request.endpoints), replica.endpoints[0].name
        text = f"Add voter request didn't include the endpoint ({given}) for the default listener"
        return ErrorCode.INVALID_REQUEST, f"{text} ListenerName({listener})"
    error, text = change_error(replica, "adding")
    if error is ErrorCode.NONE and request.voter.id in replica.voters.ids:
        key, keys = kafka_text.replica_key(request.voter), _voter_keys(replica)
        text = f"The voter id for {key} is already part of the set of voters {keys}."
        return ErrorCode.DUPLICATE_VOTER, text
    return error, text


def change_error(replica: Replica, doing: str) -> tuple[ErrorCode, str | None]:
    """Whether the voters may change now, else Kafka's error and its text.

    KIP-853, AddVoter, steps 1 and 2: no change is pending or uncommitted, the leader has committed in its own
    epoch (it knows a high watermark), and kraft.version is at least 1.
    """
    leader = leader_of(replica)
    watermark = leader.progress.high_watermark
    if leader.pending is not None:
        return ErrorCode.REQUEST_TIMED_OUT, f"{_WAITING} leader to handle previous voter change request"
    if watermark is None:
        text = f"{_WAITING} leader to establish HWM and fence previous voter changes"
        return ErrorCode.REQUEST_TIMED_OUT, text
    if replica.kraft_version == 0:
        text = f"Cluster doesn't support {doing} voter because the kraft.version feature is 0"
        return ErrorCode.UNSUPPORTED_VERSION, text
    if not voters_are_committed(replica, watermark):
        offset = replica.voters_offset
        at = "Optional.empty" if offset is None else f"Optional[{offset}]"
        text = f"{_WAITING} voters to commit the latest voter change at {at} with HWM {watermark}"
        return ErrorCode.REQUEST_TIMED_OUT, text
    return ErrorCode.NONE, None


def voters_are_committed(replica: Replica, high_watermark: int) -> bool:
    """Whether the voter set in force was read from the log and has committed; a static set has not."""
    return replica.voters_offset is not None and replica.voters_offset < high_watermark


def _voter_keys(replica: Replica) -> str:
    return kafka_text.replica_keys(voter.key for voter in replica.voters)


def handle_api_versions(replica: Replica, message: RaftMessage, _: ApiVersionsRequest) -> Step:
    """The kraft.versions that this replica supports."""
    low, high = replica.min_supported_version, replica.max_supported_version
    return respond(replica, message, ApiVersionsResponse(ErrorCode.NONE, low, high))


def handle_api_versions_response(
    replica: Replica, message: RaftMessage, response: ApiVersionsResponse
) -> Step:
    """Append the set with the new voter if it supports the finalized version and is caught up."""
    pending = _expected_add(replica, message.source)
    if pending is None:
        return Step(replica)
    key, level = kafka_text.replica_key(pending.voter), replica.kraft_version
    if response.error is not ErrorCode.NONE:
        text = f"Aborted add voter operation for since API_VERSIONS returned an error {response.error.name}"
        return _abort_add(replica, pending, ErrorCode.REQUEST_TIMED_OUT, text)
    low, high = response.min_supported_version, response.max_supported_version
    if not low <= level <= high:
        text = f"Aborted add voter operation for {key} since the kraft.version range (min: {low}, max: {high}"
        text += f" doesn't support the finalized version {level}"
        return _abort_add(replica, pending, ErrorCode.INVALID_REQUEST, text)
    if not is_caught_up(replica, pending.voter):
        text = f"Aborted add voter operation for {key} since it is lagging behind"
        return _abort_add(replica, pending, ErrorCode.REQUEST_TIMED_OUT, text)
    return _append_added(replica, pending, Voter(pending.voter, pending.endpoints, low, high))


def _expected_add(replica: Replica, source: int) -> PendingAdd | None:
    state = replica.state
    pending = getattr(state, "pending", None)
    if not isinstance(pending, PendingAdd) or pending.offset is not None or pending.voter.id != source:
        return None
    return pending


def is_caught_up(replica: Replica, key: ReplicaKey) -> bool:
    """Kafka's isReplicaCaughtUp: the observer reached the log end once, and fetched within the last hour."""
    times = dict(leader_of(replica).fetch_times).get(key, FetchTimes())
    if any(voter.key == key for voter in leader_of(replica).progress.voters):
        return False
    recent = times.last_fetch_at > replica.now - replica.settings.caught_up_for
    return times.last_caught_up_at > 0 and times.last_fetch_at > 0 and recent


def _abort_add(replica: Replica, pending: PendingAdd, error: ErrorCode, text: str | None) -> Step:
    freed = replace(replica, state=replace(leader_of(replica), pending=None))
    return answer(freed, pending.requester, pending.correlation_id, AddVoterResponse(error, text))


def _append_added(replica: Replica, pending: PendingAdd, voter: Voter) -> Step:
    step = Step(replica)
    if not pending.ack_when_committed:
        response = AddVoterResponse(ErrorCode.NONE)
        step = step.then(answer, pending.requester, pending.correlation_id, response)
    waiting = replace(pending, offset=replica.log.end_offset, is_answered=not pending.ack_when_committed)
    marked = replace(step.replica, state=replace(leader_of(replica), pending=waiting))
    return step.leaving(marked).then(_append_voters, VoterSet.of((*replica.voters, voter)))


def _append_voters(replica: Replica, voters: VoterSet) -> Step:
    return append(replica, (control_batch(replica, [voters]),))


def handle_remove_voter(replica: Replica, message: RaftMessage, request: RemoveVoterRequest) -> Step:
    """Append the set without the voter; the response follows the commit. The leader may remove itself."""
    error, text = _cluster_or_leader_error(replica, request.cluster_id)
    if error is ErrorCode.NONE and not _is_valid(request.voter):
        error, text = ErrorCode.INVALID_REQUEST, "Remove voter request didn't include a valid voter"
    if error is ErrorCode.NONE:
        error, text = change_error(replica, "removing")
    kept = tuple(voter for voter in replica.voters if voter.key != request.voter)
    if error is ErrorCode.NONE and (len(kept) == len(replica.voters) or not kept):
        key = kafka_text.replica_key(request.voter)
        text = f"Cannot remove voter {key} from the set of voters {_voter_keys(replica)}"
        error = ErrorCode.VOTER_NOT_FOUND
    if error is not ErrorCode.NONE:
        return respond(replica, message, RemoveVoterResponse(error, text))
    deadline = replica.now + replica.settings.request_timeout
    pending = PendingRemove(message.source, message.correlation_id, replica.log.end_offset, deadline)
    waiting = replace(replica, state=replace(leader_of(replica), pending=pending))
    return _append_voters(waiting, VoterSet(kept))


def expire_change(replica: Replica) -> Step:
    """Answer REQUEST_TIMED_OUT at the deadline. An appended VotersRecord stays, and may commit."""
    pending = leader_of(replica).pending
    if pending is None or replica.now < pending.deadline:
        return Step(replica)
    if isinstance(pending, PendingAdd) and not pending.is_answered:
        return _abort_add(replica, pending, ErrorCode.REQUEST_TIMED_OUT, TIMED_OUT)
    freed = replace(replica, state=replace(leader_of(replica), pending=None))
    if isinstance(pending, PendingAdd):
        return Step(freed)
    response = RemoveVoterResponse(ErrorCode.REQUEST_TIMED_OUT, TIMED_OUT)
    return answer(freed, pending.requester, pending.correlation_id, response)


def handle_update_voter(replica: Replica, message: RaftMessage, request: UpdateVoterRequest) -> Step:
    """Append the set with the voter's new endpoints or versions, and answer."""
    error = ErrorCode.INCONSISTENT_CLUSTER_ID
    if has_cluster_id(replica, request.cluster_id):
        error = leader_request_error(replica, request.current_leader_epoch)
    if error is ErrorCode.NONE:
        error = _update_error(replica, request)
    step = Step(replica)
    if error is ErrorCode.NONE:
        step = _store_update(replica, request).then(update_check_quorum, request.voter)
    return step.then(respond, message, UpdateVoterResponse(error, replica.leader))


def _update_error(replica: Replica, request: UpdateVoterRequest) -> ErrorCode:
    low, high = request.min_supported_version, request.max_supported_version
    if not _is_valid(request.voter) or not _has_default_listener(replica, request.endpoints):
        return ErrorCode.INVALID_REQUEST
    if low < 0 or high < low:
        return ErrorCode.INVALID_REQUEST
    error, _ = change_error(replica, "updating")
    if error not in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION):
        return error
    if not low <= replica.kraft_version <= high:
        return ErrorCode.INVALID_REQUEST
    return ErrorCode.NONE if _is_updatable(replica, request.voter) else ErrorCode.VOTER_NOT_FOUND


def _is_updatable(replica: Replica, key: ReplicaKey) -> bool:
    """With kraft.version 0 the voters' directory ids are not known."""
    if replica.kraft_version == 0:
        return key.id in replica.voters.ids
    return replica.voters.voter_for(key) is not None


def _store_update(replica: Replica, request: UpdateVoterRequest) -> Step:
    low, high = request.min_supported_version, request.max_supported_version
    voter = Voter(request.voter, request.endpoints, low, high)
    state = leader_of(replica)
    if replica.kraft_version > 0:
        return _append_voters(replica, with_updated(replica.voters, voter))
    volatile = with_updated(state.volatile_voters or replica.voters, voter)
    return Step(replace(replica, state=replace(state, volatile_voters=volatile)))


def handle_update_voter_response(replica: Replica, _: RaftMessage, response: UpdateVoterResponse) -> Step:
    """The leader has the voter's data now; an error is retried after the update period."""
    step, done = common_response(replica, response.error, response.leader)
    state = followed(step.replica)
    is_final = response.error in (ErrorCode.NONE, ErrorCode.UNSUPPORTED_VERSION)
    if done or state is None or not is_final:
        return step
    updated = replace(step.replica, state=replace(state, has_updated_leader=True))
    return step.leaving(updated).then(reset_fetch_timeout)


def handle_change_response(
    replica: Replica, _: RaftMessage, response: AddVoterResponse | RemoveVoterResponse
) -> Step:
    """The response to automatic joining: the replica checks the voter set again after the update period.

    The period is not prolonged by an error that says nothing of the voter set.
    """
    said = ErrorCode.DUPLICATE_VOTER if isinstance(response, AddVoterResponse) else ErrorCode.VOTER_NOT_FOUND
    if response.error not in (ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, said):
        return Step(replica)
    return Step(reset_update_timer(replica))
