"""Groups findings of one cause: one stray directory violates a rule once for each of a hundred epochs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

Row = dict[str, Any]
MANY = 3
_OFFSETS = re.compile(r"offsets \d+ to \d+")
_NUMBER = re.compile(r"\d+")


def alike_findings(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows of findings in groups, both in the order of the rows; fewer than MANY alike stay apart.

    Alike are those of one cluster that break one rule on the same replicas, are in the same state for the
    same reason, and whose sentences differ in numbers only.
    """
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(_cause(row), []).append(row)
    few = ([[row] for row in group] if len(group) < MANY else [group] for group in groups.values())
    places = {id(row): nth for nth, row in enumerate(rows)}
    return sorted(chain.from_iterable(few), key=lambda group: places[id(group[0])])


def _cause(row: Mapping[str, Any]) -> tuple[Any, ...]:
    shape = _NUMBER.sub("#", _OFFSETS.sub("offset 0", row["sentence"] or ""))
    of_rule = row.get("cluster_id"), row["rule"], row["severity"], row["state"], row.get("reason")
    return (*of_rule, tuple(row.get("replicas") or ()), shape)
