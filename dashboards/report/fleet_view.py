"""The fleet: what needs a person, cluster by cluster, as tiles and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dashboards.report.cluster_view import badge, leader, voters, watermark
from dashboards.report.draw_lanes import VERBS
from dashboards.report.formatting import ago, count, number, time_of
from dashboards.report.markup import Markup, el
from dashboards.report.state import NEED_WORDS, ClusterState, Need
from dashboards.report.tables import status_badge

COLUMNS = ("State", "Cluster", "Voters", "Leader", "High watermark", "Errors", "Last capture", "Last change")
# Below this many clusters one sees the table whole, and a search field is only in the way.
SEARCHABLE = 8


def fleet_view(states: Sequence[ClusterState], anchors: Mapping[str, str], now: int, shown: int) -> Markup:
    """The section. `anchors` are the ids of the clusters that are told below; `shown` rows are listed."""
    rows = [row(state, anchors.get(state.cluster_id), now) for state in states[:shown]]
    left_out = len(states) - len(rows)
    headings = [el("th", title, scope="col") for title in COLUMNS]
    return el(
        "section",
        el("h2", "Fleet", id="fleet-h"),
        verdict(states),
        tiles(states, anchors) if len(states) > 1 else None,
        search() if len(states) >= SEARCHABLE else None,
        el(
            "table",
            el("caption", "Clusters, those first that need a person", class_="vh"),
            el("thead", el("tr", headings)),
            el("tbody", rows),
            class_="fleet",
        ),
        el("p", f"{count(left_out, 'more cluster')}, none of them needs more: kraftlake sql has them all.",
           class_="more") if left_out else None,
        id="fleet",
        aria_labelledby="fleet-h",
    )  # fmt: skip


def verdict(states: Sequence[ClusterState]) -> Markup:
    """The sentence that one reads if one reads only one."""
    needing = {need: sum(1 for s in states if s.need == need) for need in Need}
    if needing[Need.PERSON]:
        verb = "needs" if needing[Need.PERSON] == 1 else "need"
        words = f"{needing[Need.PERSON]} of {count(len(states), 'cluster')} {verb} a person"
    elif needing[Need.LOOK]:
        verb = "deserves" if needing[Need.LOOK] == 1 else "deserve"
        words = f"No cluster needs a person; {needing[Need.LOOK]} of {len(states):,} {verb} a look"
    else:
        words = {1: "The cluster is well", 2: "Both clusters are well"}.get(
            len(states), f"All {len(states):,} clusters are well"
        )
    return el("p", f"{words}.", class_="verdict")


def tiles(states: Sequence[ClusterState], anchors: Mapping[str, str]) -> Markup:
    """A tile a cluster, in the order of the table; with how many of each kind."""
    groups = []
    for need in sorted(Need, reverse=True):
        members = [s for s in states if s.need == need]
        if not members:
            continue
        squares = [
            el(
                "a",
                el("span", s.title, class_="vh"),
                href=f"#{anchors.get(s.cluster_id, 'fleet')}",
                title=s.title,
            )
            for s in members[:MOST_TILES]
        ]
        some = f", {MOST_TILES} of them here" if len(members) > MOST_TILES else ""
        words = f"{NEED_WORDS[need]}: {len(members):,}{some}"
        groups.append(
            el("div", el("p", words), el("div", squares, class_="squares"), class_=f"need{int(need)}")
        )
    return el("div", groups, class_="tiles")


MOST_TILES = 400


def search() -> Markup:
    return el(
        "p",
        el("label", "Find a cluster ", el("input", type="search", id="find", autocomplete="off")),
        el("output", "", id="found", aria_live="polite"),
        class_="search",
    )


def row(state: ClusterState, anchor: str | None, now: int) -> Markup:
    title = el("a", state.title, href=f"#{anchor}") if anchor else el("span", state.title)
    why = [el("li", reason.words) for reason in state.reasons]
    name = [
        title,
        el("code", state.cluster_id) if state.name else None,
        el("small", state.whose) if state.whose else None,
        el("ul", why) if why else None,
    ]
    found = f"{number(state.errors)} {'error' if state.errors == 1 else 'errors'}"
    cells = (
        badge(state),
        name,
        [voters(state), el("small", state.voters_status or state.voters_source)],
        [leader(state), el("small", f"epoch {number(state.leader_epoch)}")],
        [watermark(state), el("small", f"committed to {number(state.committed_end_offset)}")],
        [found, el("small", count(state.warnings, "warning"))],
        [ago(state.last_captured_at, now), el("small", time_of(state.last_captured_at))],
        last_change(state),
    )
    return el(
        "tr",
        [el("td", cell, data_l=title_) for title_, cell in zip(COLUMNS, cells, strict=True)],
        class_=f"need{int(state.need)}",
    )


def last_change(state: ClusterState) -> list[Markup]:
    change = state.change
    if change is None:
        return [el("span", "–", class_="none")]
    what = f"{VERBS[change.kind]} node {change.voter_id}"
    return [el("span", what), status_badge(change.commit_status), el("small", time_of(change.changed_at))]
