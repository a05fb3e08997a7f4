"""Sections on what is wrong: findings, expectations, bytes that could not be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dashboards.report.formatting import count, listed, number, short, size, time_of
from dashboards.report.markup import Markup, el
from dashboards.report.tables import Col, newest, table
from dashboards.report.view import Row, View


def findings(view: View) -> Markup | None:
    rows = view.of("findings")
    if not rows:
        return el("p", "No rule of KRaft is broken, as far as the captures show.", class_="fine")
    is_open = [row for row in rows if row["state"] == "open"]
    past = [row for row in rows if row["state"] != "open"]
    more = newest(len(rows), view.count("findings"), "findings")
    return el(
        "div",
        listing(is_open) if is_open else el("p", "Nothing is open.", class_="fine"),
        el("details", el("summary", told_before(past)), listing(past), class_="past") if past else None,
        el("p", more, class_="more") if more else None,
    )


def listing(rows: Sequence[Row]) -> Markup:
    items = [el("li", finding(row), class_=f"{row['severity']} {row['state']}") for row in rows]
    return el("ol", items, class_="findings")


def told_before(rows: Sequence[Row]) -> str:
    """What needs nobody any more, counted."""
    counts = Counter(row["state"] for row in rows)
    words = {"acknowledged": "acknowledged", "resolved": "that newer captures show no more"}
    return ", ".join(f"{count(counts[s], 'finding')} {what}" for s, what in words.items() if counts[s])


def finding(row: Row) -> list[Markup]:
    """A finding: the sentence, where, and its evidence to unfold."""
    where = []
    if row["first_offset"] is not None:
        last = row["first_offset"] if row["end_offset"] is None else row["end_offset"] - 1
        many = last > row["first_offset"]
        to = f" to {number(last)}" if many else ""
        where.append(f"{'offsets' if many else 'offset'} {number(row['first_offset'])}{to}")
    if row["leader_epochs"]:
        where.append(
            f"{'epoch' if len(row['leader_epochs']) == 1 else 'epochs'} {listed(row['leader_epochs'])}"
        )
    if row["replicas"]:
        where.append(f"on {listed(replica_words(r) for r in row['replicas'])}")
    sign = "●" if row["severity"] == "error" else "▲"
    return [
        el("p", el("span", el("span", sign, aria_hidden="true"), f" {row['severity']}", class_="badge"), " ",
           el("b", row["sentence"])),
        el("p", f"Rule {row['rule']}, {row['name']} · {state_words(row)} · ", " · ".join(where), " · seen ",
           time_of(row["first_seen_at"]), " to ", time_of(row["last_seen_at"]), class_="where"),
        el("details", el("summary", "Evidence"), el("p", row["evidence"]),
           el("p", "Source of the rule: ", row["source"]),
           el("p", "Finding ", el("code", row["finding_id"]))),
    ]  # fmt: skip


def state_words(row: Row) -> str:
    return f"acknowledged: {row['reason']}" if row["state"] == "acknowledged" else row["state"]


def replica_words(replica: str) -> str:
    """1@uuid as node 1 (uuid's beginning)."""
    node, _, directory = replica.partition("@")
    return f"node {node} ({short(directory)})" if directory else f"node {node}"


def expectations(view: View) -> Markup | None:
    return expectations_told(view.of("expectations"))


def expectations_told(rows: Sequence[Row]) -> Markup | None:
    """What was expected and is not so; without anything expected nothing."""
    if not rows:
        return None
    failed = sorted((r for r in rows if not r["success"]), key=lambda r: (r["severity"], r["suite"]))
    met = f"{count(len(rows) - len(failed), 'expectation')} met"
    if not failed:
        return el("p", f"{met}, none failed.", class_="fine")
    columns = [
        Col("Severity"),
        Col("Table"),
        Col("Expected", long=True),
        Col("Observed", True),
        Col("Allowed", True),
    ]
    told = [
        (r["severity"], r["suite"], examples(r), measured(r["observed"]), measured(r["allowed"]))
        for r in failed
    ]
    return el("div", el("p", f"{met}, {len(failed)} not."), table("Expectations not met", columns, told))


def examples(row: Row) -> Markup:
    """What is expected, with failing rows to unfold."""
    words = el("span", row["sentence"] or row["expectation"])
    if not row["failing_rows"]:
        return words
    return el(
        "details", el("summary", words), el("ul", [el("li", el("code", r)) for r in row["failing_rows"]])
    )


def measured(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.3f}"


def quarantine(view: View) -> Markup | None:
    rows = view.of("quarantine")
    if not rows:
        return None
    told = [
        (
            f"node {r['node_id']}" if r["node_id"] is not None else "–",
            time_of(r["captured_at"]),
            el("code", r["file"]),
            number(r["position"]),
            size(r["size_bytes"]),
            r["reason"].replace("_", " "),
            lost_offsets(r),
        )
        for r in rows
    ]
    columns = [Col("Node"), Col("Captured"), Col("File"), Col("At byte", True), Col("Size", True),
               Col("Reason"), Col("Offsets lost", True)]  # fmt: skip
    more = newest(len(rows), view.count("quarantine"), "stretches")
    return table("Bytes that no copy supplied", columns, told, more)


def lost_offsets(row: Row) -> str:
    if row["lost_from_offset"] is None:
        return "–"
    end = "the end" if row["lost_to_offset"] is None else number(row["lost_to_offset"])
    return f"{number(row['lost_from_offset'])} to {end}"
