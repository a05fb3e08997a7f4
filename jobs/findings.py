"""kraftlake findings: list the findings of a lake, and acknowledge a known one."""

from __future__ import annotations

import argparse
import getpass
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from jobs.arguments import add_clusters, add_format, add_lake_path, add_wait
from jobs.runtime.finding_text import as_json, finding_lines, wrapped
from jobs.runtime.lake_clusters import lake_clusters
from jobs.runtime.lakes import must_be_lake, warn_of_earlier
from jobs.runtime.long_lists import add_limit, first_of, limit_of
from jobs.runtime.outcome import ExitCode, Failure
from jobs.runtime.output import json_line, print_lines, warn_line
from jobs.runtime.progress import Progress
from jobs.runtime.run_record import RunRecord

if TYPE_CHECKING:
    from transforms.lake.arrow_rows import Row
    from transforms.lake.commits import TableWriter

EXAMPLES = """examples:
  kraftlake findings list --lake /data/lake
  kraftlake findings list --lake /data/lake --state all --format jsonl
  kraftlake findings ack 3f0c1d5a9be27746 --reason "known since January, KAFKA-1" --lake /data/lake"""

STATES = ("open", "acknowledged", "resolved")
# The most urgent first.
SEVERITIES = ("error", "warning")
MOST_FINDINGS = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="what", metavar="list|ack", required=True)
    listing = verbs.add_parser("list", help="print findings, the most urgent first")
    add_lake_path(listing)
    add_clusters(listing)
    listing.add_argument(
        "--state",
        choices=(*STATES, "all"),
        default="open",
        help="only in this state (default: open)",
    )
    add_format(listing, "text", "jsonl")
    add_limit(listing, "findings, counting those of one cause once", MOST_FINDINGS)
    ack = verbs.add_parser("ack", help="acknowledge a finding: it is kept, but no longer fails a job")
    ack.add_argument("finding_id", metavar="ID", help="id of the finding, as printed by list")
    ack.add_argument("--reason", required=True, metavar="TEXT", help="why no action is needed")
    add_lake_path(ack)
    add_wait(ack)


def run(args: argparse.Namespace) -> int:
    """Returns the exit code. Raises Failure."""
    from transforms.lake.delta_rs import exists
    from transforms.lake.tables import FINDINGS

    must_be_lake(args.lake)
    if not exists(args.lake, FINDINGS):
        raise Failure(f"{args.lake} has not been validated yet: kraftlake validate --lake {args.lake}")
    return _list_findings(args) if args.what == "list" else _acknowledge(args)


def _list_findings(args: argparse.Namespace) -> int:
    from transforms.lake.delta_rs import rows_with
    from transforms.lake.tables import FINDINGS

    states = STATES if args.state == "all" else (args.state,)
    clusters = {"cluster_id": lake_clusters(args.lake, args.cluster)} if args.cluster else {}
    warn_of_earlier(args.lake, clusters.get("cluster_id"))
    rows = by_urgency(rows_with(args.lake, FINDINGS, state=states, **clusters))
    print_lines(formatted(rows, args.format, limit_of(args)))
    if not rows and args.format == "text":
        warn_line("no findings" if args.state == "all" else f"no {args.state} findings")
    return ExitCode.FINE


def formatted(rows: Sequence[Row], form: str, limit: int = 0) -> Iterator[str]:
    """Findings as JSON lines, or as text: those of one cause together. limit: how many; 0: all."""
    if form == "jsonl":
        with first_of(rows, limit, "findings", lambda: len(rows)) as shown:
            yield from (json_line(as_json(row)) for row in shown)
        return
    from transforms.quality.alike_findings import alike_findings

    groups = alike_findings(list(rows))
    with first_of(groups, limit, "findings", lambda: len(groups)) as shown:
        for first, *others in shown:
            yield from finding_lines(first)
            if others:
                ids = ", ".join(row["finding_id"] for row in others)
                yield from wrapped(f"and {len(others):,} more like it: {ids}")


def by_urgency(rows: Iterable[Row]) -> list[Row]:
    """Open before acknowledged before resolved, errors before warnings, then by cluster and place."""
    return sorted(
        rows,
        key=lambda r: (
            STATES.index(r["state"]),
            SEVERITIES.index(r["severity"]),
            r["cluster_id"],
            r["rule"],
            -1 if r["first_offset"] is None else r["first_offset"],
            r["finding_id"],
        ),
    )


def _acknowledge(args: argparse.Namespace) -> int:
    """Acknowledge under the lease: another run may be deriving the findings."""
    if not args.reason.strip():
        raise Failure("--reason is empty: say why no action is needed")
    from jobs.runtime.lease import held_lease

    _named_finding(args)  # an unknown id fails before the wait
    progress = Progress()
    give_up = time.monotonic() + args.wait
    record = RunRecord("findings", progress)
    with held_lease(args.lake.resolve(), record, give_up, progress.say) as lease:
        code = note(lease.writer, _named_finding(args), args.reason, record.columns)
        lease.end(code)
    return code


def _named_finding(args: argparse.Namespace) -> Row:
    """The row of the finding. Raises Failure if there is none."""
    from transforms.lake.delta_rs import rows_with
    from transforms.lake.tables import FINDINGS

    found = rows_with(args.lake, FINDINGS, finding_id=[args.finding_id])
    if not found:
        raise Failure(
            f"there is no finding {args.finding_id}: kraftlake findings list --lake {args.lake} --state all"
        )
    return found[0]


def note(writer: TableWriter, row: Row, reason: str, run_columns: Row) -> int:
    """Store an acknowledgement, and give the finding the state that the next derivation gives it."""
    from transforms.lake.tables import ACKNOWLEDGEMENTS, FINDINGS
    from transforms.quality.derived_counts import begin_change, end_change

    acknowledgement = {
        "cluster_id": row["cluster_id"],
        "finding_id": row["finding_id"],
        "acknowledged_at": datetime.now(UTC),
        "acknowledged_by": getpass.getuser(),
        "reason": reason,
    }
    begin_change(writer, [row["cluster_id"]], run_columns)
    writer.append(ACKNOWLEDGEMENTS, [acknowledgement])
    if row["state"] != "resolved":  # why it is resolved says more
        row |= {"state": "acknowledged", "reason": reason}
    writer.put(FINDINGS, [row], by="finding_id")
    end_change(writer, [row["cluster_id"]])
    print_lines(finding_lines(row))
    return ExitCode.FINE
