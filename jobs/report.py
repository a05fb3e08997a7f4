"""kraftlake report: one HTML page about the clusters of a lake."""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jobs import arguments
from jobs.runtime.crash import failure_of
from jobs.runtime.lakes import must_be_lake
from jobs.runtime.local_paths import file_path
from jobs.runtime.outcome import ExitCode, Failure, reason_of
from jobs.runtime.output import json_line, print_line, warn_line
from jobs.runtime.progress import Progress

if TYPE_CHECKING:
    from dashboards.report.write import Report

# What is said of a cluster that failed.
NOT_SHOWN = "could not be shown on the page"

EXAMPLES = """examples:
  kraftlake report --lake /data/lake --out /srv/www/kraft.html
  kraftlake report --lake .lake --out page.html --cluster rPoTXydvQsK3Nv6AA77Cqg
  kraftlake report --lake .lake --out page.html --now 2026-11-21T12:00:00Z"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_lake_path(parser)
    parser.add_argument(
        "--out",
        type=page_file,
        required=True,
        metavar="FILE",
        help="HTML file to write; beyond 2 MB, further clusters get pages of their own in a folder beside it",
    )
    arguments.add_clusters(parser)
    arguments.add_now(parser)


def page_file(text: str) -> Path:
    """A file in a folder that is there or can be made, checked before anything is read."""
    file = file_path(text)
    there = next(folder for folder in file.absolute().parents if folder.exists())
    if not there.is_dir():
        raise argparse.ArgumentTypeError(f"{there} is not a folder")
    return file


def add_report(parser: argparse.ArgumentParser) -> None:
    """--report, for jobs that finish by writing the page."""
    parser.add_argument(
        "--report", type=page_file, metavar="FILE", help="also write the HTML page to this file"
    )
    arguments.add_now(parser)


def run(args: argparse.Namespace) -> int:
    """Write the page and print one JSON line. Returns the exit code. Raises Failure."""
    began = time.monotonic()
    must_be_lake(args.lake, up_to_date=True)
    with Progress(args.log).shown("page"):
        made = made_page(args, args.out, args.cluster)
    put_page(made, args.out)
    for cluster, reason in made.failed.items():
        warn_line(f"kraftlake report: cluster {cluster} {NOT_SHOWN}: {reason}")
    report = {
        "job": "report",
        "page": str(args.out),
        "page_bytes": len(made.data),
        "clusters": made.clusters,
        "clusters_detailed": len(made.detailed) + made.cluster_pages,
        "cluster_pages": made.cluster_pages,
        "cluster_pages_written": len(made.beside),
        "failed_clusters": len(made.failed),
        "seconds": round(time.monotonic() - began, 1),
    }
    print_line(json_line(report))
    return ExitCode.FOUND if made.failed else ExitCode.FINE


def made_page(args: argparse.Namespace, out: Path, clusters: Sequence[str] = ()) -> Report:
    """The page of args.lake over the named clusters, or all, for `out`; the settings name them.

    Raises Failure.
    """
    from dashboards.report.write import made_report
    from jobs.runtime.lake_clusters import lake_clusters

    chosen = lake_clusters(args.lake, clusters) if clusters else ()
    now = round(time.time() * 1000) if args.now is None else args.now
    return made_report(args.lake, now, out, chosen, [cluster.row for cluster in args.settings.clusters])


def put_page(made: Report, out: Path) -> None:
    """Write the page. Raises Failure."""
    from dashboards.report.write import PageFileError, put_report

    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        put_report(made, out)
    except (OSError, PageFileError) as error:
        raise failure_of(error, out) or Failure(f"{out} cannot be written: {reason_of(error)}") from None
