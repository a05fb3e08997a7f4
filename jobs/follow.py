"""kraftlake follow: continuously load what running quorums commit."""

from __future__ import annotations

import argparse
import fcntl
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jobs import arguments
from jobs.job import opened_job
from jobs.maintenance.publishing import add_catalog
from jobs.metrics import metrics_text, put
from jobs.quorum.asked import add_command_config, living_cluster
from jobs.report import made_page, page_file, put_page
from jobs.run import load
from jobs.runtime.crash import failure_of
from jobs.runtime.lakes import must_be_whole
from jobs.runtime.local_paths import local_path, output_file
from jobs.runtime.outcome import ExitCode, Failure
from jobs.runtime.output import warn_line
from jobs.runtime.progress import Progress

if TYPE_CHECKING:
    from transforms.live.following import FollowedCluster
    from transforms.live.options import LiveCluster

EXAMPLES = """examples:
  kraftlake follow --bootstrap-controllers h1:9093,h2:9093,h3:9093 --lake /data/lake
  kraftlake follow --lake /data/lake --config kraftlake.toml --report /srv/www/kraft.html
  kraftlake follow --bootstrap-controllers h1:9093 --lake .lake --for 1h --interval 10s
  kraftlake follow --bootstrap-controllers h1:9093 --lake .lake --for 0s

Without --bootstrap-controllers it follows every cluster of kraftlake.toml with bootstrap_controllers. The
user needs ClusterAction and Describe on resource Cluster (docs/live.md). SIGTERM stops it cleanly; started
again, even after a kill, it resumes where it stopped.
exit codes: 0 it ended as requested, 1 a cluster still refused at the end, 4 the spool is in use, or the
lake when it was to end, 75 try again, 78 the only cluster refused"""

# Seconds that a pass reads at most, before it loads.
READING = 60.0
# Seconds after which samples and rows of passes that have grown old are removed again.
THINNING = 3600.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--bootstrap-controllers", metavar="HOST:PORT,...", help="addresses of controllers")
    add_command_config(parser)
    arguments.add_lake(parser)
    arguments.add_wait(parser)
    add_catalog(parser)
    parser.add_argument(
        "--cluster",
        action="append",
        default=[],
        metavar="CLUSTER",
        help="only this cluster of kraftlake.toml, repeatable; with --bootstrap-controllers, its id",
    )
    parser.add_argument(
        "--for",
        dest="lasting",
        type=arguments.duration,
        metavar="DURATION",
        help="stop after this time, such as 30s, 10m, 1h, 2d; 0s loads what is committed now (default: "
        "never)",
    )
    parser.add_argument(
        "--interval",
        type=arguments.duration,
        default=60.0,
        metavar="DURATION",
        help="how often to load and derive (default: 1m)",
    )
    parser.add_argument(
        "--spool",
        type=local_path,
        metavar="PATH",
        help="folder that keeps what was read, visible to every Spark worker (default: the lake's path "
        "with .spool appended)",
    )
    parser.add_argument(
        "--keep-days",
        type=arguments.days,
        metavar="DAYS",
        help="remove from the spool copies that are older than this and whole in the lake (default: keep "
        "all)",
    )
    parser.add_argument(
        "--report", type=page_file, metavar="FILE", help="also write the HTML page to this file"
    )
    parser.add_argument(
        "--metrics", type=output_file, metavar="FILE", help="also write the Prometheus text file"
    )
    parser.set_defaults(now=None)


def run(args: argparse.Namespace) -> int:
    """Follow until the end. Returns the exit code. Raises Failure."""
    from transforms.live.following import FollowedCluster

    spool = spool_of(args)
    clusters = [FollowedCluster(cluster, spool) for cluster in chosen(args)]
    try:
        with alone(spool), stopped_by_sigterm() as stopped:
            follow(args, clusters, spool, stopped)
    finally:
        for cluster in clusters:
            cluster.close()
    refused = [cluster for cluster in clusters if cluster.refused is not None]
    return ExitCode.FOUND if refused else ExitCode.FINE


def follow(
    args: argparse.Namespace, clusters: Sequence[FollowedCluster], spool: Path, stopped: threading.Event
) -> None:
    """Read and load every interval, until it is stopped or the time is over. Raises Failure."""
    from transforms.live.following import read_all
    from transforms.live.spool import has_log

    began = thinning = time.monotonic()
    give_up = None if args.lasting is None else began + args.lasting
    while not stopped.is_set():
        next_pass = time.monotonic() + args.interval
        is_last = give_up is not None and time.monotonic() >= give_up
        with in_spool(spool):
            read_all(clusters, READING)
        if len(clusters) == 1 and clusters[0].refused is not None:
            raise Failure(clusters[0].refused, ExitCode.ENVIRONMENT)
        is_due = time.monotonic() >= thinning
        is_behind = any(cluster.is_behind for cluster in clusters)
        is_last = is_last and not is_behind
        if has_log(spool) and load_pass(args, clusters, spool, is_due, is_last) and is_due:
            thinning = time.monotonic() + THINNING
        if is_last:
            return
        until = next_pass if give_up is None else min(next_pass, give_up)
        if not is_behind:
            stopped.wait(max(0.0, until - time.monotonic()))


def load_pass(
    args: argparse.Namespace,
    clusters: Sequence[FollowedCluster],
    spool: Path,
    is_thinning: bool,
    is_last: bool,
) -> bool:
    """Load what the spool has, derive and show it. A lake that is busy is left for the next pass: False.

    is_thinning: also remove what has grown old. is_last: there is no next pass. Raises Failure.
    """
    outputs = [output for cluster in clusters for output in cluster.outputs()]
    args.progress = Progress(args.log)
    try:
        load_spool(args, spool, is_thinning)
    except Failure as failure:
        if is_last or failure.exit_code != ExitCode.LAKE_BUSY:
            raise
        warn_line(f"kraftlake follow: not loaded yet: {failure}")
        return False
    for output in outputs:
        output.unlink(missing_ok=True)
    if is_thinning and args.keep_days is not None:
        with in_spool(spool):
            prune(args, clusters)
    if args.report is not None:
        put_page(made_page(args, args.report), args.report)
    if args.metrics is not None:
        put(args.metrics, metrics_text(args))
    return True


def prune(args: argparse.Namespace, clusters: Sequence[FollowedCluster]) -> None:
    """Remove what the spool has had for --keep-days, and the lake has whole."""
    from kraft_core.format.capture import FOLLOWED_NODE_ID
    from transforms.lake.delta_rs import rows_with
    from transforms.lake.tables import CAPTURES

    columns = ["directory_id", "log_start_offset", "log_end_offset"]
    loaded: dict[str, list[range]] = {}
    for row in rows_with(args.lake, CAPTURES, columns, node_id=[FOLLOWED_NODE_ID]):
        held = range(row["log_start_offset"] or 0, row["log_end_offset"] or 0)
        loaded.setdefault(row["directory_id"], []).append(held)
    for cluster in clusters:
        cluster.prune(time.time() - args.keep_days * 86_400, loaded)


def load_spool(args: argparse.Namespace, spool: Path, is_thinning: bool) -> None:
    """One run over the spool. Raises Failure."""
    from jobs.captures.inputs import opened_inputs
    from jobs.captures.planning import Selection, plan
    from jobs.maintenance.compaction import MOST_FOLLOWED, compact_written
    from jobs.maintenance.passes import forget_passes
    from jobs.maintenance.samples import thin_samples
    from transforms.lake.lives import expanded

    seen = must_be_whole(args.lake)
    with opened_inputs([str(spool)], None) as inputs:
        planned = plan(Selection((spool,)))
        with opened_job(args, args.progress, make_lake=True, seen=seen, resident=True) as job:
            if is_thinning:
                now = datetime.now(UTC)
                thin_samples(job.lake, job.record, now)
                forget_passes(job.lake.writer, now)
            load(job, planned, inputs.fetch, derive=True)
            job.derive(sorted(job.half_done()))
            job.publish()
            compact_written(job.lake.writer, job.progress, MOST_FOLLOWED)
            job.end(expanded(args.lake, planned.clusters), ())


@contextmanager
def stopped_by_sigterm() -> Iterator[threading.Event]:
    """Set by SIGTERM within the block."""
    stopped = threading.Event()
    before = signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    try:
        yield stopped
    finally:
        signal.signal(signal.SIGTERM, before)


def chosen(args: argparse.Namespace) -> list[LiveCluster]:
    """The clusters to follow. Raises Failure."""
    if args.bootstrap_controllers is not None:
        if len(args.cluster) > 1:
            raise Failure("--bootstrap-controllers addresses one cluster: give one --cluster")
        id_ = args.cluster[0] if args.cluster else None
        return [living_cluster("bootstrap.controllers", args.bootstrap_controllers, args, id_)]
    named = [cluster for cluster in args.settings.clusters if cluster.bootstrap_controllers is not None]
    unknown = set(args.cluster) - {cluster.id for cluster in named}
    if unknown:
        raise Failure(
            f"no section of kraftlake.toml has bootstrap_controllers for {', '.join(sorted(unknown))}"
        )
    found = [cluster for cluster in named if not args.cluster or cluster.id in args.cluster]
    if not found:
        raise Failure(
            "give --bootstrap-controllers, or bootstrap_controllers in a section [clusters.NAME] of "
            "kraftlake.toml"
        )
    of_settings: list[LiveCluster] = []
    for cluster in found:
        own = argparse.Namespace(command_config=cluster.command_config or args.command_config)
        where = cluster.bootstrap_controllers or ""
        found_there = living_cluster("bootstrap.controllers", where, own, cluster.id)
        of_settings.append(replace(found_there, name=cluster.name))
    return of_settings


def spool_of(args: argparse.Namespace) -> Path:
    """The folder of the spool. Raises Failure."""
    if args.spool is not None:
        return args.spool
    if not isinstance(args.lake, Path):
        raise Failure("a lake in an object store has no folder beside it: give --spool")
    return args.lake.with_name(f"{args.lake.name}.spool")


@contextmanager
def alone(spool: Path) -> Iterator[Any]:
    """The only process that writes the spool. Raises Failure."""
    try:
        # Fetched batches have the secrets of the metadata, as a controller's own files.
        spool.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = (spool / ".lock").open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
            raise Failure(f"another process is writing to {spool}", ExitCode.LAKE_BUSY) from None
    except OSError as error:
        raise failure_of(error, spool) or Failure(f"{spool}: {error}") from None
    with lock:
        yield lock


@contextmanager
def in_spool(spool: Path) -> Iterator[None]:
    """What reads or writes a spool in use. Raises Failure for an OSError."""
    try:
        yield
    except FileNotFoundError as error:
        raise Failure(
            f"{error.filename or spool} was moved or deleted while it was in use: start again; what the "
            "spool no longer has is read from the quorum again",
            ExitCode.TRY_AGAIN,
        ) from None
    except OSError as error:
        raise failure_of(error, spool) or Failure(f"{spool}: {error}") from None
