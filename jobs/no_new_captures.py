"""A run that finds nothing new ends without Spark."""

from __future__ import annotations

from collections.abc import Callable, Set

from jobs.captures.ingest import without_reading
from jobs.captures.new_captures import new_captures
from jobs.captures.planning import ReadPlan
from jobs.job import end
from jobs.maintenance.compaction import compact_runs
from jobs.runtime.run_record import RunRecord
from transforms.lake.commits import TableWriter
from transforms.lake.delta_rs import exists
from transforms.lake.lives import expanded
from transforms.lake.schema import outdated_tables
from transforms.lake.storage import NoLakeError, check_lake, check_shown
from transforms.lake.storage.location import Location
from transforms.lake.tables import RUNS
from transforms.quality.derived_counts import underived


def end_if_unchanged(
    lake: Location, shown: Set[str], planned: ReadPlan, record: RunRecord, before: Callable[[], None]
) -> int | None:
    """Record the run and return its exit code, if the lake holds all planned captures; otherwise None.

    `before` is called first by a run that ends here. None also where there is no readable lake, one that was
    made with other shown_configs, or one of an earlier version: opened_job reports the former and updates the
    latter.
    """
    try:
        check_lake(lake)
        check_shown(lake, shown)
        if outdated_tables(lake):
            return None
    except NoLakeError:
        return None
    clusters = expanded(lake, planned.clusters)
    new = new_captures(lake, planned)
    pending = without_reading(planned, new)
    if new.unread or pending.clusters or not exists(lake, RUNS) or underived(lake, clusters):
        return None
    before()
    record.counts = pending.counts
    known = pending.counts["captures"]
    line = f"nothing new: all {known} captures are known; kraftlake sql shows what they prove"

    def note(code: int) -> None:
        TableWriter(lake, None).append(RUNS, [record.row(code)])
        compact_runs(lake)

    return end(lake.resolve(), record, [line], clusters, note)
