"""`python -m tests.mutations --from 1 --count 100000`: read so many damaged inputs, each from its seed."""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from tests.mutations.check import check_all


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("--from", dest="first", type=int, default=0, metavar="SEED", help="the first seed")
    parser.add_argument("--count", type=int, default=10_000, help="how many (default: 10,000)")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--kind", help="only inputs of this kind")
    args = parser.parse_args()
    start = time.monotonic()
    step = 1000
    firsts = range(args.first, args.first + args.count, step)
    counts = [min(step, args.first + args.count - first) for first in firsts]
    failures: list[str] = []
    with ProcessPoolExecutor(args.processes) as workers:
        jobs = workers.map(check_all, firsts, counts, [args.kind] * len(counts))
        for first, count, found in zip(firsts, counts, jobs, strict=True):
            failures += found
            for line in found:
                print(line)
            seconds = time.monotonic() - start
            print(f"seeds {first} to {first + count - 1}: {len(found)} failures, {seconds:.0f} s", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
