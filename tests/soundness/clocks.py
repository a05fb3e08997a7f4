"""Clocks of machines: fast or slow by some seconds, and set once, so that they may go back.

The times in records and checkpoints are those of the controllers that wrote them. The times of copies and of
answers are those of the machines that copied and asked.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kraft_core.evidence.facts import CLOCK_SKEW_MS

MOST_CLOCK_ERROR_MS = CLOCK_SKEW_MS // 2  # so that two clocks differ by no more than is assumed


@dataclass(frozen=True, slots=True)
class Clock:
    """How fast (ms) it is: before the moment `set_at`, and from it on."""

    before: int = 0
    then: int = 0
    set_at: int = 0

    def fast_at(self, moment: int) -> int:
        return self.then if moment >= self.set_at else self.before

    @property
    def goes_back(self) -> bool:
        return self.then < self.before

    @property
    def error(self) -> int:
        return max(abs(self.before), abs(self.then))


TRUE = Clock()


def random_clock(source: random.Random, moments: int) -> Clock:
    """Half of the clocks are set while the quorum runs: most often early or late."""
    most = MOST_CLOCK_ERROR_MS
    before, then = source.randint(-most, most), source.randint(-most, most)
    if source.random() < 0.5:
        return Clock(then=then)
    return Clock(before, then, source.randrange(moments))


def random_clocks(source: random.Random, nodes: Collection[int], moments: int) -> dict[int, Clock]:
    """Of the nodes. Some quorums have true clocks, of others one node has another time, or each."""
    wrong = source.choice(((), (source.choice(sorted(nodes)),), sorted(nodes), sorted(nodes)))
    return {node: random_clock(source, moments) for node in wrong}


def largest_error(clocks: Mapping[int, Clock]) -> int:
    return max((clock.error for clock in clocks.values()), default=0)
