"""The whole page: one file, no network, nothing that runs but its own script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from dashboards.report.cluster_view import cluster_view
from dashboards.report.fleet_view import fleet_view
from dashboards.report.formatting import count, time_of
from dashboards.report.markup import Markup, el, join
from dashboards.report.sections_quality import expectations_told
from dashboards.report.state import ClusterState

Row = dict[str, Any]
# A page that is quickly sent and opened: beyond this no more clusters are told one by one.
MOST_BYTES = 1_900_000
MOST_LISTED = 1_500
# So many clusters are unfolded when the page opens.
UNFOLDED = 3


@dataclass(frozen=True, slots=True)
class Page:
    """The text of the page, and the clusters that it tells one by one."""

    text: str
    told: tuple[str, ...]


def page(
    states: Sequence[ClusterState],
    rows: Mapping[str, dict[str, list[Row]]],
    now: int,
    lake: str,
    of_lake: Sequence[Row] = (),
) -> Page:
    """The page over the fleet. `now` in ms.

    `rows` are those of the clusters to tell one by one, if there is room; `of_lake` what was expected of the
    lake as a whole.
    """
    views = tell(states, rows, now)
    told = tuple(views)
    linked = {cluster: anchor(n) for n, cluster in enumerate(told)}
    body = [
        el("a", "To the clusters", href="#clusters", class_="skip") if views else None,
        PATTERNS,
        el("header", el("h1", "Kraftlake"), el("p", f"{lake} · as of ", time_of(now), " · all times UTC")),
        el(
            "main",
            fleet_view(states, linked, now, MOST_LISTED) if states else EMPTY,
            lake_view(of_lake),
            el("div", list(views.values()), id="clusters"),
            left_out(states, told),
        ),
        el("footer", el("p", "What the captures do not prove is called undecided; nothing is guessed. "
                        "Every number is a query away: kraftlake sql.")),
        el("div", id="tip", role="status", aria_live="polite", hidden=True),
    ]  # fmt: skip
    return Page(whole(join(body), lake), told)


def tell(
    states: Sequence[ClusterState], rows: Mapping[str, dict[str, list[Row]]], now: int
) -> dict[str, Markup]:
    """The clusters one by one, in the order of the fleet, as many as there is room for; one at least."""
    wanted = [s for s in states if s.cluster_id in rows]
    # Rows of the fleet are at most so long; what is left is for the clusters.
    room = MOST_BYTES - 1_000 * min(len(states), MOST_LISTED)
    views: dict[str, Markup] = {}
    for n, state in enumerate(wanted):
        view = cluster_view(state, rows[state.cluster_id], now, anchor(n), len(wanted) <= UNFOLDED)
        room -= len(view.encode())
        if views and room < 0:
            break
        views[state.cluster_id] = view
    return views


def anchor(n: int) -> str:
    """The id of the nth cluster that is told."""
    return f"c{n + 1}"


def lake_view(expected: Sequence[Row]) -> Markup | None:
    """What is not as expected of the lake as a whole; nothing if all is."""
    if all(row["success"] for row in expected):
        return None
    return el("section", el("h2", "The lake as a whole"), expectations_told(expected), class_="lake")


def left_out(states: Sequence[ClusterState], told: Sequence[str]) -> Markup | None:
    """How to see the clusters that are not told one by one."""
    rest = len(states) - len(told)
    if not rest:
        return None
    words = f"{count(rest, 'more cluster')} in the table above: "
    return el("p", words, el("code", "kraftlake report --cluster ID"), " tells of them.", class_="more")


def whole(body: Markup, lake: str) -> str:
    """The file. Its policy lets only its own style and script be used, and nothing be fetched."""
    style, script = packaged("page.css"), packaged("page.js")
    policy = (
        f"default-src 'none'; style-src '{digest(style)}'; script-src '{digest(script)}'; base-uri 'none'"
    )
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("title", f"Kraftlake: {lake}"),
        el("style", style),
    )
    return f"<!DOCTYPE html>\n{el('html', head, el('body', body, el('script', script)), lang='en')}\n"


def packaged(name: str) -> Markup:
    return Markup(resources.files("dashboards.report").joinpath(name).read_text(encoding="utf-8"))


def digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def hatch(name: str) -> Markup:
    """A pattern that tells a status without its colour."""
    lines = el("path", d="M-2 2l4 -4M0 8l8 -8M6 10l4 -4", class_=name)
    return el("pattern", lines, id=name, width=8, height=8, patternUnits="userSpaceOnUse")


EMPTY = el("p", "The lake holds no capture yet: kraftlake run --captures … reads some.", class_="verdict")

PATTERNS = el(
    "svg", el("defs", [hatch(f"hatch-{kind}") for kind in ("truncated", "uncommitted", "undecided", "fold")]),
    width=0, height=0, aria_hidden="true", class_="vh",
)  # fmt: skip
