"""Findings and recovery advice as text and as JSON."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from kraft_core.wording import offset_words

# Lines are this long, on a terminal no longer than it is wide.
WIDTH = 100
_LEAST_WIDTH = 40
INDENT = "    "


def finding_lines(row: Mapping[str, Any]) -> Iterator[str]:
    """A finding as text: its id and rule, what is wrong, where, and the evidence."""
    state = row["state"] if row["reason"] is None else f"{row['state']}: {row['reason']}"
    yield f"{row['severity'].upper()}  {row['finding_id']}  rule {row['rule']} {row['name']}  ({state})"
    yield from wrapped(row["sentence"])
    yield from wrapped(f"cluster {row['cluster_id']}, {place(row)}")
    if row["evidence"]:
        yield from wrapped(f"shown by: {row['evidence']}")
    yield from wrapped(f"source: {row['source']}")


def place(row: Mapping[str, Any]) -> str:
    """Offsets, epochs, replicas and times of a finding."""
    parts = []
    if row["first_offset"] is not None:
        end = row["first_offset"] + 1 if row["end_offset"] is None else row["end_offset"]
        parts.append(offset_words(row["first_offset"], end))
    if row["leader_epochs"]:
        parts.append(named("epoch", row["leader_epochs"]))
    if row["replicas"]:
        parts.append(named("replica", row["replicas"]))
    seen = f"seen {when(row['first_seen_at'])}"
    if row["last_seen_at"] != row["first_seen_at"]:
        seen += f" to {when(row['last_seen_at'])}"
    return ", ".join([*parts, seen])


def as_json(value: Any) -> Any:
    """A row of a table as JSON can hold it: times as ISO 8601 in UTC."""
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return {name: as_json(held) for name, held in value.items()}
    return [as_json(item) for item in value] if isinstance(value, list | tuple) else value


def named(what: str, each: Sequence[Any]) -> str:
    """\"replica 1\" or \"replicas 1, 2\"."""
    return f"{what}{'' if len(each) == 1 else 's'} {', '.join(map(str, each))}"


def recovery_lines(row: Mapping[str, Any], is_old: bool) -> Iterator[str]:
    """The advice for one cluster (a row of recoveries): the choice, its safety, what others would lose.

    is_old: it is safe as of its time only.
    """
    from kraft_core.evidence.facts import label
    from kraft_core.raft.voters import ReplicaKey

    yield recovery_headline(row, is_old)
    yield from wrapped(row["why"])
    for nth, candidate in enumerate([*row["best"], *row["others"]]):
        claim = "best claim" if nth < len(row["best"]) else "weaker claim"
        who = label(ReplicaKey.of(candidate["node_id"], candidate["directory_id"]))
        kind = " (observer)" if candidate["is_observer"] else ""
        log = f"last epoch {candidate['last_leader_epoch']}, log end {candidate['log_end_offset']}"
        yield f"  {who}{kind}: {claim}, {log}{_captured(candidate)}"
        if candidate["voters_in_force"]:
            status = f", {candidate['voters_status']}" if candidate["voters_status"] else ""
            yield from wrapped(f"voter set in force: {candidate['voters_in_force']}{status}")
        if candidate["loses"]:
            yield from wrapped(f"would lose {candidate['loses']}")
        if candidate["keeps"]:
            yield from wrapped(f"holds, beyond what is proven: {candidate['keeps']}")
    if row["highest_epoch"] is not None:
        yield f"  highest epoch seen: {row['highest_epoch']}"


def _captured(candidate: Mapping[str, Any]) -> str:
    """When a candidate was captured, as far as its capture states it."""
    if candidate["captured_at"] is not None:
        return f", captured {when(candidate['captured_at'])}"
    if candidate["captured_from"] is None:
        return ", captured at an unknown time"
    return f", captured {when(candidate['captured_from'])} ({candidate['time_source']}) or later"


def recovery_headline(row: Mapping[str, Any], is_old: bool = True) -> str:
    """The advice in one line; is_old: what is safe is so as of the captures only."""
    without = f" without {named('node', row['without'])}" if row.get("without") else ""
    what = f"recovery of {row['cluster_id']}{without}"
    if not row["best"]:
        return f"{what}: NOT SAFE, no captured replica to start from"
    best = row["best"][0]
    nodes = named("node", [candidate["node_id"] for candidate in row["best"]])
    have = "has" if len(row["best"]) == 1 else "have"
    claim = (
        f"{nodes} {have} the best claim (epoch {best['last_leader_epoch']}, log end {best['log_end_offset']})"
    )
    as_of = f" as of {when(row['as_of'])}" if is_old and row["as_of"] is not None else ""
    verdict = "safe" if row["is_safe"] else "NOT SAFE"
    return f"{what}: {claim}, {verdict}{as_of}"


def wrapped(text: str) -> list[str]:
    """A paragraph below a headline; names are not broken."""
    return textwrap.wrap(
        text,
        _width(),
        initial_indent=INDENT,
        subsequent_indent=INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _width() -> int:
    if not sys.stdout.isatty():
        return WIDTH
    return max(_LEAST_WIDTH, min(WIDTH, shutil.get_terminal_size().columns - 1))


def when(time: datetime) -> str:
    """A time to the second, UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%SZ")
