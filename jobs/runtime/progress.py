"""What a job says while it works: one line a stage on stderr, on a terminal redrawn with how far it has come.

Asked to (--log), it also appends lines of JSON to a file: at, run_id, event, and what the event tells. Lines
of several runs may stand there mixed.
"""

from __future__ import annotations

import json
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

# Seconds between two looks at the work.
REDRAWN = 0.5
# Done and all of what is to be done just now.
Work = Callable[[], tuple[int, int]]


class Progress:
    """Says stages on stderr and keeps how long each took, in seconds.

    run_id: of the run whose progress it is. log: the file that lines of JSON are appended to, if any.
    """

    def __init__(self, log: Path | None = None) -> None:
        self.run_id = uuid.uuid4().hex
        self.stage_seconds: dict[str, float] = {}
        self._log = log
        self._terminal = sys.stderr.isatty()
        self._work: Work | None = None

    def watch(self, work: Work) -> None:
        """From now on a terminal shows how far a stage has come."""
        self._work = work

    def log(self, event: str, **told: Any) -> None:
        """Append a line of JSON to the log, if there is one."""
        if self._log is not None:
            at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            line = json.dumps({"at": at, "run_id": self.run_id, "event": event, **told}, default=str)
            with self._log.open("a") as file:
                file.write(line + "\n")

    def say(self, line: str) -> None:
        """Say a line that is no stage."""
        self.log("said", line=line)
        self._show(line)

    def _show(self, line: str) -> None:
        end = "\n"
        if self._terminal:
            line, end = f"\r\033[K{line}", ""
        print(line, end=end, file=sys.stderr, flush=True)

    def done(self) -> None:
        """Clear the line that is being redrawn."""
        if self._terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    @contextmanager
    def stage(self, name: str, detail: str = "") -> Iterator[None]:
        """Time a stage and say that it began."""
        headline = f"{name}{f': {detail}' if detail else ''}"
        self._show(headline)
        self.log("began", stage=name, detail=detail)
        began = time.monotonic()
        failed = True
        try:
            with self._redrawn(headline):
                yield
            failed = False
        finally:
            taken = time.monotonic() - began
            self.stage_seconds[name] = round(self.stage_seconds.get(name, 0.0) + taken, 3)
            self.log("failed" if failed else "done", stage=name, seconds=round(taken, 3))

    @contextmanager
    def _redrawn(self, headline: str) -> Iterator[None]:
        """On a terminal, show the stage with how far it has come until it is over."""
        if not self._terminal or self._work is None:
            yield
            return
        over = threading.Event()
        drawing = threading.Thread(target=self._draw, args=(headline, self._work, over), daemon=True)
        drawing.start()
        try:
            yield
        finally:
            over.set()
            drawing.join()

    def _draw(self, headline: str, work: Work, over: threading.Event) -> None:
        began, known = time.monotonic(), 0
        while not over.wait(REDRAWN):
            done, whole = work()
            if whole != known:  # another job of the same stage
                began, known = time.monotonic(), whole
            self._show(headline + how_far(done, whole, time.monotonic() - began))


def how_far(done: int, whole: int, seconds: float) -> str:
    """How far something has come, how long it took, and how long the rest will take at that speed."""
    if not whole:
        return ""
    left = f", about {seconds / done * (whole - done):,.0f} s left" if 0 < done < whole else ""
    return f", {done * 100 // whole} % ({done:,} of {whole:,} tasks), {seconds:,.0f} s{left}"


def tasks_of(spark: Any) -> Work:
    """The tasks of the jobs that a session is at."""
    tracker = spark.sparkContext.statusTracker()

    def count() -> tuple[int, int]:
        jobs = filter(None, map(tracker.getJobInfo, tracker.getActiveJobsIds()))
        stages = [s for job in jobs for s in map(tracker.getStageInfo, job.stageIds) if s]
        return sum(s.numCompletedTasks for s in stages), sum(s.numTasks for s in stages)

    return count
