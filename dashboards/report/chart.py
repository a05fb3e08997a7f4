"""Parts of all charts: SVG as wide as its container, a time axis, marks with descriptions.

Positions on the time axis are percent of the width and text keeps its size, so one drawing serves a wide
screen, a phone and paper. The description of a mark is its <title>: browsers show it, screen readers read it,
and page.js shows it on hover, touch and arrow keys.
"""

from __future__ import annotations

from collections.abc import Iterable

from dashboards.report.formatting import duration, utc
from dashboards.report.markup import Markup, el
from dashboards.report.timescale import TimeScale

AXIS_HEIGHT = 36
# A mark is never narrower, in percent of the width.
LEAST_WIDTH = 0.25


def pct(x: float) -> str:
    """A position or width in percent."""
    return f"{x:.2f}".rstrip("0").rstrip(".") + "%"


def mark(words: str, *shapes: Markup, kind: str) -> Markup:
    """Shapes with a description."""
    return el("g", el("title", words), *shapes, class_=f"m {kind}")


def at(x: float, y: float, *shapes: Markup) -> Markup:
    """Shapes in pixels around a position on the time axis."""
    return el("svg", *shapes, x=pct(x), y=f"{y:g}", class_="at")


def span(scale: TimeScale, start: int, end: int, y: float, height: float, **attributes: object) -> Markup:
    """A rectangle from start to end, wide enough to be visible."""
    left, right = scale.x(start), scale.x(end)
    width = max(right - left, LEAST_WIDTH)
    return el("rect", x=pct(left), y=f"{y:g}", width=pct(width), height=f"{height:g}", **attributes)


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> Markup:
    return el("line", x1=pct(x1), y1=f"{y1:.1f}", x2=pct(x2), y2=f"{y2:.1f}", class_=kind)


def label(x: float, y: float, text: str, kind: str) -> Markup:
    return el("text", text, x=pct(x), y=f"{y:g}", class_=kind)


def time_grid(scale: TimeScale, height: float) -> list[Markup]:
    """Grid lines, the labels of the axis below `height`, and the folds."""
    parts: list[Markup] = []
    for fold in scale.folds:
        length = duration(fold.end - fold.start)
        words = f"{length} omitted: nothing changed from {utc(fold.start)} to {utc(fold.end)}"
        middle = (fold.left + fold.right) / 2
        parts.append(
            mark(
                words,
                el("rect", x=pct(fold.left), y=0, width=pct(fold.right - fold.left), height=f"{height:g}"),
                label(middle, height + 15, f"⋯ {length}", "tick minor middle"),
                kind="fold",
            )
        )
    for tick in scale.ticks():
        kind = " minor" if tick.minor else ""
        parts.append(line(tick.x, 0, tick.x, height, "grid"))
        parts.append(label(tick.x, height + 15, tick.label, f"tick {tick.anchor}{kind}"))
        if tick.day:
            parts.append(label(tick.x, height + 29, tick.day, f"tick day {tick.anchor}{kind}"))
    return parts


def figure(
    title: str, caption: str, legend: Iterable[tuple[Markup, str]], height: float, parts: Iterable[Markup]
) -> Markup:
    """A chart with its caption and legend; screen readers read the title."""
    drawing = el(
        "svg",
        *parts,
        class_="chart",
        height=f"{height:g}",
        width="100%",
        role="group",
        aria_roledescription="chart",
        aria_label=f"{title}. {caption} Arrow keys move between its marks; the table below has the data.",
        tabindex=0,
    )
    keys = el("ul", [el("li", swatch, words) for swatch, words in legend], class_="legend")
    return el("figure", el("figcaption", caption), keys, drawing)


def swatch(*shapes: Markup) -> Markup:
    """A small picture for a legend."""
    return el("svg", *shapes, width=22, height=14, aria_hidden="true", class_="swatch")
