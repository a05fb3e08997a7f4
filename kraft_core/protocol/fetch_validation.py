"""A leader's validation of a Fetch against its log, and the response.

KIP-595, Fetch (diverging epoch); KIP-630 (snapshot id). In Kafka's code, unlike the texts, a replica with an
empty log is directed to the newest snapshot even if the log still begins at 0, but never to the bootstrap
checkpoint 0-0.
"""

from __future__ import annotations

from kraft_core.protocol.checks import leader_request_error
from kraft_core.protocol.errors import ErrorCode
from kraft_core.protocol.messages import FetchRequest, FetchResponse
from kraft_core.protocol.replica import Leader, Replica
from kraft_core.raft.batches import Batch
from kraft_core.raft.epochs import EpochEnd
from kraft_core.raft.log import Validity

BOOTSTRAP_SNAPSHOT = EpochEnd(0, 0)


def fetch_error(replica: Replica, error: ErrorCode) -> FetchResponse:
    return FetchResponse(error, replica.leader, log_start_offset=replica.log.start_offset)


def fetch_validity(replica: Replica, request: FetchRequest) -> tuple[Validity, EpochEnd]:
    """Whether the sender's log is a prefix of this one, else where to truncate or which snapshot to fetch."""
    latest = replica.log.latest_snapshot
    if request.fetch_offset == 0 and latest and latest.id != BOOTSTRAP_SNAPSHOT:
        return Validity.SNAPSHOT, latest.id
    return replica.log.validate(request.fetch_offset, request.last_fetched_epoch)


def is_valid_fetch(replica: Replica, request: FetchRequest) -> bool:
    """Whether this replica leads the sender's epoch, and its log continues the sender's."""
    if leader_request_error(replica, request.current_leader_epoch) is not ErrorCode.NONE:
        return False
    return fetch_validity(replica, request)[0] is Validity.VALID


def fetch_response(replica: Replica, request: FetchRequest) -> FetchResponse:
    """The response to a fetch, parked or not, by the current log and high watermark."""
    error = leader_request_error(replica, request.current_leader_epoch)
    if error is not ErrorCode.NONE or not isinstance(replica.state, Leader):
        return fetch_error(replica, error)
    validity, end = fetch_validity(replica, request)
    watermark = replica.state.progress.high_watermark
    return FetchResponse(
        ErrorCode.NONE,
        replica.leader,
        -1 if watermark is None else watermark,
        replica.log.start_offset,
        _batches_from(replica, request) if validity is Validity.VALID else (),
        end if validity is Validity.DIVERGING else None,
        end if validity is Validity.SNAPSHOT else None,
    )


def _batches_from(replica: Replica, request: FetchRequest) -> tuple[Batch, ...]:
    """Whole batches up to the requested size; the first batch whatever its size."""
    limit = min(request.max_bytes, replica.settings.max_fetch_bytes)
    taken: list[Batch] = []
    size_bytes = 0
    for batch in replica.log.batches.starting_at(request.fetch_offset):
        size_bytes += batch.size_bytes
        if taken and size_bytes > limit:
            break
        taken.append(batch)
    return tuple(taken)


def is_worth_sending(response: FetchResponse, request: FetchRequest) -> bool:
    """Whether to answer at once rather than park the fetch (KIP-1166: also for a higher high watermark)."""
    return (
        response.error is not ErrorCode.NONE
        or bool(response.batches)
        or request.max_wait == 0
        or response.diverging_epoch is not None
        or response.snapshot_id is not None
        or request.high_watermark < response.high_watermark
    )
