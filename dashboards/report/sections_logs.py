"""Sections on the replicas' logs: offsets not committed, truncations, recovery, captures, snapshots."""

from __future__ import annotations

from dashboards.report.formatting import directory, listed, number, replica, size, time_of
from dashboards.report.markup import Markup, el
from dashboards.report.tables import Col, newest, offsets, place, status_badge, table
from dashboards.report.view import Row, View
from kraft_core.format.capture import FOLLOWED_NODE_ID, STATED_SOURCES


def unsettled(view: View) -> Markup | None:
    """Offset ranges that are not committed."""
    rows = view.of("unsettled")
    if not rows:
        return None
    cells = [
        (
            offsets(r["first_offset"], r["end_offset"]),
            f"e{r['leader_epoch']}",
            number(r["end_offset"] - r["first_offset"]),
            status_badge(r["commit_status"], r["truncated_by_epoch"]),
            time_of(r["as_of"]),
            r["evidence"],
        )
        for r in rows
    ]
    columns = [Col("Offsets"), Col("Epoch"), Col("Records", True), Col("Status"), Col("As of"),
               Col("Proven by", long=True)]  # fmt: skip
    more = newest(len(rows), view.count("unsettled"), "ranges")
    return table("Offset ranges that are not committed", columns, cells, more)


def truncations(view: View) -> Markup | None:
    """Offsets that a replica held in one capture and no longer held in a later one."""
    rows = view.of("truncations")
    if not rows:
        return None
    cells = [
        (
            replica(r["node_id"], r["directory_id"]),
            offsets(r["first_offset"], r["end_offset"]),
            listed(r["leader_epochs"] or ()) or "–",
            number(r["truncated_by_epoch"]),
            r["lost_voter_changes"] or "none",
            time_of(r["held_at"]),
            time_of(r["lost_at"]),
        )
        for r in rows
    ]
    columns = [Col("Replica"), Col("Offsets lost"), Col("Of epoch"), Col("Replaced by epoch"),
               Col("Membership changes lost", long=True), Col("Last seen"), Col("First missing")]  # fmt: skip
    more = newest(len(rows), view.count("truncations"), "truncations")
    ids = [f"{view.anchor}-truncation-{n}" for n in range(len(rows))]
    return table("Truncations between captures", columns, cells, more, ids)


def recovery(view: View) -> Markup | None:
    """The replica to recover from, should the quorum be lost."""
    rows = view.of("recovery")
    if not rows or not (rows[0]["best"] or rows[0]["others"]):
        return None
    advice = rows[0]
    best, others = advice["best"] or [], advice["others"] or []
    whom = listed(replica(c["node_id"], c["directory_id"]) for c in best)
    are = "candidate is" if len(best) == 1 else "candidates are"
    words = (
        f"Safe to recover from {whom}"
        if advice["is_safe"]
        else f"Not safe; the best {are} {whom}"
        if best
        else "Not safe; the best candidate is unknown"
    )
    kind = "safe" if advice["is_safe"] else "unsafe"
    cells = [
        (
            "best" if candidate in best else "other",
            f"node {candidate['node_id']}{', observer' if candidate['is_observer'] else ''}",
            directory(candidate["directory_id"]),
            number(candidate["last_leader_epoch"]),
            number(candidate["log_end_offset"]),
            _in_force(candidate),
            candidate["loses"] or "nothing",
        )
        for candidate in [*best, *others]
    ]
    columns = [Col("Candidate"), Col("Replica"), Col("Directory"), Col("Last epoch", True),
               Col("Log end", True), Col("Voter set in force", names=True),
               Col("Loses", long=True)]  # fmt: skip
    return el(
        "div",
        el("p", el("b", words), f": {advice['why'].removesuffix('.')}.", class_=f"advice {kind}"),
        el("p", "As of ", time_of(advice["as_of"]), _or_later(advice["as_of_source"]),
           f"; the highest known epoch is {number(advice['highest_epoch'])}.", class_="more"),
        table("Candidates for recovery", columns, cells),
    )  # fmt: skip


def _or_later(source: str | None) -> str:
    """What bounds a time that the captures do not state."""
    return "" if source is None or source in STATED_SOURCES else f" ({source}) or later"


def _in_force(candidate: Row) -> list[object]:
    """The voter set that a replica's log puts in force."""
    if candidate["voters_in_force"] is None:
        return ["none in the captures"]
    words: list[object] = [candidate["voters_in_force"]]
    if candidate["voters_status"] not in ("committed", None):
        words += [" ", status_badge(candidate["voters_status"])]
    return words


def captures(view: View) -> Markup | None:
    """The newest capture of each replica."""
    last: dict[tuple[int, str], Row] = {}
    for row in view.of("captures"):
        key = (row["node_id"], row["directory_id"])
        if key not in last or row["captured_at"] > last[key]["captured_at"]:
            last[key] = row
    cells = [
        (
            "followed" if node == FOLLOWED_NODE_ID else f"node {node}",
            directory(directory_id, whole=True),
            number(row["captures"]),
            time_of(row["captured_at"]),
            f"{number(row['log_start_offset'])} – {number(row['log_end_offset'])}",
            number(row["last_leader_epoch"]),
            number(row["kraft_version"]),
            size(row["size_bytes"]),
        )
        for (node, directory_id), row in sorted(last.items())
    ]
    columns = [Col("Node"), Col("Directory"), Col("Captures", True), Col("Newest"), Col("Log", True),
               Col("Last epoch", True), Col("kraft.version", True), Col("Size", True)]  # fmt: skip
    return table("Newest capture of each replica", columns, cells)


def snapshots(view: View) -> Markup | None:
    rows = view.of("snapshots")
    if not rows:
        return None
    cells = [
        (
            place(r["end_offset"], r["leader_epoch"]),
            time_of(r["written_at"]),
            listed(r["node_ids"]) or "–",
            number(r["copies"]),
            "complete" if r["complete"] else "incomplete",
            size(r["size_bytes"]),
        )
        for r in rows
    ]
    columns = [Col("End / epoch"), Col("First written"), Col("Nodes"), Col("Distinct files", True),
               Col("State"), Col("Size", True)]  # fmt: skip
    return table("Snapshots", columns, cells)
