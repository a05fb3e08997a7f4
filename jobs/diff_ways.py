"""How kraftlake diff prints what was added, removed or changed, of whatever kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any


def way_of(before: object | None, after: object | None) -> str:
    """How a thing came to its second value from its first; None: it is not there."""
    if before is None:
        return "added"
    return "removed" if after is None else "changed"


def counted_ways(ways: Iterable[str]) -> str:
    counts = Counter(ways)
    return ", ".join(f"{counts[way]} {way}" for way in ("added", "removed", "changed") if counts[way])


def difference_data(
    kind: str, subject: str, columns: list[str] | None, before: Any, after: Any
) -> dict[str, Any]:
    """A difference in the JSON. columns: those that changed, None if the thing was added or removed."""
    return {
        "kind": kind,
        "subject": subject,
        "change": way_of(before, after),
        "columns": columns,
        "before": before,
        "after": after,
    }
