"""Sections on findings, expectations, quarantined bytes and the newest rehearsal of a restoration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from dashboards.report.formatting import ago, listed, number, short, size, time_of
from dashboards.report.markup import Markup, el
from dashboards.report.tables import Col, newest, offsets, table
from dashboards.report.view import Row, View
from kraft_core.findings.advice import ADVICE
from kraft_core.wording import count


def findings(view: View) -> Markup | None:
    rows = view.of("findings")
    if not rows:
        return el("p", "The captures show no violation of KRaft's rules.", class_="fine")
    is_open = [row for row in rows if row["state"] == "open"]
    past = [row for row in rows if row["state"] != "open"]
    more = newest(_number(rows), view.count("findings"), "findings")
    return el(
        "div",
        _listing(is_open, view.anchor) if is_open else el("p", "No open findings.", class_="fine"),
        el("details", el("summary", _past_counts(past)), _listing(past, view.anchor), class_="past")
        if past
        else None,
        el("p", more, class_="more") if more else None,
    )


def _number(rows: Iterable[Row]) -> int:
    """How many findings the rows stand for."""
    return sum(1 + row["others"] for row in rows)


def _listing(rows: Sequence[Row], anchor: str) -> Markup:
    items = [
        el(
            "li",
            _finding(row),
            class_=f"{row['severity']} {row['state']}",
            id=f"{anchor}-{row['finding_id']}",
        )
        for row in rows
    ]
    return el("ol", items, class_="findings")


def _past_counts(rows: Sequence[Row]) -> str:
    """How many findings are acknowledged or resolved."""
    counts = Counter({s: _number(r for r in rows if r["state"] == s) for s in ("acknowledged", "resolved")})
    words = {"acknowledged": "acknowledged", "resolved": "that newer captures no longer show"}
    return ", ".join(f"{count(counts[s], 'finding')} {what}" for s, what in words.items() if counts[s])


def _finding(row: Row) -> list[Markup | None]:
    """A finding: the sentence, what it means, what to do, its location, and its evidence, collapsed."""
    where: list[str] = []
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
        where.append(f"on {listed(_replica_words(r) for r in row['replicas'])}")
    sign = "●" if row["severity"] == "error" else "▲"
    return [
        el("p", el("span", el("span", sign, aria_hidden="true"), f" {row['severity']}", class_="badge"), " ",
           el("b", row["sentence"])),
        _advice(row["name"]),
        el("p", " · ".join((f"Rule {row['rule']}, {row['name']}", _state_words(row), *where)),
           " · first seen ", time_of(row["first_seen_at"]), ", last seen ", time_of(row["last_seen_at"]),
           class_="where"),
        _alike(row),
        el("details", el("summary", "Evidence"), el("p", row["evidence"]),
           el("p", "Source of the rule: ", row["source"], ". More on it: docs/findings.md"),
           el("p", "Finding ", el("code", row["finding_id"]))),
    ]  # fmt: skip


def _advice(rule: str) -> Markup | None:
    """What a broken rule means, and what to do; None for a rule of another version."""
    advice = ADVICE.get(rule)
    if advice is None:
        return None
    return el("dl", el("dt", "What it means"), el("dd", advice.meaning), el("dt", "What to do"),
              el("dd", advice.action), class_="todo")  # fmt: skip


def _alike(row: Row) -> Markup | None:
    """The other findings of the same cause."""
    if not row["others"]:
        return None
    items = [el("li", other["sentence"], " ", el("code", other["finding_id"])) for other in row["alike"]]
    rest = row["others"] - len(row["alike"])
    return el(
        "details",
        el("summary", f"{count(row['others'], 'more finding')} like this one, on the same replicas"),
        el("ul", items),
        el("p", f"and {rest:,}: ", el("code", "kraftlake findings list")) if rest else None,
    )


def _state_words(row: Row) -> str:
    return f"acknowledged: {row['reason']}" if row["state"] == "acknowledged" else row["state"]


def _replica_words(replica: str) -> str:
    """1@uuid as: node 1 (the uuid's beginning)."""
    node, _, directory_id = replica.partition("@")
    return f"node {node} ({short(directory_id)})" if directory_id else f"node {node}"


def expectations(view: View) -> Markup | None:
    return expectation_results(view.of("expectations"))


def expectation_results(rows: Sequence[Row]) -> Markup | None:
    """How many expectations are met, and those that are not; None without results."""
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
    cells = [
        (r["severity"], r["suite"], _examples(r), _measured(r["observed"]), _measured(r["allowed"]))
        for r in failed
    ]
    return el("div", el("p", f"{met}, {len(failed)} not."), table("Expectations not met", columns, cells))


def _examples(row: Row) -> Markup:
    """The expectation, with its failing rows, collapsed."""
    words = el("span", row["sentence"] or row["expectation"])
    if not row["failing_rows"]:
        return words
    return el(
        "details", el("summary", words), el("ul", [el("li", el("code", r)) for r in row["failing_rows"]])
    )


def _measured(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value == int(value) else f"{value:,.3f}"


def quarantine(view: View) -> Markup | None:
    rows = view.of("quarantine")
    if not rows:
        return None
    cells = [
        (
            f"node {r['node_id']}" if r["node_id"] is not None else "–",
            time_of(r["captured_at"]),
            el("code", r["file"]),
            number(r["position"]),
            size(r["size_bytes"]),
            r["reason"].replace("_", " "),
            _lost_offsets(r),
        )
        for r in rows
    ]
    columns = [Col("Node"), Col("Captured"), Col("File", names=True), Col("At byte", True), Col("Size", True),
               Col("Reason"), Col("Offsets lost", True)]  # fmt: skip
    more = newest(len(rows), view.count("quarantine"), "byte ranges")
    return table("Bytes that no copy supplied", columns, cells, more)


def _lost_offsets(row: Row) -> str:
    if row["lost_from_offset"] is None:
        return "–"
    return offsets(row["lost_from_offset"], row["lost_to_offset"])


def restoration(view: View) -> Markup | None:
    """If every controller were lost: as of when a new quorum could be made, and what it would lose, or why
    none could.
    """
    found = view.state.rehearsal
    if found is None:
        return None
    age = "" if view.lasting else f", {ago(found.rehearsed_at, view.now)}"
    rehearsed = ["Rehearsed ", time_of(found.rehearsed_at), age]
    if not found.is_restorable:
        return el(
            "div",
            el("p", el("b", "Not restorable"), " from the given captures:", class_="advice unsafe"),
            el("ul", [el("li", why) for why in found.why_not]),
            el("p", rehearsed, ".", class_="more"),
        )
    words = [el("b", "Restorable"), " as of ", time_of(found.as_of), f"; {found.would_lose}."]
    source = (
        f", from the log of node {found.source_node_id} up to offset {number(found.end_offset)} (exclusive)."
    )
    return el(
        "div",
        el("p", words, class_="advice unsafe" if found.losses or found.lost_offsets else "advice safe"),
        el("p", rehearsed, source, " What each loss means: docs/restore.md", class_="more"),
    )
