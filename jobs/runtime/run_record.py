"""The record of one run of a verb: its row in `runs` and its last line of output, which is JSON."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from jobs.runtime.fail_on import FailOn
from jobs.runtime.progress import Progress
from transforms.lake.storage.objects import requests


def store_requests() -> dict[str, int]:
    """The requests to the lake's store so far, by kind; none of a local lake."""
    return {f"{kind.lower()}_requests": number for kind, number in sorted(requests().items())}


@dataclass(slots=True)
class RunRecord:
    """One run: its id, its start, and its counters.

    fail_on: which findings make it fail. counts: what it read, wrote and found. failed: clusters that could
    not be read or derived, and why, as the end of a sentence. reported: (cluster, finding) ids that it
    reports for the first time. unmet: number of failed expectations that make the run fail.
    """

    verb: str
    progress: Progress
    fail_on: FailOn = "never"
    started_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    began: float = field(default_factory=time.monotonic)
    counts: dict[str, int] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)
    reported: tuple[tuple[str, str], ...] = ()
    unmet: int = 0

    @property
    def run_id(self) -> str:
        return self.progress.run_id

    @property
    def columns(self) -> dict[str, Any]:
        """The columns LOADED of the rows that the run writes."""
        return {"run_id": self.run_id, "loaded_at": self.started_at}

    def row(self, code: int | None) -> dict[str, Any]:
        """The row of `runs`. code: the exit code; None if an exception ended the run."""
        return {
            "run_id": self.run_id,
            "started_at": self.started_at,
            "finished_at": datetime.now(UTC),
            "job": self.verb,
            "exit_code": None if code is None else int(code),
            "stage_seconds": list(self.progress.stage_seconds.items()),
            "counts": list((self.counts | store_requests()).items()),
            "failed_clusters": list(self.failed.items()),
            "reported_findings": [{"cluster_id": c, "finding_id": f} for c, f in self.reported],
        }

    def report(self, code: int, clusters: Sequence[str], touched: int, quarantined: int) -> dict[str, Any]:
        """The JSON line.

        clusters: those examined; touched: how many of them had new data; quarantined: their rows of
        `quarantine`.
        """
        return {
            "run_id": self.run_id,
            "job": self.verb,
            "exit_code": int(code),
            "clusters": len(clusters),
            "touched_clusters": touched,
            **self.counts,
            **store_requests(),
            "quarantined": quarantined,
            "new_findings": len(self.reported),
            "failed_clusters": len(self.failed),
            "seconds": round(time.monotonic() - self.began, 1),
            "stage_seconds": self.progress.stage_seconds,
        }
