"""The fleet: the clusters by urgency, as tiles and as a table."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from dashboards.report.cluster_view import (
    badge,
    failed_words,
    leader,
    leader_note,
    reported_voters,
    voters,
    voters_mark,
    watermark,
    watermark_moment,
)
from dashboards.report.draw_lanes import VERBS
from dashboards.report.formatting import ago, duration, number, time_by, time_of
from dashboards.report.markup import Markup, el
from dashboards.report.state import NEED_WORDS, NONE_FAILED, STALE_MS, ClusterState, Need
from dashboards.report.tables import status_badge
from kraft_core.wording import count

COLUMNS = (
    "State",
    "Cluster",
    "Voters",
    "Leader",
    "High watermark",
    "Errors",
    "Last capture",
    "Last voter change",
)
# A shorter table needs no search field.
SEARCHABLE = 8
# What at least this many clusters have in common is shown once.
SEVERAL = 4


def fleet_view(
    states: Sequence[ClusterState],
    links: Mapping[str, str],
    now: int,
    shown: int,
    failed: Mapping[str, str] = NONE_FAILED,
    titles: Mapping[str, str] = NONE_FAILED,
) -> Markup:
    """The section. `links`: where each listed cluster's details are; `shown`: most rows.

    `failed`: clusters that cannot be shown, and why; `titles`: their names.
    """
    rows = [
        _failed_row(titles.get(cluster, cluster), why, links.get(cluster)) for cluster, why in failed.items()
    ]
    shared = _shared(states)
    rows += [_row(state, links.get(state.cluster_id), now, shared) for state in states[:shown]]
    clusters = len(failed) + len(states)
    left_out = clusters - len(rows)
    headings = [el("th", title, scope="col") for title in COLUMNS]
    return el(
        "section",
        el("h2", "Fleet", id="fleet-h"),
        verdict(states, failed),
        _of_many(states),
        _detailed(states, links),
        _tiles(states, links, failed, titles) if clusters > 1 else None,
        _search() if clusters >= SEARCHABLE else None,
        el(
            "table",
            el("caption", "Clusters, most urgent first", class_="vh"),
            el("thead", el("tr", headings)),
            el("tbody", rows),
            class_="fleet",
        ),
        el("p", f"{count(left_out, 'more cluster')}, none more urgent: kraftlake clusters lists them.",
           class_="more") if left_out else None,
        id="fleet",
        aria_labelledby="fleet-h",
    )  # fmt: skip


def _of_many(states: Sequence[ClusterState]) -> Markup | None:
    """What the rows do not repeat: that captures are overdue, and what is so of every cluster."""
    overdue = sum(any(reason.is_overdue for reason in s.reasons) for s in states)
    words: list[str] = []
    if overdue and len(states) > 1:
        verb = "was" if overdue == 1 else "were"
        words.append(f"{count(overdue, 'cluster')} {verb} last captured more than {duration(STALE_MS)} ago.")
    if shared := sorted(_shared(states)):
        words.append(f"Every cluster: {'; '.join(shared)}.")
    return el("p", " ".join(words), class_="more") if words else None


def _shared(states: Sequence[ClusterState]) -> set[str]:
    """The reasons, in words, that every one of several clusters has."""
    if len(states) < SEVERAL:
        return set()
    return set.intersection(*({r.words for r in s.reasons if not r.is_overdue} for s in states))


def _detailed(states: Sequence[ClusterState], links: Mapping[str, str]) -> Markup | None:
    """Which clusters have a part of their own, where not all have one."""
    found = [links[s.cluster_id] for s in states if s.cluster_id in links]
    folders = {link.partition("/")[0] for link in found if not link.startswith("#")}
    if not folders:
        return None
    parts = sum(link.startswith("#") for link in found)
    which = "the most urgent cluster follow" if parts == 1 else f"the {parts:,} most urgent clusters follow"
    words = f"Details of {which} the table; " if parts else ""
    where = el("code", unquote(folders.pop()))
    return el("p", f"{words}each other has a page, in folder ", where, " beside this one.", class_="more")


def verdict(states: Sequence[ClusterState], failed: Mapping[str, str] = NONE_FAILED) -> Markup:
    """The state of the fleet in one sentence."""
    needing = {need: sum(1 for s in states if s.need == need) for need in Need}
    urgent = needing[Need.ACTION] + len(failed)
    if urgent:
        verb = "needs" if urgent == 1 else "need"
        words = f"{urgent} of {count(len(states) + len(failed), 'cluster')} {verb} action"
    elif needing[Need.LOOK]:
        verb = "is" if needing[Need.LOOK] == 1 else "are"
        words = f"No cluster needs action; {needing[Need.LOOK]} of {len(states):,} {verb} worth a look"
    else:
        words = {1: "The cluster is healthy", 2: "Both clusters are healthy"}.get(
            len(states), f"All {len(states):,} clusters are healthy"
        )
    return el("p", f"{words}.", class_="verdict")


def _tiles(
    states: Sequence[ClusterState],
    links: Mapping[str, str],
    failed: Mapping[str, str],
    titles: Mapping[str, str],
) -> Markup:
    """A tile per cluster, grouped by urgency, in the order of the table."""
    groups = []
    for need in sorted(Need, reverse=True):
        members = (
            [(cluster, titles.get(cluster, cluster)) for cluster in failed] if need is Need.ACTION else []
        )
        members += [(s.cluster_id, s.title) for s in states if s.need == need]
        if not members:
            continue
        squares = [
            el(
                "a",
                el("span", title, class_="vh"),
                href=links.get(cluster, "#fleet"),
                title=title,
            )
            for cluster, title in members[: MOST_TILES[need]]
        ]
        some = f", {MOST_TILES[need]} of them shown" if len(members) > MOST_TILES[need] else ""
        words = f"{NEED_WORDS[need]}: {len(members):,}{some}"
        groups.append(
            el("div", el("p", words), el("div", squares, class_="squares"), class_=f"need{int(need)}")
        )
    return el("div", groups, class_="tiles")


# Of healthy clusters there are a few rows of tiles: the others matter.
MOST_TILES = {Need.ACTION: 400, Need.LOOK: 400, Need.NONE: 80}


def _search() -> Markup:
    return el(
        "p",
        el("label", "Find a cluster ", el("input", type="search", id="find", autocomplete="off")),
        el("output", "", id="found", aria_live="polite"),
        class_="search",
    )


def _failed_row(title: str, why: str, link: str | None) -> Markup:
    name = [_linked(title, link), el("ul", el("li", failed_words(why)))]
    unknown = el("span", "–", class_="none")
    return _cells((badge(Need.ACTION), name, *[unknown] * (len(COLUMNS) - 2)), Need.ACTION)


def _row(state: ClusterState, link: str | None, now: int, shared: Collection[str]) -> Markup:
    """shared: what is said of every cluster above the table."""
    title = _linked(state.title, link)
    why = [el("li", r.words) for r in state.reasons if not r.is_overdue and r.words not in shared]
    overdue = "overdue, " if any(r.is_overdue for r in state.reasons) else ""
    name = [
        title,
        el("code", state.cluster_id) if state.name else None,
        el("small", state.whose) if state.whose else None,
        el("ul", why) if why else None,
    ]
    found = f"{number(state.errors)} {'error' if state.errors == 1 else 'errors'}"
    cells = (
        badge(state.need),
        name,
        [voters(state), el("small", f"{voters_mark(state)}{reported_voters(state)}")],
        [leader(state), el("small", leader_note(state))],
        [
            watermark(state),
            el("small", watermark_moment(state)),
            el("small", f"committed up to {number(state.committed_end_offset)}"),
        ],
        [found, el("small", count(state.warnings, "warning"))],
        [f"{overdue}{ago(state.last_captured_at, now)}", el("small", time_of(state.last_captured_at))],
        _last_change(state),
    )
    return _cells(cells, state.need)


def _linked(title: str, link: str | None) -> Markup:
    return el("a", title, href=link) if link else el("span", title)


def _cells(cells: Sequence[Any], need: Need) -> Markup:
    """A row with a cell for each of COLUMNS."""
    named = [el("td", cell, data_l=title) for title, cell in zip(COLUMNS, cells, strict=True)]
    return el("tr", named, class_=f"need{int(need)}")


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
