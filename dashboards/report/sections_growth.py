"""Section on what the log is made of, and whether snapshots are taken and deleted."""

from __future__ import annotations

from dashboards.report.formatting import number, replica, size, time_of
from dashboards.report.markup import Markup, el
from dashboards.report.tables import Col, span_words, table
from dashboards.report.view import Row, View
from kraft_core.wording import count


def growth(view: View) -> Markup | None:
    """What the log's bytes are for, and how much of it no snapshot holds yet."""
    kinds, spaces = view.of("log_growth"), view.of("log_space")
    if not kinds and not spaces:
        return None
    return el("div", _kinds(kinds) if kinds else None, _spaces(spaces) if spaces else None)


def _kinds(rows: list[Row]) -> Markup:
    whole, days = rows[0]["log_bytes"], rows[0]["days"]
    cells = [
        (
            row["cause"],
            row["type"],
            row["topic_name"] or "–",
            number(row["records"]),
            size(row["size_bytes"]),
            f"{100 * row['size_bytes'] / whole:.1f} %",
        )
        for row in rows
    ]
    columns = [Col("Cause"), Col("Record type"), Col("Topic", names=True), Col("Records", True),
               Col("Size", True), Col("Of the log", True)]  # fmt: skip
    shown = sum(row["size_bytes"] for row in rows)
    rest = f" Other records take {size(whole - shown)}." if whole > shown else ""
    more = f"{size(whole)}, appended on {count(days, 'day')}.{rest}"
    return table("What the log is made of", columns, cells, more)


def _spaces(rows: list[Row]) -> Markup:
    cells = [
        (
            replica(row["node_id"], row["directory_id"]),
            time_of(row["captured_at"]),
            size(row["log_bytes"]),
            number(row["snapshots"]),
            size(row["snapshot_bytes"]),
            size(row["new_bytes"]),
            span_words(row["new_ms"]),
            _lateness(row),
        )
        for row in rows
    ]
    columns = [Col("Replica"), Col("Captured"), Col("Log", True), Col("Snapshots", True),
               Col("Their size", True), Col("Not in a snapshot", True), Col("For", True),
               Col("By Kafka's defaults", long=True)]  # fmt: skip
    return table("Log and snapshots of each replica", columns, cells)


def _lateness(row: Row) -> str:
    late = [
        words
        for words, is_late in (
            ("a snapshot is late", row["snapshot_is_late"]),
            ("older snapshots are kept too long", row["deletion_is_late"]),
        )
        if is_late
    ]
    return "; ".join(late) or "in time"
