"""The bounds of the high watermark at one moment, from rows of high_watermarks.

The high watermark never decreases, so a lower bound holds from its time on and an upper bound up to its time.
Bounds of different times are never combined: the log grows between the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Proof = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class WatermarkAt:
    """What is proven at the moment `at`. Times are of the rows' type: ms, or datetime.

    lower, upper: the high watermark was at least and at most this; None: not proven. later_lower: a higher
    lower bound, which holds only from later_at on; None where there is none. at, later_at: None where no
    proof says when.
    """

    at: Any
    lower: int | None
    upper: int | None
    later_lower: int | None = None
    later_at: Any = None


def newest_watermark(proofs: Iterable[Proof]) -> WatermarkAt:
    """The bounds at the last moment that has an upper one; if none has, where the best lower one begins.

    proofs: rows with as_of, lower_bound and upper_bound, in any order; one of the bounds is None.
    """
    rows = list(proofs)
    timed = [row for row in rows if row["as_of"] is not None]
    capped = [row["as_of"] for row in timed if row["upper_bound"] is not None]
    then = watermark_at(rows, max(capped, default=_begin_of_best(timed)))
    best = max(_values(rows, "lower_bound"), default=None)
    if best == then.lower:
        return then
    since = _begin_of_best(timed) if best in _values(timed, "lower_bound") else None
    return WatermarkAt(then.at, then.lower, then.upper, best, since)


def watermark_at(proofs: Iterable[Proof], at: Any) -> WatermarkAt:
    """The bounds at a moment. A proof without a time proves nothing about any moment."""
    timed = [row for row in proofs if row["as_of"] is not None and at is not None]
    lower = max(_values((row for row in timed if row["as_of"] <= at), "lower_bound"), default=None)
    upper = min(_values((row for row in timed if row["as_of"] >= at), "upper_bound"), default=None)
    return WatermarkAt(at, lower, upper)


def _begin_of_best(timed: Iterable[Proof]) -> Any:
    """When the highest lower bound begins to hold."""
    lowers = [(-row["lower_bound"], row["as_of"]) for row in timed if row["lower_bound"] is not None]
    return min(lowers, default=(0, None))[1]


def _values(rows: Iterable[Proof], name: str) -> list[int]:
    return [row[name] for row in rows if row[name] is not None]
