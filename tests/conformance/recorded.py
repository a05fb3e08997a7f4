"""What the record of a quorum says, and what of a replica is compared with it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, takewhile
from typing import Any

from kraft_core.protocol import messages
from kraft_core.protocol.replica import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Replica,
    Resigned,
    Unattached,
)
from kraft_core.raft import replay
from kraft_core.raft.batches import Batch, LeaderChange
from kraft_core.raft.epochs import EpochEnd
from kraft_core.raft.log import ReplicaLog
from kraft_core.raft.voters import Voter
from tests.conformance.trace import Line


def cases(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """The lines of each case up to the one that aborted it."""
    for _, of_case in groupby(lines, key=lambda line: line["case"]):
        yield list(takewhile(lambda line: line.get("ev") != "aborted", of_case))


def granting_voters(lines: Iterable[Line]) -> dict[int, list[int]]:
    """By epoch, from LEADER_CHANGE, which the leader may write in a later event."""
    return {
        batch["e"]: [voter["voterId"] for voter in record["d"]["grantingVoters"]]
        for line in lines
        for change in line.get("nodes", {}).values()
        for operation in change.get("ops", ())
        for batch in operation.get("batches", ())
        for record in batch.get("c", ())
        if record["t"] == "LEADER_CHANGE"
    }


def leads(change: Line) -> bool:
    return any(operation["op"] == "leader_epoch" for operation in change.get("ops", ()))


def alone(line: Line, nodes: dict[str, Line], node: str) -> Line:
    """The line of one node, without what was done once already."""
    return {key: value for key, value in line.items() if key != "new_directory"} | {
        "nodes": {node: nodes[node]}
    }


def is_at(replica: Replica, target: Line) -> bool:
    """Whether it is in the recorded role, epoch and vote, with the recorded leader."""
    found = (replica.role.value, replica.epoch, replica.leader.leader_id, voted_id(replica))
    return found == (target["role"], target["epoch"], target.get("leader"), target.get("voted"))


def is_all_of(replica: Replica, target: Line) -> bool:
    """The recorded high watermark included."""
    return is_at(replica, target) and replica.log.known_high_watermark == target["hwm"]


def voted_id(replica: Replica) -> int | None:
    return replica.voted.id if replica.voted else None


def deadline(state: Any) -> int:
    """When the state's own patience ends."""
    match state:
        case Follower():
            return state.fetch_deadline
        case Leader():
            return state.check_quorum_deadline
        case Unattached() | Prospective() | Candidate() | Resigned():
            return state.election_deadline
    raise AssertionError(state)


def known_high_watermark(replica: Replica, operation: replay.Operation) -> int | None:
    """What the replica knows of the high watermark after an operation."""
    match operation:
        case replay.UpdateHighWatermark():
            return operation.offset
        case replay.BeginEpoch() | replay.Restart():
            return None
        case replay.InstallSnapshot():
            return operation.snapshot.end_offset
        case _:
            return replica.log.known_high_watermark


def epoch_below(log: ReplicaLog, offset: int) -> int:
    batch = log.batches.holding(offset - 1)
    if batch is not None:
        return batch.leader_epoch
    return next((one.leader_epoch for one in log.snapshots if one.end_offset == offset), log.last_epoch)


def update_request(replica: Replica, voter: Voter) -> messages.UpdateVoterRequest:
    low, high = voter.min_supported_version, voter.max_supported_version
    return messages.UpdateVoterRequest(
        replica.cluster_id, replica.epoch, voter.key, voter.endpoints, low, high
    )


def comparable(operation: replay.Operation | None, log: ReplicaLog | None = None) -> Any:
    """An operation as both sides must agree on it: batches by bounds and control records, not by bytes."""
    match operation:
        case replay.AppendAsLeader() | replay.AppendAsFollower():
            batches = [(b.base_offset, b.last_offset, b.leader_epoch, _values(b)) for b in operation.batches]
            return type(operation).__name__, operation.leader_epoch, batches
        case replay.TruncateToDivergence() if log is not None:
            end = EpochEnd(operation.end_offset, operation.leader_epoch)
            return "TruncateTo", log.truncation_offset(end)
        case replay.TruncateTo():
            return "TruncateTo", operation.offset
        case _:
            return operation


def _values(batch: Batch) -> list[Any]:
    """Control records; the voters that granted as a set, whatever their order."""
    return [(record.offset, _sorted(record.value)) for record in batch.control_records]


def _sorted(value: Any) -> Any:
    if isinstance(value, LeaderChange):
        return value.leader_id, {key.id for key in value.voters}, {key.id for key in value.granting_voters}
    return value
