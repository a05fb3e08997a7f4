"""Progress of a job: a line per stage on stderr, redrawn on a terminal with its time and how much is done.

Elsewhere, as in cron or the log of a CI, another line says so every 30 seconds.

With --log it also appends JSON lines to a file: at, run_id, event, and the fields of the event. Lines of
several runs may be interleaved there.
"""

from __future__ import annotations

import json
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from jobs.runtime.output import printable

# Seconds between two updates of the line on a terminal, and between two lines elsewhere.
REDRAW_SECONDS = 0.5
REPEAT_SECONDS = 30.0
# Returns how many tasks of the current work, or other units, are completed, and all of them.
Work = Callable[[], tuple[int, int]]
Item = TypeVar("Item")


class Counted:
    """Counts the items that pass through it: the work of a stage."""

    def __init__(self) -> None:
        self._done = self._whole = 0

    def __call__(self) -> tuple[int, int]:
        return self._done, self._whole

    def each(self, items: Iterable[Item], whole: int) -> Iterator[Item]:
        """The items, of which there are `whole`; one is done when the next is asked for."""
        self._done, self._whole = 0, whole
        for item in items:
            yield item
            self._done += 1


class Progress:
    """Prints stages to stderr and keeps the duration of each in seconds.

    run_id: the id of the run. log: the file that JSON lines are appended to, if any.
    """

    def __init__(self, log: Path | None = None) -> None:
        self.run_id = uuid.uuid4().hex
        self.stage_seconds: dict[str, float] = {}
        self._log = log
        self._terminal = sys.stderr.isatty()
        self._work: Work | None = None

    def watch(self, work: Work) -> None:
        """From now on show the share of completed tasks."""
        self._work = work

    def log(self, event: str, **fields: Any) -> None:
        """Append a JSON line to the log, if there is one."""
        if self._log is not None:
            at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            line = json.dumps({"at": at, "run_id": self.run_id, "event": event, **fields}, default=str)
            with self._log.open("a") as file:
                file.write(line + "\n")

    def say(self, line: str) -> None:
        """Print a line that is not a stage."""
        self.log("said", line=line)
        self._show(line)

    def _show(self, line: str) -> None:
        line, end = printable(line), "\n"
        if self._terminal:
            line, end = f"\r\033[K{line}", ""
        print(line, end=end, file=sys.stderr, flush=True)

    def done(self) -> None:
        """Clear the redrawn line."""
        if self._terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    @contextmanager
    def stage(
        self, name: str, detail: str = "", work: Work | None = None, unit: str = "tasks"
    ) -> Iterator[None]:
        """Announce a stage and measure it. work: what it has done of its own units, None: Spark's tasks."""
        headline = f"{name}{f': {detail}' if detail else ''}"
        self._show(headline)
        self.log("began", stage=name, detail=detail)
        began = time.monotonic()
        failed = True
        try:
            with self._updated(headline, work or self._work or _nothing_counted, unit):
                yield
            failed = False
        finally:
            taken = time.monotonic() - began
            self.stage_seconds[name] = round(self.stage_seconds.get(name, 0.0) + taken, 3)
            self.log("failed" if failed else "done", stage=name, seconds=round(taken, 3))

    @contextmanager
    def shown(self, headline: str, work: Work | None = None, unit: str = "") -> Iterator[None]:
        """Show how long a piece of work has been running and, if counted, how far it is; not announced."""
        try:
            with self._updated(headline, work or _nothing_counted, unit):
                yield
        finally:
            self.done()

    @contextmanager
    def _updated(self, headline: str, work: Work, unit: str) -> Iterator[None]:
        """Update the line of a stage until the stage ends."""
        over = threading.Event()
        drawing = threading.Thread(target=self._draw, args=(headline, work, unit, over), daemon=True)
        drawing.start()
        try:
            yield
        finally:
            over.set()
            drawing.join()

    def _draw(self, headline: str, work: Work, unit: str, over: threading.Event) -> None:
        began, known = time.monotonic(), 0
        while not over.wait(REDRAW_SECONDS if self._terminal else REPEAT_SECONDS):
            done, whole = work()
            if whole != known:  # another job of the same stage
                began, known = time.monotonic(), whole
            self._show(headline + completion(done, whole, time.monotonic() - began, unit))


def completion(done: int, whole: int, seconds: float, unit: str = "tasks") -> str:
    """The share of completed tasks or other units, the time taken, and the time left at that speed.

    Where nothing is counted, the time alone, from the second second on.
    """
    if not whole:
        return f", {seconds:,.0f} s" if seconds >= 2 else ""
    left = f", about {seconds / done * (whole - done):,.0f} s left" if 0 < done < whole else ""
    return f", {done * 100 // whole} % ({done:,} of {whole:,} {unit}), {seconds:,.0f} s{left}"


def _nothing_counted() -> tuple[int, int]:
    return 0, 0


def tasks_of(spark: Any) -> Work:
    """Counts the tasks of a session's active jobs."""
    tracker = spark.sparkContext.statusTracker()

    def count() -> tuple[int, int]:
        jobs = filter(None, map(tracker.getJobInfo, tracker.getActiveJobsIds()))
        stages = [s for job in jobs for s in map(tracker.getStageInfo, job.stageIds) if s]
        return sum(s.numCompletedTasks for s in stages), sum(s.numTasks for s in stages)

    return count
