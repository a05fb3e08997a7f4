"""A run of a verb that writes a lake: read, derive, commit, publish, finish."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from dashboards.databases import Database
from jobs.maintenance.publishing import check_database, database_of, publish
from jobs.runtime.crash import failure_of, must_be_writable
from jobs.runtime.fail_on import ErrorCheck, verdict
from jobs.runtime.interrupt import starting_spark
from jobs.runtime.java import is_submitted, java_of
from jobs.runtime.outcome import ExitCode, Failure
from jobs.runtime.output import json_line, print_line, print_lines, warn_line
from jobs.runtime.progress import Progress, tasks_of
from jobs.runtime.run_record import RunRecord
from kraft_core.wording import count
from transforms.lake.storage import NoLakeError, check_lake, check_preparable, prepare_lake
from transforms.lake.storage.location import Location

if TYPE_CHECKING:
    from jobs.captures.ingest import Fetch
    from jobs.captures.planning import ReadPlan
    from jobs.runtime.lease import Lease
    from transforms.lake.lake import Lake
    from transforms.lake.seen import SeenLake

# Where less than this is to be read, start-up time counts for more than optimized code.
QUICK_BYTES = 64 * 1024 * 1024
# Why a job exits with 1, also where nothing is new and nothing else is said.
STILL_WRONG = (
    "an error finding is open (kraftlake findings list), or an expectation of severity error is not met "
    "(view expectations_now)"
)


@contextmanager
def opened_job(
    args: argparse.Namespace,
    progress: Progress,
    make_lake: bool,
    quick: bool | None = None,
    seen: SeenLake | None = None,
    resident: bool = False,
    workers: bool = False,
) -> Iterator[Job]:
    """A job that holds the lease of args.lake until the block ends.

    quick, resident, workers: as in open_session; by default a job over a small lake is quick. seen: the lake
    as it was before, if it was one and was looked at.
    Raises Failure before Spark starts if the path is not a lake, or another run holds the lease longer than
    args.wait.
    """
    check_start(args, make_lake)
    try:
        if make_lake:
            prepare_lake(args.lake, args.settings.shown_configs)
        from transforms.lake.schema import outdated_tables, update_schemas

        outdated = outdated_tables(args.lake) if seen is None else seen.outdated()
    except NoLakeError as error:
        raise failure_of(error, args.lake) or Failure(str(error)) from None
    database = database_of(args)
    from jobs.captures.lives import settle_lives
    from jobs.maintenance.removal import complete_removals
    from jobs.runtime.lease import await_free, held_lease
    from jobs.runtime.session import open_session
    from transforms.lake.commits import TableWriter
    from transforms.lake.delta_rs import size_bytes
    from transforms.lake.lake import existing_lake
    from transforms.lake.tables import RUNS, TABLES

    if quick is None and not resident:
        quick = sum(size_bytes(args.lake, table) for table in TABLES) < QUICK_BYTES
    give_up = time.monotonic() + args.wait
    await_free(args.lake, give_up, progress.say)
    with progress.stage("session"), starting_spark():
        spark = open_session(
            args.master,
            say=progress.say,
            quick=bool(quick),
            own=args.settings.spark,
            lake=args.lake,
            resident=resident,
            workers=workers,
        )
    progress.watch(tasks_of(spark))
    lake = existing_lake(spark, args.lake)
    if database is not None:
        check_database(lake, database)
    TableWriter(lake.path, None).create(RUNS)
    record = RunRecord(args.verb, progress, args.fail_on)
    of_others = None if seen is None else seen.greatest_lease()
    with held_lease(lake.path, record, give_up, progress.say, of_others) as lease:
        if outdated:
            update_schemas(lease.writer)
        writable = replace(lake, lease=lease.writer.lease)
        complete_removals(writable, progress)
        settle_lives(writable, record)
        names = {cluster.id: cluster.name for cluster in args.settings.clusters}
        yield Job(writable, record, lease, database, names)


def check_start(args: argparse.Namespace, make_lake: bool) -> None:
    """Raises Failure for what keeps Spark from starting or the lake from being written; changes nothing."""
    try:
        if make_lake:
            check_preparable(args.lake, args.settings.shown_configs)
        else:
            check_lake(args.lake)
    except NoLakeError as error:
        raise failure_of(error, args.lake) or Failure(str(error)) from None
    must_be_writable(args.lake)
    if getattr(args, "report", None) is not None:
        must_be_writable(args.report.parent)
    database_of(args)
    if not is_submitted():
        java_of()


class Job:
    """One run of a verb over a lake.

    pending: what it has read and not committed yet. known: copies of captures that need no look into the
    lake. names: of clusters, by id, as the settings have them.
    """

    def __init__(
        self,
        lake: Lake,
        record: RunRecord,
        lease: Lease,
        database: Database | None,
        names: Mapping[str, str],
    ) -> None:
        from jobs.captures.ingest import PendingCommit
        from jobs.captures.known_copies import KnownCopies

        self.lake = lake
        self.progress = record.progress
        self.record = record
        self.lease = lease
        self.database = database
        self.names = names
        self.pending = PendingCommit()
        self.known = KnownCopies()
        self._committed: set[str] = set()
        self._derived: tuple[list[str], dict[str, str]] | None = None

    @property
    def touched(self) -> set[str]:
        """The clusters with anything new, and their other lives.

        Describe outputs of an id of several lives count for none.
        """
        from transforms.lake.lives import divided_ids, with_other_lives

        return with_other_lives(self.lake.path, self.pending.clusters) - divided_ids(self.lake.path)

    def read(self, planned: ReadPlan, fetch: Fetch) -> None:
        """Read what is new; `fetch` is called with the files that will be opened."""
        from jobs.captures.ingest import ingest_unchanged

        self.pending = ingest_unchanged(self.lake, planned, self.known, self.record, fetch)
        counts = self.record.counts
        for name, number in self.pending.counts.items():
            counts[name] = counts.get(name, 0) + number

    def derive(self, clusters: Sequence[str]) -> None:
        """Replace what is derived for the clusters, from the lake and from what is pending.

        Nothing is derived for those without captures, as an interrupted run may have left them.
        """
        half_done = self.half_done()
        gone = (half_done & set(clusters)) - self.touched
        gone -= known_clusters(self.lake.path) if gone else set()
        if gone:
            from jobs.maintenance.removal import remove_derived

            remove_derived(self.lake, sorted(gone))
        clusters = [cluster for cluster in clusters if cluster not in gone]
        if clusters:
            from jobs.derivation.derive_tables import derive
            from transforms.quality.derived_counts import failed_derivations

            before = failed_derivations(self.lake.path, clusters)
            failed = derive(self.lake, clusters, self.pending, self.record, half_done)
            self._derived = (clusters, failed)
            if not self.touched:
                self._end_derivation()
            self.record.failed |= {c: f"could not be derived: {reason}" for c, reason in failed.items()}
            for cluster in sorted(before - failed.keys()):
                self.progress.say(f"cluster {cluster}: derived, after an earlier run failed to")

    def underived(self, clusters: Collection[str]) -> set[str]:
        """Those whose derived rows are lost, or could not be derived the last time; and half_done().

        And those of which an ingest has loaded something since.
        """
        from transforms.quality.derived_counts import ingested, underived

        return underived(self.lake.path, clusters) | ingested(self.lake.path, clusters)

    def half_done(self) -> set[str]:
        """The clusters of which an interrupted run has changed rows: the next writer derives them."""
        from transforms.quality.derived_counts import begun

        return set(begun(self.lake.path))

    def commit(self) -> None:
        """Commit what was read, if the lease has not run out. Raises Failure."""
        from jobs.captures.ingest import PendingCommit, commit
        from transforms.quality.derived_counts import begin_ingest

        self.lease.check()
        with self.progress.stage("commit"):
            touched = self.touched
            derived = () if self._derived is None else self._derived[0]
            begin_ingest(self.lake.writer, touched.difference(derived), self.record.columns)
            with self.known.kept(self.lake.path):
                commit(self.lake, self.pending, self.record.columns)
            self._end_derivation()
        self._committed |= touched
        self.pending = PendingCommit()

    def _end_derivation(self) -> None:
        """From here on the derived rows are complete."""
        from jobs.derivation.derive_tables import end_derivation

        if self._derived is not None:
            end_derivation(self.lake, *self._derived, self.record)
            self._derived = None

    def publish(self) -> None:
        """Register the lake in the catalog of --catalog, if any."""
        if self.database is not None:
            with self.progress.stage("register", str(self.database)):
                publish(self.lake, self.database)

    def finish(self, clusters: Sequence[str], also: Sequence[str] = ()) -> int:
        """End the run with the summary of the clusters and other lines. Returns the exit code."""
        from dashboards.summary import summary

        with self.progress.stage("summary"):
            found = summary(self.lake.path, clusters, self.names)
        for cluster, reason in found.failed.items():
            self.record.failed.setdefault(cluster, f"could not be summarized: {reason}")
        return self.end(clusters, [*found.lines, *also])

    def end(self, clusters: Sequence[str], lines: Iterable[str]) -> int:
        """Compact the tables, end the run, print the lines. Returns the exit code."""
        from jobs.maintenance.compaction import compact_written, most_files
        from jobs.runtime.spark_requests import count_spark_requests
        from transforms.lake.delta_rs import count_rows
        from transforms.lake.tables import QUARANTINE

        with self.known.kept(self.lake.path):
            compact_written(self.lake.writer, self.progress, most_files(self.lake.path))
        errors = verdict(self.lake.path, clusters, self.record.fail_on)
        quarantined = count_rows(self.lake.path, QUARANTINE, cluster_id=clusters)
        count_spark_requests(self.lake.spark, self.lake.path)
        touched = len(self._committed)
        return end(self.record, lines, clusters, errors, self.lease.end, quarantined, touched)


def known_clusters(lake: Location) -> set[str]:
    """The clusters of which the lake holds captures, or observations or brokers' directories of one life."""
    from transforms.lake.delta_rs import distinct
    from transforms.lake.lives import divided_ids
    from transforms.lake.tables import BROKER_DIRECTORIES, CAPTURES, OBSERVATIONS

    tables = (CAPTURES, OBSERVATIONS, BROKER_DIRECTORIES)
    return set[str]().union(*(distinct(lake, table, "cluster_id") for table in tables)) - divided_ids(lake)


def unread_words(paths: int) -> str:
    """Why a job exits with 1 that left out paths which it could not list, open or read."""
    lost = "what it holds is" if paths == 1 else "what they hold is"
    return f"{count(paths, 'path')} left out could not be read: {lost} not loaded until a run can read it"


def end(
    record: RunRecord,
    lines: Iterable[str],
    clusters: Sequence[str],
    errors: ErrorCheck,
    note: Callable[[int], None],
    quarantined: int,
    touched: int = 0,
) -> int:
    """Decide the exit code, pass it to `note`, which records it, and print the lines and a JSON line.

    quarantined: rows of `quarantine` of the clusters. touched: how many of these had new data.
    """
    record.reported = errors.reported
    unread = record.counts.get("unreadable", 0)
    is_wrong = record.failed or record.unmet or unread or errors.fails
    code = ExitCode.FOUND if is_wrong else ExitCode.FINE
    note(code)
    record.progress.done()
    print_lines(lines)
    for cluster, reason in sorted(record.failed.items()):
        warn_line(f"kraftlake {record.verb}: cluster {cluster} {reason}")
    if unread:
        warn_line(f"kraftlake {record.verb}: {unread_words(unread)}")
    if errors.fails and record.fail_on == "open":
        warn_line(f"kraftlake {record.verb}: {STILL_WRONG}")
    report = record.report(code, clusters, touched, quarantined)
    record.progress.log("ended", **report)
    print_line(json_line(report))
    return code
