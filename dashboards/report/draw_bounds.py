"""Watermark bounds and log ends as SVG: a band that contains the high watermark."""

from __future__ import annotations

from itertools import pairwise

from dashboards.report.bounds import Bounds, BoundStep, LogEnd
from dashboards.report.chart import AXIS_HEIGHT, at, figure, label, line, mark, pct, swatch, time_grid
from dashboards.report.formatting import number, utc
from dashboards.report.formatting import replica as named
from dashboards.report.lanes import LaneReplica
from dashboards.report.markup import Markup, el
from dashboards.report.timescale import TimeScale

TOP, HEIGHT = 14, 230
# Each replica has a shape and a colour; with more replicas than shapes they repeat.
SHAPES = ("M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", "M-4 -4h8v8h-8z", "M0 -5l5 9h-10z", "M0 -5l5 5l-5 5l-5 -5z",
          "M0 5l5 -9h-10z", "M-5 -2h3v-3h4v3h3v4h-3v3h-4v-3h-3z")  # fmt: skip

# Replicas are captured together and end alike: their points stand side by side, this many pixels apart.
BESIDE = 5
# With more captures than this the points are small and lie on each other.
DENSE = 24


class Scale:
    """Maps offsets to pixels, with a margin above and below."""

    def __init__(self, lowest: int, highest: int) -> None:
        room = max((highest - lowest) * 0.06, 1)
        self.low, self.high = lowest - room, highest + room

    def y(self, offset: float) -> float:
        return TOP + (HEIGHT - TOP) * (self.high - offset) / (self.high - self.low)

    def ticks(self) -> list[int]:
        """About five round offsets."""
        least = (self.high - self.low) / 5
        magnitude = 10 ** max(len(str(int(least))) - 1, 0)
        step = next(n * magnitude for n in (1, 2, 5, 10) if n * magnitude >= least)
        first = int(-(-max(self.low, 0) // step) * step)
        return list(range(first, int(self.high) + 1, int(step)))


def draw_bounds(bounds: Bounds, time: TimeScale) -> Markup:
    """The figure."""
    scale = Scale(bounds.lowest, bounds.highest)
    parts = time_grid(time, HEIGHT)
    for offset in scale.ticks():
        parts.append(line(0, scale.y(offset), 100, scale.y(offset), "grid"))
    parts += [_draw_step(step, time, scale) for step in bounds.steps if step.lower is not None or step.upper]
    parts += [riser for pair in pairwise(bounds.steps) for riser in _draw_risers(*pair, time, scale)]
    # Above the band, which reaches the left edge.
    parts += [label(0, scale.y(tick) - 3, number(tick), "tick offset") for tick in scale.ticks()]
    for index, (replica, ends) in enumerate(bounds.log_ends.items()):
        aside = BESIDE * (index - (len(bounds.log_ends) - 1) / 2)
        parts += _draw_log_ends(replica, ends, index, aside, time, scale)
    return figure(
        "High watermark and log ends",
        _caption(bounds),
        _legend(bounds),
        HEIGHT + AXIS_HEIGHT,
        parts,
    )


def _caption(bounds: Bounds) -> str:
    lowers = [p for p in bounds.proofs if p.is_lower]
    uppers = [p for p in bounds.proofs if not p.is_lower]
    words = []
    if lowers:
        best = max(lowers, key=lambda p: p.bound)
        words.append(f"Since {utc(best.at)} the high watermark is at least {number(best.bound)}")
    if uppers:
        last = max(uppers, key=lambda p: p.at)
        words.append(f"{'until' if words else 'Until'} {utc(last.at)} it was at most {number(last.bound)}")
    return f"{'; '.join(words) or 'The captures prove no bound of the high watermark'}."


def _draw_step(step: BoundStep, time: TimeScale, scale: Scale) -> Markup:
    """The band between two times with its lower and upper edge; open where there is no bound."""
    left, right = time.x(step.start), time.x(step.end)
    top = TOP if step.upper is None else scale.y(step.upper)
    bottom = HEIGHT if step.lower is None else scale.y(step.lower)
    is_open = step.upper is None or step.lower is None
    shapes = [
        el(
            "rect",
            x=pct(left),
            y=f"{min(top, bottom):.1f}",
            width=pct(right - left),
            height=f"{max(bottom - top, 0.5):.1f}",
            class_="open" if is_open else "band",
        )
    ]
    if step.lower is not None:
        shapes.append(line(left, bottom, right, bottom, "lower"))
    if step.upper is not None:
        shapes.append(line(left, top, right, top, "upper"))
    lower = "no lower bound" if step.lower is None else f"at least {number(step.lower)}"
    upper = "no upper bound" if step.upper is None else f"at most {number(step.upper)}"
    return mark(f"{lower}, {upper}, from {utc(step.start)} to {utc(step.end)}", *shapes, kind="step")


def _draw_risers(before: BoundStep, after: BoundStep, time: TimeScale, scale: Scale) -> list[Markup]:
    """The vertical parts of both edges where a bound changes."""
    x = time.x(after.start)
    found = []
    for one, other, kind in ((before.lower, after.lower, "lower"), (before.upper, after.upper, "upper")):
        if one is not None and other is not None and one != other:
            found.append(line(x, scale.y(one), x, scale.y(other), kind))
    return found


def _draw_log_ends(
    replica: LaneReplica, ends: tuple[LogEnd, ...], index: int, aside: float, time: TimeScale, scale: Scale
) -> list[Markup]:
    """A replica's log ends, shifted `aside` by some pixels and joined by a thin line."""
    colour = f"replica r{index % len(SHAPES)}"
    place = f"translate({aside:g} 0)" if len(ends) <= DENSE else "scale(.5)"
    shape = el("path", d=SHAPES[index % len(SHAPES)], transform=place)
    thin = [
        line(time.x(a.at), scale.y(a.end_offset), time.x(b.at), scale.y(b.end_offset), colour)
        for a, b in pairwise(ends)
    ]
    points = [
        mark(
            f"Log end {number(end.end_offset)} of {named(replica.node_id, replica.directory_id)}, "
            f"epoch {'unknown' if end.leader_epoch is None else end.leader_epoch}, captured {utc(end.at)}",
            at(time.x(end.at), scale.y(end.end_offset), shape),
            kind=colour,
        )
        for end in ends
    ]
    return thin + points


def _legend(bounds: Bounds) -> list[tuple[Markup, str]]:
    band = swatch(el("rect", width=22, height=14, class_="band"),
                  el("line", x1=0, x2=22, y1=1, y2=1, class_="upper"),
                  el("line", x1=0, x2=22, y1=13, y2=13, class_="lower"))  # fmt: skip
    keys = [(band, "high watermark between its bounds")]
    for index, replica in enumerate(bounds.log_ends):
        shape = el("path", d=SHAPES[index % len(SHAPES)], transform="translate(11 7)")
        picture = swatch(el("g", shape, class_=f"replica r{index % len(SHAPES)}"))
        keys.append((picture, f"log end of {named(replica.node_id, replica.directory_id)}"))
    return keys
