"""Section on the newest rehearsal: whether the cluster could be restored if every controller were lost."""

from __future__ import annotations

from dashboards.report.formatting import ago, number, time_of
from dashboards.report.markup import Markup, el
from dashboards.report.view import View


def restoration(view: View) -> Markup | None:
    """As of when a new quorum could be made, and what it would lose; or why none could."""
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
