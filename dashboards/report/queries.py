"""The rows that the page reads from the lake's tables, through delta-rs: all take less than one Spark query.

FLEET has a row per cluster, DETAIL the rows of the clusters with a part of their own. Times are converted to
milliseconds since the epoch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from dashboards.report import aggregates
from dashboards.report.plain_rows import plain, plain_rows
from kraft_core.evidence.watermark_at import newest_watermark
from kraft_core.format.capture import FOLLOWED_NODE_ID
from transforms.lake.arrow_rows import each_cluster
from transforms.lake.delta_rs import arrow_with, exists
from transforms.lake.lives import life_words, named_clusters
from transforms.lake.storage.location import Location
from transforms.lake.tables import (
    CAPTURES,
    EPOCHS,
    EXPECTATION_RESULTS,
    FINDINGS,
    HIGH_WATERMARKS,
    LOG_RANGES,
    QUARANTINE,
    RECOVERIES,
    SNAPSHOTS,
    TRUNCATIONS,
    VOTER_CHANGES,
    VOTER_SETS,
    Table,
)
from transforms.quality.derived_counts import not_evaluated
from transforms.quality.expectation_history import newest_results, open_failures
from transforms.quality.expectation_suites import WHOLE_LAKE

Row = dict[str, Any]
Rows = list[Row]
Parts = dict[str, list[pa.RecordBatch]]
# The newest rows that a table of the page holds.
NEWEST = 60
NEWEST_SETS = 200
# Sources of voter sets that prove nothing.
ONLY_REPORTED = ("describe", "quorum-state")
# The expectation that a cluster was captured lately.
IS_FRESH = "newest_capture_is_fresh"


class LakeTables:
    """The lake's tables, of all clusters or of some."""

    def __init__(self, lake: Location, clusters: Sequence[str] = ()) -> None:
        self.lake = lake
        self.chosen = {"cluster_id": clusters} if clusters else {}

    def columns(self, table: Table, *names: str, where: Any = None) -> pa.Table | None:
        """Columns of the rows, of expectations the newest results; None if no run has written the table."""
        if table is EXPECTATION_RESULTS:
            return newest_results(self.lake, ["cluster_id", *names], **self.chosen)
        if not exists(self.lake, table):
            return None
        return arrow_with(self.lake, table, ["cluster_id", *names], where=where, **self.chosen)

    def rows(self, table: Table, *names: str, where: Any = None) -> Rows:
        """The same as dicts."""
        found = self.columns(table, *names, where=where)
        return [] if found is None else plain_rows(found)


# --- the fleet: a row per cluster ------------------------------------------------------------------


def _fleet_captures(tables: LakeTables) -> Rows:
    found = tables.columns(CAPTURES, "node_id", "directory_id", "last_captured_at", "log_end_offset")
    if found is None:
        return []
    # What was followed is not a replica's log.
    copies = pc.cast(pc.not_equal(found["node_id"], FOLLOWED_NODE_ID), pa.int64())
    wanted = [("copies", "sum"), ("copies", "max"), ("last_captured_at", "max"), ("log_end_offset", "max")]
    replica = ["cluster_id", "node_id", "directory_id"]
    by_replica = found.append_column("copies", copies).group_by(replica).aggregate(wanted)
    return _grouped(
        by_replica,
        captures=("copies_sum", "sum"),
        replicas=("copies_max", "sum"),
        least_node_id=("node_id", "min"),
        last_captured_at=("last_captured_at_max", "max"),
        log_end_offset=("log_end_offset_max", "max"),
    )


def _fleet_voters(tables: LakeTables) -> Rows:
    """The newest set in force, as in view current_voters."""
    proven = ds.field("in_force_from_offset").is_valid()
    in_force = (proven & ds.field("in_force_to_offset").is_null()) & (
        ds.field("commit_status").is_null() | (ds.field("commit_status") != "truncated")
    )
    names = ("offset", "leader_epoch", "source", "voter_ids", "majority", "commit_status")
    return _last_of(tables.columns(VOTER_SETS, *names, where=in_force), "offset")


def _fleet_logged(tables: LakeTables) -> Rows:
    """The newest epoch of the captured logs."""
    found = tables.columns(LOG_RANGES, "leader_epoch")
    return [] if found is None else _grouped(found, leader_epoch=("leader_epoch", "max"))


def _fleet_reported(tables: LakeTables) -> Rows:
    """The newest voter set that only describe outputs or quorum-states report."""
    where = ds.field("source").isin(ONLY_REPORTED) & ds.field("observed_to").is_valid()
    return _last_of(
        tables.columns(VOTER_SETS, "leader_epoch", "source", "voter_ids", "observed_to", where=where),
        "leader_epoch",
        "observed_to",
    )


def _fleet_epochs(tables: LakeTables) -> Rows:
    found = tables.columns(EPOCHS, "leader_epoch", "leader_id", "leader_source")
    if found is None:
        return []
    return _grouped(
        found.sort_by("leader_epoch"),
        epochs=("leader_epoch", "count"),
        leader_epoch=("leader_epoch", "max"),
        leader_id=("leader_id", "last"),
        leader_source=("leader_source", "last"),
    )


def _fleet_changes(tables: LakeTables) -> Rows:
    names = ("offset", "leader_epoch", "kind", "voter_id", "changed_at", "changed_exact", "commit_status")
    timed = ds.field("changed_at").is_valid()
    return _last_of(tables.columns(VOTER_CHANGES, *names, where=timed), "changed_at", "offset", "voter_id")


def _fleet_watermarks(tables: LakeTables) -> Rows:
    """The bounds of the high watermark that hold at one moment."""
    found = tables.columns(HIGH_WATERMARKS, "as_of", "lower_bound", "upper_bound")
    if found is None:
        return []
    # Of each time the tightest bounds: to make Python values takes longest.
    tightest = found.group_by(["cluster_id", "as_of"], use_threads=False).aggregate(
        [("lower_bound", "max"), ("upper_bound", "min")]
    )
    proofs: dict[str, Rows] = {}
    for row in plain_rows(tightest.rename_columns(["cluster_id", "as_of", "lower_bound", "upper_bound"])):
        proofs.setdefault(row["cluster_id"], []).append(row)
    return [{"cluster_id": cluster} | asdict(newest_watermark(rows)) for cluster, rows in proofs.items()]


def _fleet_committed(tables: LakeTables) -> Rows:
    found = tables.columns(LOG_RANGES, "end_offset", where=ds.field("commit_status") == "committed")
    return [] if found is None else _grouped(found, committed_end_offset=("end_offset", "max"))


def _fleet_quarantine(tables: LakeTables) -> Rows:
    found = tables.columns(QUARANTINE, "size_bytes", where=ds.field("reason") != "torn_tail")
    if found is None:
        return []
    return _grouped(found, ranges=("size_bytes", "count"), size_bytes=("size_bytes", "sum"))


def _fleet_findings(tables: LakeTables) -> Rows:
    return _severities(tables.rows(FINDINGS, "severity", where=ds.field("state") == "open"))


def _fleet_resolved(tables: LakeTables) -> Rows:
    """Errors that newer captures no longer show."""
    resolved = (ds.field("state") == "resolved") & (ds.field("severity") == "error")
    found = tables.columns(FINDINGS, "last_seen_at", where=resolved)
    if found is None:
        return []
    return _grouped(found, errors=("last_seen_at", "count"), last_seen_at=("last_seen_at", "max"))


def _fleet_expectations(tables: LakeTables) -> Rows:
    """Expectations that failed when they were last evaluated; `stale`: warnings of an old newest capture."""
    failed = open_failures(tables.lake, **tables.chosen)
    stale = Counter(
        row["cluster_id"] for row in failed if (row["expectation"], row["severity"]) == (IS_FRESH, "warning")
    )
    return [row | {"stale": stale[row["cluster_id"]]} for row in _severities(failed)]


def _fleet_names(tables: LakeTables) -> Rows:
    """Names, environments and owners of the clusters."""
    return named_clusters(tables.lake)


def _fleet_lives(tables: LakeTables) -> Rows:
    """Which life of a cluster id with several a cluster is, in words."""
    return [{"cluster_id": name, "words": words} for name, words in life_words(tables.lake).items()]


def _fleet_failures(tables: LakeTables) -> Rows:
    """Clusters of which not all that was captured is derived."""
    return not_evaluated(tables.lake, tables.chosen.get("cluster_id"))


def _grouped(found: pa.Table, **wanted: tuple[str, str]) -> Rows:
    """A row per cluster: each wanted name with its column and aggregation, in the order of the rows."""
    together = found.group_by("cluster_id", use_threads=False).aggregate(
        [(column, how, LAST if how == "last" else None) for column, how in wanted.values()]
    )
    names = {f"{column}_{how}": name for name, (column, how) in wanted.items()}
    rows: Rows = together.to_pylist()
    return [{names.get(key, key): plain(value) for key, value in row.items()} for row in rows]


# An unknown leader stays unknown; it is not the one before.
LAST = pc.ScalarAggregateOptions(skip_nulls=False)


def _last_of(found: pa.Table | None, *order: str) -> Rows:
    """The last row of each cluster in the given order."""
    if found is None:
        return []
    ordered = found.sort_by([(name, "ascending") for name in order])
    numbered = pa.table({"cluster_id": ordered["cluster_id"], "number": pa.array(range(len(ordered)))})
    last = numbered.group_by("cluster_id", use_threads=False).aggregate([("number", "max")])
    return plain_rows(ordered.take(last["number_max"]))


def _severities(rows: Iterable[Row]) -> Rows:
    """How many errors and warnings a cluster has."""
    counts: dict[str, Row] = {}
    for row in rows:
        count = counts.setdefault(
            row["cluster_id"], {"cluster_id": row["cluster_id"], "errors": 0, "warnings": 0}
        )
        count["errors" if row["severity"] == "error" else "warnings"] += 1
    return list(counts.values())


FLEET: dict[str, Callable[[LakeTables], Rows]] = {
    "captures": _fleet_captures,
    "voters": _fleet_voters,
    "epochs": _fleet_epochs,
    "logged": _fleet_logged,
    "reported": _fleet_reported,
    "changes": _fleet_changes,
    "watermarks": _fleet_watermarks,
    "committed": _fleet_committed,
    "quarantine": _fleet_quarantine,
    "findings": _fleet_findings,
    "resolved": _fleet_resolved,
    "expectations": _fleet_expectations,
    "names": _fleet_names,
    "lives": _fleet_lives,
    "failures": _fleet_failures,
}


def ask_fleet(lake: Location, clusters: Sequence[str]) -> dict[str, Rows]:
    """The rows of each kind."""
    tables = LakeTables(lake, clusters)
    return {kind: ask(tables) for kind, ask in FLEET.items()}


# --- a cluster: the rows of its sections -------------------------------------------------------------

DETAIL: dict[str, tuple[Table, tuple[str, ...]]] = {
    "sets": (
        VOTER_SETS,
        ("offset", "leader_epoch", "source", "voters", "majority", "commit_status", "evidence",
         "in_force_from_offset", "in_force_from", "in_force_to", "in_force_from_exact", "in_force_to_exact",
         "truncated_by_epoch", "observed_from", "observed_to"),
    ),
    "changes": (
        VOTER_CHANGES,
        ("offset", "leader_epoch", "kind", "voter_id", "directory_id", "detail", "changed_at",
         "changed_exact", "commit_status"),
    ),
    "epochs": (
        EPOCHS,
        ("leader_epoch", "leader_id", "start_offset", "start_offset_exact", "elected_at", "voter_ids",
         "granting_voters", "leaderless_ms", "leader_source", "known_from", "known_to", "observed_from",
         "observed_to"),
    ),
    "proofs": (
        HIGH_WATERMARKS,
        ("as_of", "evidence", "source", "lower_bound", "upper_bound", "believed_bound"),
    ),
    "captures": (
        CAPTURES,
        ("capture_id", "node_id", "directory_id", "captured_at", "log_start_offset", "log_end_offset",
         "last_leader_epoch", "kraft_version", "size_bytes", "snapshots"),
    ),
    "log_ranges": (
        LOG_RANGES,
        ("leader_epoch", "first_offset", "end_offset", "commit_status", "evidence", "as_of",
         "truncated_by_epoch"),
    ),
    "truncations": (TRUNCATIONS, tuple(n for n in TRUNCATIONS.names if n != "cluster_id")),
    "snapshots": (
        SNAPSHOTS,
        ("end_offset", "leader_epoch", "content_digest", "kind", "complete", "header_at", "size_bytes"),
    ),
    "quarantine": (
        QUARANTINE,
        ("capture_id", "file", "position", "size_bytes", "reason", "lost_from_offset", "lost_to_offset"),
    ),
    "findings": (FINDINGS, tuple(n for n in FINDINGS.names if n != "cluster_id")),
    "recovery": (RECOVERIES, tuple(n for n in RECOVERIES.names if n != "cluster_id")),
    "expectations": (
        EXPECTATION_RESULTS,
        tuple(n for n in EXPECTATION_RESULTS.names if n not in ("cluster_id", "run_id", "loaded_at")),
    ),
}  # fmt: skip


def ask_detail(lake: Location, clusters: Sequence[str]) -> dict[str, Parts]:
    """What the rows of each cluster are made from, by kind: `rows_of` makes them."""
    tables = LakeTables(lake, clusters)
    found: dict[str, Parts] = {cluster: {} for cluster in clusters}
    for kind, (table, names) in DETAIL.items():
        rows = tables.columns(table, *names)
        for cluster, part in each_cluster(rows) if rows is not None else ():
            found[cluster].setdefault(kind, []).append(part)
    return found


def rows_of(parts: Parts) -> dict[str, Rows]:
    """The rows of one cluster by kind, aggregated or cut to a few."""
    return few({kind: plain_rows(pa.Table.from_batches(some)) for kind, some in parts.items()})


def ask_lake(lake: Location) -> Rows:
    """The newest expectation results of the lake as a whole."""
    table, names = DETAIL["expectations"]
    return LakeTables(lake, [WHOLE_LAKE]).rows(table, *names)


def few(rows: Mapping[str, Rows]) -> dict[str, Rows]:
    """The rows of one cluster, aggregated or cut to the newest; `counts` has how many there were."""
    epochs, captures = rows.get("epochs", []), rows.get("captures", [])
    reported = [s for s in rows.get("sets", []) if s["source"] in ONLY_REPORTED]
    sets = [s for s in rows.get("sets", []) if s["source"] not in ONLY_REPORTED]
    proven = [s for s in sets if s["in_force_from_offset"] is not None]
    by_id = {c["capture_id"]: c for c in captures}
    unsettled = [r for r in rows.get("log_ranges", []) if r["commit_status"] != "committed"]
    quarantine = [
        q | {name: by_id.get(q["capture_id"], {}).get(name) for name in ("node_id", "captured_at")}
        for q in rows.get("quarantine", [])
    ]
    return {
        "sets": aggregates.newest(sets, _by_offset, NEWEST_SETS),
        "reported_sets": aggregates.newest(reported, lambda s: s["observed_to"] or 0, NEWEST),
        "changes": aggregates.newest(rows.get("changes", []), _by_offset, NEWEST_SETS),
        "epochs": aggregates.newest(epochs, lambda e: e["leader_epoch"], NEWEST),
        "leading": aggregates.leading(epochs),
        "reported_leaders": aggregates.reported_leaders(epochs),
        "leaders": aggregates.leaders(epochs),
        "proofs": aggregates.tight_bounds(rows.get("proofs", [])),
        "captures": aggregates.sampled_captures(captures),
        "unsettled": aggregates.newest(unsettled, lambda r: (r["first_offset"], r["leader_epoch"]), NEWEST),
        "truncations": aggregates.newest(rows.get("truncations", []), lambda r: r["lost_at"], NEWEST),
        "snapshots": aggregates.newest(
            aggregates.snapshot_rows(rows.get("snapshots", []), captures),
            lambda s: (s["end_offset"], s["leader_epoch"]),
            NEWEST,
        ),
        "quarantine": sorted(quarantine, key=_worst_bytes)[:NEWEST],
        "findings": aggregates.findings_together(rows.get("findings", []))[:NEWEST],
        "unlawful_epochs": aggregates.unlawful_epochs(rows.get("findings", [])),
        "recovery": rows.get("recovery", []),
        "expectations": rows.get("expectations", []),
        "counts": [
            {
                "sets": len(proven),
                "most_voters": max((len(s["voters"] or ()) for s in proven), default=0),
                "epochs": len(epochs),
                "reported_sets": len(reported),
                "elections_not_covered": aggregates.elections_not_covered(epochs),
                "unsettled": len(unsettled),
                "truncations": len(rows.get("truncations", [])),
                "quarantine": len(quarantine),
                "findings": len(rows.get("findings", [])),
            }
        ],
    }


def _by_offset(row: Row) -> tuple[int, int]:
    return row["offset"], row["leader_epoch"]


def _worst_bytes(row: Row) -> tuple[Any, ...]:
    return row["reason"] == "torn_tail", row["capture_id"], row["file"], row["position"]
