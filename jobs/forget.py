"""kraftlake forget: delete everything about a cluster from the lake."""

from __future__ import annotations

import argparse

from jobs import arguments
from jobs.job import Job, opened_job
from jobs.runtime.outcome import Failure
from jobs.runtime.progress import Progress

EXAMPLES = """examples:
  kraftlake forget --lake /data/lake --cluster rPoTXydvQsK3Nv6AA77Cqg

Its captures can be loaded again. kraftlake maintain deletes the files with its rows a week later."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_lake(parser)
    arguments.add_wait(parser)
    parser.add_argument("--cluster", required=True, metavar="CLUSTER", help="the cluster to delete")


def run(args: argparse.Namespace) -> int:
    """Returns the exit code. Raises Failure."""
    with opened_job(args, Progress(args.log), make_lake=False) as job:
        removed = forget(job, args.cluster)
        if not removed:
            raise Failure(f"the lake {args.lake} has nothing of cluster {args.cluster}")
        job.record.counts |= removed
        lines = [f"removed {rows} rows of {name}" for name, rows in removed.items()]
        return job.end([], lines, 0)


def forget(job: Job, cluster: str) -> dict[str, int]:
    """Delete the cluster's rows of every table. Returns how many there were, by table.

    captures and segments go first: if this is killed, a run that brings the captures again reads them again,
    and leaves out only what is still there.
    """
    from transforms.lake.delta_rs import count_rows
    from transforms.lake.lake import escape, in_clusters
    from transforms.lake.storage import begin_generation
    from transforms.lake.tables import RUNS, TABLES

    lake = job.lake
    begin_generation(lake.path)
    removed: dict[str, int] = {}
    with job.progress.stage("forget"):
        for table in TABLES:
            if table is RUNS:
                continue
            rows = count_rows(lake.path, table, cluster_id=[cluster])
            if rows:
                lake.delete_where(table, in_clusters([cluster]))
                removed[table.name] = rows
        id_ = f"'{escape(cluster)}'"
        lake.spark.sql(
            f"UPDATE delta.`{lake.location(RUNS)}` SET "
            f"failed_clusters = map_filter(failed_clusters, (k, v) -> k != {id_}), "
            f"reported_findings = filter(reported_findings, f -> f.cluster_id != {id_}) "
            f"WHERE map_contains_key(failed_clusters, {id_}) "
            f"OR exists(reported_findings, f -> f.cluster_id = {id_})"
        )
    return removed
