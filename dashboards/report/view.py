"""The input of a cluster's sections."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dashboards.report.lanes import Lanes
from dashboards.report.state import ClusterState

Row = dict[str, Any]
Rows = dict[str, list[Row]]


@dataclass(frozen=True, slots=True)
class View:
    """The input of a cluster's sections. `now` in ms since the epoch; `anchor` prefixes the sections' ids.

    lasting: they may be read long after `now`, and have times where they would have ages.
    """

    state: ClusterState
    rows: Rows
    lanes: Lanes | None
    now: int
    anchor: str
    lasting: bool = False

    def of(self, kind: str) -> list[Row]:
        return self.rows.get(kind, [])

    def count(self, kind: str) -> int:
        """How many rows of the kind the lake has; `of` has only the newest."""
        return self.rows["counts"][0][kind]
