"""The time axis of a chart: proportional while things happen, with long quiet periods folded.

A quorum is formed within a minute and then changes once a month; on a proportional axis all of that would lie
in one pixel. A fold is marked as such, with its length.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from dashboards.report.formatting import DAY, HOUR, MINUTE, SECOND, moment

# Percent of the chart's width.
LEFT, RIGHT = 1.5, 98.5
FOLD_WIDTH = 5.0
MOST_FOLDS = 6
# A quiet period is folded if it takes more than this share of the proportional part.
FOLDED_SHARE = 0.75
# The width of an axis label on a wide screen, and on a phone.
LABEL_WIDTH, LABEL_WIDTH_ON_A_PHONE = 9.5, 19.0
# A label nearer to an edge begins or ends there: on a phone half a date is this wide.
EDGE = 9.0

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
    """Times [start, end] in ms on [left, right] in percent; not proportional if folded."""

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
    """An axis label; `day` if the date changes. Minor ones are hidden on a narrow screen."""

    x: float
    label: str
    day: str | None
    minor: bool

    @property
    def anchor(self) -> str:
        return _anchor(self.x)


@dataclass(frozen=True, slots=True)
class TimeScale:
    """Successive segments, at least one."""

    segments: tuple[ScaleSegment, ...]

    @property
    def start(self) -> int:
        return self.segments[0].start

    @property
    def end(self) -> int:
        return self.segments[-1].end

    def x(self, ms: int) -> float:
        """The position of a time in percent of the width; times outside lie at the edge."""
        for segment in self.segments:
            if ms <= segment.end:
                return segment.x(max(ms, segment.start))
        return self.segments[-1].right

    @property
    def folds(self) -> list[ScaleSegment]:
        return [s for s in self.segments if s.folded]

    def ticks(self) -> list[AxisTick]:
        """Labels of the proportional segments, none too close to another."""
        found: list[AxisTick] = []
        day, taken = None, -inf
        for segment in self.segments:
            if segment.folded or segment.end == segment.start:
                continue
            step = _step_for(segment)
            for ms in range(-(-segment.start // step) * step, segment.end + 1, step):
                x = segment.x(ms)
                if x > RIGHT - LABEL_WIDTH / 2 or (found and x - found[-1].x < LABEL_WIDTH):
                    continue
                today = moment(ms).strftime("%Y-%m-%d")
                label = today if step >= DAY else moment(ms).strftime(_clock_format(step))
                left, right = _on_a_phone(x)
                found.append(AxisTick(x, label, today if today != day and step < DAY else None, left < taken))
                day, taken = today, taken if left < taken else right
        return found


def _anchor(x: float) -> str:
    return "start" if x < EDGE else "end" if x > 100 - EDGE else "middle"


def _on_a_phone(x: float) -> tuple[float, float]:
    """From where to where a label at x reaches on a phone."""
    before = {"start": 0.0, "middle": 0.5, "end": 1.0}[_anchor(x)] * LABEL_WIDTH_ON_A_PHONE
    return x - before, x - before + LABEL_WIDTH_ON_A_PHONE


def _step_for(segment: ScaleSegment) -> int:
    """Milliseconds between the labels of a segment."""
    room = max((segment.right - segment.left) / LABEL_WIDTH, 1.0)
    least = (segment.end - segment.start) / room
    return next((s for s in STEPS if s >= least), STEPS[-1])


def _clock_format(step: int) -> str:
    if step < SECOND:
        return "%H:%M:%S.%f"
    return "%H:%M:%S" if step < MINUTE else "%H:%M"


def time_scale(times: Iterable[int]) -> TimeScale | None:
    """The scale over the times of all events; None without any."""
    moments = sorted(set(times))
    if not moments:
        return None
    if len(moments) == 1:
        return TimeScale((ScaleSegment(moments[0], moments[0], LEFT, RIGHT, False),))
    folded = _quiet(moments)
    lengths = [(a, b, (a, b) in folded) for a, b in pairwise(moments)]
    drawn = sum(b - a for a, b, fold in lengths if not fold)
    room = RIGHT - LEFT - FOLD_WIDTH * len(folded)
    segments: list[ScaleSegment] = []
    x = LEFT
    for start, end, fold in _merged(lengths):
        width = FOLD_WIDTH if fold else room * (end - start) / drawn
        segments.append(ScaleSegment(start, end, x, x + width, fold))
        x += width
    return TimeScale(tuple(segments))


def _quiet(moments: Sequence[int]) -> set[tuple[int, int]]:
    """The periods between events to fold: each would dwarf all others together."""
    gaps = sorted(pairwise(moments), key=lambda gap: gap[0] - gap[1])
    drawn = moments[-1] - moments[0]
    folded: set[tuple[int, int]] = set()
    for start, end in gaps[:MOST_FOLDS]:
        if len(gaps) - len(folded) <= 2 or end - start <= FOLDED_SHARE * drawn:
            break
        folded.add((start, end))
        drawn -= end - start
    return folded


def _merged(lengths: Iterable[tuple[int, int, bool]]) -> list[tuple[int, int, bool]]:
    """Joins adjacent proportional periods."""
    joined: list[tuple[int, int, bool]] = []
    for start, end, fold in lengths:
        if joined and not fold and not joined[-1][2]:
            joined[-1] = (joined[-1][0], end, False)
        else:
            joined.append((start, end, fold))
    return joined
