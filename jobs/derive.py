"""kraftlake derive: derive again what the captures of a lake prove."""

from __future__ import annotations

import argparse

from jobs import arguments
from jobs.job import opened_job
from jobs.maintenance.publishing import add_catalog
from jobs.runtime.fail_on import add_fail_on
from jobs.runtime.lake_clusters import lake_clusters
from jobs.runtime.lakes import must_be_lake

EXAMPLES = """examples:
  kraftlake derive --lake /data/lake
  kraftlake derive --lake /data/lake --cluster rPoTXydvQsK3Nv6AA77Cqg"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_lake(parser)
    arguments.add_wait(parser)
    add_catalog(parser)
    arguments.add_clusters(parser)
    add_fail_on(parser)


def run(args: argparse.Namespace) -> int:
    """Returns the exit code. Raises Failure."""
    must_be_lake(args.lake)
    lake_clusters(args.lake, args.cluster)
    with opened_job(args, args.progress, make_lake=False) as job:
        chosen = lake_clusters(job.lake.path, args.cluster)
        job.derive(sorted({*chosen, *job.half_done()}))
        job.publish()
        return job.finish(chosen)
