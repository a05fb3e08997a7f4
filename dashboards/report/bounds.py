"""What the captures prove about the high watermark over time, and where each log ended, from rows.

A lower bound holds from its time on, an upper bound up to its time; between two proofs both are constant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from dashboards.report.lanes import LaneReplica
from kraft_core.format.capture import FOLLOWED_NODE_ID

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class BoundProof:
    """A bound above all earlier ones (lower) or below all later ones (upper)."""

    at: int
    bound: int
    is_lower: bool
    evidence: str
    source: str


@dataclass(frozen=True, slots=True)
class BoundStep:
    """Between two times the high watermark was at least `lower` and at most `upper`; None: not bounded."""

    start: int
    end: int
    lower: int | None
    upper: int | None


@dataclass(frozen=True, slots=True)
class LogEnd:
    """Where a replica's log ended when it was captured."""

    at: int
    end_offset: int
    leader_epoch: int | None


@dataclass(frozen=True, slots=True)
class Bounds:
    """The chart: steps and proofs in order of time, and the log ends by replica."""

    steps: tuple[BoundStep, ...]
    proofs: tuple[BoundProof, ...]
    log_ends: dict[LaneReplica, tuple[LogEnd, ...]]

    @property
    def lowest(self) -> int:
        return min(self._offsets(), default=0)

    @property
    def highest(self) -> int:
        return max(self._offsets(), default=0)

    def _offsets(self) -> list[int]:
        ends = [end.end_offset for ends in self.log_ends.values() for end in ends]
        return ends + [p.bound for p in self.proofs]


def bounds_of(rows: dict[str, list[Row]], start: int, end: int) -> Bounds | None:
    """The bounds over [start, end] in ms; None without proofs and log ends."""
    proofs = sorted(
        (
            BoundProof(
                row["as_of"],
                row["upper_bound"] if row["lower_bound"] is None else row["lower_bound"],
                row["lower_bound"] is not None,
                row["evidence"],
                row["source"],
            )
            for row in rows.get("proofs", [])
        ),
        key=lambda p: (p.at, not p.is_lower, p.bound),
    )
    log_ends: dict[LaneReplica, list[LogEnd]] = {}
    for row in sorted(rows.get("captures", []), key=lambda r: (r["captured_at"], r["log_end_offset"] or 0)):
        if row["log_end_offset"] is not None and row["node_id"] != FOLLOWED_NODE_ID:
            log_ends.setdefault(LaneReplica(row["node_id"], row["directory_id"]), []).append(
                LogEnd(row["captured_at"], row["log_end_offset"], row["last_leader_epoch"])
            )
    if not proofs and not log_ends:
        return None
    return Bounds(
        tuple(steps_of(proofs, start, end)),
        tuple(proofs),
        {replica: tuple(ends) for replica, ends in sorted(log_ends.items())},
    )


def steps_of(proofs: Sequence[BoundProof], start: int, end: int) -> list[BoundStep]:
    """Both bounds between successive proofs, from start to end."""
    moments = sorted({start, end, *(min(max(p.at, start), end) for p in proofs)})
    lowers = sorted((p.at, p.bound) for p in proofs if p.is_lower)
    uppers = sorted(((p.at, p.bound) for p in proofs if not p.is_lower), reverse=True)
    lower_at: dict[int, int | None] = {}
    best, position = None, 0
    for moment in moments:
        while position < len(lowers) and lowers[position][0] <= moment:
            best = lowers[position][1] if best is None else max(best, lowers[position][1])
            position += 1
        lower_at[moment] = best
    upper_at: dict[int, int | None] = {}
    best, position = None, 0
    for moment in reversed(moments):
        while position < len(uppers) and uppers[position][0] >= moment:
            best = uppers[position][1] if best is None else min(best, uppers[position][1])
            position += 1
        upper_at[moment] = best
    return [BoundStep(a, b, lower_at[a], upper_at[b]) for a, b in pairwise(moments)]
