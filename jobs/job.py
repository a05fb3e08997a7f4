"""A job over a lake: session, stages, the row in `runs`, the summary and the exit code."""

from __future__ import annotations

import argparse
import json
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from jobs.outcome import ExitCode, Failure
from jobs.planning import Plan
from jobs.progress import Progress
from transforms.lake_files import NoLakeError, check_lake, prepare_lake


@contextmanager
def opened_job(
    args: argparse.Namespace, progress: Progress, make_lake: bool, quick: bool = False
) -> Iterator[Job]:
    """A job over args.lake; quick as in open_session. Raises Failure before Spark starts if it is no lake."""
    try:
        (prepare_lake if make_lake else check_lake)(args.lake)
    except NoLakeError as error:
        raise Failure(str(error)) from None
    from jobs.session import open_session
    from transforms.lake import existing_lake

    with progress.stage("session"):
        spark = open_session(args.master, say=progress.say, quick=quick)
    yield Job(existing_lake(spark, args.lake), progress, args.verb)


class Job:
    """One run of a verb."""

    def __init__(self, lake: Any, progress: Progress, verb: str) -> None:
        from jobs.ingesting import Ingested
        from jobs.reading import Run

        self.lake = lake
        self.progress = progress
        self.verb = verb
        self.began = time.monotonic()
        self.run = Run(uuid.uuid4().hex, datetime.now(UTC))
        self.ingested = Ingested()
        self.failed: dict[str, str] = {}

    @property
    def touched(self) -> set[str]:
        """The clusters of which anything is new."""
        return self.ingested.clusters

    def clusters(self) -> list[str]:
        """Every cluster of the lake."""
        from transforms.tables import CAPTURES

        return sorted(
            r.cluster_id for r in self.lake.read(CAPTURES).select("cluster_id").distinct().collect()
        )

    def read(self, planned: Plan) -> None:
        from jobs.ingesting import ingest, news

        self.ingested = ingest(self.lake, planned, news(self.lake, planned), self.run, self.progress)
        self.ingested.counts["left_out"] = len(planned.left_out)
        self.ingested.counts["ignored_files"] = planned.ignored_files

    def derive(self, clusters: Sequence[str]) -> None:
        from jobs.deriving import derive

        if clusters:
            rows = list(self.ingested.captures.values())
            self.failed = derive(self.lake, clusters, rows, self.progress)

    def commit(self) -> None:
        from jobs.ingesting import commit

        with self.progress.stage("commit"):
            commit(self.lake, self.ingested, self.run.run_id)

    def finish(self, clusters: Sequence[str]) -> int:
        """Print the summary of the clusters and one JSON line, note the run, and return the exit code."""
        from dashboards.summary import summary

        with self.progress.stage("summary"):
            found = summary(self.lake, clusters)
        return self.end(clusters, found.lines, found.lost_rows)

    def finish_unchanged(self, clusters: Sequence[str]) -> int:
        """End a run that found nothing new: nothing is asked of the tables, so that it is over at once."""
        known = self.ingested.counts["captures"]
        line = f"nothing new: all {known} captures are known; kraftlake sql shows what they prove"
        return self.end(clusters, [line], 0)

    def end(self, clusters: Sequence[str], lines: list[str], lost_rows: int) -> int:
        """Print, note the run and say how it ended."""
        code = self.exit_code(lost_rows)
        self.note(code)
        self.progress.done()
        for line in lines:
            print(line)
        for cluster, reason in sorted(self.failed.items()):
            print(f"kraftlake {self.verb}: cluster {cluster} could not be derived: {reason}", file=sys.stderr)
        print(json.dumps(self.report(code, clusters, lost_rows)))
        return code

    def exit_code(self, lost_rows: int) -> ExitCode:
        """Until findings exist: anything quarantined but a torn tail, or a cluster that failed."""
        return ExitCode.FOUND if lost_rows or self.failed else ExitCode.FINE

    def report(self, code: int, clusters: Sequence[str], lost_rows: int) -> dict[str, Any]:
        return {
            "run_id": self.run.run_id,
            "job": self.verb,
            "exit_code": int(code),
            "clusters": len(clusters),
            "touched_clusters": len(self.touched),
            **self.ingested.counts,
            "quarantined": lost_rows,
            "failed_clusters": len(self.failed),
            "seconds": round(time.monotonic() - self.began, 1),
            "stage_seconds": self.progress.stage_seconds,
        }

    def note(self, code: int) -> None:
        """Append this run to `runs`."""
        from transforms.frames import to_frame
        from transforms.tables import RUNS

        row = {
            "run_id": self.run.run_id,
            "started_at": self.run.started_at,
            "finished_at": datetime.now(UTC),
            "job": self.verb,
            "exit_code": int(code),
            "stage_seconds": list(self.progress.stage_seconds.items()),
            "counts": list(self.ingested.counts.items()),
            "failed_clusters": list(self.failed.items()),
        }
        self.lake.append(RUNS, to_frame(self.lake.spark, [row], RUNS.schema), self.run.run_id)
