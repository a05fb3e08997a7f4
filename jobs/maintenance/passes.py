"""Rows of `runs` of the passes of kraftlake follow, which adds one a minute: most leave after a day."""

from __future__ import annotations

from datetime import datetime

import pyarrow.dataset as ds

from jobs.maintenance.samples import ALL_KEPT
from transforms.lake.commits import TableWriter
from transforms.lake.delta_rs import among, distinct, rows_with
from transforms.lake.tables import CAPTURES, DERIVATIONS, OBSERVATIONS, RUNS

FOLLOW = "follow"
# transforms.quality.expectation_history.unvalidated looks up when the runs that these tables name ended.
NAMING = (CAPTURES, OBSERVATIONS, DERIVATIONS)


def forget_passes(writer: TableWriter, now: datetime) -> int:
    """Remove the rows of passes that ended more than a day ago; returns how many.

    Those that captures, samples or derivations name stay, and those that reported findings: no later run
    reports these again. Samples are thinned first.
    """
    lake = writer.lake
    ended = ds.field("finished_at") < now - ALL_KEPT
    old = rows_with(lake, RUNS, ["run_id", "reported_findings"], ended, job=[FOLLOW])
    gone = {row["run_id"] for row in old if not row["reported_findings"]}
    if gone:
        gone = gone.difference(*(distinct(lake, table, "run_id") for table in NAMING))
    if gone:
        writer.remove_where(RUNS, among({"run_id": gone}))
    return len(gone)
