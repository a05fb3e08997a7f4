"""kraftlake validate: hold every captured replica against KRaft's rules, and print what needs a person."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from jobs import arguments
from jobs.derive import chosen_clusters
from jobs.findings import by_urgency, told
from jobs.job import opened_job
from jobs.progress import Progress
from jobs.telling import recovery_headline
from jobs.verdict import add_fail_on
from transforms.delta_rs import rows_with
from transforms.tables import FINDINGS, RECOVERIES

EXAMPLES = """examples:
  kraftlake validate --lake /data/lake
  kraftlake validate --lake /data/lake --cluster rPoTXydvQsK3Nv6AA77Cqg --fail-on open
  kraftlake validate --lake /data/lake --format jsonl --fail-on never

All clusters are judged anew. Acknowledged findings are listed last, resolved ones are not:
kraftlake findings list --state all has them."""

# For more clusters than this, the advice is left to kraftlake explain --recovery and table recoveries.
ADVISED_CLUSTERS = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_lake(parser)
    arguments.add_wait(parser)
    parser.add_argument("--cluster", action="append", default=[], metavar="ID", help="only this cluster")
    parser.add_argument("--format", choices=("text", "jsonl"), default="text", help="form of the findings")
    add_fail_on(parser)


def run(args: argparse.Namespace) -> int:
    """Returns the exit code. Raises Failure."""
    with opened_job(args, Progress(), make_lake=False) as job:
        chosen = chosen_clusters(job, args)
        job.derive(chosen)
        return job.end(chosen, list(lines(job.lake.path, chosen, args.format)), 0)


def lines(lake: Path, clusters: Sequence[str], form: str) -> Iterator[str]:
    """What there is to say of the clusters."""
    rows = by_urgency(rows_with(lake, FINDINGS, cluster_id=clusters, state=["open", "acknowledged"]))
    yield from told(rows, form)
    if form == "jsonl":
        return
    counts = {s: sum(r["severity"] == s and r["state"] == "open" for r in rows) for s in ("error", "warning")}
    noted = sum(r["state"] == "acknowledged" for r in rows)
    yield (
        f"{len(clusters)} clusters: {counts['error']} errors and {counts['warning']} warnings are open, "
        f"{noted} findings acknowledged"
    )
    if len(clusters) <= ADVISED_CLUSTERS:
        advice = rows_with(lake, RECOVERIES, cluster_id=clusters)
        yield from (recovery_headline(row) for row in sorted(advice, key=lambda r: r["cluster_id"]))
