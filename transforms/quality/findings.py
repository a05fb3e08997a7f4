"""Findings, by kraft_core.findings: a cluster's facts in, rows of tables findings and observations out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from kraft_core.findings.facts import (
    BatchConflict,
    BatchCopy,
    LogOrderFault,
    Observation,
    OtherLife,
    ReplayRefusal,
    RuleFacts,
    SnapshotDeviation,
    UnassignedReplica,
    UnreadableBytes,
)
from kraft_core.findings.finding import Finding
from transforms.evidence.fact_values import known_ms
from transforms.ingest.quarantine import is_of_file
from transforms.lake.arrow_rows import milliseconds, moment
from transforms.lake.tables import FINDINGS

Row = dict[str, Any]
LISTS = ("leader_epochs", "replicas", "capture_ids")
LOST = tuple(name for name in UnreadableBytes.__slots__ if name != "supplied_by")
OBSERVED_TIMES = ("observed_from", "observed_to", "last_fetch_at", "last_caught_up_at")


def rule_facts(row: Mapping[str, Any], faults: Iterable[Row]) -> RuleFacts:
    """What the rules need besides the evidence, from a cluster_row of transforms.evidence.cluster_facts.

    faults: of its captures, by transforms.ingest.quarantine.
    """
    return RuleFacts(
        batch_conflicts=tuple(batch_conflicts(row["batch_conflicts"])),
        order_faults=tuple(
            LogOrderFault(capture["capture_id"], **fault)
            for capture in row["captures"]
            for fault in capture["order_faults"] or ()
        ),
        unreadable=tuple(dict.fromkeys(map(unreadable, faults))),
        snapshot_deviations=tuple(SnapshotDeviation(**deviation) for deviation in row["snapshot_deviations"]),
        observations=tuple(observation(row["cluster_id"], observed) for observed in row["observations"]),
        replay_refusals=tuple(ReplayRefusal(**refused) for refused in row["refused_records"]),
        other_lives=tuple(map(other_life, row["other_lives"])),
        unassigned_replicas=tuple(map(unassigned_replica, row["unassigned_replicas"])),
    )


def batch_conflicts(rows: Iterable[Mapping[str, Any]]) -> list[BatchConflict]:
    """Conflicts, from one row for each distinct batch."""
    copies: dict[tuple[int, int], list[BatchCopy]] = {}
    for r in rows:
        holders = tuple(sorted(replicas(r["held_by"])))
        copy = BatchCopy(r["last_offset"] + 1, r["crc"], r["size_bytes"], holders)
        copies.setdefault((r["leader_epoch"], r["base_offset"]), []).append(copy)
    return [BatchConflict(*place, tuple(sorted(copies[place]))) for place in sorted(copies)]


def unreadable(lost: Mapping[str, Any]) -> UnreadableBytes:
    """A row of faults. What could not be read or used as a file is a fault of the newest capture, whoever
    holds its content: a newer capture without it ends that, or another copy of this one.
    """
    is_own = lost["supplied_by"] == [lost["capture_id"]]
    supplied_by = tuple(lost["supplied_by"]) if is_own or not is_of_file(lost) else ()
    return UnreadableBytes(**{name: lost[name] for name in LOST}, supplied_by=supplied_by)


def observation(cluster_id: str, row: Mapping[str, Any]) -> Observation:
    """A row of observations."""
    values = {name: row[name] for name in Observation.__slots__ if name != "cluster_id"}
    values |= {name: milliseconds(row[name]) for name in OBSERVED_TIMES}
    for name in ("voters", "observers"):
        values[name] = tuple(replicas(values[name] or ()))
    return Observation(cluster_id=cluster_id, **values)


def other_life(row: Mapping[str, Any]) -> OtherLife:
    """A row of lives, its cluster_id as life_id."""
    return OtherLife(
        cluster_id=row["life_id"],
        kafka_cluster_id=row["kafka_cluster_id"],
        captures=len(row["capture_ids"]),
        nodes=tuple(row["nodes"]),
        last_appended_at=milliseconds(row["last_appended_at"]),
    )


def unassigned_replica(row: Mapping[str, Any]) -> UnassignedReplica:
    """A row of broker_partitions."""
    values = {name: row[name] for name in UnassignedReplica.__slots__ if name != "captured_at"}
    return UnassignedReplica(captured_at=known_ms(row["captured_at"]), **values)


def replicas(rows: Iterable[Mapping[str, Any]]) -> list[tuple[int, str]]:
    return [(r["node_id"], r["directory_id"]) for r in rows]


def finding_rows(findings: Iterable[Finding], acknowledgements: Iterable[Mapping[str, Any]]) -> list[Row]:
    """Rows of table findings without cluster_id; a resolved finding stays so, acknowledged or not.

    reason: why it is resolved, else why it was acknowledged, else null.
    """
    ordered = sorted(acknowledgements, key=lambda a: (a["acknowledged_at"], a["reason"]))
    reasons = {a["finding_id"]: a["reason"] for a in ordered}
    return [finding_row(finding, reasons.get(finding.finding_id)) for finding in findings]


def finding_row(finding: Finding, reason: str | None) -> Row:
    noted = "open" if reason is None else "acknowledged"
    stated = {
        "state": "resolved" if finding.resolved else noted,
        "reason": finding.resolution or reason,
        "first_seen_at": moment(finding.first_seen_at),
        "last_seen_at": moment(finding.last_seen_at),
    }
    names = [n for n in FINDINGS.names if n not in (*stated, "cluster_id")]
    return stated | {name: getattr(finding, name) for name in names}


def finding_of(row: Mapping[str, Any]) -> Finding:
    """A row of table findings as the core's value."""
    names = [field.name for field in fields(Finding) if field.name in FINDINGS.names]
    values: Row = {name: tuple(row[name] or ()) if name in LISTS else row[name] for name in names}
    values |= {name: known_ms(row[name]) for name in ("first_seen_at", "last_seen_at")}
    return Finding(**values, resolution=row["reason"] if row["state"] == "resolved" else None)


def observation_rows(cluster_id: str, observation_id: str, observations: Iterable[Observation]) -> list[Row]:
    """Rows of table observations of one describe output."""
    return [
        {name: getattr(observed, name) for name in Observation.__slots__}
        | {name: moment(getattr(observed, name)) for name in OBSERVED_TIMES}
        | {name: [replica(*holder) for holder in getattr(observed, name)] for name in ("voters", "observers")}
        | {"cluster_id": cluster_id, "observation_id": observation_id}
        for observed in observations
    ]


def replica(node_id: int, directory_id: str) -> Row:
    return {"node_id": node_id, "directory_id": directory_id}
