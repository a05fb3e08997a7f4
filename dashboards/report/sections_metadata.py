"""Sections on the cluster's metadata: partitions under min ISR, administrative operations."""

from __future__ import annotations

from dashboards.report.draw_isr import draw_isr
from dashboards.report.formatting import listed, number, ranges, time_by, time_of
from dashboards.report.markup import Markup, el
from dashboards.report.tables import Col, newest, span_words, status_badge, table
from dashboards.report.view import Row, View

MOST_MISSING = 20


def min_isr(view: View) -> Markup | None:
    rows = view.of("under_min_isr_spans")
    if not rows:
        return None
    scale = view.lanes.scale if view.lanes else None
    picture = draw_isr(view.of("under_min_isr"), scale, view.now)
    cells = [
        (
            r["topic_name"],
            ranges(sorted(r["partitions"])),
            time_by(r["from_at"], r["from_exact"]),
            "still" if r["to_at"] is None else time_by(r["to_at"], r["to_exact"]),
            _under(r),
            listed(r["isr"] or ()) or "none",
            number(r["min_isr"]),
            status_badge(r["commit_status"]),
        )
        for r in rows
    ]
    columns = [Col("Topic", names=True), Col("Partitions"), Col("From"), Col("To"), Col("For", True),
               Col("ISR"), Col("Effective min ISR", True), Col("Status")]  # fmt: skip
    more = newest(len(rows), view.of("under_min_isr_totals")[0]["spans"], "spans")
    return el("div", picture, table("Partitions under min ISR", columns, cells, more))


def missing_records(view: View) -> Markup | None:
    """Which records the sections on metadata lack."""
    rows = view.of("missing_records")
    if not rows:
        return None
    cells = [
        (
            number(r["first_offset"]),
            number(r["end_offset"] - 1),
            "–" if r["until_offset"] is None else number(r["until_offset"]),
        )
        for r in rows[-MOST_MISSING:]
    ]
    columns = [Col("From offset", True), Col("To offset", True), Col("Restated by a snapshot at", True)]
    more = newest(len(cells), len(rows), "ranges")
    return table("Missing records: what they changed is unknown", columns, cells, more)


def admin_events(view: View) -> Markup | None:
    events = view.of("admin_events")
    if not events:
        return None
    rows = [
        (
            time_by(e["changed_at"], e["is_exact"]),
            number(e["offset"]),
            e["operation"],
            _resource(e),
            [_change(e["before"], e["after"]), _repeated(e)],
            status_badge(e["commit_status"]),
        )
        for e in events
    ]
    columns = [Col("When"), Col("Offset", True), Col("Operation"), Col("Resource", names=True),
               Col("Change", long=True), Col("Status")]  # fmt: skip
    more = "The newest operations. “At or before”: only a snapshot that ends there shows the operation."
    ids: list[str | None] = []
    for event in events:
        row_id = f"{view.anchor}-event-{event['offset']}"
        ids.append(None if row_id in ids else row_id)
    return table("Administrative operations", columns, rows, more, ids)


def _under(span: Row) -> str:
    """For how long: at least, where it may have begun before; at most, where it may have ended before."""
    if span["from_exact"] is False and span["to_exact"] is False:
        return "not known"
    sign = "≥ " if span["from_exact"] is False else "≤ " if span["to_exact"] is False else ""
    return sign + span_words(span["under_ms"])


def _resource(event: Row) -> str:
    """TOPIC orders; the cluster-wide default of a config has no name."""
    name = event["subject"] or ""
    return f"{event['resource_type']} {'(default)' if name.startswith(' ') else ''}{name}"


def _change(before: str | None, after: str | None) -> str:
    if before is None:
        return after or ""
    return f"{before} → removed" if after is None else f"{before} → {after}"


def _repeated(event: Row) -> Markup | None:
    """How many events the row represents, if more than one."""
    if event["times"] == 1:
        return None
    words = f"the last of {number(event['times'])} such operations since "
    return el("small", words, time_of(event["since"]))
