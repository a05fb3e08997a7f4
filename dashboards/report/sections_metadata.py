"""Sections on the cluster's metadata: partitions under min ISR, what administrators did."""

from __future__ import annotations

from dashboards.report.draw_isr import draw_isr
from dashboards.report.formatting import listed, number, ranges, time_of
from dashboards.report.markup import Markup, el
from dashboards.report.tables import Col, newest, span_words, status_badge, table
from dashboards.report.view import Row, View


def min_isr(view: View) -> Markup | None:
    rows = view.of("thin_partitions")
    if not rows:
        return None
    scale = view.lanes.scale if view.lanes else None
    picture = draw_isr(view.of("under_min_isr"), scale, view.now)
    told = [
        (
            r["topic_name"],
            ranges(sorted(r["partitions"])),
            time_of(r["from_at"]),
            "still" if r["to_at"] is None else time_of(r["to_at"]),
            span_words(r["under_ms"]),
            listed(r["isr"] or ()) or "none",
            number(r["min_isr"]),
            status_badge(r["commit_status"]),
        )
        for r in rows
    ]
    columns = [Col("Topic"), Col("Partitions"), Col("From"), Col("To"), Col("For", True), Col("ISR"),
               Col("min.insync.replicas", True), Col("Status")]  # fmt: skip
    more = newest(len(rows), view.of("thin_counts")[0]["stretches"], "stretches")
    return el("div", picture, table("Partitions under min ISR", columns, told, more))


def admin_events(view: View) -> Markup | None:
    rows = view.of("admin_events")
    if not rows:
        return None
    told = [
        (
            time_of(r["changed_at"]),
            number(r["offset"]),
            r["operation"],
            f"{r['resource_type']} {r['resource'] or ''}",
            detail(r),
            status_badge(r["commit_status"]),
        )
        for r in rows
    ]
    columns = [Col("When"), Col("Offset", True), Col("Operation"), Col("Resource"), Col("Detail", long=True),
               Col("Status")]  # fmt: skip
    return table(
        "What administrators did", columns, told, "The newest; what a snapshot told of first is left out."
    )


def detail(event: Row) -> list[object]:
    """What was done, and how often if it was again and again."""
    if event["times"] == 1:
        return [event["detail"]]
    return [
        event["detail"],
        el("small", f"the last of {number(event['times'])} times since ", time_of(event["since"])),
    ]
