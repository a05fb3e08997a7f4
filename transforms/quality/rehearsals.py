"""Rehearsed restorations as rows of table rehearsals."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, fields

from kraft_core.restore.rehearsal import Rehearsal
from transforms.lake.arrow_rows import Row, milliseconds, moment
from transforms.lake.delta_rs import rows_with
from transforms.lake.storage.location import Location
from transforms.lake.tables import REHEARSALS

TIMES = ("rehearsed_at", "as_of")


def rehearsal_row(rehearsal: Rehearsal, cluster_id: str, run_id: str) -> Row:
    """cluster_id: as the tables name the cluster."""
    row: Row = asdict(rehearsal) | {"cluster_id": cluster_id, "run_id": run_id}
    return row | {name: moment(row[name]) for name in TIMES}


def newest_rehearsals(lake: Location, clusters: Collection[str] = ()) -> dict[str, Rehearsal]:
    """The newest rehearsal of each cluster by its id, of all clusters or of some."""
    wanted = {"cluster_id": clusters} if clusters else {}
    rows = rows_with(lake, REHEARSALS, None, None, **wanted)
    ordered = sorted(rows, key=lambda row: (row["rehearsed_at"], row["run_id"]))
    return {row["cluster_id"]: _rehearsal(row) for row in ordered}


def _rehearsal(row: Row) -> Rehearsal:
    values: Row = {field.name: row[field.name] for field in fields(Rehearsal)}
    values |= {name: tuple(row[name] or ()) for name in ("refusals", "losses")}
    values |= {name: milliseconds(row[name]) for name in TIMES}
    return Rehearsal(**values)
