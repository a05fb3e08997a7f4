"""How the time of deriving and judging grows: per epoch and capture, a long life relative to a short one."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kraft_core.evidence.conclusions import conclude
from kraft_core.evidence.derive import derive
from kraft_core.findings.judge import judge
from kraft_core.findings.recovery import recovery_advice
from kraft_core.findings.truncations import observed_truncations
from tests.bench.frame import Bench, Row, best, cpu_seconds
from tests.kraft_core.evidence.long_life import long_life
from tests.kraft_core.findings.observed_life import observed_life

Size = tuple[int, int]  # epochs, times that all replicas are captured
REPLICAS = 5
# Linear growth is 1; what is sorted or looked up in a longer list costs a little more.
AT_MOST = 2.0


def rows(bench: Bench) -> Iterator[Row]:
    """Ratios of CPU seconds per unit of work: epochs of one capture, or epochs times captures."""
    short, long = bench.size(1_000, 100), bench.size(10_000, 1_000)
    few, many = bench.size(90, 20), bench.size(360, 80)
    for name, measure in (("derive", derive_seconds), ("judge", judge_seconds)):
        yield ratio(f"{name}: many epochs", measure, (short, 1), (long, 1))
        yield ratio(f"{name}: many captures", measure, (few, few), (many, many))


def ratio(name: str, measure: Callable[[int, int], float], small: Size, large: Size) -> Row:
    """Seconds per epoch and capture of the large life relative to the small one."""
    seconds = [best(lambda size=size: measure(*size), rounds=2) for size in (small, large)]
    units = [epochs * times for epochs, times in (small, large)]
    growth = (seconds[1] / units[1]) / (seconds[0] / units[0])
    detail = " / ".join(
        f"{s:.2f} s for {epochs:,} epochs x {times:,} captures"
        for s, (epochs, times) in zip(reversed(seconds), (large, small), strict=True)
    )
    return Row(name, growth, at_most=AT_MOST, detail=detail)


def derive_seconds(epochs: int, times: int) -> float:
    facts = long_life(epochs, REPLICAS, times)
    return cpu_seconds(lambda: derive(facts))


def judge_seconds(epochs: int, times: int) -> float:
    known, observed = conclude(long_life(epochs, REPLICAS, times)), observed_life(epochs)

    def work() -> None:
        assert judge(known, observed) == []
        recovery_advice(known, [])
        observed_truncations(known)

    return cpu_seconds(work)
