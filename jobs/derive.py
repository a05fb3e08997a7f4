"""kraftlake derive: derive again what the captures of a lake prove."""

from __future__ import annotations

import argparse

from jobs import arguments
from jobs.job import Job, opened_job
from jobs.maintenance.publishing import add_catalog
from jobs.runtime.fail_on import add_fail_on
from jobs.runtime.outcome import Failure
from jobs.runtime.progress import Progress

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
    with opened_job(args, Progress(args.log), make_lake=False) as job:
        chosen = chosen_clusters(job, args)
        job.derive(chosen)
        job.publish()
        return job.finish(chosen)


def chosen_clusters(job: Job, args: argparse.Namespace) -> list[str]:
    """The clusters of --cluster, else all of the lake. Raises Failure for one that it does not have."""
    from transforms.lake.delta_rs import cluster_ids

    clusters = cluster_ids(job.lake.path)
    missing = sorted(set(args.cluster) - set(clusters))
    if missing:
        raise Failure(f"the lake {args.lake} has no capture of cluster {', '.join(missing)}")
    return sorted(args.cluster or clusters)
