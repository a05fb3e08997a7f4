"""What kafka-metadata-quorum describe printed, as observations.

`describe --status` prints one field per line, `describe --replication` a table with tabs; `--human-readable`
changes only how its times are written. The name of an output begins with the time the command was started (ms
since the epoch); what it prints was true at one moment between that and its end. Source: Kafka's
MetadataQuorumCommand. kraftlake follow writes what a leader answers in the same form, under a name that ends
with LIVE (kraft_core.format.capture).
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from math import inf
from operator import itemgetter
from typing import Any, cast

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.rows import HighWatermarkRow
from kraft_core.findings.facts import Holder, Observation
from kraft_core.findings.newest_leaders import newest_until
from kraft_core.format.capture import is_live
from kraft_core.messages.uuid_text import ZERO_UUID, uuid_bytes, uuid_text

LONGEST_COMMAND_MS = 10_000
"""How long a describe command is assumed to have run where its end is unknown."""

_STARTED_AT = re.compile(r"(\d{13,})(?:\D|$)", re.ASCII)
_FIELD = re.compile(r"(\w+):(.*)", re.ASCII)
_STATUS_FIELDS = ("LeaderId", "LeaderEpoch", "HighWatermark", "CurrentVoters", "CurrentObservers")
_REPLICATION_FIELDS = ("NodeId", "LogEndOffset", "Lag", "Status")
_PRINTED = re.compile(rf"(?:ClusterId|{'|'.join(_STATUS_FIELDS)}):|NodeId\s|LogEndOffset\s", re.ASCII)


def is_output(text: str) -> bool:
    """Whether a text has anything of what the command prints of a quorum, whole or not."""
    return _PRINTED.search(text) is not None


def parse_describe(
    name: str, text: str, observed_to: int | None = None, cluster_id: str | None = None
) -> list[Observation]:
    """The observations of one output; none if the command printed no quorum.

    name: begins with the start in ms. observed_to (ms): when the command had ended. cluster_id: for
    --replication, which does not print it. Raises ValueError for a name without a start, and for an output
    that has some of the fields and not all of them, or no rows.
    """
    started = _STARTED_AT.match(name)
    if started is None:
        raise ValueError(f"{name}: the name does not begin with the time of the command in ms")
    start = int(started[1])
    until = start + LONGEST_COMMAND_MS if observed_to is None else max(start, observed_to)
    lines = [line for line in text.splitlines() if line.strip()]
    fields = {found[1]: found[2].strip() for line in lines if (found := _FIELD.fullmatch(line))}
    if not fields.keys().isdisjoint(_STATUS_FIELDS):
        return [_status(name, start, until, cluster_id, fields)]
    for nth, line in enumerate(lines):
        columns = _cells(line)
        if len(columns) > 1 and not set(columns).isdisjoint(_REPLICATION_FIELDS):
            rows = [dict(zip(columns, _cells(row), strict=False)) for row in lines[nth + 1 :]]
            if not rows:
                raise ValueError(f"{name}: no row of a replica")
            return [_replication(name, start, until, cluster_id, row) for row in rows]
    return []


def observed_watermarks(known: Conclusions, observations: Iterable[Observation]) -> list[HighWatermarkRow]:
    """The reported high watermarks as bounds: reached by the end of the command, not exceeded at its start.

    A leader that does not know yet that another was elected may answer, too. So an answer bounds from above
    only where its leader is shown to have been the newest one (newest_leaders). What an unlawfully elected
    leader reported is only what it believed. observations: those of the captured quorum (reports.Reports).
    """
    outputs = set(observations)
    leading = [(election.leader_epoch, election.elected_at) for election in known.elections.values()]
    leading += [(o.leader_epoch, o.observed_from) for o in outputs if o.leader_epoch is not None]
    leading.sort()
    # From when on that epoch or a later one is known to have had a leader.
    since = list(accumulate((at for _, at in reversed(leading)), min))[::-1]

    newest = newest_until(known, outputs)

    def overruled_at(epoch: int) -> float:
        nth = bisect_right(leading, epoch, key=itemgetter(0))
        return min(newest[epoch], since[nth] if nth < len(since) else inf)

    rows = [row for output in outputs for row in _bounds(known, output, overruled_at)]
    return sorted(rows, key=lambda row: (row.source, row.as_of))


def _bounds(
    known: Conclusions, output: Observation, overruled_at: Callable[[int], float]
) -> Iterator[HighWatermarkRow]:
    reported, epoch = output.high_watermark, output.leader_epoch
    if reported is None or epoch is None:
        return
    start, end = output.observed_from, output.observed_to
    text = f"{output.source}: leader {output.node_id} of epoch {epoch} reported {reported}"

    def row(source: str, at: int, *bounds: int | None) -> HighWatermarkRow:
        kind = "live" if is_live(output.source) else "describe"
        return HighWatermarkRow(known.facts.cluster_id, kind, source, at, epoch, *bounds)

    if known.in_force.is_unlawful(epoch):
        yield row(text, end, None, None, reported)
        return
    yield row(f"{text}, reached by then", end, reported, None, None)
    if start < overruled_at(epoch):
        yield row(f"{text}, not exceeded before", start, None, reported, None)


def _status(name: str, start: int, until: int, cluster_id: str | None, fields: dict[str, str]) -> Observation:
    _require(name, fields, _STATUS_FIELDS)
    leader = _number(name, fields["LeaderId"])
    voters = _replicas(name, fields["CurrentVoters"])
    high_watermark = _number(name, fields["HighWatermark"])
    return Observation(
        fields.get("ClusterId") or cluster_id,
        name,
        start,
        until,
        "status",
        leader,
        next((directory for node, directory in voters if node == leader), ZERO_UUID),
        "Leader",
        leader_epoch=_number(name, fields["LeaderEpoch"]),
        high_watermark=None if high_watermark < 0 else high_watermark,
        voters=voters,
        observers=_replicas(name, fields["CurrentObservers"]),
    )


def _replication(
    name: str, start: int, until: int, cluster_id: str | None, cells: dict[str, str]
) -> Observation:
    _require(name, cells, _REPLICATION_FIELDS)
    log_end_offset = _number(name, cells["LogEndOffset"])
    return Observation(
        cluster_id,
        name,
        start,
        until,
        "replication",
        _number(name, cells["NodeId"]),
        cells.get("DirectoryId") or ZERO_UUID,
        cells["Status"],
        log_end_offset=None if log_end_offset < 0 else log_end_offset,
        lag_records=_number(name, cells["Lag"]),
        last_fetch_at=_time(cells.get("LastFetchTimestamp", "")),
        last_caught_up_at=_time(cells.get("LastCaughtUpTimestamp", "")),
    )


def _require(name: str, fields: dict[str, str], wanted: tuple[str, ...]) -> None:
    missing = [field for field in wanted if field not in fields]
    if missing:
        raise ValueError(f"{name}: no {', '.join(missing)}")


def _replicas(name: str, text: str) -> tuple[Holder, ...]:
    """Voters or observers: objects from Kafka 3.9 on, ids before."""
    try:
        return tuple(sorted(_replica(entry) for entry in json.loads(text)))
    except (ValueError, TypeError, LookupError, RecursionError):
        raise ValueError(f"{name}: {text[:80]!r} is not an output of --replication") from None


def _replica(entry: object) -> Holder:
    """Raises ValueError, LookupError or TypeError if it is none."""
    node, directory = entry, None
    if isinstance(entry, dict):
        fields = cast("dict[str, Any]", entry)
        node, directory = fields["id"], fields.get("directoryId")
    if type(node) is not int:
        raise TypeError(f"an id is an integer, not {node!r}")
    return node, uuid_text(uuid_bytes(directory)) if directory else ZERO_UUID


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("\t")]


def _number(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise ValueError(f"{name}: {text[:80]!r} is not a number") from error


def _time(text: str) -> int | None:
    """Milliseconds since the epoch; None for -1 and for "15 ms ago"."""
    return int(text) if text.isdecimal() else None
