"""The number of partitions under min ISR over time, as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from dashboards.report.chart import AXIS_HEIGHT, figure, label, line, mark, span, time_grid
from dashboards.report.formatting import number, utc
from dashboards.report.markup import Markup
from dashboards.report.timescale import TimeScale, time_scale
from kraft_core.wording import count

TOP, HEIGHT = 16, 110


def draw_isr(rows: Sequence[dict[str, Any]], scale: TimeScale | None, now: int) -> Markup | None:
    """The figure; None without rows. A row has the number from `at` on, and the most until the next row."""
    steps = sorted((row["at"], row["partitions"], row["most"]) for row in rows)
    if not steps:
        return None
    if scale is None or steps[0][0] < scale.start or steps[-1][0] > scale.end:
        scale = time_scale([at for at, *_ in steps] + ([scale.start, scale.end] if scale else [now]))
    assert scale is not None
    most = max(peak for _, _, peak in steps)
    parts = time_grid(scale, HEIGHT)
    parts += [line(0, _y_of(most, most), 100, _y_of(most, most), "grid"),
              label(0, _y_of(most, most) - 3, count(most, "partition"), "tick")]  # fmt: skip
    for (at, partitions, peak), (until, *_) in pairwise([*steps, (scale.end, 0, 0)]):
        if not peak or until < at:
            continue
        words = f"{count(partitions, 'partition')} under min ISR from {utc(at)} to {utc(until)}"
        if peak > partitions:
            words = f"up to {number(peak)}, finally {words}"
        y = _y_of(max(partitions, peak), most)
        parts.append(mark(words, span(scale, at, until, y, HEIGHT - y), kind="thin"))
    last = steps[-1]
    caption = f"At most {count(most, 'partition')} at a time; {number(last[1])} at the end of the log."
    return figure("Partitions under min ISR", caption, (), HEIGHT + AXIS_HEIGHT, parts)


def _y_of(partitions: int, most: int) -> float:
    return HEIGHT - (HEIGHT - TOP) * partitions / max(most, 1)
