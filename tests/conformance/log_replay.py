"""log-replay: one KafkaRaftLog on disk with its control record state machine, operation by operation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from kraft_core.raft import replay
from kraft_core.raft.emulation import (
    ControlReaderError,
    EmulatedReplica,
    emulate,
    snapshot_kafka_would_write,
    start,
)
from kraft_core.raft.log import BrokenLogError, ReplicaLog, controls_of_log
from tests.conformance.tally import Tally
from tests.conformance.trace import (
    Line,
    batches_of,
    described,
    fresh,
    offset_and_epoch,
    pairs,
    raw,
    sizes,
    snapshot_id,
    snapshot_of,
    voter_rows,
    voter_set,
)
from tests.kraft_core.raft.reading import read_snapshot

# The driver's internal.segment.bytes: when a segment rolls shows after a restart.
SEGMENT_BYTES = 2048

BROKEN = "KafkaException"
EXCEPTIONS = {
    replay.BELOW_LOG_END: "UnexpectedAppendOffsetException",
    replay.NEWER_EPOCH: "CorruptRecordException",
    replay.LARGER_THAN_SEGMENT: "RecordBatchTooLargeException",
    replay.BELOW_HIGH_WATERMARK: "IllegalArgumentException",
    replay.NOT_IN_LOG: "IllegalArgumentException",
    replay.NOT_ON_BATCH_BOUNDARY: "IllegalArgumentException",
}


def compare(lines: Iterable[Line]) -> Tally:
    """Every step of every case, in both readings: the running Kafka's and the log's own."""
    tally = Tally()
    replica = start(ReplicaLog())
    for line in lines:
        place = f"case {line['case']} step {line.get('i', 'head')}"
        if "op" not in line:
            replica = start(_first_log(line))
            continue
        tally.step(line["op"])
        if "batches" in line:
            tally.compare(place, "batches", described(line), line["batches"])
        after, error = _apply(replica, line)
        tally.compare(place, "error", error, line.get("error"))
        tally.compare_all(
            place, _outcome(replica, after, line), {name: line[name] for name in line if name in OUTCOMES}
        )
        tally.compare_all(place, _state(after, line["state"]), line["state"])
        replica = after
    return tally


def _first_log(line: Line) -> ReplicaLog:
    if line["kind"] == "static-voters":
        return ReplicaLog(static_voters=voter_set(line["static_voters"]), segment_bytes=SEGMENT_BYTES)
    bootstrap = read_snapshot(0, 0, raw(line, "bootstrap_raw"))
    return ReplicaLog(segment_bytes=SEGMENT_BYTES, snapshots=(bootstrap,))


def _apply(replica: EmulatedReplica, line: Line) -> tuple[EmulatedReplica, str | None]:
    operation = _operation(line)
    if operation is None:
        return replica, None
    try:
        return emulate(replica, operation), None
    except ControlReaderError as ended:
        return ended.replica, "IllegalArgumentException"
    except BrokenLogError:
        return replica, BROKEN
    except replay.OperationRefusedError as refused:
        if refused.log is not None:
            replica = replace(replica, log=refused.log)
        if refused.reason == replay.ABOVE_HIGH_WATERMARK:
            deletes = isinstance(operation, replay.DeleteBefore)
            return replica, "OffsetOutOfRangeException" if deletes else "IllegalArgumentException"
        return replica, EXCEPTIONS[refused.reason]


def _operation(line: Line) -> replay.Operation | None:
    """The line's operation; None where the log does not change: the start, an epoch that another leads."""
    match line["op"]:
        case "append_leader":
            return replay.AppendAsLeader(line["epoch"], batches_of(line))
        case "append_follower":
            return replay.AppendAsFollower(line["epoch"], batches_of(line))
        case "new_epoch":
            return replay.BeginEpoch(line["epoch"]) if line["leader"] else None
        case "hwm":
            return replay.UpdateHighWatermark(line["offset"])
        case "diverging":
            return replay.TruncateToDivergence(line["offset"], line["epoch"])
        case "snapshot":
            return replay.CreateSnapshot(snapshot_of(line))
        case "install_snapshot":
            return replay.InstallSnapshot(snapshot_of(line))
        case "delete_before":
            return replay.DeleteBefore(*line["id"])
        case "restart":
            return replay.Restart()
        case "start":
            return None
        case other:
            raise ValueError(f"unknown operation {other!r}")


OUTCOMES = ("truncated_to", "created", "truncated", "result", "snap_kv", "snap_voters")


def _outcome(before: EmulatedReplica, after: EmulatedReplica, line: Line) -> dict[str, Any]:
    """What the operation answered, as it shows in the states before and after it."""
    if "error" in line:
        return {}
    changed = after.log.snapshots != before.log.snapshots
    match line["op"]:
        case "diverging":
            return {"truncated_to": after.log.end_offset}
        case "delete_before":
            return {"result": changed or after.log.segments != before.log.segments}
        case "install_snapshot":
            installed = snapshot_of(line)
            truncated = after.log.end_offset == installed.end_offset and not len(after.log.batches)
            return {"truncated": truncated} | _snapshot_content(installed.kraft_version, installed.voters)
        case "snapshot" if not changed:
            return {"created": False}
        case "snapshot":
            written = snapshot_kafka_would_write(before, *line["id"])
            return {"created": True} | _snapshot_content(written.kraft_version, written.voters)
        case _:
            return {}


def _snapshot_content(kraft_version: int | None, voters: Any) -> dict[str, Any]:
    content: dict[str, Any] = {"snap_kv": kraft_version or 0}
    return content | ({"snap_voters": voter_rows(voters)} if voters else {})


def _state(replica: EmulatedReplica, probes: Line) -> dict[str, Any]:
    """The replica as the trace writes states; `probes` are the questions that Kafka was asked."""
    log, reader = replica.log, replica.reader
    live = reader.controls
    state = {
        "leo": log.end_offset,
        "start": log.start_offset,
        "hwm": log.high_watermark,
        "last_epoch": _answer(lambda: log.last_epoch),
        "snap_first": snapshot_id(log.earliest_snapshot),
        "snap_last": snapshot_id(log.latest_snapshot),
        "epochs": [list(entry) for entry in log.epochs.entries],
        "next": reader.next_offset,
        "voters": voter_rows(live.voters.last),
        "voters_at": live.voters.last_offset,
        "kv": live.kraft_version,
        "vh": sizes(live.voters.sets),
        "kvh": pairs(live.kraft_versions),
        "uncommitted": live.voters.is_uncommitted(log.high_watermark),
        "eoe": [_answer(partial(_end_of_epoch, log, epoch)) for epoch in range(len(probes["eoe"]))],
        "valid": [_validated(log, offset, epoch) for offset, epoch, *_ in probes["valid"]],
        "vat": [_as_of(replica, offset) for offset, *_ in probes["vat"]],
    }
    return state | fresh(live, controls_of_log(log))


def _answer(ask: Callable[[], Any]) -> Any:
    """The answer, or the name of what Kafka throws."""
    try:
        return ask()
    except BrokenLogError:
        return BROKEN


def _end_of_epoch(log: ReplicaLog, epoch: int) -> list[int]:
    return offset_and_epoch(log.end_offset_for_epoch(epoch))


def _validated(log: ReplicaLog, offset: int, epoch: int) -> list[Any]:
    try:
        validity, answer = log.validate(offset, epoch)
    except BrokenLogError:
        return [offset, epoch, BROKEN]
    return [offset, epoch, validity.value, *offset_and_epoch(answer)]


def _as_of(replica: EmulatedReplica, offset: int) -> list[Any]:
    if offset >= replica.reader.next_offset:
        return [offset, "IllegalArgumentException"]
    controls = replica.reader.controls
    voters = controls.voters.at(offset)
    return [offset, list(voters.ids) if voters else None, controls.kraft_version_at(offset)]
