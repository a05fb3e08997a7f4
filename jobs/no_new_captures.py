"""A run that finds nothing new ends without Spark, by the lake's memo or by small tables."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Set
from contextlib import suppress

import pyarrow as pa
from deltalake.exceptions import DeltaError

from jobs.captures.ingest import without_reading
from jobs.captures.new_captures import new_captures
from jobs.captures.planning import ReadPlan
from jobs.job import end
from jobs.maintenance.compaction import compact_runs
from jobs.runtime.fail_on import ErrorCheck, verdict
from jobs.runtime.run_record import RunRecord
from transforms.ingest.capture_rows import captured_at_columns, fault_rows
from transforms.ingest.captured_files import CaptureCopy
from transforms.lake.commits import TableWriter
from transforms.lake.delta_rs import exists
from transforms.lake.lives import expanded
from transforms.lake.seen import SeenLake, note
from transforms.lake.storage import NoLakeError, check_lake, check_shown
from transforms.lake.storage.memo import Answer, write_memo
from transforms.lake.storage.table_folders import as_listed
from transforms.lake.tables import RUNS
from transforms.quality.derived_counts import underived


def end_if_unchanged(
    seen: SeenLake, shown: Set[str], planned: ReadPlan, record: RunRecord, before: Callable[[], None]
) -> int | None:
    """Record the run and return its exit code, if the lake holds all planned captures; otherwise None.

    `before` is called first by a run that ends here. None also where the lake is not readable, was made with
    other shown_configs, or is of an earlier version: opened_job reports the former and updates the latter.
    """
    asked = question(planned, record)
    known = seen.answer(asked)
    try:
        check_lake(seen.lake)
        check_shown(seen.lake, shown)
        with as_listed(seen.listed):
            found = _nothing_new(seen, planned, record) if known is None else known
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
        appended = None if known is None else writer.append_next(RUNS, row, seen.listed)
        if appended is not None:
            with suppress(OSError):
                write_memo(seen.lake, seen.memo.moved(appended))
            return
        writer.append(RUNS, [row])
        compact_runs(seen.lake)
        remember(seen, planned, record, known=known)

    return end(record, [line], found["clusters"], errors, end_run)


def remember(
    before: SeenLake,
    planned: ReadPlan,
    record: RunRecord,
    lease: int | None = None,
    known: Answer | None = None,
) -> None:
    """Note for the next run, if it plans to read the same, whether it will find anything new.

    before: the lake as this run, which has ended, saw it first. lease: the number of its own, if any. known:
    what the memo said, true while only `runs` changes. Where that fails, the next run finds it out.
    """

    def answer(now: SeenLake) -> Answer | None:
        if known is not None and not now.memo.is_of_others(now.listed):
            return known
        found = _nothing_new(now, planned, record)
        # What is reported once is not reported again.
        return None if found is None or found["reported"] else found

    with suppress(NoLakeError, OSError, DeltaError, pa.ArrowException):
        note(before, question(planned, record), answer, lease)


def _nothing_new(seen: SeenLake, planned: ReadPlan, record: RunRecord) -> Answer | None:
    """counts, clusters, and what fails: of a run that finds nothing new. Raises NoLakeError."""
    lake = seen.lake
    if seen.outdated():
        return None
    clusters = expanded(lake, planned.clusters)
    new = new_captures(lake, planned)
    pending = without_reading(planned, new)
    if new.unread or pending.clusters or not exists(lake, RUNS) or underived(lake, clusters):
        return None
    errors = verdict(lake, clusters, record.fail_on)
    return {
        "counts": pending.counts,
        "clusters": clusters,
        "fails": errors.fails,
        "reported": errors.reported,
    }


def question(planned: ReadPlan, record: RunRecord) -> str:
    """A digest of what a run plans to read, as far as it is compared with the lake, wherever it lies."""
    described = sorted((file.cluster_id, file.observation_id) for file in planned.described)
    asked = (
        record.fail_on,
        planned.selection.verify,
        len(planned.left_out),
        planned.ignored_files,
        described,
        [(each.cluster_id, each.capture_id) for each in planned.broker_dirs],
        [_compared(copy) for copy in planned.captures],
    )
    return hashlib.sha256(repr(asked).encode(errors="surrogateescape")).hexdigest()


def _compared(copy: CaptureCopy) -> tuple[object, ...]:
    """All of a copy that new_captures and without_reading compare with the lake."""
    directory = copy.directory
    return (
        copy.capture_id,
        copy.who.cluster_id,
        copy.life,
        sorted(captured_at_columns(copy).items()),
        [sorted(fault.items()) for fault in fault_rows(directory)],
        [(fault.file, fault.reason) for fault in directory.unreadable],
        [(file.base_offset, file.size_bytes, directory.relative(file.path)) for file in directory.segments],
        [(file.name, file.size_bytes) for file in copy.files],
    )
