"""kraftlake maintain: compact small files, expire old captures and samples, delete replaced files."""

from __future__ import annotations

import argparse
from datetime import datetime, timedelta

from jobs import arguments
from jobs.job import Job, opened_job
from jobs.runtime.progress import Counted
from kraft_core.wording import count

EXAMPLES = """examples:
  kraftlake maintain --lake /data/lake
  kraftlake maintain --lake /data/lake --keep-days 400"""

# Readers may be at work on files that were replaced since then. Delta's own default.
KEPT_HOURS = 168


def add_arguments(parser: argparse.ArgumentParser) -> None:
    arguments.add_lake(parser)
    arguments.add_wait(parser)
    parser.add_argument(
        "--keep-days",
        type=arguments.days,
        metavar="DAYS",
        help="expire captures, expectation results and samples of follow that are older, except the newest "
        "of each replica, expectation and cluster (default: keep all; of samples of more than a day ago, one "
        "per hour is kept in any case)",
    )
    arguments.add_now(parser)


def run(args: argparse.Namespace) -> int:
    """Returns the exit code. Raises Failure."""
    from jobs.captures.lives import settle_lives
    from jobs.maintenance.compaction import compact
    from jobs.maintenance.passes import forget_passes
    from jobs.maintenance.samples import thin_samples

    with opened_job(args, args.progress, make_lake=False) as job:
        expired, clusters = expire_old(job, args)
        samples = thin_samples(job.lake, job.record, arguments.now_of(args), oldest_kept(args))
        passes = forget_passes(job.lake.writer, arguments.now_of(args))
        settle_lives(job.lake, job.record)
        job.derive(sorted({*clusters, *job.half_done()}))
        answers = forget_answers(job, args)
        compacted = compact(job.lake.writer, job.progress, most=1, whole=True)
        removed = vacuum(job)
        aborted = abort_unfinished(job)
        job.record.counts |= {
            "expired_captures": expired,
            "removed_samples": samples,
            "removed_passes": passes,
            "removed_files": removed,
            "aborted_uploads": aborted,
        }
        lines = [
            f"expired: {count(expired, 'capture')} of {count(len(clusters), 'cluster')}",
            f"deleted: {answers} expectation results, {count(samples, 'sample')}, "
            f"{count(passes, 'row')} of passes in runs",
            f"compacted: {', '.join(compacted) or 'nothing'}",
            f"removed: {count(removed, 'file')} replaced more than {KEPT_HOURS} hours ago",
        ]
        if aborted:
            lines.append(f"aborted: {aborted} uploads that were begun more than {KEPT_HOURS} hours ago")
        return job.end(clusters, lines)


def oldest_kept(args: argparse.Namespace) -> datetime | None:
    """The time before which --keep-days expires; None to keep all."""
    return None if args.keep_days is None else arguments.now_of(args) - timedelta(days=args.keep_days)


def expire_old(job: Job, args: argparse.Namespace) -> tuple[int, list[str]]:
    """Expire captures by --keep-days. Returns how many, and their clusters."""
    oldest = oldest_kept(args)
    if oldest is None:
        return 0, []
    from jobs.retention import expire

    return expire(job, oldest)


def forget_answers(job: Job, args: argparse.Namespace) -> int:
    """Remove answers of expectations older than --keep-days that newer ones overtook. Returns how many."""
    from transforms.lake.tables import EXPECTATION_RESULTS

    oldest = oldest_kept(args)
    if oldest is None or not job.lake.exists(EXPECTATION_RESULTS):
        return 0
    from transforms.lake.lake import in_clusters
    from transforms.lake.spark_rows import to_rows
    from transforms.quality.expectations import superseded

    results = job.lake.read(EXPECTATION_RESULTS)
    old = superseded(results, oldest).localCheckpoint()
    count = old.count()
    if count:
        key = list(EXPECTATION_RESULTS.key)
        clusters = [row["cluster_id"] for row in to_rows(old.select("cluster_id").distinct())]
        kept = results.where(in_clusters(clusters)).join(old, key, "left_anti")
        job.lake.keep(EXPECTATION_RESULTS, kept, clusters)
    return count


def vacuum(job: Job) -> int:
    """Remove files that no version of the last days needs, and tables that a killed run left half made.

    Nothing can need them again, so that this is safe also beyond the lease.
    """
    from transforms.lake.delta_rs import unneeded_files
    from transforms.lake.storage import remove_begun
    from transforms.lake.storage.files import remove
    from transforms.lake.tables import TABLES

    lake, removed = job.lake, 0
    counted = Counted()
    with job.progress.stage("vacuum", "", counted, "tables"):
        for table in counted.each(TABLES, len(TABLES)):
            for path in unneeded_files(lake.path, table, KEPT_HOURS):
                remove(path)
                removed += 1
        remove_begun(lake.path, KEPT_HOURS)
    return removed


def abort_unfinished(job: Job) -> int:
    """Abort uploads that killed tasks left in the lake's store as long ago. Returns how many."""
    from transforms.lake.storage.location import StoreUrl

    if not isinstance(job.lake.path, StoreUrl):
        return 0
    from jobs.maintenance.unfinished_uploads import abort_uploads

    return abort_uploads(job.lake.spark, job.lake.path, KEPT_HOURS)
