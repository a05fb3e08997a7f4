"""Lag by replica and commit rate over time as SVG: a lane of bars for each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from dashboards.report.chart import AXIS_HEIGHT, figure, label, line, mark, span, swatch, time_grid
from dashboards.report.formatting import number, replica, utc
from dashboards.report.markup import Markup, el
from dashboards.report.samples import Lag, Rate, SampledReplica, Samples
from dashboards.report.timescale import TimeScale, time_scale
from kraft_core.wording import count

TOP, PITCH, BARS = 4, 54, 30  # first lane, from lane to lane, height of the highest bar
# Replicas with a lane of their own; the table has all.
MOST_LANES = 12


def draw_samples(samples: Samples) -> Markup | None:
    """The figure; None where the samples have no time."""
    scale = time_scale(samples.times)
    if scale is None:
        return None
    drawn = _drawn(samples.replicas)
    bottom = TOP + PITCH * (len(drawn) + bool(samples.rates))
    most = max((each.worst.most for each in drawn if each.worst is not None), default=0)
    parts = time_grid(scale, bottom)
    for index, each in enumerate(drawn):
        parts += _draw_lags(each, samples.times, most, TOP + PITCH * index, scale)
    if samples.rates:
        parts += _draw_rates(samples.rates, TOP + PITCH * len(drawn), scale)
    legend = [(_bar("thin"), "records behind, at most"), (_bar("rate"), "records committed a second")]
    return figure("Lag and commit rate", _caption(samples, len(drawn)), legend, bottom + AXIS_HEIGHT, parts)


def _bar(kind: str) -> Markup:
    return swatch(el("g", el("rect", width=22, height=14), class_=kind))


def _drawn(replicas: Sequence[SampledReplica]) -> list[SampledReplica]:
    """In their order; of too many, those that were behind most."""
    if len(replicas) <= MOST_LANES:
        return list(replicas)
    worst = sorted(replicas, key=lambda each: -each.worst.most if each.worst is not None else 0)
    kept = {each.replica for each in worst[:MOST_LANES]}
    return [each for each in replicas if each.replica in kept]


def _caption(samples: Samples, drawn: int) -> str:
    first, last = samples.times[0], samples.times[-1]
    words = [f"As the leader answered from {utc(first)} to {utc(last)}."]
    if samples.rates:
        records = sum(rate.records for rate in samples.rates)
        over = samples.rates[-1].end - samples.rates[0].start
        words.append(
            f"{number(records)} records were committed, {per_second(records * 1000 / over)} a second."
        )
    if drawn < len(samples.replicas):
        words.append(
            f"The {drawn} replicas that were behind most; the table has all {len(samples.replicas)}."
        )
    return " ".join(words)


def per_second(rate: float) -> str:
    """1,234, 12.3 or 0.05."""
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.1f}" if rate >= 1 else f"{rate:.2g}"


def _draw_lags(
    each: SampledReplica, times: Sequence[int], most: int, top: float, scale: TimeScale
) -> list[Markup]:
    name = replica(each.replica.node_id, each.replica.directory_id)
    base = top + PITCH - 6
    parts = [label(0, top + 12, f"{name}, {each.status.lower()}: {_behind(each.worst)}", "node"),
             line(0, base, 100, base, "grid")]  # fmt: skip
    ends = {lag.start: min(after, lag.end + _spacing(times)) for lag, after in _until(each.lags)}
    for lag in each.lags:
        if lag.most:
            height = max(BARS * lag.most / most, 1.0)
            when = utc(lag.start) if lag.start == lag.end else f"between {utc(lag.start)} and {utc(lag.end)}"
            words = f"{name} was {count(lag.most, 'record')} behind, {when}"
            bar = span(scale, lag.start, ends[lag.start], base - height, height)
            parts.append(mark(words, bar, kind="thin"))
    return parts


def _behind(worst: Lag | None) -> str:
    if worst is None:
        return "lag not known"
    return f"up to {number(worst.most)} behind" if worst.most else "never behind"


def _until(lags: Sequence[Lag]) -> list[tuple[Lag, int]]:
    """Each with the time of the next one; the last with its own end."""
    return [*((a, b.start) for a, b in pairwise(lags)), *((lag, lag.end) for lag in lags[-1:])]


def _spacing(times: Sequence[int]) -> int:
    """The usual time from one bin to the next."""
    gaps = sorted(b - a for a, b in pairwise(times))
    return gaps[len(gaps) // 2] if gaps else 0


def _draw_rates(rates: Sequence[Rate], top: float, scale: TimeScale) -> list[Markup]:
    most = max(rate.a_second for rate in rates)
    base = top + PITCH - 6
    parts = [label(0, top + 12, f"Committed: up to {per_second(most)} a second", "node"),
             line(0, base, 100, base, "grid")]  # fmt: skip
    for rate in rates:
        if rate.records:
            height = max(BARS * rate.a_second / most, 1.0)
            words = (
                f"{per_second(rate.a_second)} records committed a second, from {utc(rate.start)} to "
                f"{utc(rate.end)}: high watermark {number(rate.reached)}"
            )
            bar = span(scale, rate.start, rate.end, base - height, height)
            parts.append(mark(words, bar, kind="rate"))
    return parts
