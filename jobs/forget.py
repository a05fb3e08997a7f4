"""kraftlake forget: delete everything about a cluster from the lake."""

from __future__ import annotations

import argparse
from collections.abc import Collection

from jobs import arguments
from jobs.job import Job, opened_job
from jobs.runtime.lakes import must_be_lake
from jobs.runtime.outcome import UnknownCluster
from jobs.runtime.progress import Counted
from transforms.lake.storage.location import Location

EXAMPLES = """examples:
  kraftlake forget --lake /data/lake --cluster rPoTXydvQsK3Nv6AA77Cqg

Its captures can be loaded again later. kraftlake maintain deletes the files with its rows a week later."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_lake(parser)
    arguments.add_wait(parser)
    parser.add_argument(
        "--cluster",
        required=True,
        metavar="CLUSTER",
        help="the cluster to delete; a cluster id with several lives means all of them",
    )


def run(args: argparse.Namespace) -> int:
    """Returns the exit code. Raises Failure."""
    must_be_lake(args.lake)
    from transforms.lake.lives import expanded

    _check_is_there(args.lake, args.cluster)
    with opened_job(args, args.progress, make_lake=False) as job:
        from jobs.captures.lives import settle_lives

        removed = forget(job, {args.cluster, *expanded(job.lake.path, [args.cluster])})
        settle_lives(job.lake, job.record)
        job.derive(sorted(job.half_done()))
        job.record.counts |= removed
        lines = [
            f"removed {rows} {'row' if rows == 1 else 'rows'} of {name}" for name, rows in removed.items()
        ]
        completed = f"completed an interrupted deletion: nothing of cluster {args.cluster} is left"
        return job.end([], lines or [completed])


def _check_is_there(lake: Location, cluster: str) -> None:
    """Raises Failure unless the lake has anything of the cluster, or an interrupted run removed it."""
    from jobs.maintenance.removal import OF_CLUSTERS, is_forgotten
    from transforms.lake.delta_rs import cluster_ids, count_rows
    from transforms.lake.lives import expanded
    from transforms.quality.derived_counts import removed

    named = {cluster, *expanded(lake, [cluster])}
    if named & set(removed(lake)) or is_forgotten(lake, cluster):
        return
    if not any(count_rows(lake, table, cluster_id=named) for table in OF_CLUSTERS):
        raise UnknownCluster(f"the lake {lake} has nothing of cluster {cluster}", cluster, cluster_ids(lake))


def forget(job: Job, clusters: Collection[str]) -> dict[str, int]:
    """Delete the clusters' rows of every table. Returns how many there were, by table."""
    from jobs.maintenance.removal import OF_CLUSTERS, in_order_of_removal, remove_cluster
    from transforms.lake.delta_rs import count_rows
    from transforms.lake.lives import with_other_lives
    from transforms.quality.derived_counts import begin_change, begin_removal

    path = job.lake.path
    counts = {table.name: count_rows(path, table, cluster_id=clusters) for table in OF_CLUSTERS}
    removed = {name: rows for name, rows in counts.items() if rows}
    if removed:
        counted = Counted()
        with job.progress.stage("forget", "", counted, "tables"):
            # Verdicts of the other lives of a cluster id depend on these captures.
            others = with_other_lives(path, clusters) - set(clusters)
            begin_change(job.lake.writer, others, job.record.columns)
            begin_removal(job.lake.writer, clusters, job.record.columns)
            for cluster in in_order_of_removal(clusters):
                remove_cluster(job.lake.writer, cluster, counted)
    return removed
