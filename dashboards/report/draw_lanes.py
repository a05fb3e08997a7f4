"""The lanes as SVG: voters as bands, leaders as bars, leaderless time across all lanes, changes on top."""

from __future__ import annotations

from collections.abc import Iterable

from dashboards.report.chart import AXIS_HEIGHT, at, figure, label, mark, span, swatch, time_grid
from dashboards.report.formatting import duration, listed, short, utc
from dashboards.report.lanes import ELECTION, Doubt, Gap, Lane, Lanes, Led, Reported, SetChange, Voting
from dashboards.report.markup import Markup, el
from dashboards.report.timescale import TimeScale
from kraft_core.wording import count

CHANGES_Y = 26  # centre of the row of changes
TOP = 46  # where lanes begin
PITCH = 46  # from lane to lane
BAND_Y, BAND = 17, 20  # voter band, from the lane's top
BAR_Y, BAR = 21, 12  # leader bar
# Bars narrower than this, in percent, carry no epoch number; those below the second none on a phone.
LABELLED, LABELLED_NARROW = 3.2, 11.0
# Changes closer than this, in percent, share a mark.
SEPARATE = 2.2

SIGNS = {"added": "+", "removed": "−", "updated": "~", "bootstrapped": "●"}
VERBS = {"added": "added", "removed": "removed", "updated": "updated", "bootstrapped": "first voter set:"}
WORST = ("truncated", "uncommitted", "undecided", "committed", None)


def draw_lanes(lanes: Lanes, sets: int, most_voters: int) -> Markup:
    """The figure. `sets`: how many voter sets are proven; `most_voters`: how many the largest of them has."""
    bottom = TOP + PITCH * len(lanes.lanes)
    scale = lanes.scale
    parts: list[Markup] = [label(0, 11, "Membership changes", "row")]
    parts += time_grid(scale, bottom)
    parts += [_draw_gap(gap, scale, bottom) for gap in lanes.gaps]
    for index, lane in enumerate(lanes.lanes):
        parts += _draw_lane(lane, scale, TOP + PITCH * index)
    parts += [_draw_changes(group, x) for x, group in _grouped(lanes.changes, scale)]
    return figure(
        "Voters and leaders", _caption(lanes, sets, most_voters), _legend(lanes), bottom + AXIS_HEIGHT, parts
    )


def _caption(lanes: Lanes, sets: int, most_voters: int) -> str:
    voters = sum(1 for lane in lanes.lanes if lane.was_voter)
    epochs = sum(led.epochs for lane in lanes.lanes for led in lane.led)
    words = f"{count(voters, 'replica')} could vote"
    if voters > most_voters > 0:
        words += f" at some time, at most {most_voters} of them at once"
    if observers := len(lanes.lanes) - voters:
        words += f", {observers} more were observers"
    lost = sum(1 for c in lanes.changes if c.status == "truncated")
    words += f"; {count(epochs, 'epoch')} with a leader"
    if sets:
        words += f"; {count(sets, 'voter set')}"
    if lost:
        words += f", {lost} of them truncated"
    return f"{words}{_leaderless_words(lanes)}."


def _leaderless_words(lanes: Lanes) -> str:
    """For how long there was no leader at most, and before how many elections that is not known."""
    words = ""
    if lanes.gaps:
        longest = max(gap.longest_ms for gap in lanes.gaps)
        covered = count(sum(gap.epochs for gap in lanes.gaps), "election")
        words = f"; no leader for at most {duration(longest)} before {covered}"
    if lanes.not_covered and words:
        words += f"; for how long before {count(lanes.not_covered, 'other')} is not known"
    elif lanes.not_covered:
        elections = count(lanes.not_covered, "election")
        words = f"; for how long there was no leader before {elections} is not known"
    return words


def _draw_lane(lane: Lane, scale: TimeScale, y: float) -> list[Markup]:
    node = f"Node {lane.replica.node_id}"
    role = "" if lane.was_voter else "  observer"
    name = el(
        "text",
        el("tspan", node, class_="node"),
        el("tspan", f" {short(lane.replica.directory_id)}{role}".rstrip(), class_="directory"),
        x=0,
        y=f"{y + 11:g}",
        class_="row",
    )
    parts = [name, el("rect", x=0, y=f"{y + BAND_Y:g}", width="100%", height=BAND, class_="track")]
    parts += [_draw_voting(voting, node, scale, y) for voting in lane.voting]
    parts += [_draw_reported(reported, node, scale, y) for reported in lane.reported]
    parts += [_draw_led(led, node, scale, y) for led in lane.led]
    parts += [_draw_doubt(doubt, node, scale, y) for doubt in lane.doubts]
    parts += [
        at(scale.x(ms), y + BAND_Y + BAND, el("path", d="M0 0l3 5h-6z", class_="captured"))
        for ms in sorted(set(lane.captured))
    ]
    return parts


def _draw_voting(voting: Voting, node: str, scale: TimeScale, y: float) -> Markup:
    begun = utc(voting.start) if voting.start_exact else f"{utc(voting.start)}, perhaps before,"
    ended = utc(voting.end) if voting.end_exact else f"at or before {utc(voting.end)}"
    words = f"{node} could vote from {begun} to {ended}"
    if voting.source == ELECTION:
        words = f"{node} could vote at {utc(voting.start)}, when it was elected; the voter set is not known"
    elif voting.source in ("static", "bootstrap"):
        words += f" (by the {voting.source} set at first)"
    band = span(scale, voting.start, voting.end, y + BAND_Y, BAND, rx=3)
    return mark(words, band, kind="voting")


def _draw_reported(reported: Reported, node: str, scale: TimeScale, y: float) -> Markup:
    """A dashed outline of a voter's band or a leader's bar: nothing proves it."""
    is_voter = reported.epoch is None
    whom = "a voter" if is_voter else f"leader of epoch {reported.epoch}"
    words = f"{node} was reported as {whom} between {utc(reported.start)} and {utc(reported.end)}; not proven"
    top, height = (BAND_Y, BAND) if is_voter else (BAR_Y, BAR)
    return mark(words, span(scale, reported.start, reported.end, y + top, height, rx=2), kind="reported")


def _draw_led(led: Led, node: str, scale: TimeScale, y: float) -> Markup:
    """An epoch's bar, or a bin's: the less of the time it led, the paler."""
    width = scale.x(led.end) - scale.x(led.start)
    if led.epochs == 1:
        words = f"{node} led epoch {led.first_epoch} from {utc(led.start)}"
        if led.end > led.start:
            words += f", for {duration(led.end - led.start)}"
    else:
        words = (
            f"{node} led {led.epochs} epochs between {led.first_epoch} and {led.last_epoch}, "
            f"{led.share:.0%} of the time from {utc(led.start)} to {utc(led.end)}"
        )
    shapes = [
        span(
            scale,
            led.start,
            led.end,
            y + BAR_Y,
            BAR,
            rx=2,
            fill_opacity=None if led.share > 0.99 else f"{0.25 + 0.75 * led.share:.2f}",
        )
    ]
    if width >= LABELLED and led.epochs == 1:
        kind = "epoch middle" + (" minor" if width < LABELLED_NARROW else "")
        shapes.append(label(scale.x(led.start) + width / 2, y + BAR_Y + 10, f"e{led.first_epoch}", kind))
    if led.is_unlawful:
        words += "; not elected by a majority of the voters (see Findings)"
    return mark(words, *shapes, kind="led unlawful" if led.is_unlawful else "led")


def _draw_doubt(doubt: Doubt, node: str, scale: TimeScale, y: float) -> Markup:
    """A hatched band: a membership change that some log held and that is not committed."""
    done = "in the first voter set" if doubt.kind == "bootstrapped" else doubt.kind
    words = (
        f"{node} {done} at offset {doubt.offset} in epoch {doubt.leader_epoch}: "
        f"{_status_words(doubt.status, doubt.truncated_by_epoch)}; in force on the replicas that held it, "
        f"from {utc(doubt.start)} to {utc(doubt.end)}"
    )
    band = span(scale, doubt.start, doubt.end, y + BAND_Y, BAND, rx=3)
    return mark(words, band, kind=f"doubt {doubt.status}")


def _draw_gap(gap: Gap, scale: TimeScale, bottom: float) -> Markup:
    if gap.epochs == 1:
        words = f"No leader for at most {duration(gap.leaderless_ms)} before epoch {gap.before}"
    else:
        words = (
            f"No leader for at most {duration(gap.leaderless_ms)} in total, "
            f"{duration(gap.longest_ms)} at a time, around {count(gap.epochs, 'election')} "
            f"from epoch {gap.before} on"
        )
    opacity = None if gap.share > 0.99 else f"{max(gap.share, 0.1):.2f}"
    shape = span(scale, gap.start, gap.end, TOP - 4, bottom - TOP + 4, opacity=opacity)
    return mark(words, shape, kind="gap")


def _grouped(changes: Iterable[SetChange], scale: TimeScale) -> list[tuple[float, list[SetChange]]]:
    """Groups of changes that would overlap, each with the position of its first."""
    groups: list[tuple[float, list[SetChange]]] = []
    for change in sorted(changes, key=lambda c: c.at):
        x = scale.x(change.at)
        if groups and x - groups[-1][0] < SEPARATE:
            groups[-1][1].append(change)
        else:
            groups.append((x, [change]))
    return groups


def _draw_changes(changes: list[SetChange], x: float) -> Markup:
    """A round mark with the sign of the change, or the number of changes."""
    statuses = [c.status for c in changes]
    status = next(s for s in WORST if s in statuses)
    kinds = {kind for c in changes for kind, *_ in c.parts}
    sign = SIGNS[next(iter(kinds))] if len(changes) == 1 and len(kinds) == 1 else str(len(changes))
    shapes = [el("circle", r=8), el("text", sign, y=4, class_="middle")]
    if status == "truncated":
        shapes.append(el("path", d="M5 -11l6 6M11 -11l-6 6", class_="strike"))
    words = "; ".join(_change_words(c) for c in changes)
    return mark(words, at(x, CHANGES_Y, *shapes), kind=f"change {status or 'committed'}")


def _change_words(change: SetChange) -> str:
    """+ node 4 at 355/e1, truncated by epoch 3."""
    whom = listed(f"{VERBS[kind]} node {voter}" for kind, voter, *_ in change.parts)
    status = _status_words(change.status, change.truncated_by_epoch)
    when = utc(change.at) if change.is_exact else f"at or before {utc(change.at)}"
    return f"{whom} at offset {change.offset} in epoch {change.leader_epoch}, {status}, {when}"


def _status_words(status: str | None, truncated_by_epoch: int | None) -> str:
    if status == "truncated" and truncated_by_epoch is not None:
        return f"truncated by epoch {truncated_by_epoch}"
    return status or "not in the log"


def _box(kind: str, height: int = 14, y: int = 0) -> Markup:
    return el("g", el("rect", x=0, y=y, width=22, height=height, rx=2), class_=kind)


def _legend(lanes: Lanes) -> list[tuple[Markup, str]]:
    """A key for each kind of mark in the chart."""
    keys = [
        (swatch(_box("voting")), "could vote"),
        (swatch(_box("voting"), _box("led", 8, 3)), "led, with its epoch"),
    ]
    statuses = {doubt.status for lane in lanes.lanes for doubt in lane.doubts}
    keys += [(swatch(_box(f"doubt {s}")), f"{s} change") for s in DOUBTS if s in statuses]
    if any(led.is_unlawful for lane in lanes.lanes for led in lane.led):
        keys.append((swatch(_box("led unlawful", 8, 3)), "led without a majority"))
    if lanes.gaps:
        keys.append((swatch(_box("gap")), "no leader, at most"))
    if any(lane.reported for lane in lanes.lanes):
        keys.append((swatch(_box("reported")), "reported as voter or leader, not proven"))
    if any(lane.captured for lane in lanes.lanes):
        keys.append((swatch(el("path", d="M11 3l4 8h-8z", class_="captured")), "captured"))
    return keys


DOUBTS = ("truncated", "uncommitted", "undecided")
