"""Sections on the quorum: voters, leaders, bounds of the high watermark."""

from __future__ import annotations

from dashboards.report.bounds import bounds_of
from dashboards.report.draw_bounds import draw_bounds
from dashboards.report.draw_lanes import VERBS, draw_lanes
from dashboards.report.formatting import directory, duration, listed, number, time_by, time_of
from dashboards.report.markup import Markup, el
from dashboards.report.tables import Col, newest, place, span_words, status_badge, table
from dashboards.report.view import Row, View
from kraft_core.wording import count


def voting(view: View) -> Markup | None:
    if view.lanes is None:
        return None
    status = {(s["offset"], s["leader_epoch"]): s for s in view.of("sets")}
    rows, ids = [], []
    for change in sorted(view.of("changes"), key=lambda c: (-c["offset"], -c["leader_epoch"], c["voter_id"])):
        of_set = status.get((change["offset"], change["leader_epoch"]), {})
        row_id = f"{view.anchor}-voters-{change['offset']}-{change['leader_epoch']}"
        ids.append(None if row_id in ids else row_id)
        rows.append(
            (
                time_by(change["changed_at"], change["changed_exact"]),
                place(change["offset"], change["leader_epoch"]),
                [
                    f"{VERBS[change['kind']]} node {change['voter_id']}",
                    _detail(change["detail"]) if change["detail"] else None,
                ],
                directory(change["directory_id"]),
                _voter_ids(of_set),
                status_badge(change["commit_status"], of_set.get("truncated_by_epoch")),
                of_set.get("evidence"),
            )
        )
    columns = [Col("When"), Col("Offset / epoch", True), Col("Change", names=True), Col("Directory"),
               Col("Voters then"), Col("Status"), Col("Proven by", long=True)]  # fmt: skip
    first = None if rows else el("p", _without_changes(view), class_="more")
    return el(
        "div",
        draw_lanes(view.lanes, view.count("sets"), view.count("most_voters")),
        table("Membership changes", columns, rows, ids=ids) if rows else first,
        _reported_sets(view),
    )


def _detail(text: str) -> Markup:
    """What changed; a line may end after the :// of an endpoint."""
    first, *rest = text.replace(" -> ", " → ").split("://")
    return el("small", first, [["://", el("wbr"), part] for part in rest])


def _without_changes(view: View) -> str:
    if view.state.voters_source == "static":
        return "The voters are static (kraft.version 0): no record of the log changes them."
    return "The captured logs contain no voter set."


def _reported_sets(view: View) -> Markup | None:
    """Voter sets that describe outputs or quorum-states report where no proven set explains them."""
    rows = [
        (
            time_of(r["observed_from"]),
            time_of(r["observed_to"]),
            number(r["leader_epoch"]),
            _voter_ids(r),
            r["evidence"],
        )
        for r in view.of("reported_sets")
    ]
    if not rows:
        return None
    columns = [Col("Reported from"), Col("To"), Col("Epoch", True), Col("Voters"), Col("By", long=True)]
    more = newest(len(rows), view.count("reported_sets"), "sets")
    return el("div", el("p", "These voter sets are reported, not proven.", class_="more"),
              table("Reported voter sets, not proven", columns, rows, more))  # fmt: skip


def _voter_ids(row: Row) -> str:
    return f"{{{','.join(str(v['voter_id']) for v in row.get('voters') or ())}}}" if row else ""


def epochs(view: View) -> Markup | None:
    rows = view.of("epochs")
    if not rows:
        return None
    led = [
        (
            "unknown" if r["leader_id"] is None else f"node {r['leader_id']}",
            number(r["epochs"]),
            time_of(r["last_elected_at"]),
            _leaderless_total(r),
            span_words(r["longest_leaderless_ms"]),
        )
        for r in view.of("leaders")
    ]
    by_leader = table(
        "Leaders",
        [Col("Leader"), Col("Epochs", True), Col("Last elected"), Col("Leaderless before, at most", True),
         Col("Longest, at most", True)],
        led,
    )  # fmt: skip
    cells = [
        (
            number(r["leader_epoch"]),
            _epoch_leader(r),
            time_of(r["elected_at"]) if r["elected_at"] is not None else time_by(r["known_from"], False),
            ("" if r["start_offset_exact"] or r["start_offset"] is None else "≤ ")
            + number(r["start_offset"]),
            listed(r["granting_voters"] or ()) or "–",
            listed(r["voter_ids"] or ()) or "–",
            span_words(r["leaderless_ms"]),
        )
        for r in rows
    ]
    by_epoch = table(
        "Epochs",
        [Col("Epoch", True), Col("Leader"), Col("Elected"), Col("Start offset", True), Col("Granted by"),
         Col("Voters"), Col("Leaderless before, at most", True)],
        cells,
        newest(len(rows), view.count("epochs"), "epochs"),
        [f"{view.anchor}-epoch-{r['leader_epoch']}" for r in rows],
    )  # fmt: skip
    return el("div", by_leader, by_epoch)


def _leaderless_total(row: Row) -> str:
    """Over the elections before which it is known; how many others there are."""
    if not row["not_covered"]:
        return span_words(row["leaderless_ms"])
    others = count(row["not_covered"], "election")
    known = "" if row["leaderless_ms"] is None else f"{duration(row['leaderless_ms'])}, and "
    return f"{known}not known before {others}"


def _epoch_leader(row: Row) -> list[Markup | str | None]:
    if row["leader_id"] is None:
        return ["not known"]
    reported = row["leader_source"] != "record"
    return [
        f"node {row['leader_id']}",
        el("small", f"reported: {row['leader_source']}") if reported else None,
    ]


NEWEST_PROOFS = 60


def watermarks(view: View) -> Markup | None:
    if view.lanes is None:
        return None
    bounds = bounds_of(view.rows, view.lanes.scale.start, view.lanes.scale.end)
    if bounds is None:
        return None
    rows = [
        (
            time_of(p.at),
            "at least" if p.is_lower else "at most",
            number(p.bound),
            "from then on" if p.is_lower else "up to then",
            p.source,
        )
        for p in reversed(bounds.proofs)
    ]
    columns = [Col("When"), Col("Bound"), Col("Offset", True), Col("Valid"), Col("Proven by", long=True)]
    shown = rows[:NEWEST_PROOFS]
    more = newest(len(shown), len(rows), "proofs")
    return el("div", draw_bounds(bounds, view.lanes.scale), table("Bounds", columns, shown, more))
