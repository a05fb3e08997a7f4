"""kraftlake run: load captures, derive what they prove, print a summary."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from jobs import arguments
from jobs.job import QUICK_BYTES, Job, check_start, opened_job, unread_words
from jobs.maintenance.publishing import publish_known
from jobs.report import NOT_SHOWN, add_report, made_page, put_page
from jobs.runtime.expectation_names import check_expectations
from jobs.runtime.fail_on import add_fail_on
from jobs.runtime.lakes import must_be_whole
from jobs.runtime.outcome import ExitCode
from jobs.runtime.output import print_line, warn_line
from jobs.runtime.progress import Counted, Progress
from jobs.runtime.run_record import RunRecord
from kraft_core.wording import count

if TYPE_CHECKING:
    from dashboards.report.write import Report
    from jobs.captures.ingest import Fetch
    from jobs.captures.planning import ReadPlan
    from transforms.ingest.inputs import Inputs

EXAMPLES = """examples:
  kraftlake run --captures /backup/controllers --lake /data/lake
  kraftlake run --captures /backup/controllers --lake /data/lake --validate --report /srv/www/kraft.html
  kraftlake run --captures node-1 node-2 node-3 --lake .lake --dry-run
  kraftlake run --captures /backup/2026-11-21.tar.gz s3://backup/controllers --lake /data/lake
  kraftlake run --captures /mnt/copy --cluster-id rPoTXydvQsK3Nv6AA77Cqg --node-id 1 --lake .lake"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_captures(parser)
    parser.add_argument(
        "--validate",
        action="store_true",
        help="also validate what is new, as kraftlake validate does",
    )
    add_fail_on(parser)
    add_report(parser)


def run(args: argparse.Namespace) -> int:
    """Returns the exit code. Raises Failure."""
    out: Path | None = None if args.dry_run else args.report
    if out is None:
        return read_captures(args, derive=True, validate=args.validate)
    made: list[Report] = []
    code = read_captures(
        args, derive=True, validate=args.validate, show=lambda record: made.append(page_of(args, record))
    )
    put_page(made[0], out)
    warn_line(f"page: {out}, {len(made[0].data):,} bytes")
    return code


def page_of(args: argparse.Namespace, record: RunRecord) -> Report:
    """The page of all clusters; those that cannot be shown are noted as failed."""
    with record.progress.stage("page"):
        made = made_page(args, args.report)
    for cluster, reason in made.failed.items():
        record.failed.setdefault(cluster, f"{NOT_SHOWN}: {reason}")
    return made


def do_nothing(record: RunRecord) -> None:
    """What a run without a page does before it ends."""


def read_captures(
    args: argparse.Namespace,
    derive: bool,
    validate: bool = False,
    show: Callable[[RunRecord], None] = do_nothing,
) -> int:
    """Read captures into the lake; derive what they prove and validate the tables, if asked to.

    show: called before the run ends. A run with nothing new ends before it starts Spark, unless it validates:
    captures grow old. Returns the exit code.
    """
    from jobs.captures.inputs import opened_inputs
    from jobs.captures.known_copies import KnownCopies
    from jobs.captures.planning import plan
    from jobs.no_new_captures import end_if_unchanged, remember
    from transforms.lake.lives import expanded
    from transforms.lake.seen import unseen

    progress: Progress = args.progress
    if validate:
        check_expectations(args.settings)
    with opened_inputs(args.captures, args.scratch) as inputs:
        counted = Counted()
        with progress.shown("captures", counted, "directories"):
            planned = plan(arguments.selection_of(args, inputs), inputs.left_out, counted)
        for path in planned.left_out:
            progress.say(f"left out: {inputs.named(str(path))}")
        for line in planned.faults:
            progress.say(inputs.named(line))
        seen = must_be_whole(args.lake)
        if args.dry_run:
            check_start(args, make_lake=True)
            print_plan(planned, inputs)
            if planned.unreadable:
                warn_line(f"kraftlake {args.verb}: {unread_words(planned.unreadable)}")
                return ExitCode.FOUND
            unreadable = any(copy.directory.unreadable for copy in planned.captures)
            return ExitCode.FOUND if unreadable and args.fail_on != "never" else ExitCode.FINE
        known = KnownCopies() if seen is None else KnownCopies.of(seen)
        if not validate and seen is not None:
            record = RunRecord(args.verb, progress, args.fail_on)
            shown = args.settings.shown_configs

            def publish_and_show() -> None:
                publish_known(args, progress)
                show(record)

            code = end_if_unchanged(seen, shown, planned, known, record, publish_and_show)
            if code is not None:
                return code
        # What is read alone leaves little to the JVM.
        quick = planned.size_bytes < QUICK_BYTES or not (derive or validate or args.verify)
        with opened_job(args, progress, make_lake=True, quick=quick, seen=seen, workers=True) as job:
            job.known = known
            load(job, planned, inputs.fetch, derive)
            failing = failed_expectations(job, args) if validate else []
            job.publish()
            show(job.record)
            code = job.finish(expanded(args.lake, planned.clusters), failing)
        remember(seen or unseen(args.lake), planned, known, job.record, job.lease.writer.lease)
        return code


def load(job: Job, planned: ReadPlan, fetch: Fetch, derive: bool) -> None:
    """Read, derive and commit what is planned, a part at a time."""
    from jobs.captures.parts import parts_of
    from transforms.lake.lives import expanded

    parts = parts_of(job.lake.path, planned, job.known)
    for nth, part in enumerate(parts, 1):
        if len(parts) > 1:
            job.progress.say(f"part {nth} of {len(parts)}: {count(len(part.clusters), 'cluster')}")
        job.read(part, fetch)
        clusters = expanded(job.lake.path, part.clusters)
        job.derive(sorted(job.touched | job.underived(clusters) if derive else job.half_done()))
        job.commit()


def failed_expectations(job: Job, args: argparse.Namespace) -> list[str]:
    """Validate what no run has validated yet. Returns lines about the expectations that failed."""
    from jobs.run_expectations import evaluate_expectations
    from transforms.quality.expectation_history import unvalidated

    new = unvalidated(job.lake.path, job.record.run_id)
    return evaluate_expectations(job, new, arguments.now_of(args), "text", args.settings.expectations)


def print_plan(planned: ReadPlan, inputs: Inputs) -> None:
    """Print one line for each captured directory that the run would read."""
    from jobs.time_travel.moment import iso
    from transforms.lake.arrow_rows import milliseconds

    for c in sorted(planned.captures, key=lambda c: (c.who.cluster_id, c.captured_at, c.who.node_id)):
        size = sum(f.size_bytes for f in c.files)
        log = "" if c.directory.log_readable else ", log not readable"
        print_line(
            f"{c.who.cluster_id}  node {c.who.node_id}  {iso(c.captured_at)} ({c.captured_at_source})  "
            f"{count(len(c.files), 'file')}, {size:,} bytes{log}  {inputs.named(str(c.directory.path))}"
        )
    for each in planned.broker_dirs:
        row = each.row
        print_line(
            f"{each.cluster_id}  broker {row['broker_id']}  {iso(milliseconds(row['captured_at']))}  "
            f"{count(len(row['partitions']), 'partition')}  directory {row['directory_id']}"
        )
