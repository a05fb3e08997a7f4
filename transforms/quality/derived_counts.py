"""How many rows each derived table has of a cluster: written with its derivation, compared by later runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from transforms.lake.delta_rs import arrow_with, exists, rows_with
from transforms.lake.tables import DERIVATIONS, TABLES

DERIVED_TABLES = tuple(table for table in TABLES if table.recomputed)
Counts = dict[str, int]


@dataclass(frozen=True, slots=True)
class DerivedRows:
    """How many rows of a cluster a derived table has, and how many its last derivation left."""

    cluster_id: str
    table: str
    rows: int
    expected: int


def derived_counts(lake: Path, clusters: Collection[str]) -> dict[str, Counts]:
    """By cluster the rows of each derived table that has any of it."""
    found: dict[str, Counts] = {cluster: {} for cluster in clusters}
    for table in DERIVED_TABLES:
        if exists(lake, table):
            ids = arrow_with(lake, table, ["cluster_id"], cluster_id=clusters)["cluster_id"]
            for pair in pc.value_counts(ids).to_pylist():
                found[pair["values"]][table.name] = pair["counts"]
    return found


def counted_rows(lake: Path, clusters: Collection[str] | None = None) -> Iterator[DerivedRows]:
    """Each derived table of the clusters, all by default; none of those derived by earlier versions only."""
    wanted = {} if clusters is None else {"cluster_id": clusters}
    yield from _counted(lake, rows_with(lake, DERIVATIONS, ("cluster_id", "derived_rows"), **wanted))


def lost_rows(lake: Path, clusters: Collection[str]) -> Iterator[DerivedRows]:
    """The derived tables of which rows of the clusters are gone, or too many."""
    return _lost(counted_rows(lake, clusters))


def _lost(counted: Iterable[DerivedRows]) -> Iterator[DerivedRows]:
    return (of_table for of_table in counted if of_table.rows != of_table.expected)


def _counted(lake: Path, stored: Sequence[Mapping[str, Any]]) -> Iterator[DerivedRows]:
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


def underived(lake: Path, clusters: Collection[str]) -> set[str]:
    """The clusters of which derived rows are lost, or could not be derived the last time."""
    columns = ("cluster_id", "failure", "derived_rows")
    stored = rows_with(lake, DERIVATIONS, columns, cluster_id=clusters)
    return _failed(stored) | {lost.cluster_id for lost in _lost(_counted(lake, stored))}


def failed_derivations(lake: Path, clusters: Collection[str]) -> set[str]:
    """The clusters that could not be derived the last time."""
    return _failed(rows_with(lake, DERIVATIONS, ("cluster_id", "failure"), cluster_id=clusters))


def _failed(stored: Iterable[Mapping[str, Any]]) -> set[str]:
    return {row["cluster_id"] for row in stored if row["failure"] is not None}
