"""What a run found, for people: a short text a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pyspark.sql import functions as F

from transforms.frames import to_rows
from transforms.lake import Lake, in_clusters
from transforms.tables import CAPTURES, EPOCHS, HIGH_WATERMARKS, LOG_RANGES, QUARANTINE, VOTER_SETS, Table

Row = dict[str, Any]
# More clusters than this are counted, not told one by one.
TOLD_CLUSTERS = 10
TOLD_SETS = 12


@dataclass(frozen=True, slots=True)
class Summary:
    """Lines to print, and how many quarantined stretches are more than the torn tail of a live copy."""

    lines: list[str]
    lost_rows: int


def summary(lake: Lake, clusters: Sequence[str]) -> Summary:
    """What the tables say of the clusters now."""
    told = list(clusters)[:TOLD_CLUSTERS]
    found = Found(lake, told)
    lines = [line for cluster in told for line in found.cluster_lines(cluster)]
    if len(clusters) > len(told):
        lines.append(f"and {len(clusters) - len(told)} more clusters: kraftlake sql has them all")
    lost = lake.read(QUARANTINE).where(in_clusters(clusters) & (F.col("reason") != "torn_tail"))
    return Summary(lines, lost.count() if lake.exists(QUARANTINE) else 0)


class Found:
    """The rows of a few clusters."""

    def __init__(self, lake: Lake, clusters: Sequence[str]) -> None:
        self._lake = lake
        self._clusters = clusters
        self._captures = self._rows(CAPTURES, "node_id", "directory_id", "captured_at", "log_end_offset")
        self._sets = self._rows(VOTER_SETS, "offset", "leader_epoch", "source", "voter_ids", "commit_status",
                                "truncated_by_epoch", "in_force_from", "in_force_to_offset")  # fmt: skip
        self._epochs = self._rows(EPOCHS, "leader_epoch", "leader_id")
        self._marks = self._rows(HIGH_WATERMARKS, "evidence", "as_of", "lower_bound", "upper_bound")
        self._ranges = self._rows(LOG_RANGES, "end_offset", "commit_status")
        self._lost = self._rows(QUARANTINE, "file", "position", "size_bytes", "reason", "capture_id")

    def _rows(self, table: Table, *columns: str) -> dict[str, list[Row]]:
        frame = self._lake.read(table).where(in_clusters(self._clusters)).select("cluster_id", *columns)
        by_cluster: dict[str, list[Row]] = {c: [] for c in self._clusters}
        for row in to_rows(frame):
            by_cluster[row["cluster_id"]].append(row)
        return by_cluster

    def cluster_lines(self, cluster: str) -> list[str]:
        """What there is to say of one cluster."""
        captures = self._captures[cluster]
        replicas = {(c["node_id"], c["directory_id"]) for c in captures}
        nodes = ", ".join(map(str, sorted({node for node, _ in replicas})))
        lines = [f"cluster {cluster}: {len(captures)} captures of {len(replicas)} replicas (nodes {nodes})"]
        lines += self._voter_lines(cluster)
        lines += self._epoch_lines(cluster)
        lines += self._watermark_lines(cluster)
        lines += self._quarantine_lines(cluster)
        return lines

    def _voter_lines(self, cluster: str) -> list[str]:
        sets = sorted(self._sets[cluster], key=lambda s: (s["offset"], s["leader_epoch"]))
        lines = [f"  voters: {len(sets)} sets"]
        if len(sets) > TOLD_SETS:
            lines.append(f"    ... {len(sets) - TOLD_SETS} earlier")
        return lines + [voter_line(s) for s in sets[-TOLD_SETS:]]

    def _epoch_lines(self, cluster: str) -> list[str]:
        epochs = sorted(self._epochs[cluster], key=lambda e: e["leader_epoch"])
        if not epochs:
            return []
        last = epochs[-1]
        leader = "unknown" if last["leader_id"] is None else f"node {last['leader_id']}"
        return [f"  epochs: {len(epochs)}, the last {last['leader_epoch']} led by {leader}"]

    def _watermark_lines(self, cluster: str) -> list[str]:
        marks = self._marks[cluster]
        lower = max((m["lower_bound"] for m in marks if m["lower_bound"] is not None), default=None)
        upper = [m for m in marks if m["upper_bound"] is not None]
        newest = max(upper, key=lambda m: m["as_of"], default=None)
        committed = max(
            (r["end_offset"] for r in self._ranges[cluster] if r["commit_status"] == "committed"),
            default=None,
        )
        bound = f"at most {newest['upper_bound']} at {when(newest['as_of'])}" if newest else "no upper bound"
        return [
            f"  high watermark: {'no lower bound' if lower is None else f'at least {lower}'}, {bound}; "
            f"committed {'nothing proven' if committed is None else f'up to {committed}'}"
        ]

    def _quarantine_lines(self, cluster: str) -> list[str]:
        lost = self._lost[cluster]
        if not lost:
            return []
        size = sum(q["size_bytes"] for q in lost)
        first = min(lost, key=lambda q: (q["file"], q["position"]))
        return [
            f"  quarantined: {len(lost)} stretches, {size:,} bytes; the first in {first['file']} "
            f"at byte {first['position']} ({first['reason']})"
        ]


def voter_line(row: Row) -> str:
    """One voter set in a line."""
    status = row["commit_status"] or row["source"]
    if row["truncated_by_epoch"] is not None:
        status += f" by epoch {row['truncated_by_epoch']}"
    ids = ",".join(map(str, row["voter_ids"]))
    since = f"  since {when(row['in_force_from'])}" if row["in_force_from"] else ""
    return f"    {row['offset']:>10}/e{row['leader_epoch']:<4} [{ids}]  {status}{since}"


def when(time: datetime) -> str:
    """A time to the second, UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%SZ")
