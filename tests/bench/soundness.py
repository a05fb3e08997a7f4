"""What captures prove and is yet left undecided, by every execution of a few moves of small quorums."""

from __future__ import annotations

from collections.abc import Iterator

from kraft_core.simulation.setup import Setup
from tests.bench.frame import Bench, Row
from tests.soundness.exhaustive import weigh

_SEED = 1  # directory ids


def rows(bench: Bench) -> Iterator[Row]:
    """Of the verdicts that all executions with the same files agree on, those that are undecided."""
    sizes = (((2, True), 7, 4), ((2, False), 6, 4), ((3, True), 4, 3), ((3, False), 4, 2))
    for (voters, static), most, few in sizes:
        moves = bench.size(most, few)
        weighed = weigh(Setup(_SEED, voters, 0, static=static), moves)
        if weighed.unsound:
            raise RuntimeError(f"a false verdict: {weighed.unsound[0][2]}")
        kind = "static" if static else "dynamic"
        detail = f"{weighed.undecided:,} of {weighed.provable:,} by {weighed.executions:,} executions"
        name = f"provable but undecided, {voters} {kind} voters, {moves} moves"
        yield Row(name, 100 * weighed.undecided_share, "%", detail=detail)
