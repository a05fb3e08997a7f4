"""A cluster's row of facts (transforms.evidence.cluster_facts) as values of kraft_core.evidence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from kraft_core.columnar.schema import message_columns, message_fields
from kraft_core.evidence.facts import (
    AnsweredWatermark,
    Capture,
    CapturedControlRecord,
    CapturedElsewhere,
    ClusterFacts,
    EpochRange,
    FeatureLevel,
    SnapshotFacts,
    copied_between,
)
from kraft_core.format.capture import STATED_SOURCES, is_live
from kraft_core.messages.schema import Field
from transforms.lake.arrow_rows import milliseconds

CONTROL_FIELDS = {m.type_name: (m.column, message_fields(m)) for m in message_columns()}
Row = dict[str, Any]
_INCOMPLETE = "torn_tail"


def cluster_facts(row: Mapping[str, Any]) -> ClusterFacts:
    """The facts of one cluster; `row` as transforms.evidence.cluster_facts.cluster_row gives it."""
    controls = control_records(row["control_records"])
    elections = {(r.leader_epoch, r.offset) for r in controls if r.type == "LeaderChange"}
    checkpoints = list(snapshots(row))
    headers = header_timestamps(checkpoints)
    captures = list(captures_of(row["captures"], elections, headers))
    return ClusterFacts(
        cluster_id=row["cluster_id"],
        captures=tuple(c for c in captures if not c.is_followed),
        control_records=tuple(controls),
        snapshots=tuple(checkpoints),
        feature_levels=tuple(FeatureLevel(**f) for f in row["feature_levels"]),
        contested_epochs=tuple(sorted({r["leader_epoch"] for r in row["batch_conflicts"]})),
        elsewhere=tuple(
            CapturedElsewhere(e["life_id"], e["node_id"], e["directory_id"], e["until"])
            for e in row["elsewhere"]
        ),
        followed=tuple(c for c in captures if c.is_followed),
        answered=tuple(answered(row["observations"])),
    )


def answered(observations: Iterable[Mapping[str, Any]]) -> Iterator[AnsweredWatermark]:
    """What leaders answered to kraftlake follow."""
    for row in observations:
        watermark, epoch = row["high_watermark"], row["leader_epoch"]
        if is_live(row["source"]) and watermark is not None and epoch is not None:
            voters = tuple((voter["node_id"], voter["directory_id"]) for voter in row["voters"] or ())
            yield AnsweredWatermark(epoch, row["node_id"], watermark, known_ms(row["observed_to"]), voters)


def first_and_last(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A row of captures at the time of its first copy and, where that is another one, of its last copy."""
    yield row
    last = row["last_captured_at"]
    if last > row["captured_at"] and row["captured_at_source"] in STATED_SOURCES:
        yield {**row, "captured_at": last}


def header_timestamps(checkpoints: Iterable[SnapshotFacts]) -> defaultdict[str, list[int]]:
    """By capture id the times (ms) at which the checkpoints that it held were written."""
    found: defaultdict[str, list[int]] = defaultdict(list)
    for checkpoint in checkpoints:
        if checkpoint.proves and checkpoint.header_timestamp is not None:
            for capture_id in checkpoint.held_in:
                found[capture_id].append(checkpoint.header_timestamp)
    return found


# Columns of captures that are facts: of captures_of, of their checkpoints, and of the order of their batches.
OF_CAPTURES = (
    "cluster_id",
    "capture_id",
    "node_id",
    "directory_id",
    "captured_at",
    "captured_at_source",
    "last_captured_at",
    "log_readable",
    "consistent",
    "log_start_offset",
    "log_end_offset",
    "quorum_state",
    "leader_epoch_checkpoint",
    "epoch_ranges",
    "snapshots",
    "damage",
    "order_faults",
)


def captures_of(
    rows: Iterable[Mapping[str, Any]], elections: set[tuple[int, int]], headers: Mapping[str, Iterable[int]]
) -> Iterator[Capture]:
    """The captures of rows, each with its first and last copy. headers: as of header_timestamps.

    What is one object in several rows (see transforms.lake.arrow_rows.python_rows) is one in their captures.
    """
    shared = _SharedParts(elections)
    for row in rows:
        for copy in first_and_last(row):
            yield _capture(copy, shared, headers.get(row["capture_id"], ()))


def capture(row: Mapping[str, Any], elections: set[tuple[int, int]], headers: Iterable[int] = ()) -> Capture:
    """A row of captures. elections: (epoch, offset) of each LEADER_CHANGE; headers: of its checkpoints."""
    return _capture(row, _SharedParts(elections), headers)


class _SharedParts:
    """Parts of captures, made once of each object in rows that are all held meanwhile."""

    def __init__(self, elections: set[tuple[int, int]]) -> None:
        self._elections = elections
        self._made: dict[tuple[str, int], Any] = {}

    def once(self, name: str, value: Any, make: Callable[[Any], Any]) -> Any:
        """What is made of a value of a column."""
        key = name, id(value)
        if key not in self._made:
            self._made[key] = make(value)
        return self._made[key]

    def epoch_ranges(
        self, rows: Sequence[Mapping[str, Any]]
    ) -> tuple[tuple[EpochRange, ...], list[EpochRange]]:
        """The ranges, and the one with the newest timestamp."""
        found = tuple(self.once("epoch_range", row, self._epoch_range) for row in rows)
        return found, sorted(found, key=lambda h: h.last_appended_at)[-1:]

    def _epoch_range(self, row: Mapping[str, Any]) -> EpochRange:
        return epoch_range(row, (row["leader_epoch"], row["first_offset"]) in self._elections)


def _capture(row: Mapping[str, Any], shared: _SharedParts, headers: Iterable[int]) -> Capture:
    epoch_ranges, newest = shared.once("epoch_ranges", row["epoch_ranges"], shared.epoch_ranges)
    captured_at, source = known_ms(row["captured_at"]), row["captured_at_source"]
    captured_from, captured_until, time_source = copied_between(captured_at, source, newest, headers)
    state = shared.once("quorum_state", row["quorum_state"], _quorum_state)
    epoch, leader_id, voted_id, voted_directory_id, voters = state
    reasons = set(tail_damage(row)) if row["damage"] else set[str]()
    return Capture(
        capture_id=row["capture_id"],
        node_id=row["node_id"],
        directory_id=row["directory_id"],
        captured_at=captured_at,
        log_start_offset=row["log_start_offset"],
        log_end_offset=row["log_end_offset"],
        epoch_ranges=epoch_ranges,
        quorum_state_epoch=epoch,
        quorum_state_leader_id=leader_id,
        voted_id=voted_id,
        voted_directory_id=voted_directory_id,
        current_voters=voters,
        leader_epoch_checkpoint=shared.once("entries", row["leader_epoch_checkpoint"], _entries),
        consistent=row["consistent"],
        tail_damaged=bool(reasons - {_INCOMPLETE}),
        ends_inside_batch=_INCOMPLETE in reasons,
        readable=row.get("log_readable") is not False,
        captured_from=captured_from,
        captured_until=captured_until,
        time_source=time_source,
        captured_at_source=source,
    )


def _quorum_state(state: Mapping[str, Any] | None) -> tuple[Any, ...]:
    """Its epoch, leader, vote (two columns) and voters."""
    state = state or {}
    voters = state.get("current_voters")
    names = ("leader_epoch", "leader_id", "voted_id", "voted_directory_id")
    return *map(state.get, names), None if voters is None else tuple(voters)


def _entries(rows: Iterable[Mapping[str, Any]] | None) -> tuple[tuple[int, int], ...] | None:
    """Of leader-epoch-checkpoint."""
    return None if rows is None else tuple((row["leader_epoch"], row["start_offset"]) for row in rows)


def tail_damage(row: Mapping[str, Any]) -> Iterator[str]:
    """Why bytes that follow the last readable batch cannot be read."""
    end = row["epoch_ranges"][-1]["end_offset"] if row["epoch_ranges"] else 0
    for damage in row["damage"]:
        first = damage["lost_from_offset"]
        if damage["lost_to_offset"] is None and first is not None and first >= end:
            yield damage["reason"]


def epoch_range(row: Mapping[str, Any], begins_epoch: bool) -> EpochRange:
    """An epoch range; its first batches are those of the epoch only if it begins with the LEADER_CHANGE."""
    return EpochRange(
        leader_epoch=row["leader_epoch"],
        first_offset=row["first_offset"],
        end_offset=row["end_offset"],
        digest=row["digest"],
        first_appended_at=known_ms(row["first_appended_at"]),
        last_appended_at=known_ms(row["last_appended_at"]),
        first_batch_end=row["first_batch_end_offset"] if begins_epoch else None,
        first_data_end=row["first_data_end_offset"] if begins_epoch else None,
        first_data_appended_at=milliseconds(row["first_data_appended_at"]) if begins_epoch else None,
    )


def control_records(rows: Iterable[Mapping[str, Any]]) -> list[CapturedControlRecord]:
    """Control records; the end of a control batch is that of its last record."""
    rows = list(rows)
    ends: dict[tuple[int, int, int], int] = {}
    for row in rows:
        batch = (row["batch_base_offset"], row["leader_epoch"], row["batch_crc"])
        ends[batch] = max(ends.get(batch, 0), row["offset"] + 1)
    return [
        control_record(row, ends[row["batch_base_offset"], row["leader_epoch"], row["batch_crc"]])
        for row in rows
    ]


def control_record(row: Mapping[str, Any], batch_end_offset: int) -> CapturedControlRecord:
    column, facts = CONTROL_FIELDS[row["type"]]
    return CapturedControlRecord(
        offset=row["offset"],
        leader_epoch=row["leader_epoch"],
        batch_base_offset=row["batch_base_offset"],
        batch_end_offset=batch_end_offset,
        batch_crc=row["batch_crc"],
        appended_at=known_ms(row["appended_at"]),
        type=row["type"],
        value=None if row[column] is None else message_value(row[column], facts),
    )


def message_value(row: Mapping[str, Any], facts: tuple[Field, ...]) -> Row:
    """A struct column as the codec's value: Kafka's names, without fields that the version lacks."""
    value: Row = {}
    for fact in facts:
        field = row[fact.column]
        if field is None:
            continue
        if fact.type == "struct":
            field = (
                [message_value(item, fact.fields) for item in field]
                if fact.array
                else message_value(field, fact.fields)
            )
        value[fact.name] = field
    return value


def snapshots(row: Mapping[str, Any]) -> Iterator[SnapshotFacts]:
    """Checkpoints with their holders, their metadata.version and the end of the batch they cut."""
    holders: dict[tuple[int, int, str], list[Mapping[str, Any]]] = {}
    for capture_row in row["captures"]:
        for held in capture_row["snapshots"]:
            holders.setdefault(snapshot_key(held), []).append(capture_row)
    levels = {snapshot_key(level): level["level"] for level in row["snapshot_levels"]}
    ends: dict[tuple[int, int], int] = {}
    for end in row["batch_ends"]:
        key = (end["end_offset"], end["leader_epoch"])
        ends[key] = min(end["batch_end"], ends.get(key, end["batch_end"]))
    for known in row["snapshots"]:
        key = snapshot_key(known)
        if key in holders:
            end = ends.get((known["end_offset"], known["leader_epoch"]))
            yield snapshot(known, holders[key], levels.get(key), end)


def snapshot_key(row: Mapping[str, Any]) -> tuple[int, int, str]:
    return row["end_offset"], row["leader_epoch"], row["content_digest"]


def snapshot(
    row: Mapping[str, Any], holders: list[Mapping[str, Any]], level: int | None, batch_end: int | None
) -> SnapshotFacts:
    voters = row["voters"]
    return SnapshotFacts(
        end_offset=row["end_offset"],
        leader_epoch=row["leader_epoch"],
        content_digest=row["content_digest"],
        complete=row["complete"],
        unfinished=False,
        header_timestamp=milliseconds(row["header_at"]),
        last_contained_log_timestamp=milliseconds(row["last_contained_log_at"]),
        kraft_version=row["kraft_version"],
        voters=None if voters is None else [voter_value(v) for v in voters],
        metadata_version=level,
        batch_end=batch_end,
        held_by=tuple(sorted({(c["node_id"], c["directory_id"]) for c in holders})),
        first_captured_at=min(known_ms(c["captured_at"]) for c in holders),
        held_in=tuple(sorted(c["capture_id"] for c in holders)),
    )


def voter_value(voter: Mapping[str, Any]) -> Row:
    """A voter of a voters column as a VotersRecord has it."""
    return {
        "voterId": voter["voter_id"],
        "voterDirectoryId": voter["directory_id"],
        "endpoints": voter["endpoints"],
        "kRaftVersionFeature": {
            "minSupportedVersion": voter["min_kraft_version"],
            "maxSupportedVersion": voter["max_kraft_version"],
        },
    }


def known_ms(time: Any) -> int:
    """Milliseconds since the epoch of a required time. Raises ValueError for null."""
    ms = milliseconds(time)
    if ms is None:
        raise ValueError("a time is missing")
    return ms
