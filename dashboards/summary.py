"""The summary that a run prints: a short text per cluster."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kraft_core.evidence.watermark_at import WatermarkAt, newest_watermark
from kraft_core.format.capture import FOLLOWED_NODE_ID
from kraft_core.wording import count
from transforms.histories.missing import missing_by_cluster
from transforms.histories.replay_steps import known_paths
from transforms.lake.delta_rs import rows_with
from transforms.lake.isolation import apart
from transforms.lake.lives import life_words, named_clusters
from transforms.lake.storage.location import Location
from transforms.lake.tables import (
    CAPTURES,
    EPOCHS,
    FINDINGS,
    HIGH_WATERMARKS,
    LOG_RANGES,
    QUARANTINE,
    VOTER_SETS,
    Table,
)
from transforms.quality.alike_findings import alike_findings

Row = dict[str, Any]
# More clusters than this are counted, not listed.
MOST_CLUSTERS = 10
MOST_SETS = 12
MOST_ERRORS = 5
NO_NAMES: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class Summary:
    """Lines to print. failed: the clusters of which no line can be made, and why."""

    lines: list[str]
    failed: dict[str, str]


def summary(lake: Location, clusters: Sequence[str], names: Mapping[str, str] = NO_NAMES) -> Summary:
    """The summary of the clusters as the lake's tables have them now.

    names: of clusters, by id, before those that the lake keeps.
    """
    listed = _worst_first(lake, clusters)[:MOST_CLUSTERS]
    lines_of: dict[str, list[str]] = {}

    def sum_up(some: Sequence[str]) -> None:
        found = Found(lake, some, names)
        lines_of.update({cluster: found.cluster_lines(cluster) for cluster in some})

    failed = apart(listed, sum_up)
    lines = [line for cluster in listed for line in lines_of.get(cluster, ())]
    if len(clusters) > len(listed):
        lines.append(f"and {count(len(clusters) - len(listed), 'more cluster')}: see kraftlake clusters")
    return Summary(lines, failed)


def _worst_first(lake: Location, clusters: Sequence[str]) -> list[str]:
    """Those with the most open errors first, then those with the most open warnings, else in their order."""
    rows = rows_with(lake, FINDINGS, ["cluster_id", "severity"], cluster_id=clusters, state=["open"])
    found = Counter((row["cluster_id"], row["severity"]) for row in rows)
    return sorted(clusters, key=lambda cluster: (-found[cluster, "error"], -found[cluster, "warning"]))


# The columns that the summary of a cluster needs.
COLUMNS = {
    CAPTURES: ("node_id", "directory_id"),
    VOTER_SETS: (
        "offset",
        "leader_epoch",
        "source",
        "voter_ids",
        "commit_status",
        "truncated_by_epoch",
        "in_force_from",
        "in_force_from_exact",
        "in_force_from_offset",
        "observed_from",
        "observed_to",
    ),
    EPOCHS: ("leader_epoch", "leader_id", "leader_source"),
    HIGH_WATERMARKS: ("as_of", "lower_bound", "upper_bound"),
    LOG_RANGES: ("end_offset", "commit_status"),
    QUARANTINE: ("file", "position", "size_bytes", "reason"),
    FINDINGS: ("finding_id", "rule", "severity", "state", "sentence", "replicas", "first_offset"),
}


class Found:
    """Rows of the clusters by table."""

    def __init__(self, lake: Location, clusters: Sequence[str], names: Mapping[str, str]) -> None:
        self._rows: dict[tuple[str, str], list[Row]] = defaultdict(list)
        for table, columns in COLUMNS.items():
            for row in rows_with(lake, table, ["cluster_id", *columns], cluster_id=clusters):
                self._rows[table.name, row["cluster_id"]].append(row)
        self._lives = life_words(lake)
        self._names = {row["cluster_id"]: row["name"] for row in named_clusters(lake)} | dict(names)
        self._missing = missing_by_cluster(lake, known_paths(lake, clusters))

    def of(self, table: Table, cluster: str) -> list[Row]:
        return self._rows[table.name, cluster]

    def cluster_lines(self, cluster: str) -> list[str]:
        """The summary of one cluster."""
        captures = self.of(CAPTURES, cluster)
        followed = any(c["node_id"] == FOLLOWED_NODE_ID for c in captures)
        captures = [c for c in captures if c["node_id"] != FOLLOWED_NODE_ID]
        replicas = {(c["node_id"], c["directory_id"]) for c in captures}
        nodes = sorted({node for node, _ in replicas})
        listing = ", ".join(map(str, nodes))
        of_nodes = f" ({'node' if len(nodes) == 1 else 'nodes'} {listing})" if nodes else ""
        lines = [
            f"cluster {cluster}{self._name(cluster)}: {count(len(captures), 'capture')} of "
            f"{count(len(replicas), 'replica')}{of_nodes}{', and followed' if followed else ''}"
        ]
        lines += [f"  {self._lives[cluster]}"] if cluster in self._lives else []
        lines += self._voter_lines(cluster)
        lines += self._epoch_lines(cluster)
        lines += self._watermark_lines(cluster)
        lines += self._quarantine_lines(cluster)
        lines += self._missing_lines(cluster)
        lines += self._finding_lines(cluster)
        return lines

    def _name(self, cluster: str) -> str:
        """The name of a cluster that has one."""
        return f" ({self._names[cluster]})" if cluster in self._names else ""

    def _voter_lines(self, cluster: str) -> list[str]:
        found = self.of(VOTER_SETS, cluster)
        sets = [s for s in found if s["in_force_from_offset"] is not None]
        sets.sort(key=lambda s: (s["offset"], s["leader_epoch"]))
        reported = [s for s in found if s["in_force_from_offset"] is None and s["observed_to"] is not None]
        reported.sort(key=lambda s: (s["observed_to"], s["leader_epoch"]))
        more = f", and {len(reported)} only reported" if reported else ""
        lines = [f"  voters: {count(len(sets), 'set')}{more}"]
        if len(sets) > MOST_SETS:
            lines.append(f"    ... {len(sets) - MOST_SETS:,} earlier: view voter_history has all")
        widths = _place_widths([*sets[-MOST_SETS:], *reported[-MOST_SETS:]])
        lines += [_voter_line(s, widths) for s in sets[-MOST_SETS:]]
        if len(reported) > MOST_SETS:
            lines.append(
                f"    ... {len(reported) - MOST_SETS:,} reported earlier: view voter_history has all"
            )
        return lines + [_reported_line(s, widths) for s in reported[-MOST_SETS:]]

    def _epoch_lines(self, cluster: str) -> list[str]:
        epochs = sorted(self.of(EPOCHS, cluster), key=lambda e: e["leader_epoch"])
        if not epochs:
            return []
        last = epochs[-1]
        leader = ", leader unknown" if last["leader_id"] is None else f" led by node {last['leader_id']}"
        reported = last["leader_id"] is not None and last["leader_source"] != "record"
        source = f" (reported: {last['leader_source']})" if reported else ""
        return [f"  epochs: {len(epochs)} known, newest {last['leader_epoch']}{leader}{source}"]

    def _watermark_lines(self, cluster: str) -> list[str]:
        committed = max(
            (r["end_offset"] for r in self.of(LOG_RANGES, cluster) if r["commit_status"] == "committed"),
            default=None,
        )
        return [
            f"  high watermark: {_watermark_words(newest_watermark(self.of(HIGH_WATERMARKS, cluster)))}; "
            f"{'nothing is proven committed' if committed is None else f'committed up to {committed}'}"
        ]

    def _quarantine_lines(self, cluster: str) -> list[str]:
        lost = self.of(QUARANTINE, cluster)
        if not lost:
            return []
        size = sum(q["size_bytes"] for q in lost)
        first = min(lost, key=lambda q: (q["file"], q["position"]))
        more = "; table quarantine has all" if len(lost) > 1 else ""
        return [
            f"  quarantined: {count(len(lost), 'range')}, {size:,} bytes; the first in {first['file']} "
            f"at byte {first['position']} ({first['reason']}){more}"
        ]

    def _missing_lines(self, cluster: str) -> list[str]:
        """Which records the histories of the metadata lack."""
        missing = self._missing.get(cluster, [])
        all_of_them = f" (the first of {len(missing)} such ranges; kraftlake report shows all)"
        more = all_of_them if len(missing) > 1 else ""
        return [f"  metadata: {each.sentence}{more}" for each in missing[:1]]

    def _finding_lines(self, cluster: str) -> list[str]:
        """How many findings there are of each kind, and the open errors."""
        findings = self.of(FINDINGS, cluster)
        if not findings:
            return []
        counts = Counter((f["state"], f["severity"]) for f in findings)
        kinds = ", ".join(
            count(number, f"{state} {severity}") for (state, severity), number in sorted(counts.items())
        )
        errors = [f for f in findings if (f["state"], f["severity"]) == ("open", "error")]
        errors.sort(key=_place)
        groups = alike_findings(errors)
        left = sum(map(len, groups[MOST_ERRORS:]))
        return [
            f"  findings: {kinds}; see kraftlake findings list",
            *(_error_line(group) for group in groups[:MOST_ERRORS]),
            *([f"    ... {count(left, 'more error')}"] if left else []),
        ]


def _place(row: Row) -> tuple[int, int, str]:
    return row["rule"], -1 if row["first_offset"] is None else row["first_offset"], row["finding_id"]


def _error_line(group: Sequence[Row]) -> str:
    """The first of alike errors, and how many more there are."""
    first, more = group[0], len(group) - 1
    line = f"    {first['finding_id']}  rule {first['rule']}: {first['sentence']}"
    return f"{line} And {more:,} more like it." if more else line


def _watermark_words(known: WatermarkAt) -> str:
    """The bounds at one moment, and the higher lower bound that holds from later on."""
    lower = "no lower bound" if known.lower is None else f"at least {known.lower}"
    upper = "no upper bound" if known.upper is None else f"at most {known.upper}"
    words = "no bound with a known time" if known.at is None else f"{lower}, {upper} at {_when(known.at)}"
    if known.later_lower is None:
        return words
    since = "at an unknown time" if known.later_at is None else f"from {_when(known.later_at)}"
    return f"{words}, at least {known.later_lower} {since}"


Widths = tuple[int, int]


def _place_widths(sets: Sequence[Row]) -> Widths:
    """The widths of offsets and epochs in the lines of voter sets: after a restoration both are large."""
    offsets = (len(str(row["offset"])) for row in sets if row["offset"] is not None)
    return max([10, *offsets]), max([4, *(len(str(row["leader_epoch"])) for row in sets)])


def _set_place(offset: object, row: Row, widths: Widths) -> str:
    return f"    {offset!s:>{widths[0]}}/e{row['leader_epoch']:<{widths[1]}}"


def _voter_line(row: Row, widths: Widths) -> str:
    """One voter set as a line."""
    status = row["commit_status"] or row["source"]
    if row["truncated_by_epoch"] is not None:
        status += f" by epoch {row['truncated_by_epoch']}"
    ids = ",".join(map(str, row["voter_ids"]))
    return f"{_set_place(row['offset'], row, widths)} [{ids}]  {status}{_since(row)}"


def _reported_line(row: Row, widths: Widths) -> str:
    """One voter set that is only reported."""
    ids = ",".join(map(str, row["voter_ids"]))
    when = f"{_when(row['observed_from'])} to {_when(row['observed_to'])}" if row["observed_from"] else "?"
    return f"{_set_place('?', row, widths)} [{ids}]  reported ({row['source']}), not proven  {when}"


def _since(row: Row) -> str:
    """Since when a set is in force; at or before, where that is only where it is first known."""
    if row["in_force_from"] is None:
        return ""
    begin = "in force at or before" if row["in_force_from_exact"] is False else "since"
    return f"  {begin} {_when(row['in_force_from'])}"


def _when(time: datetime) -> str:
    """A time to the second, UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%SZ")
