"""Time along a chart: proportional where things happen, with long quiet stretches folded to a narrow mark.

A quorum is born within a minute and then changes once a month; drawn in proportion, all that matters would
lie in one pixel. A fold is drawn as such and says how long it stands for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from dashboards.report.formatting import DAY, HOUR, MINUTE, SECOND, moment

# Percent of the chart's width.
LEFT, RIGHT = 1.5, 98.5
FOLD_WIDTH = 5.0
MOST_FOLDS = 6
# A quiet stretch is folded if it takes more than this share of what is drawn in proportion.
FOLDED_SHARE = 0.75
# Room that a label of the axis takes on a wide screen.
LABEL_WIDTH = 9.5

STEPS = tuple(
    n * unit
    for unit, numbers in (
        (1, (1, 2, 5, 10, 20, 50, 100, 200, 500)),
        (SECOND, (1, 2, 5, 10, 15, 30)),
        (MINUTE, (1, 2, 5, 10, 15, 30)),
        (HOUR, (1, 2, 3, 6, 12)),
        (DAY, (1, 2, 7, 14, 28, 91, 182, 365)),
    )
    for n in numbers
)


@dataclass(frozen=True, slots=True)
class ScaleSegment:
    """Times [start, end] in ms on [left, right] in percent; folded where time is not in proportion."""

    start: int
    end: int
    left: float
    right: float
    folded: bool

    def x(self, ms: int) -> float:
        share = (ms - self.start) / (self.end - self.start) if self.end > self.start else 0.0
        return self.left + share * (self.right - self.left)


@dataclass(frozen=True, slots=True)
class AxisTick:
    """A label of the axis; `day` where the date changes. Minor ones may be hidden on a narrow screen."""

    x: float
    label: str
    day: str | None
    minor: bool


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Stretches one after the other, at least one."""

    stretches: tuple[ScaleSegment, ...]

    @property
    def start(self) -> int:
        return self.stretches[0].start

    @property
    def end(self) -> int:
        return self.stretches[-1].end

    def x(self, ms: int) -> float:
        """Where a time lies, in percent of the width; times outside lie at the edge."""
        for stretch in self.stretches:
            if ms <= stretch.end:
                return stretch.x(max(ms, stretch.start))
        return self.stretches[-1].right

    @property
    def folds(self) -> list[ScaleSegment]:
        return [s for s in self.stretches if s.folded]

    def ticks(self) -> list[AxisTick]:
        """Labels for what is drawn in proportion, none too close to another."""
        found: list[AxisTick] = []
        day = None
        for stretch in self.stretches:
            if stretch.folded or stretch.end == stretch.start:
                continue
            step = step_for(stretch)
            for ms in range(-(-stretch.start // step) * step, stretch.end + 1, step):
                x = stretch.x(ms)
                if x > RIGHT - LABEL_WIDTH / 2 or (found and x - found[-1].x < LABEL_WIDTH):
                    continue
                today = moment(ms).strftime("%Y-%m-%d")
                label = today if step >= DAY else moment(ms).strftime(clock_format(step))
                found.append(
                    AxisTick(x, label, today if today != day and step < DAY else None, len(found) % 2 == 1)
                )
                day = today
        return found


def step_for(stretch: ScaleSegment) -> int:
    """Milliseconds between labels of a stretch."""
    room = max((stretch.right - stretch.left) / LABEL_WIDTH, 1.0)
    least = (stretch.end - stretch.start) / room
    return next((s for s in STEPS if s >= least), STEPS[-1])


def clock_format(step: int) -> str:
    if step < SECOND:
        return "%H:%M:%S.%f"
    return "%H:%M:%S" if step < MINUTE else "%H:%M"


def time_scale(times: Iterable[int]) -> TimeScale | None:
    """The scale over moments at which something happened; None without any."""
    moments = sorted(set(times))
    if not moments:
        return None
    if len(moments) == 1:
        return TimeScale((ScaleSegment(moments[0], moments[0], LEFT, RIGHT, False),))
    folded = quiet(moments)
    lengths = [(a, b, (a, b) in folded) for a, b in pairwise(moments)]
    drawn = sum(b - a for a, b, fold in lengths if not fold)
    room = RIGHT - LEFT - FOLD_WIDTH * len(folded)
    stretches: list[ScaleSegment] = []
    x = LEFT
    for start, end, fold in merged(lengths):
        width = FOLD_WIDTH if fold else room * (end - start) / drawn
        stretches.append(ScaleSegment(start, end, x, x + width, fold))
        x += width
    return TimeScale(tuple(stretches))


def quiet(moments: Sequence[int]) -> set[tuple[int, int]]:
    """The stretches between moments that are to be folded: each would dwarf all others together."""
    gaps = sorted(pairwise(moments), key=lambda gap: gap[0] - gap[1])
    drawn = moments[-1] - moments[0]
    folded: set[tuple[int, int]] = set()
    for start, end in gaps[:MOST_FOLDS]:
        if len(gaps) - len(folded) <= 2 or end - start <= FOLDED_SHARE * drawn:
            break
        folded.add((start, end))
        drawn -= end - start
    return folded


def merged(lengths: Iterable[tuple[int, int, bool]]) -> list[tuple[int, int, bool]]:
    """Neighbours that are both drawn in proportion as one stretch."""
    joined: list[tuple[int, int, bool]] = []
    for start, end, fold in lengths:
        if joined and not fold and not joined[-1][2]:
            joined[-1] = (joined[-1][0], end, False)
        else:
            joined.append((start, end, fold))
    return joined
