"""Whether the derived rows of a cluster are complete, as recorded in table derivations for later runs.

A run records there that it begins to change rows of a cluster and, when it is done, how many rows each
derived table has. What an interrupted run left unfinished is thus derived again, and lost rows are detected.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.dataset as ds

from transforms.lake.commits import TableWriter
from transforms.lake.delta_rs import rows_by_cluster, rows_with
from transforms.lake.storage.location import Location
from transforms.lake.tables import (
    DERIVATIONS,
    REPLAY_VERSION,
    REPLAYS,
    TABLES,
)

DERIVED_TABLES = tuple(table for table in TABLES if table.recomputed)
Counts = dict[str, int]
_IS_EARLIER = ds.field("replay_version").is_null() | (ds.field("replay_version") != REPLAY_VERSION)


@dataclass(frozen=True, slots=True)
class DerivedRows:
    """How many rows of a cluster a derived table has, and how many its last derivation left."""

    cluster_id: str
    table: str
    rows: int
    expected: int


def derived_counts(lake: Location, clusters: Collection[str]) -> dict[str, Counts]:
    """By cluster the rows of each derived table that has any of it."""
    found: dict[str, Counts] = {cluster: {} for cluster in clusters}
    for table in DERIVED_TABLES:
        for cluster, rows in rows_by_cluster(lake, table, clusters).items():
            found[cluster][table.name] = rows
    return found


def counted_rows(lake: Location, clusters: Collection[str] | None = None) -> Iterator[DerivedRows]:
    """Each derived table of the clusters, all by default; none of those derived by earlier versions only."""
    yield from _counted(lake, rows_with(lake, DERIVATIONS, ("cluster_id", "derived_rows"), **_of(clusters)))


def lost_rows(lake: Location, clusters: Collection[str]) -> Iterator[DerivedRows]:
    """The derived tables of which rows of the clusters are gone, or too many."""
    return _lost(counted_rows(lake, clusters))


def _of(clusters: Collection[str] | None) -> dict[str, Collection[str]]:
    """What rows_with takes for rows of these clusters, or of all."""
    return {} if clusters is None else {"cluster_id": clusters}


def _lost(counted: Iterable[DerivedRows]) -> Iterator[DerivedRows]:
    return (of_table for of_table in counted if of_table.rows != of_table.expected)


def _counted(lake: Location, stored: Sequence[Mapping[str, Any]]) -> Iterator[DerivedRows]:
    """counted_rows of the clusters with these rows of DERIVATIONS."""
    expected = {
        row["cluster_id"]: {held["table_name"]: held["rows"] for held in row["derived_rows"]}
        for row in stored
        if row["derived_rows"] is not None
    }
    held = derived_counts(lake, expected)
    for cluster in sorted(expected):
        for table in DERIVED_TABLES:
            rows, wanted = (counts[cluster].get(table.name, 0) for counts in (held, expected))
            yield DerivedRows(cluster, table.name, rows, wanted)


def underived(lake: Location, clusters: Collection[str]) -> set[str]:
    """The clusters of which derived rows are lost, could not be derived, or are of an earlier replay.

    And all clusters, not only these, of which a run has changed rows and was interrupted.
    """
    every = rows_with(lake, DERIVATIONS, ("cluster_id", "failure", "derived_rows", "begun_by"))
    stored = [row for row in every if row["cluster_id"] in clusters]
    begun = {row["cluster_id"] for row in every if row["begun_by"] is not None}
    earlier = replayed_earlier(lake, clusters) if clusters else set[str]()
    return begun | earlier | _failed(stored) | {lost.cluster_id for lost in _lost(_counted(lake, stored))}


def replayed_earlier(lake: Location, clusters: Collection[str]) -> set[str]:
    """Those of the clusters whose histories are of an earlier replay, which found less."""
    rows = rows_with(lake, REPLAYS, ("cluster_id",), _IS_EARLIER, cluster_id=clusters)
    return {row["cluster_id"] for row in rows}


def ingested(lake: Location, clusters: Collection[str] | None = None) -> set[str]:
    """Those of the clusters, all by default, of which `kraftlake ingest` has loaded rows since they were
    derived.
    """
    is_noted = ds.field("ingested_by").is_valid()
    return {
        row["cluster_id"] for row in rows_with(lake, DERIVATIONS, ["cluster_id"], is_noted, **_of(clusters))
    }


def derived(lake: Location) -> dict[str, str | None]:
    """The clusters that were not only ingested, with why their last derivation failed, or None."""
    is_counted = ds.field("derived_rows").is_valid()
    rows = rows_with(lake, DERIVATIONS, ["cluster_id", "failure"], is_counted)
    return {row["cluster_id"]: row["failure"] for row in rows}


def not_evaluated(lake: Location, clusters: Collection[str] | None = None) -> list[dict[str, Any]]:
    """The clusters, of all by default, whose derived rows are not those of all that the lake holds of them.

    With `failure`, why their newest captures could not be derived, or `is_ingested`: they were only ingested.
    """
    is_behind = ds.field("failure").is_valid() | ds.field("ingested_by").is_valid()
    found = rows_with(lake, DERIVATIONS, ("cluster_id", "failure"), is_behind, **_of(clusters))
    failed = [row for row in found if row["failure"] is not None]
    behind = sorted(row["cluster_id"] for row in found if row["failure"] is None)
    return [*failed, *({"cluster_id": cluster, "is_ingested": True} for cluster in behind)]


def why_not_evaluated(lake: Location, cluster_id: str) -> str | None:
    """The same of one cluster, in words; None if all is derived."""
    for row in not_evaluated(lake, [cluster_id]):
        if "is_ingested" in row:
            words = f"what was ingested of {cluster_id} last is not derived yet"
            return f"{words}: kraftlake derive --lake {lake}"
        return f"the newest captures of {cluster_id} could not be derived: {row['failure']}"
    return None


def begun(lake: Location) -> dict[str, str]:
    """The clusters of which a run began to change rows and has not completed that, with the run's id."""
    rows = rows_with(lake, DERIVATIONS, ("cluster_id", "begun_by"), ds.field("begun_by").is_valid())
    return {row["cluster_id"]: row["begun_by"] for row in rows}


def removed(lake: Location) -> set[str]:
    """The clusters that a run began to remove, and has not."""
    return {row["cluster_id"] for row in rows_with(lake, DERIVATIONS, ["cluster_id"], ds.field("is_removed"))}


def begin_change(writer: TableWriter, clusters: Collection[str], run_columns: Mapping[str, Any]) -> None:
    """Note that a run, whose columns LOADED are given, begins to change rows of the clusters."""
    _note(writer, clusters, run_columns, {"begun_by": run_columns["run_id"]})


def begin_ingest(writer: TableWriter, clusters: Collection[str], run_columns: Mapping[str, Any]) -> None:
    """Note that a run is about to load rows of the clusters without deriving them. A derivation ends that."""
    _note(writer, clusters, run_columns, {"ingested_by": run_columns["run_id"]})


def begin_removal(writer: TableWriter, clusters: Collection[str], run_columns: Mapping[str, Any]) -> None:
    """The same of a run that removes the clusters. To be completed even where another run goes on."""
    _note(writer, clusters, run_columns, {"begun_by": run_columns["run_id"], "is_removed": True})


def _note(
    writer: TableWriter, clusters: Collection[str], run_columns: Mapping[str, Any], noted: Mapping[str, Any]
) -> None:
    if not clusters:
        return
    known = {row["cluster_id"]: row for row in rows_with(writer.lake, DERIVATIONS, cluster_id=clusters)}
    rows = [{"cluster_id": c, **run_columns} | known.get(c, {}) for c in sorted(clusters)]
    writer.create(DERIVATIONS)
    writer.put(DERIVATIONS, [{**row, **noted} for row in rows], by="cluster_id")


def end_change(writer: TableWriter, clusters: Collection[str]) -> None:
    """Note that what was begun is complete, where nothing is to be derived for that."""
    rows = rows_with(writer.lake, DERIVATIONS, cluster_id=clusters)
    writer.put(DERIVATIONS, [row | {"begun_by": None} for row in rows], by="cluster_id")


def failed_derivations(lake: Location, clusters: Collection[str]) -> set[str]:
    """The clusters that could not be derived the last time."""
    return _failed(rows_with(lake, DERIVATIONS, ("cluster_id", "failure"), cluster_id=clusters))


def _failed(stored: Iterable[Mapping[str, Any]]) -> set[str]:
    return {row["cluster_id"] for row in stored if row["failure"] is not None}
