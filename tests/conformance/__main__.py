"""`python -m tests.conformance DIR`: compare the engine with every trace in DIR; exit 1 on a mismatch."""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.conformance import cluster, cluster_protocol, leader_high_watermark, log_replay, rpc
from tests.conformance.tally import Tally
from tests.conformance.trace import Line, read_trace

Comparison = Callable[[Iterable[Line]], Tally]

# By the file's name up to its first dot, the longest fitting beginning first.
COMPARISONS: dict[str, Comparison] = {
    "cluster-rewound": lambda lines: cluster.compare(lines, rewinds=True),
    "cluster": lambda lines: cluster.compare(lines, rewinds=False),
    "leader-hwm": leader_high_watermark.compare,
    "log-replay": log_replay.compare,
    "rpc": rpc.compare,
}


def comparison_for(path: Path) -> Comparison | None:
    """How a trace file is compared, or None for a file of another name."""
    return next((compare for name, compare in COMPARISONS.items() if path.name.startswith(name)), None)


def compare_trace(path: Path, compare: Comparison) -> Tally:
    """One file. An rpc trace is read with the cluster trace of the same run, if it lies beside."""
    cluster_path = path.with_name(path.name.replace("rpc", "cluster", 1))
    if compare is rpc.compare and cluster_path.is_file():
        return rpc.compare(read_trace(path), read_trace(cluster_path))
    return compare(read_trace(path))


def compare_protocol(path: Path) -> Tally | None:
    """The replicas of a trace of quorums; None for any other trace."""
    if not path.name.startswith("cluster"):
        return None
    rewinds = path.name.startswith("cluster-rewound")
    return cluster_protocol.compare(read_trace(path), Tally(), rewinds=rewinds)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("traces", type=Path, help="a folder of .jsonl or .jsonl.gz traces")
    folder: Path = parser.parse_args(arguments).traces
    if not folder.is_dir():
        print(f"{folder}: no such folder", file=sys.stderr)
        return 2
    paths = sorted(path for path in folder.iterdir() if path.name.endswith((".jsonl", ".jsonl.gz")))
    tallies: list[Tally] = []
    for path in paths:
        compare = comparison_for(path)
        if compare is None:
            print(f"{path.name}: not a trace of this format, not compared")
            continue
        try:
            of_logs, of_replicas = compare_trace(path, compare), compare_protocol(path)
        except (OSError, EOFError, zlib.error, ValueError, KeyError) as error:
            print(f"{path.name}: not readable as a trace: {error!r}", file=sys.stderr)
            return 2
        for title, tally in ((path.name, of_logs), (f"{path.name}, replicas", of_replicas)):
            if tally is not None:
                tallies.append(tally)
                print(*tally.lines(title), sep="\n")
    if not tallies:
        print(f"{folder}: no trace to compare", file=sys.stderr)
        return 2
    mismatches = sum(len(tally.mismatches) for tally in tallies)
    print(f"{sum(tally.steps.total() for tally in tallies):,} steps, {mismatches:,} mismatches")
    return 1 if mismatches else 0


if __name__ == "__main__":
    sys.exit(main())
