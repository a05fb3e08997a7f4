"""The fleet: the clusters by urgency, as tiles and as a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dashboards.report.cluster_view import (
    badge,
    leader,
    leader_note,
    reported_voters,
    voters,
    voters_mark,
    watermark,
    watermark_moment,
)
from dashboards.report.draw_lanes import VERBS
from dashboards.report.formatting import ago, count, number, time_by, time_of
from dashboards.report.markup import Markup, el
from dashboards.report.state import NEED_WORDS, ClusterState, Need
from dashboards.report.tables import status_badge

COLUMNS = ("State", "Cluster", "Voters", "Leader", "High watermark", "Errors", "Last capture", "Last change")
# A shorter table needs no search field.
SEARCHABLE = 8


def fleet_view(states: Sequence[ClusterState], anchors: Mapping[str, str], now: int, shown: int) -> Markup:
    """The section. `anchors`: the ids of the clusters with a part of their own; `shown`: most rows."""
    rows = [_row(state, anchors.get(state.cluster_id), now) for state in states[:shown]]
    left_out = len(states) - len(rows)
    headings = [el("th", title, scope="col") for title in COLUMNS]
    return el(
        "section",
        el("h2", "Fleet", id="fleet-h"),
        verdict(states),
        _tiles(states, anchors) if len(states) > 1 else None,
        _search() if len(states) >= SEARCHABLE else None,
        el(
            "table",
            el("caption", "Clusters, most urgent first", class_="vh"),
            el("thead", el("tr", headings)),
            el("tbody", rows),
            class_="fleet",
        ),
        el("p", f"{count(left_out, 'more cluster')}, none more urgent: kraftlake clusters lists them all.",
           class_="more") if left_out else None,
        id="fleet",
        aria_labelledby="fleet-h",
    )  # fmt: skip


def verdict(states: Sequence[ClusterState]) -> Markup:
    """The state of the fleet in one sentence."""
    needing = {need: sum(1 for s in states if s.need == need) for need in Need}
    if needing[Need.ACTION]:
        verb = "needs" if needing[Need.ACTION] == 1 else "need"
        words = f"{needing[Need.ACTION]} of {count(len(states), 'cluster')} {verb} action"
    elif needing[Need.LOOK]:
        verb = "is" if needing[Need.LOOK] == 1 else "are"
        words = f"No cluster needs action; {needing[Need.LOOK]} of {len(states):,} {verb} worth a look"
    else:
        words = {1: "The cluster is healthy", 2: "Both clusters are healthy"}.get(
            len(states), f"All {len(states):,} clusters are healthy"
        )
    return el("p", f"{words}.", class_="verdict")


def _tiles(states: Sequence[ClusterState], anchors: Mapping[str, str]) -> Markup:
    """A tile per cluster, grouped by urgency, in the order of the table."""
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
        some = f", {MOST_TILES} of them shown" if len(members) > MOST_TILES else ""
        words = f"{NEED_WORDS[need]}: {len(members):,}{some}"
        groups.append(
            el("div", el("p", words), el("div", squares, class_="squares"), class_=f"need{int(need)}")
        )
    return el("div", groups, class_="tiles")


MOST_TILES = 400


def _search() -> Markup:
    return el(
        "p",
        el("label", "Find a cluster ", el("input", type="search", id="find", autocomplete="off")),
        el("output", "", id="found", aria_live="polite"),
        class_="search",
    )


def _row(state: ClusterState, anchor: str | None, now: int) -> Markup:
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
        [voters(state), el("small", f"{voters_mark(state)}{reported_voters(state)}")],
        [leader(state), el("small", leader_note(state))],
        [
            watermark(state),
            el("small", watermark_moment(state)),
            el("small", f"committed to {number(state.committed_end_offset)}"),
        ],
        [found, el("small", count(state.warnings, "warning"))],
        [ago(state.last_captured_at, now), el("small", time_of(state.last_captured_at))],
        _last_change(state),
    )
    return el(
        "tr",
        [el("td", cell, data_l=title_) for title_, cell in zip(COLUMNS, cells, strict=True)],
        class_=f"need{int(state.need)}",
    )


def _last_change(state: ClusterState) -> list[Markup]:
    change = state.change
    if change is None:
        return [el("span", "–", class_="none")]
    what = f"{VERBS[change.kind]} node {change.voter_id}"
    return [
        el("span", what),
        status_badge(change.commit_status),
        el("small", time_by(change.changed_at, change.changed_exact)),
    ]
