"""Where one replica's log ended, by its captures."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from math import inf
from operator import itemgetter

from kraft_core.evidence.facts import Capture


@dataclass(frozen=True, slots=True)
class ReplicaEnds:
    """Captures of a replica whose earliest time and log end are known, by that time.

    times: captured_from (ms), rising. lowest: the lowest known_end of each capture and all later ones.
    """

    times: list[int]
    lowest: list[int]
    captures: list[Capture]

    @staticmethod
    def of(captures: Iterable[Capture]) -> ReplicaEnds:
        """Those among captures of one replica."""
        dated = sorted(
            (
                (capture.captured_from, capture.known_end, capture.capture_id, capture)
                for capture in captures
                if capture.captured_from is not None and capture.known_end is not None
            ),
            key=itemgetter(0, 1, 2),
        )
        lowest = list(accumulate((end for _, end, *_ in reversed(dated)), min))
        return ReplicaEnds([at for at, *_ in dated], lowest[::-1], [capture for *_, capture in dated])

    def since(self, at: int) -> list[Capture]:
        """Those taken at a moment (ms) or later."""
        return self.captures[bisect_left(self.times, at) :]

    def from_then_on(self, at: int) -> tuple[Capture, int] | None:
        """The first of those, and the lowest end of all; None where there are none."""
        nth = bisect_left(self.times, at)
        return (self.captures[nth], self.lowest[nth]) if nth < len(self.captures) else None

    def lowest_since(self, at: int) -> float:
        """The lowest end of those; infinite where there are none."""
        nth = bisect_left(self.times, at)
        return self.lowest[nth] if nth < len(self.lowest) else inf
