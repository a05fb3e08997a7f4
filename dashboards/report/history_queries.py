"""What the page asks of the histories of the metadata: partitions under min ISR, what administrators did.

Read by delta-rs as the other tables are; a history of a million versions is narrowed by Arrow before any of
it becomes Python's. Times leave here as milliseconds since the epoch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.dataset as ds

from dashboards.report import admin_events, under_min_isr
from dashboards.report.queries import NEWEST, LakeTables, Row, Rows, plain
from transforms.lake.tables import CONFIGS, PARTITIONS

WHEN = ("valid_from_offset", "valid_to_offset", "valid_from_at", "valid_to_at", "commit_status")
# So many of the newest versions of a kind are looked at for events: some follow others and are none.
LOOKED_AT = 4 * NEWEST


def thin_spans(tables: LakeTables) -> Rows:
    """When which partition was under min ISR."""
    of_all = (ds.field("resource_type") == "TOPIC") | (ds.field("resource_name") == "")
    names = ("resource_type", "resource_name", "value", *WHEN)
    settings = tables.rows(CONFIGS, *names, where=of_all & (ds.field("name") == "min.insync.replicas"))
    most = max([1, *(int(s["value"]) for s in settings if (s["value"] or "").isdigit())])
    isr = pc.list_value_length(ds.field("isr"))
    may_be_thin = (isr < most) & (isr < pc.list_value_length(ds.field("replicas")))
    names = ("topic_id", "topic_name", "partition_id", "isr", "replicas", *WHEN)
    return under_min_isr.spans(tables.rows(PARTITIONS, *names, where=may_be_thin), settings)


def newest_versions(tables: LakeTables, kind: admin_events.EventKind) -> Rows:
    """The versions of each cluster that began or ended last."""
    names = (*kind.columns, *WHEN, "record_offset", "ended_by", "end_commit_status")
    found = tables.columns(kind.table, *names, where=moved() if kind.table is PARTITIONS else None)
    if found is None:
        return []
    rows: dict[tuple[Any, ...], Row] = {}
    for cluster in found.column("cluster_id").unique():
        of_one = found.filter(pc.equal(found.column("cluster_id"), cluster))
        for part in ("valid_from_offset", "valid_to_offset"):
            timed = of_one.filter(of_one.column(part).is_valid())
            for row in timed.take(pc.select_k_unstable(timed, LOOKED_AT, [(part, "descending")])).to_pylist():
                rows[tuple(row[name] for name in kind.table.key)] = plain(row)
    return list(rows.values())


def moved() -> Any:
    """The condition that a partition is being reassigned."""
    adding, removing = (pc.list_value_length(ds.field(f"{n}_replicas")) for n in ("adding", "removing"))
    return (pc.coalesce(adding, pc.scalar(0)) > 0) | (pc.coalesce(removing, pc.scalar(0)) > 0)


def ask_histories(lake: Path, clusters: Sequence[str], thin: Iterable[Row]) -> dict[str, dict[str, Rows]]:
    """By cluster what the sections on the metadata hold; `thin` are spans of theirs and maybe of others."""
    tables = LakeTables(lake, clusters)
    thin_ones = by_cluster(thin)
    versions = {kind.table.name: by_cluster(newest_versions(tables, kind)) for kind in admin_events.KINDS}
    found = {}
    for cluster in clusters:
        spans = thin_ones.get(cluster, [])
        of_one = {name: rows.get(cluster, []) for name, rows in versions.items()}
        stretches = under_min_isr.together(sorted(spans, key=thinnest))
        found[cluster] = {
            "under_min_isr": under_min_isr.steps(spans),
            "thin_partitions": stretches[:NEWEST],
            "admin_events": admin_events.events(of_one, NEWEST),
            "thin_counts": [{"stretches": len(stretches)}],
        }
    return found


def thinnest(span: Row) -> tuple[Any, ...]:
    """Those that still are first, then the newest."""
    return span["to_offset"] is not None, -span["from_offset"], span["topic_name"], span["partition_id"]


def by_cluster(rows: Iterable[Row]) -> dict[str, Rows]:
    found: dict[str, Rows] = {}
    for row in rows:
        found.setdefault(row["cluster_id"], []).append(row)
    return found


def thin_now(thin: Iterable[Row]) -> dict[str, Rows]:
    """How many partitions of each cluster are under min ISR still, as a kind of row of the fleet."""
    counts = Counter(span["cluster_id"] for span in thin if span["to_offset"] is None)
    return {"under_min_isr": [{"cluster_id": c, "partitions": n} for c, n in counts.items()]}
