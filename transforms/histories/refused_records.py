"""Records that Kafka refuses to replay, as the replays of the histories find them: rows of REFUSED_RECORDS.

A record is one only if nothing missing can explain the refusal: no gap in the log and no record or checkpoint
that is not fully understood is between the record and the state it was replayed onto. One of a checkpoint has
the last offset that the checkpoint covers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from kraft_core.findings.facts import MOST_REFUSED
from kraft_core.findings.replay_refusals import replay_refusal
from kraft_core.image.change import RefusedRecord
from kraft_core.image.missing_records import MissingRecords
from kraft_core.image.replay_path import PathCheckpoint, Step
from transforms.histories.replay_plan import ReplayPlan
from transforms.lake.delta_rs import rows_with
from transforms.lake.storage.location import Location
from transforms.lake.tables import REFUSED_RECORDS

Row = dict[str, Any]
AddRefused = Callable[[str, Sequence[RefusedRecord]], None]
"""Takes refused records of a cluster, each once or more often."""
OfCluster = tuple[str, RefusedRecord]
REFUSAL = ("offset", "leader_epoch", "type", "cause", "subject", "reason", "by_controllers_only")


def sure(refused: Iterable[RefusedRecord], unsure: Sequence[MissingRecords]) -> list[RefusedRecord]:
    """The first records in order that Kafka refuses, without those that missing records may explain."""
    by_kafka = (record for record in refused if record.cause is not None)
    found = (r for r in by_kafka if not any(each.concerns(r.offset) for each in unsure))
    return sorted(found)[:MOST_REFUSED]


def changed_rows(
    lake: Location, plans: Sequence[ReplayPlan], found: Iterable[OfCluster]
) -> dict[str, list[Row]]:
    """By cluster its rows of REFUSED_RECORDS, where they change.

    They are what lay below the start of its replay, and what that found.
    """
    start = {plan.cluster_id: plan.start for plan in plans}
    held: defaultdict[str, list[Row]] = defaultdict(list)
    by_cluster: defaultdict[str, set[RefusedRecord]] = defaultdict(set)
    for row in rows_with(lake, REFUSED_RECORDS, cluster_id=start):
        held[row["cluster_id"]].append(row)
        if row["offset"] < start[row["cluster_id"]]:
            by_cluster[row["cluster_id"]].add(RefusedRecord(*(row[name] for name in REFUSAL)))
    for cluster, record in found:
        by_cluster[cluster].add(record)
    made = {
        plan.cluster_id: [
            row
            for record in _onto_known(plan.steps, sure(by_cluster[plan.cluster_id], plan.unsure))
            for row in _rows(plan, record)
        ]
        for plan in plans
    }
    return {cluster: rows for cluster, rows in made.items() if _values(rows) != _values(held[cluster])}


def _onto_known(steps: Iterable[Step], refused: Sequence[RefusedRecord]) -> Iterator[RefusedRecord]:
    """The records but for those above a checkpoint that holds a refused one: what it lacks is not known."""
    loaded = sorted(step.first_offset for step in steps if isinstance(step, PathCheckpoint))
    refused_at = {record.offset for record in refused if not record.by_controllers_only}
    for record in refused:
        below = bisect_right(loaded, record.offset)
        if not below or loaded[below - 1] == record.offset or loaded[below - 1] not in refused_at:
            yield record


def _values(rows: Iterable[Row]) -> list[tuple[Any, ...]]:
    """The rows in one order, for a comparison."""
    return sorted(tuple(row[name] for name in REFUSED_RECORDS.names) for row in rows)


def _rows(plan: ReplayPlan, record: RefusedRecord) -> Iterator[Row]:
    """The row of a refused record, if its path shows what it was replayed onto."""
    found = replay_refusal(plan.steps, record)
    if found is not None:
        yield {"cluster_id": plan.cluster_id, **asdict(found)}
