"""A leader and its log: it begins its epoch, appends, and advances the high watermark.

KIP-595, Fetch, check 3, and Leader Election; KIP-853, High watermark, AddVoter and RemoveVoter (completion).
The rules of the high watermark are in kraft_core.raft.watermark.
"""

from __future__ import annotations

from dataclasses import replace

from kraft_core.protocol.errors import ErrorCode, ProtocolFault
from kraft_core.protocol.fetch_validation import fetch_error, fetch_response, is_valid_fetch
from kraft_core.protocol.messages import AddVoterResponse, FetchRequest, FetchResponse, RemoveVoterResponse
from kraft_core.protocol.records import start_of_epoch, with_updated
from kraft_core.protocol.replica import (
    FetchTimes,
    Leader,
    ParkedFetch,
    PendingAdd,
    Replica,
    Step,
    answer,
    operate,
    written,
)
from kraft_core.raft.batches import Batch
from kraft_core.raft.replay import AppendAsLeader, BeginEpoch, UpdateHighWatermark
from kraft_core.raft.voters import ReplicaKey, Voter
from kraft_core.raft.watermark import LeaderProgress, begin_leading, follower_fetched, leader_reached


def leader_of(replica: Replica) -> Leader:
    """The state of a leader. Raises ProtocolFault for any other role."""
    if not isinstance(replica.state, Leader):
        raise ProtocolFault(f"{replica.key.id} is {replica.role.value}, not leader")
    return replica.state


def become_leader(replica: Replica, granting_voters: frozenset[int]) -> Step:
    """Begin the epoch with its control records; no older record commits before them."""
    volatile = with_updated(replica.voters, replica.as_voter) if replica.kraft_version == 0 else None
    state = Leader(
        replica.epoch,
        begin_leading(replica.key, replica.log.end_offset, replica.voters),
        granting_voters,
        check_quorum_deadline(replica),
        replica.now,
        volatile_voters=volatile,
    )
    begun = replace(written(replica), state=state, sent=())
    batches = start_of_epoch(begun, granting_voters)
    return operate(begun, BeginEpoch(begun.epoch)).then(append, batches)


def check_quorum_deadline(replica: Replica) -> int:
    """Now plus one and a half fetch timeouts (Kafka's LeaderState)."""
    return replica.now + replica.settings.fetch_timeout * 3 // 2


def append(replica: Replica, batches: tuple[Batch, ...]) -> Step:
    """Append, flush, update the leader's own log end, and complete the fetches that waited for records."""
    end_offset = batches[-1].end_offset
    step = operate(replica, AppendAsLeader(replica.epoch, batches))
    flushed = replace(step.replica, flushed_offset=end_offset)
    progress = leader_reached(leader_of(flushed).progress, end_offset, flushed.voters)
    return step.leaving(flushed).then(_advance, progress).then(_complete_parked_fetches, end_offset)


def complete_fetch(replica: Replica, request: FetchRequest) -> tuple[Step, FetchResponse]:
    """The response to a fetch, parked or not, by the log and the high watermark after it was counted.

    A replica with the leader's own id, another directory's or its own, is not counted.
    """
    step = Step(replica)
    if is_valid_fetch(replica, request):
        if request.replica.id == replica.key.id:
            return step, fetch_error(replica, ErrorCode.UNKNOWN_SERVER_ERROR)
        step = fetched(replica, request.replica, request.fetch_offset)
    return step, fetch_response(step.replica, request)


def fetched(replica: Replica, key: ReplicaKey, offset: int) -> Step:
    """A replica fetched from `offset`, so it holds what is below. Raises ValueError for the leader's id."""
    if key.id < 0:
        return Step(replica)
    state = leader_of(replica)
    progress = follower_fetched(state.progress, key, offset)
    timed = replace(replica, state=replace(state, fetch_times=_times_with(replica, state, key, offset)))
    return update_check_quorum(timed, key).then(_advance, progress)


def _times_with(
    replica: Replica, state: Leader, key: ReplicaKey, offset: int
) -> tuple[tuple[ReplicaKey, FetchTimes], ...]:
    """Caught up now if it fetches at the log end; as of the previous fetch if at the log end of then."""
    known = dict(state.fetch_times)
    before, end_offset = known.get(key, FetchTimes()), replica.log.end_offset
    caught_up = before.last_caught_up_at
    if offset >= end_offset:
        caught_up = max(replica.now, caught_up)
    elif before.leader_end_offset >= 0 and offset >= before.leader_end_offset:
        caught_up = max(before.last_fetch_at, caught_up)
    known[key] = FetchTimes(max(replica.now, before.last_fetch_at), caught_up, end_offset)
    return tuple(known.items())


def times_of(state: Leader, replica: ReplicaKey) -> FetchTimes:
    """When a replica fetched; a voter without a directory id: when any directory of its id did last."""
    known = (times for key, times in state.fetch_times if Voter(replica).matches(key))
    return max(known, key=lambda times: times.last_fetch_at, default=FetchTimes())


def update_check_quorum(replica: Replica, key: ReplicaKey) -> Step:
    """A replica fetched. Once a majority of the voters has, the check-quorum deadline is extended.

    Raises ProtocolFault for the leader's own id: FetchSnapshot and UpdateRaftVoter do not check it before.
    """
    if key.id == replica.key.id:
        raise ProtocolFault(f"{key} fetches from {replica.key}, which has its id")
    state = leader_of(replica)
    voter = replica.voters.voter_for(key)
    fetched_voters = state.fetched_voters | ({key.id} if voter else set[int]())
    if not majority_has_fetched(replica, fetched_voters):
        return Step(replace(replica, state=replace(state, fetched_voters=fetched_voters)))
    deadline = check_quorum_deadline(replica)
    state = replace(state, fetched_voters=frozenset[int](), check_quorum_deadline=deadline)
    return Step(replace(replica, state=state))


def majority_has_fetched(replica: Replica, fetched_voters: frozenset[int]) -> bool:
    """Check-quorum: a leader counts itself only if it is a voter (Kafka's LeaderState)."""
    needed = replica.voters.majority - (1 if replica.is_voter else 0)
    return len(fetched_voters) >= needed


def acknowledged(replica: Replica, voter_id: int) -> Replica:
    """A voter answered BeginQuorumEpoch without an error."""
    state = leader_of(replica)
    voters = tuple(
        replace(voter, has_acknowledged=True) if voter.key.id == voter_id else voter
        for voter in state.progress.voters
    )
    return replace(replica, state=replace(state, progress=replace(state.progress, voters=voters)))


def _advance(replica: Replica, progress: LeaderProgress) -> Step:
    """Store the replicas' progress; a higher watermark completes the requests that waited for it."""
    state = leader_of(replica)
    step = Step(replace(replica, state=replace(state, progress=progress)))
    watermark = progress.high_watermark
    if watermark is None or watermark == state.progress.high_watermark:
        return step
    step = step.then(operate, UpdateHighWatermark(watermark))
    return (
        step.then(_complete_change, watermark)
        .then(_ask_to_resign, watermark)
        .then(_complete_parked_fetches, None)
    )


def _complete_change(replica: Replica, high_watermark: int) -> Step:
    """Answer the requester once the VotersRecord has committed."""
    state = leader_of(replica)
    pending = state.pending
    if pending is None or pending.offset is None or pending.offset >= high_watermark:
        return Step(replica)
    step = Step(replace(replica, state=replace(state, pending=None)))
    if isinstance(pending, PendingAdd):
        if pending.is_answered:
            return step
        response = AddVoterResponse(ErrorCode.NONE)
        return step.then(answer, pending.requester, pending.correlation_id, response)
    response = RemoveVoterResponse(ErrorCode.NONE)
    return step.then(answer, pending.requester, pending.correlation_id, response)


def _ask_to_resign(replica: Replica, high_watermark: int) -> Step:
    """KIP-853, RemoveVoter: a leader whose own removal has committed resigns.

    Kafka's code does not if the request timed out before the commit; the leader then keeps leading.
    """
    if not own_removal_committed(replica, high_watermark):
        return Step(replica)
    return Step(replace(replica, state=replace(leader_of(replica), resign_requested=True)))


def own_removal_committed(replica: Replica, high_watermark: int) -> bool:
    """Whether a committed VotersRecord leaves this replica out of the voter set."""
    offset = replica.voters_offset
    return not replica.is_voter and offset is not None and offset < high_watermark


def _complete_parked_fetches(replica: Replica, end_offset: int | None) -> Step:
    """Answer the parked fetches that wait below `end_offset`, or all of them (None)."""
    completed = [fetch for fetch in replica.parked if _is_below(fetch, end_offset)]
    parked = tuple(fetch for fetch in replica.parked if not _is_below(fetch, end_offset))
    step = Step(replace(replica, parked=parked))
    for fetch in completed:
        step = step.then(_answer_parked, fetch)
    return step


def _answer_parked(replica: Replica, parked: ParkedFetch) -> Step:
    """It counts as a fetch again, made now."""
    step, response = complete_fetch(replica, parked.request)
    return step.then(answer, parked.requester, parked.correlation_id, response)


def _is_below(fetch: ParkedFetch, end_offset: int | None) -> bool:
    return end_offset is None or fetch.request.fetch_offset < end_offset
