"""kraftlake validate: evaluate KRaft's rules over the captures, and validate the tables."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from jobs import arguments
from jobs.job import opened_job
from jobs.runtime.expectation_names import check_expectations
from jobs.runtime.fail_on import add_fail_on
from jobs.runtime.finding_text import recovery_headline
from jobs.runtime.lake_clusters import lake_clusters
from jobs.runtime.lakes import must_be_lake
from jobs.runtime.long_lists import add_limit, limit_of
from kraft_core.wording import count
from transforms.lake.storage.location import Location

EXAMPLES = """examples:
  kraftlake validate --lake /data/lake
  kraftlake validate --lake /data/lake --full
  kraftlake validate --lake /data/lake --cluster rPoTXydvQsK3Nv6AA77Cqg --fail-on open
  kraftlake validate --lake /data/lake --format jsonl --fail-on never
  kraftlake validate --lake /data/lake --failing captures.log_is_gapless

Validation is incremental: it covers clusters with captures that are new since the last validation and, in
large tables, only their new rows. --full covers everything, as needed after an upgrade of kraftlake;
--cluster covers all of a cluster. Open findings are listed and decide the exit code; acknowledged ones are
listed last, resolved ones are not (kraftlake findings list --state all)."""

Row = dict[str, Any]
# For more clusters the advice is not printed.
ADVISED_CLUSTERS = 10
MOST_LISTED = 100  # on a terminal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_lake(parser)
    arguments.add_wait(parser)
    arguments.add_clusters(parser)
    parser.add_argument(
        "--full", action="store_true", help="validate all clusters and all rows, not only new ones"
    )
    arguments.add_format(parser, "text", "jsonl")
    parser.add_argument(
        "--rules-only",
        action="store_true",
        help="skip the expectations (Great Expectations)",
    )
    parser.add_argument(
        "--failing",
        metavar="SUITE.EXPECTATION",
        help="only print the rows that fail this expectation",
    )
    add_limit(parser, "findings, counting those of one cause once, or rows of --failing", MOST_LISTED)
    arguments.add_now(parser)
    add_fail_on(parser)


def run(args: argparse.Namespace) -> int:
    """Returns the exit code. Raises Failure."""
    from jobs.run_expectations import evaluate_expectations, print_failing_rows
    from transforms.quality.expectation_history import Unvalidated, unvalidated

    must_be_lake(args.lake)
    check_expectations(args.settings, args.failing)
    lake_clusters(args.lake, args.cluster)
    with opened_job(args, args.progress, make_lake=False) as job:
        chosen = lake_clusters(job.lake.path, args.cluster)
        now, overrides = arguments.now_of(args), args.settings.expectations
        if args.failing:
            within = chosen if args.cluster else None
            print_failing_rows(job, args.failing, within, now, overrides, limit_of(args))
            return job.end(chosen, [])
        covered = chosen if args.full or args.cluster else unvalidated(job.lake.path, job.record.run_id)
        wanted = covered.underived if isinstance(covered, Unvalidated) else covered
        job.derive(sorted({*wanted, *job.half_done()}))
        unmet: list[str] = []
        if not args.rules_only:
            unmet = evaluate_expectations(job, covered, now, args.format, overrides)
        return job.end(chosen, chain(lines(job.lake.path, chosen, args.format, limit_of(args)), unmet))


def lines(lake: Location, clusters: Sequence[str], form: str, limit: int) -> Iterator[str]:
    """The findings of the clusters, their number and, for few clusters, recovery advice."""
    from jobs.findings import by_urgency
    from transforms.lake.delta_rs import rows_with
    from transforms.lake.tables import FINDINGS, RECOVERIES

    rows = by_urgency(rows_with(lake, FINDINGS, cluster_id=clusters, state=["open", "acknowledged"]))
    advice: list[Row] = []
    if form == "text" and len(clusters) <= ADVISED_CLUSTERS:
        advice = rows_with(lake, RECOVERIES, cluster_id=clusters)
    return _lines(rows, len(clusters), sorted(advice, key=lambda row: row["cluster_id"]), form, limit)


def _lines(rows: list[Row], clusters: int, advice: list[Row], form: str, limit: int) -> Iterator[str]:
    from jobs.findings import formatted

    yield from formatted(rows, form, limit)
    if form == "jsonl":
        return
    counts = {s: sum(r["severity"] == s and r["state"] == "open" for r in rows) for s in ("error", "warning")}
    noted = sum(r["state"] == "acknowledged" for r in rows)
    yield (
        f"{count(clusters, 'cluster')}: {count(counts['error'], 'error')} and "
        f"{count(counts['warning'], 'warning')} open, {count(noted, 'finding')} acknowledged"
    )
    yield from map(recovery_headline, advice)
    if clusters > ADVISED_CLUSTERS:
        yield "recovery: kraftlake explain --recovery --cluster ID, or table recoveries, has advice"
