"""The whole page: one file that fetches nothing and runs only its own script.

The clusters that it has no room for have a page each, in a folder beside it.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any
from urllib.parse import quote

from dashboards.report.cluster_view import cluster_view, failed_view
from dashboards.report.fleet_view import fleet_view
from dashboards.report.formatting import time_of
from dashboards.report.markup import Markup, el, join
from dashboards.report.sections_quality import expectation_results
from dashboards.report.state import NONE_FAILED, ClusterState

Row = dict[str, Any]
# The page stays quick to send and open: beyond this size no more clusters get a part of their own.
MOST_BYTES = 1_900_000
MOST_LISTED = 1_500
# With up to this many clusters, their parts are open when the page opens.
MOST_OPEN = 3


@dataclass(frozen=True, slots=True)
class Page:
    """The text of the page, how many clusters it lists, and which have a part of their own."""

    text: str
    clusters: int
    detailed: tuple[str, ...]


def page(
    states: Sequence[ClusterState],
    rows: Mapping[str, dict[str, list[Row]]],
    now: int,
    lake: str,
    of_lake: Sequence[Row] = (),
    failed: Mapping[str, str] = NONE_FAILED,
    folder: str = "clusters",
    titles: Mapping[str, str] = NONE_FAILED,
) -> Page:
    """The page over the fleet. `now` in ms.

    `rows` are those of the clusters that get a part of their own, as far as there is room; `of_lake` the
    expectation results of the lake as a whole; `failed` are clusters that are not among `states`, with their
    names in `titles`; `folder` beside the page has a page, named by file_name, of each listed cluster without
    a part of its own.
    """
    failures = [
        failed_view(titles.get(cluster, cluster), why, _anchor(n))
        for n, (cluster, why) in enumerate(failed.items())
    ]
    views = _cluster_views(states, rows, now, failures)
    detailed = tuple(views)
    links = {s.cluster_id: f"{quote(folder)}/{file_name(s.cluster_id)}" for s in states[:MOST_LISTED]}
    links |= {cluster: f"#{_anchor(n)}" for n, cluster in enumerate((*failed, *detailed))}
    body = [
        el("a", "Skip to the clusters", href="#clusters", class_="skip") if views or failed else None,
        PATTERNS,
        el("header", el("h1", "Kraftlake"), _made(lake, now)),
        el(
            "main",
            fleet_view(states, links, now, MOST_LISTED, failed, titles) if states or failed else EMPTY,
            _lake_view(of_lake),
            el("div", failures, list(views.values()), id="clusters"),
        ),
        FOOTER,
    ]
    return Page(_file(join(body), lake), len(states) + len(failed), detailed)


def cluster_page(state: ClusterState, rows: dict[str, list[Row]], now: int, lake: str, home: str) -> str:
    """A page of one cluster. `now` in ms; `home`: the name of the page over the fleet, one folder up.

    It may stand while that of the fleet is made again and again: ages are found there alone.
    """
    since = el("p", f"{lake} · as of ", time_of(now), ", updated when it changes · all times UTC")
    body = [
        PATTERNS,
        el("header", el("h1", el("a", "Kraftlake", href=f"../{quote(home)}")), since),
        el("main", cluster_view(state, rows, now, _anchor(0), is_open=True, lasting=True)),
        FOOTER,
    ]
    return _file(join(body), f"{state.title}, {lake}")


def file_name(cluster_id: str) -> str:
    """The name of a cluster's page: its id, or a digest of an id that may be no name of a file."""
    if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", cluster_id):
        return f"{cluster_id}.html"
    return f"{hashlib.sha256(cluster_id.encode(errors='surrogatepass')).hexdigest()[:22]}.html"


def _made(lake: str, now: int) -> Markup:
    return el("p", f"{lake} · as of ", time_of(now), " · all times UTC")


def _cluster_views(
    states: Sequence[ClusterState],
    rows: Mapping[str, dict[str, list[Row]]],
    now: int,
    before: Sequence[Markup],
) -> dict[str, Markup]:
    """The parts of the clusters in the order of the fleet, as many as there is room for; at least one.

    before: the parts that come before them.
    """
    wanted = [s for s in states if s.cluster_id in rows]
    # A row of the fleet takes up to 1,000 bytes; the clusters' parts get the rest.
    room = MOST_BYTES - 1_000 * min(len(states), MOST_LISTED) - sum(len(part.encode()) for part in before)
    views: dict[str, Markup] = {}
    for n, state in enumerate(wanted, len(before)):
        view = cluster_view(state, rows[state.cluster_id], now, _anchor(n), len(wanted) <= MOST_OPEN)
        room -= len(view.encode())
        if views and room < 0:
            break
        views[state.cluster_id] = view
    return views


def _anchor(n: int) -> str:
    """The id of the nth cluster's part."""
    return f"c{n + 1}"


def _lake_view(results: Sequence[Row]) -> Markup | None:
    """The failed expectations of the lake as a whole, if any."""
    if all(row["success"] for row in results):
        return None
    return el("section", el("h2", "The lake as a whole"), expectation_results(results), class_="lake")


def _file(body: Markup, lake: str) -> str:
    """The file. Its content security policy allows its own style and script and no requests."""
    style, script = _packaged("page.css"), _packaged("page.js")
    policy = (
        f"default-src 'none'; style-src '{_digest(style)}'; script-src '{_digest(script)}'; base-uri 'none'"
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


def _packaged(name: str) -> Markup:
    return Markup(resources.files("dashboards.report").joinpath(name).read_text(encoding="utf-8"))


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _hatch(name: str) -> Markup:
    """A pattern that shows a status without colour."""
    lines = el("path", d="M-2 2l4 -4M0 8l8 -8M6 10l4 -4", class_=name)
    return el("pattern", lines, id=name, width=8, height=8, patternUnits="userSpaceOnUse")


EMPTY = el("p", "The lake has no captures yet: load some with kraftlake run --captures.", class_="verdict")

FOOTER = join(
    (
        el("footer", el("p", "Whatever the captures do not prove is undecided. kraftlake sql can query "
                             "every number on this page.")),
        el("div", id="tip", role="status", aria_live="polite", hidden=True),
    )
)  # fmt: skip

PATTERNS = el(
    "svg",
    el("defs", [_hatch(f"hatch-{kind}") for kind in ("truncated", "uncommitted", "undecided", "fold")]),
    width=0, height=0, aria_hidden="true", class_="vh",
)  # fmt: skip
