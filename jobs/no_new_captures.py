"""A run that finds nothing new ends without Spark, by the lake's memo or by small tables."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Set
from contextlib import suppress
from datetime import datetime

import pyarrow as pa
from deltalake.exceptions import DeltaError

from jobs.captures.known_copies import KnownCopies
from jobs.captures.new_captures import new_captures
from jobs.captures.planning import ReadPlan
from jobs.job import end
from jobs.maintenance.compaction import compact_runs
from jobs.runtime.fail_on import ErrorCheck, verdict
from jobs.runtime.run_record import RunRecord
from transforms.lake.commits import TableWriter
from transforms.lake.delta_rs import count_rows, exists
from transforms.lake.lives import expanded
from transforms.lake.seen import SeenLake, note
from transforms.lake.storage import NoLakeError, check_lake, check_shown
from transforms.lake.storage.memo import Answer, write_memo
from transforms.lake.storage.table_folders import as_listed
from transforms.lake.tables import QUARANTINE, RUNS
from transforms.quality.derived_counts import ingested, underived


def end_if_unchanged(
    seen: SeenLake,
    shown: Set[str],
    planned: ReadPlan,
    known: KnownCopies,
    record: RunRecord,
    before: Callable[[], None],
) -> int | None:
    """Record the run and return its exit code, if the lake holds all planned captures; otherwise None.

    known: as of new_captures. `before` is called first by a run that ends here. None also where the lake is
    not readable, was made with other shown_configs, or is of an earlier version: opened_job reports the
    former and updates the latter.
    """
    asked = question(planned, known, record)
    answer = seen.answer(asked)
    if answer is not None and "quarantined" not in answer:  # an earlier version noted it
        answer = None
    try:
        check_lake(seen.lake)
        check_shown(seen.lake, shown)
        with as_listed(seen.listed):
            found = _nothing_new(seen, planned, known, record) if answer is None else answer
    except NoLakeError:
        return None
    if found is None:
        return None
    before()
    record.counts = found["counts"]
    count = record.counts["captures"]
    which = "the capture is" if count == 1 else f"all {count:,} captures are"
    line = f"nothing new: {which} known; kraftlake sql queries the lake"
    errors = ErrorCheck(found["fails"], tuple(found["reported"]))

    def end_run(code: int) -> None:
        row = record.row(code)
        writer = TableWriter(seen.lake, None)
        appended = None if answer is None else writer.append_next(RUNS, row, seen.listed)
        if appended is not None:
            with suppress(OSError):
                write_memo(seen.lake, seen.memo.moved(appended))
            return
        writer.append(RUNS, [row])
        compact_runs(seen.lake)
        remember(seen, planned, known, record, answered=answer)

    return end(record, [line], found["clusters"], errors, end_run, found["quarantined"])


def remember(
    before: SeenLake,
    planned: ReadPlan,
    known: KnownCopies,
    record: RunRecord,
    lease: int | None = None,
    answered: Answer | None = None,
) -> None:
    """Note for the next run, if it plans to read the same, whether it will find anything new.

    before: the lake as this run, which has ended, saw it first. known: as of new_captures; of what is not,
    only rows that this run has written are looked at. lease: the number of its own, if any. answered: what
    the memo said, true while only `runs` changes. Where that fails, the next run finds it out.
    """

    def answer(now: SeenLake) -> Answer | None:
        if answered is not None and not now.memo.is_of_others(now.listed):
            return answered
        found = _nothing_new(now, planned, known, record, record.started_at)
        # What is reported once is not reported again.
        return None if found is None or found["reported"] else found

    with suppress(NoLakeError, OSError, DeltaError, pa.ArrowException):
        note(
            before, question(planned, known, record), answer, lease, lambda: known.among(before.lake, planned)
        )


def _nothing_new(
    seen: SeenLake, planned: ReadPlan, known: KnownCopies, record: RunRecord, since: datetime | None = None
) -> Answer | None:
    """What a run reports that finds nothing new, with its counts and what fails. Raises NoLakeError."""
    lake = seen.lake
    if seen.outdated():
        return None
    clusters = expanded(lake, planned.clusters)
    new = new_captures(lake, planned, known, since)
    # It imports PySpark, which takes longer than the memo's answer.
    from jobs.captures.ingest import without_reading

    pending = without_reading(planned, new)
    if new.unread or pending.clusters or not exists(lake, RUNS) or underived(lake, clusters):
        return None
    if not _is_ingest(record) and ingested(lake, clusters):
        return None
    errors = verdict(lake, clusters, record.fail_on)
    return {
        "counts": pending.counts,
        "clusters": clusters,
        "quarantined": count_rows(lake, QUARANTINE, cluster_id=clusters),
        "fails": errors.fails,
        "reported": errors.reported,
    }


def _is_ingest(record: RunRecord) -> bool:
    """Whether the run derives nothing."""
    return record.verb == "ingest"


def question(planned: ReadPlan, known: KnownCopies, record: RunRecord) -> str:
    """A digest of what a run plans to read, as far as it is compared with the lake, wherever it lies."""
    described = sorted((file.cluster_id, file.observation_id) for file in planned.described)
    asked = (
        record.fail_on,
        _is_ingest(record),
        planned.selection.verify,
        len(planned.left_out),
        planned.unreadable,
        planned.ignored_files,
        described,
        [(each.cluster_id, each.capture_id) for each in planned.broker_dirs],
        [known.digest(copy) for copy in planned.captures],
    )
    return hashlib.sha256(repr(asked).encode(errors="surrogateescape")).hexdigest()
