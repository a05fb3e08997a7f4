"""DescribeQuorum, and UpdateFeatures for kraft.version.

KIP-595, DescribeQuorum; KIP-853, DescribeQuorum (version 2, directory ids), UpdateFeatures. In Kafka's code
DescribeQuorum has no list of committed voters; the upgrade takes effect with its append, committed or not,
and omits the VotersRecord if the static set equals what the voters reported to the leader.
"""

from __future__ import annotations

from dataclasses import replace

from kraft_core.protocol.errors import ErrorCode
from kraft_core.protocol.leading import append, leader_of, times_of
from kraft_core.protocol.messages import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    RaftMessage,
    ReplicaStatus,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from kraft_core.protocol.records import control_batch
from kraft_core.protocol.replica import Leader, Replica, Step, respond
from kraft_core.raft.batches import KRaftVersion
from kraft_core.raft.voters import ReplicaKey, VoterSet
from kraft_core.raft.watermark import ReplicaProgress

_FEATURE = "kraft.version"


def handle_describe_quorum(replica: Replica, message: RaftMessage, _: DescribeQuorumRequest) -> Step:
    """The leader's view of voters and active observers. Any other replica answers NOT_LEADER_OR_FOLLOWER."""
    state = replica.state
    if not isinstance(state, Leader):
        error = ErrorCode.NOT_LEADER_OR_FOLLOWER
        return respond(replica, message, DescribeQuorumResponse(error, replica.leader))
    watermark = state.progress.high_watermark
    response = DescribeQuorumResponse(
        ErrorCode.NONE,
        replica.leader,
        -1 if watermark is None else watermark,
        tuple(_status(replica, state, entry) for entry in state.progress.voters),
        tuple(
            _status(replica, state, entry)
            for entry in state.progress.observers
            if _is_active(replica, state, entry.key)
        ),
    )
    return respond(replica, message, response)


def _is_active(replica: Replica, state: Leader, key: ReplicaKey) -> bool:
    """An observer that has not fetched for five minutes is left out; the leader itself is not."""
    last = times_of(state, key).last_fetch_at
    return key == replica.key or last >= replica.now - replica.settings.observer_session


def _status(replica: Replica, state: Leader, entry: ReplicaProgress) -> ReplicaStatus:
    """The leader counts itself as caught up now."""
    end_offset = -1 if entry.end_offset is None else entry.end_offset
    if entry.key.id == replica.key.id:
        return ReplicaStatus(entry.key, end_offset, replica.now, replica.now)
    times = times_of(state, entry.key)
    return ReplicaStatus(entry.key, end_offset, times.last_fetch_at, times.last_caught_up_at)


def handle_update_features(replica: Replica, message: RaftMessage, request: UpdateFeaturesRequest) -> Step:
    """Raise kraft.version to 1; the current level is not a change, a lower one is refused."""
    error, text = _upgrade_error(replica, request.kraft_version)
    step = Step(replica)
    unchanged = request.kraft_version == replica.kraft_version or request.validate_only
    if error is ErrorCode.NONE and not unchanged:
        step = _upgrade(replica, request.kraft_version)
    return step.then(respond, message, UpdateFeaturesResponse(error, text))


def _upgrade_error(replica: Replica, level: int) -> tuple[ErrorCode, str | None]:
    if not isinstance(replica.state, Leader):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER, None
    current = replica.kraft_version
    if level == current:
        return ErrorCode.NONE, None
    invalid = f"Invalid upgrade of {_FEATURE} from version {current} to {level}"
    if is_downgrade(current, level):
        return ErrorCode.INVALID_UPDATE_VERSION, f"{invalid} because the new version is a downgrade"
    voters = leader_of(replica).volatile_voters
    if voters is None:
        return ErrorCode.INVALID_UPDATE_VERSION, invalid
    if not all_voters_support(voters, level):
        text = f"Invalid upgrade of {_FEATURE} to {level} because not all of the voters support it"
        return ErrorCode.INVALID_UPDATE_VERSION, text
    if any(voter.key.directory_id is None for voter in voters):
        return ErrorCode.INVALID_UPDATE_VERSION, invalid
    return ErrorCode.NONE, None


def is_downgrade(current: int, level: int) -> bool:
    """kraft.version is never lowered (KIP-853, UpdateFeatures)."""
    return level < current


def all_voters_support(voters: VoterSet, level: int) -> bool:
    """Whether every voter's supported kraft.versions include `level` (KIP-853, UpdateFeatures)."""
    return all(voter.min_supported_version <= level <= voter.max_supported_version for voter in voters)


def _upgrade(replica: Replica, level: int) -> Step:
    state = leader_of(replica)
    voters = state.volatile_voters
    values: list[KRaftVersion | VoterSet] = [KRaftVersion(level)]
    if voters is not None and voters != replica.voters:
        values.append(voters)
    upgraded = replace(replica, state=replace(state, volatile_voters=None))
    return append(upgraded, (control_batch(upgraded, values),))
