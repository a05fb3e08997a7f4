"""A cluster's facts and registrations from a lake's tables, without Spark: for explain and plan."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from kraft_core.columnar.schema import message_columns, message_fields
from kraft_core.evidence.facts import ClusterFacts
from kraft_core.plan.captured_quorum import CapturedQuorum, OpenError
from kraft_core.plan.registrations import TYPES, Registered, RegistrationRecord, record_of
from transforms.evidence.cluster_facts import cluster_row, evidence_facts
from transforms.evidence.fact_values import cluster_facts, message_value
from transforms.evidence.pinned_tables import PinnedTables
from transforms.lake.arrow_rows import moment
from transforms.lake.delta_rs import rows_with
from transforms.lake.storage.location import Location
from transforms.lake.tables import (
    CAPTURES,
    EPOCHS,
    FINDINGS,
    RECORDS,
    SNAPSHOT_RECORDS,
    VOTER_SETS,
    Table,
)
from transforms.quality.derived_counts import begun, replayed_earlier, why_not_evaluated

Row = dict[str, Any]
# Seconds. A run changes what is derived of a cluster within about two.
PATIENCE_S = 10.0
_STRUCTS = {m.type_name: (m.column, message_fields(m)) for m in message_columns() if m.type_name in TYPES}


def facts_of(lake: Location, cluster: str) -> ClusterFacts:
    """What the lake's captures of one cluster hold."""
    facts = evidence_facts(PinnedTables.newest(lake), [cluster], {})
    return cluster_facts(cluster_row(facts, cluster))


def errors_of(lake: Location, cluster: str) -> list[OpenError]:
    """The error findings of the last run that are not resolved; an acknowledged one is an error still."""
    columns = ["state", "sentence", "capture_ids", "replicas"]
    rows = rows_with(lake, FINDINGS, columns, cluster_id=[cluster], severity=["error"])
    return [
        OpenError(row["sentence"], frozenset((*(row["capture_ids"] or ()), *(row["replicas"] or ()))))
        for row in rows
        if row["state"] != "resolved"
    ]


def why_not_settled(lake: Location, cluster: str) -> str | None:
    """Why no verdict can rest on what is derived of a cluster, in words, or None.

    Waits for a run that is just changing it, PATIENCE_S at most.
    """
    give_up = time.monotonic() + PATIENCE_S
    while cluster in begun(lake):
        if time.monotonic() > give_up:
            return (
                f"a run is changing what is derived of {cluster}, or was interrupted: ask again when it has "
                f"ended, or run kraftlake derive --lake {lake}"
            )
        time.sleep(PATIENCE_S / 20)
    if replayed_earlier(lake, [cluster]):
        words = f"the records of {cluster} were replayed by an earlier version, which found less"
        return f"{words}: kraftlake derive --lake {lake}"
    return why_not_evaluated(lake, cluster)


def superseded_by(lake: Location, cluster: str, quorum: CapturedQuorum) -> str | None:
    """What is known, in words, that its newest captures do not show: by describe outputs, or a log that was
    followed. None for nothing.
    """
    columns = ["leader_epoch", "leader_id"]
    epochs = rows_with(lake, EPOCHS, columns, cluster_id=[cluster])
    newest = max(epochs, key=lambda row: row["leader_epoch"], default=None)
    if newest is not None and newest["leader_epoch"] > quorum.epoch:
        who = "a leader" if newest["leader_id"] is None else f"leader {newest['leader_id']}"
        named = f"{who} of epoch {newest['leader_epoch']}"
        return f"a describe output shows {named}, which the newest captures do not"
    columns = ["voter_ids", "observed_to"]
    for row in rows_with(lake, VOTER_SETS, columns, cluster_id=[cluster], source=["describe"]):
        if row["observed_to"] > moment(quorum.as_of):
            voters = ", ".join(map(str, row["voter_ids"]))
            return f"a describe output lists the voters {voters}, which no capture shows"
    columns = ["offset", "commit_status"]
    for row in rows_with(lake, VOTER_SETS, columns, cluster_id=[cluster], source=["record"]):
        if row["commit_status"] == "committed" and row["offset"] >= quorum.log_end:
            return f"the voters changed at offset {row['offset']}, beyond the end of the newest captures"
    return None


def faults_of(lake: Location, cluster: str, capture_ids: Iterable[str]) -> list[str]:
    """Files of these captures that could not be read, in words."""
    columns = ["capture_id", "node_id", "file_faults"]
    rows = rows_with(lake, CAPTURES, columns, cluster_id=[cluster], capture_id=capture_ids)
    found = [(row["node_id"], fault) for row in rows for fault in row["file_faults"] or ()]
    return sorted(f"node {node_id}: {fault['file']}: {fault['reason']}" for node_id, fault in found)


def registered_in(lake: Location, cluster: str) -> Registered:
    """What controllers and brokers registered, by logs and checkpoints."""
    columns = ["type", "leader_epoch", *(column for column, _ in _STRUCTS.values())]
    logged = _records(lake, RECORDS, cluster, TYPES, ["offset", *columns])
    kept = _records(lake, SNAPSHOT_RECORDS, cluster, TYPES, ["end_offset", *columns])
    found = {_registration_record(row, row["offset"], in_snapshot=False) for row in logged}
    found |= {_registration_record(row, row["end_offset"] - 1, in_snapshot=True) for row in kept}
    return Registered.of(found)


def _registration_record(row: Row, offset: int, *, in_snapshot: bool) -> RegistrationRecord:
    """The column's struct in the codec's names."""
    column, fields = _STRUCTS[row["type"]]
    message = None if row[column] is None else message_value(row[column], fields)
    return record_of(row["type"], message, offset, row["leader_epoch"], in_snapshot=in_snapshot)


def _records(lake: Location, table: Table, cluster: str, types: Any, columns: list[str]) -> list[Row]:
    return rows_with(lake, table, columns, cluster_id=[cluster], type=types)
