"""Draw captures of many small quorums, and compare every answer about them with what really happened.

Exits 0 if every answer is sound, else 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tests.soundness.checker import check, report_unsound, shrink_unsound
from tests.soundness.unlawful import KINDS, check_unlawful

_EXAMPLE = "example: python -m tests.soundness --seed 7 --runs 10000"


def main(arguments: Sequence[str] | None = None) -> int:
    """Lawful executions first, then of each unlawful kind a hundredth as many that show it."""
    parser = argparse.ArgumentParser(prog="python -m tests.soundness", description=__doc__, epilog=_EXAMPLE)
    parser.add_argument("--seed", type=int, required=True, help="determines all runs")
    parser.add_argument("--runs", type=int, default=1000, help="number of sets of captures (default 1000)")
    options = parser.parse_args(arguments)
    return _check_soundness(options.runs, options.seed)


def _check_soundness(runs: int, seed: int) -> int:
    checked = check(runs, seed, report=lambda line: print(line, file=sys.stderr))
    print(f"{checked.runs:,} sets of captures of lawful quorums from seed {seed}:", end=" ")
    print(f"{sum(checked.unsound.values()):,} unsound answers")
    for (part, claim), (run_seed, found) in checked.first.items():
        print(f"\n{part}, {claim}: {checked.unsound[part, claim]:,}, first by seed {run_seed}")
        print(report_unsound(shrink_unsound(found)))
    failed = bool(checked.first)
    for kind in KINDS:
        raised = check_unlawful(kind, max(1, runs // 100), seed)
        print(f"{kind.name}: {kind.what} in {raised.shown} of {raised.runs} runs:", end=" ")
        print(f"{len(raised.failures)} false answers")
        for run_seed, words in raised.failures[:1]:
            print(f"  seed {run_seed}: {words}")
        failed = failed or bool(raised.failures)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
