"""Partitions under min ISR, from versions of partitions and settings: what view under_min_isr says.

A partition is under min ISR while its ISR is smaller than the topic's min.insync.replicas (its own, else the
cluster's default in the metadata log, else 1), or than its replicas where those are fewer. Times in ms.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any

from dashboards.report.aggregates import bin_of

Row = dict[str, Any]
# Above so many changes the picture is drawn from bins of time.
MOST_STEPS = 240


def spans(versions: Iterable[Row], settings: Iterable[Row]) -> list[Row]:
    """When which partition was under min ISR; `to_offset` and `to_at` are null where it still is.

    `versions` need to be only those whose ISR is smaller than it might have to be.
    """
    by_resource: dict[tuple[str, str, str], list[Row]] = {}
    for setting in settings:
        key = setting["cluster_id"], setting["resource_type"], setting["resource_name"]
        by_resource.setdefault(key, []).append(setting)
    found: list[Row] = []
    for (cluster, _, _), group in groupby(sorted(versions, key=by_partition), key=partition):
        rows = list(group)
        own = by_resource.get((cluster, "TOPIC", rows[0]["topic_name"]), [])
        shared = by_resource.get((cluster, "BROKER", ""), [])
        found += joined(piece for row in rows for piece in pieces(row, own, shared))
    return found


def partition(row: Row) -> tuple[str, str, int]:
    return row["cluster_id"], row["topic_id"], row["partition_id"]


def by_partition(row: Row) -> tuple[Any, ...]:
    return (*partition(row), row["valid_from_offset"])


def pieces(version: Row, own: Sequence[Row], shared: Sequence[Row]) -> Iterator[Row]:
    """The parts of a version, between changes of the setting, in which the ISR was too small."""
    start, end = version["valid_from_offset"], version["valid_to_offset"]
    turns: dict[int, int | None] = {}
    for setting in (*own, *shared):
        for part in ("from", "to"):
            offset = setting[f"valid_{part}_offset"]
            if offset is not None and offset > start and (end is None or offset < end):
                turns[offset] = setting[f"valid_{part}_at"]
    points = [(start, version["valid_from_at"]), *sorted(turns.items()), (end, version["valid_to_at"])]
    for (first, first_at), (last, last_at) in pairwise(points):
        least = min(in_force(own, first) or in_force(shared, first) or 1, len(version["replicas"]))
        if len(version["isr"]) < least:
            yield {
                "cluster_id": version["cluster_id"],
                "topic_name": version["topic_name"],
                "partition_id": version["partition_id"],
                "from_offset": first,
                "from_at": first_at,
                "to_offset": last,
                "to_at": last_at,
                "isr": version["isr"],
                "min_isr": least,
                "commit_status": version["commit_status"],
            }


def in_force(settings: Iterable[Row], offset: int) -> int | None:
    """The value of a setting at an offset; None where there was none."""
    for setting in settings:
        end = setting["valid_to_offset"]
        if setting["valid_from_offset"] <= offset and (end is None or end > offset):
            return int(setting["value"]) if (setting["value"] or "").isdigit() else None
    return None


def joined(parts: Iterable[Row]) -> list[Row]:
    """Pieces of one partition that follow each other as one; the ISR and the setting are the last ones."""
    found: list[Row] = []
    for piece in parts:
        if found and found[-1]["to_offset"] == piece["from_offset"]:
            status = max(found[-1]["commit_status"], piece["commit_status"])
            found[-1] |= {k: piece[k] for k in ("to_offset", "to_at", "isr", "min_isr")}
            found[-1]["commit_status"] = status
        else:
            found.append(dict(piece))
    for span in found:
        begin, end = span["from_at"], span["to_at"]
        span["under_ms"] = None if begin is None or end is None else end - begin
    return found


def together(found: Iterable[Row]) -> list[Row]:
    """Spans of one topic that are alike but for the partition as one row, with all of the partitions."""
    alike: dict[tuple[Any, ...], Row] = {}
    for span in found:
        key = tuple(
            str(span[name]) for name in ("topic_name", "from_at", "to_at", "isr", "min_isr", "commit_status")
        )
        row = alike.setdefault(key, span | {"partitions": []})
        row["partitions"].append(span["partition_id"])
    return list(alike.values())


def steps(found: Iterable[Row]) -> list[Row]:
    """How many partitions were under min ISR from each moment of change on; `most` until the next row."""
    edges: dict[int, int] = {}
    for span in found:
        for at, step in ((span["from_at"], 1), (span["to_at"], -1)):
            if at is not None:
                edges[at] = edges.get(at, 0) + step
    if not edges:
        return []
    first, last = min(edges), max(edges)
    rows: dict[int, Row] = {}
    now = 0
    for at in sorted(edges):
        now += edges[at]
        place = at if len(edges) <= MOST_STEPS else bin_of(at, first, last, MOST_STEPS)
        row = rows.setdefault(place, {"at": at, "most": now})
        row |= {"partitions": now, "most": max(now, row["most"])}
    return list(rows.values())
