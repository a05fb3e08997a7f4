"""Aggregates that keep the charts and tables of the page small, however long a cluster's history is.

Rows are dicts of one cluster, times in ms since the epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from transforms.quality.alike_findings import alike_findings

Row = dict[str, Any]
# With more epochs, proofs, captures of a replica or steps than this, a chart shows bins of time.
MOST_EPOCHS = 240
MOST_PROOFS = 240
MOST_CAPTURES = 80
MOST_STEPS = 240
# At most this many findings of one cause are listed beside the first.
MOST_ALIKE = 40
# What spans of the partitions of a topic have in common, beside the ISR.
SAME_SPAN = itemgetter("topic_name", "from_at", "to_at", "from_exact", "to_exact", "min_isr", "commit_status")
# The rule that a LEADER_CHANGE names the voters in force and was granted by a majority of them.
ELECTION_RULE = 23


def newest(rows: Sequence[Row], key: Callable[[Row], Any], most: int) -> list[Row]:
    """The rows with the largest keys, largest first."""
    return sorted(rows, key=key, reverse=True)[:most]


def _bin_of(at: int, start: int, end: int, bins: int) -> int:
    """The number of the bin that holds a time, of equal bins over [start, end]."""
    return min((at - start) * bins // max(end - start, 1), bins - 1)


def leading(epochs: Iterable[Row]) -> list[Row]:
    """Who led when by LEADER_CHANGEs: a row per epoch or, with many epochs, per leader and bin of time.

    An epoch ends where the leaderless time before the next one begins, whoever led that; where that is not
    known, with its last captured batch, else where the next one is first known. The end of the last epoch may
    be unknown.
    """
    every = sorted(epochs, key=lambda e: e["leader_epoch"])
    pairs = [
        (epoch, _end(epoch, after))
        for epoch, after in zip(every, [*every, None][1:], strict=True)
        if epoch["elected_at"] is not None and epoch["leader_id"] is not None
    ]
    if not pairs:
        return []
    known = [epoch for epoch, _ in pairs]
    starts = [e["elected_at"] for e in known]
    first, last = min(starts), max(starts)
    members: dict[tuple[int, int], list[tuple[Row, int | None]]] = {}
    for epoch, end in pairs:
        at = epoch["elected_at"]
        place = epoch["leader_epoch"] if len(known) <= MOST_EPOCHS else _bin_of(at, first, last, MOST_EPOCHS)
        until = None if end is None else max(end, at)
        members.setdefault((place, epoch["leader_id"]), []).append((epoch, until))
    return [_led_together(place, leader, spans) for (place, leader), spans in members.items()]


def _end(epoch: Row, after: Row | None) -> int | None:
    """When an epoch ended, by the one after it in the table; of two, at most one leads at a time."""
    if after is not None and after["leaderless_ms"] is not None:
        return after["elected_at"] - after["leaderless_ms"]
    if epoch["known_to"] is not None or after is None:
        return epoch["known_to"]
    times = [after[name] for name in ("elected_at", "known_from", "observed_from") if after[name] is not None]
    return min(times, default=epoch["elected_at"])


def _led_together(place: int, leader: int, spans: Sequence[tuple[Row, int | None]]) -> Row:
    """Epochs of one leader as one row."""
    epochs = [epoch for epoch, _ in spans]
    ends = [end for _, end in spans]
    gaps = [e["leaderless_ms"] for e in epochs if e["leaderless_ms"] is not None]
    return {
        "bin": place,
        "leader_id": leader,
        "epochs": len(epochs),
        "first_epoch": epochs[0]["leader_epoch"],
        "last_epoch": epochs[-1]["leader_epoch"],
        "from_ms": min(e["elected_at"] for e in epochs),
        "until_ms": None if None in ends else max(end for end in ends if end is not None),
        "led_ms": sum(end - e["elected_at"] for e, end in spans if end is not None),
        "leaderless_ms": sum(gaps) if gaps else None,
        "longest_leaderless_ms": max(gaps, default=None),
        "covered": len(gaps),
    }


def reported_leaders(epochs: Iterable[Row]) -> list[Row]:
    """The newest epochs whose leader is only reported, and between which times it is known to have led."""
    found: list[Row] = []
    for epoch in epochs:
        times = [epoch[name] for name in ("known_from", "known_to", "observed_from", "observed_to")]
        known = [time for time in times if time is not None]
        if epoch["elected_at"] is None and epoch["leader_id"] is not None and known:
            found.append(epoch | {"from_ms": min(known), "until_ms": max(known)})
    return newest(found, lambda e: e["leader_epoch"], MOST_EPOCHS)


def elections_not_covered(epochs: Iterable[Row]) -> int:
    """Before how many epochs the time without a leader is not known; before a log's first there is none."""
    return sum(e["leaderless_ms"] is None and not (e["start_offset_exact"] and e["start_offset"] == 0)
               for e in epochs)  # fmt: skip


def leaders(epochs: Iterable[Row]) -> list[Row]:
    """How often each node led, and the leaderless time before its epochs; most epochs first."""
    led: dict[int | None, list[Row]] = {}
    for epoch in epochs:
        led.setdefault(epoch["leader_id"], []).append(epoch)
    rows = []
    for leader, theirs in led.items():
        gaps = [e["leaderless_ms"] for e in theirs if e["leaderless_ms"] is not None]
        rows.append(
            {
                "leader_id": leader,
                "epochs": len(theirs),
                "last_elected_at": max((e["elected_at"] for e in theirs if e["elected_at"]), default=None),
                "leaderless_ms": sum(gaps) if gaps else None,
                "longest_leaderless_ms": max(gaps, default=None),
                "not_covered": elections_not_covered(theirs),
            }
        )
    return sorted(rows, key=lambda r: (-r["epochs"], r["leader_id"] is None, r["leader_id"] or 0))


def tight_bounds(proofs: Iterable[Row]) -> list[Row]:
    """The proofs of the high watermark that no other proof implies.

    A lower bound above all earlier ones, an upper bound below all later ones; of very many, the tightest of
    each bin of time. A proof without a time is none of these.
    """
    rows = [p for p in proofs if p["believed_bound"] is None and p["as_of"] is not None]
    lowers = [p for p in rows if p["lower_bound"] is not None]
    uppers = [p for p in rows if p["upper_bound"] is not None]
    found: list[Row] = []
    best = -1
    for proof in sorted(lowers, key=lambda p: (p["as_of"], -p["lower_bound"], p["source"])):
        if proof["lower_bound"] > best:
            best = proof["lower_bound"]
            found.append(proof)
    least: int | None = None
    for proof in sorted(uppers, key=lambda p: (-p["as_of"], p["upper_bound"], p["source"])):
        if least is None or proof["upper_bound"] < least:
            least = proof["upper_bound"]
            found.append(proof)
    return _tightest(found) if len(found) > MOST_PROOFS else found


def _tightest(proofs: Sequence[Row]) -> list[Row]:
    """The highest lower bound and the lowest upper bound of each bin of time."""
    first, last = min(p["as_of"] for p in proofs), max(p["as_of"] for p in proofs)
    best: dict[tuple[int, bool], Row] = {}
    for proof in proofs:
        is_lower = proof["lower_bound"] is not None
        place = _bin_of(proof["as_of"], first, last, MOST_PROOFS // 2), is_lower
        held = best.setdefault(place, proof)
        if is_lower and proof["lower_bound"] > held["lower_bound"]:
            best[place] = proof
        if not is_lower and proof["upper_bound"] < held["upper_bound"]:
            best[place] = proof
    return list(best.values())


def sampled_captures(captures: Iterable[Row]) -> list[Row]:
    """Captures with the number of their replica's captures; of very many, the newest of each bin of time."""

    def replica(row: Row) -> tuple[int, str]:
        return row["node_id"], row["directory_id"]

    found: list[Row] = []
    for _, group in groupby(sorted(captures, key=lambda c: (replica(c), c["captured_at"])), replica):
        rows = list(group)
        first, last = rows[0]["captured_at"], rows[-1]["captured_at"]
        kept: dict[int, Row] = {}
        for index, row in enumerate(rows):
            many = len(rows) > MOST_CAPTURES
            place = _bin_of(row["captured_at"], first, last, MOST_CAPTURES) if many else index
            kept[place] = row | {"captures": len(rows)}
        found += kept.values()
    return found


def snapshot_rows(snapshots: Iterable[Row], captures: Iterable[Row]) -> list[Row]:
    """Snapshots by end offset and epoch, with the nodes that held one."""
    held: dict[str, set[int]] = {}
    for capture in captures:
        for snapshot in capture["snapshots"] or ():
            held.setdefault(snapshot["content_digest"], set()).add(capture["node_id"])
    copies: dict[tuple[int, int], list[Row]] = {}
    for snapshot in snapshots:
        if snapshot["kind"] == "snapshot":
            copies.setdefault((snapshot["end_offset"], snapshot["leader_epoch"]), []).append(snapshot)
    return [
        {
            "end_offset": end,
            "leader_epoch": epoch,
            "copies": len(files),
            "complete": all(f["complete"] for f in files),
            "written_at": min((f["header_at"] for f in files if f["header_at"] is not None), default=None),
            "size_bytes": max(f["size_bytes"] or 0 for f in files),
            "node_ids": sorted({n for f in files for n in held.get(f["content_digest"], ())}),
        }
        for (end, epoch), files in copies.items()
    ]


def findings_together(findings: Iterable[Row]) -> list[Row]:
    """The first of each group of alike findings, the worst first, some of the others, and their number."""
    groups = alike_findings(sorted(findings, key=_worst_finding))
    return [group[0] | {"alike": group[1 : MOST_ALIKE + 1], "others": len(group) - 1} for group in groups]


def _worst_finding(row: Row) -> tuple[Any, ...]:
    """Open ones first, errors first, newest first."""
    state = ("open", "acknowledged", "resolved").index(row["state"])
    return state, row["severity"] != "error", -row["last_seen_at"], row["rule"], row["finding_id"]


def unlawful_epochs(findings: Iterable[Row]) -> list[Row]:
    """The epochs whose leader no majority of the voters in force elected."""
    broken = [finding["leader_epochs"] or () for finding in findings if finding["rule"] == ELECTION_RULE]
    return [{"leader_epoch": epoch} for epochs in broken for epoch in epochs]


def partitions_together(found: Iterable[Row]) -> list[Row]:
    """A row, with its partitions, for the spans of a topic that differ only in the partition."""
    alike: dict[tuple[Any, ...], Row] = {}
    for span in found:
        key = (*SAME_SPAN(span), *span["isr"])
        row = alike.setdefault(key, span | {"partitions": []})
        row["partitions"].append(span["partition_id"])
    return list(alike.values())


def under_min_isr_steps(found: Iterable[Row]) -> list[Row]:
    """How many partitions were under min ISR from each change on, and the `most` until the next row."""
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
        place = at if len(edges) <= MOST_STEPS else _bin_of(at, first, last, MOST_STEPS)
        row = rows.setdefault(place, {"at": at, "most": now})
        row |= {"partitions": now, "most": max(now, row["most"])}
    return list(rows.values())
