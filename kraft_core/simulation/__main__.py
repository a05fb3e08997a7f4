"""Run a random quorum, judge every step by KRaft's rules, and shrink the run if one is broken.

Exits 0 if every rule holds, else 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from kraft_core.raft.rules import RULES
from kraft_core.simulation.directories import write_directories
from kraft_core.simulation.judge import BrokenRule
from kraft_core.simulation.quorum import SimulatedQuorum
from kraft_core.simulation.runs import Result, SimulatedRun, random_run, shrink, simulate
from kraft_core.simulation.setup import Setup

_EXAMPLE = "example: python -m kraft_core.simulation --seed 7 --directories captures"


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.voters < 1 or min(options.observers, options.brokers, options.actions) < 0:
        parser.error("a quorum has at least one voter, and no count is negative")
    if options.directories is not None and options.directories.exists():
        parser.error(f"{options.directories} exists")
    setup = Setup(
        options.seed,
        options.voters,
        options.observers,
        options.brokers,
        static=options.static,
        auto_join=options.auto_join,
        stale_voters=options.stale_voters,
    )
    run = random_run(setup, options.actions)
    result = simulate(run)
    print(_outcome(result))
    if result.failure is not None:
        _print_shrunk(run)
    if options.directories is not None:
        write_directories(result.quorum, options.directories)
        print(f"wrote {len(result.quorum.replicas)} controller directories to {options.directories}")
    return 0 if result.failure is None else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m kraft_core.simulation", description=__doc__, epilog=_EXAMPLE
    )
    parser.add_argument("--seed", type=int, required=True, help="determines the whole run")
    parser.add_argument("--actions", type=int, default=120, help="number of random actions (default 120)")
    parser.add_argument("--voters", type=int, default=3, help="initial voters (default 3)")
    parser.add_argument("--observers", type=int, default=1, help="controllers that observe (default 1)")
    parser.add_argument("--brokers", type=int, default=0, help="brokers, which never vote (default 0)")
    parser.add_argument(
        "--static", action="store_true", help="kraft.version 0: voters from the configuration"
    )
    parser.add_argument("--auto-join", action="store_true", help="observers ask to become voters (KIP-853)")
    parser.add_argument(
        "--stale-voters",
        action="store_true",
        help="keep a stale voter set after a truncation, as Kafka 3.9 and later do",
    )
    parser.add_argument(
        "--directories", type=Path, help="write the replicas as controller directories to this new directory"
    )
    return parser


def _outcome(result: Result) -> str:
    """Where the quorum is at the end, and the broken rule if there is one."""
    failure = result.failure
    verdict = "every rule holds" if failure is None else _broken(failure)
    return f"{result.steps:,} steps: {verdict}\n{_state(result.quorum)}"


def _broken(failure: BrokenRule) -> str:
    rule = RULES.get(failure.rule)
    if rule is None:
        return f"the process of node {failure.node} ended: {failure.detail}"
    return f"node {failure.node} breaks rule {rule.number}, {rule.demands} ({rule.source})\n{failure.detail}"


def _state(quorum: SimulatedQuorum) -> str:
    leader = quorum.leader()
    if leader is None:
        return "no leader"
    log = leader.log
    return (
        f"epoch {leader.epoch}: leader {leader.key.id}, voters {list(leader.voters.ids)}, "
        f"log end offset {log.end_offset}, high watermark {log.known_high_watermark}"
    )


def _print_shrunk(run: SimulatedRun) -> None:
    small = shrink(run)
    result = simulate(small)
    print(f"shrunk to {len(small.actions)} of {len(run.actions)} actions, {result.steps:,} steps:")
    for action in small.actions:
        print(f"  {action}")


if __name__ == "__main__":
    sys.exit(main())
