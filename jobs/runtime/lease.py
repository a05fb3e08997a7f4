"""The lease of a lake: which run may write it.

A lease is the run's row in `runs` with an expiry. The row is appended by Delta's optimistic commit unless
another run holds the lease, and of two runs at once only one commits. A killed run loses its lease when it
expires, or at once where the next run is on the same machine and finds its process gone.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from jobs.runtime.outcome import ExitCode, Failure
from jobs.runtime.output import warn_line
from jobs.runtime.run_record import RunRecord
from transforms.lake.arrow_rows import Row
from transforms.lake.delta_rs import append_row_after, exists, put_rows, unfinished_runs
from transforms.lake.tables import RUNS

# How long a lease lasts unless it is renewed, and how often a waiting run looks again. Seconds.
LEASE_SECONDS = 300.0
LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Holder:
    """The run that holds the lease."""

    run_id: str
    job: str
    host: str
    process: str
    since: datetime
    until: datetime

    def __str__(self) -> str:
        return (
            f"run {self.run_id} ({self.job}) on {self.host} writes since {self.since:%Y-%m-%d %H:%M:%SZ}, "
            f"its lease lasts until {self.until:%Y-%m-%d %H:%M:%SZ} unless renewed"
        )


class Lease:
    """The lease that a run holds; a thread renews it until it is ended."""

    def __init__(self, lake: Path, record: RunRecord, lease: Row, seconds: float) -> None:
        self._lake = lake
        self._record = record
        self._lease = lease
        self._seconds = seconds
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._renew_until_ended, name="lease", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raises Failure where the lease has run out: another run may be writing."""
        until = self._lease["until"]
        if now() >= until:
            raise Failure(
                f"the lease of run {self._record.run_id} ran out at {until:%H:%M:%SZ} before it could be "
                "renewed (the machine slept, or storage did not answer): run again",
                ExitCode.LAKE_BUSY,
            )

    def end(self, code: int | None) -> None:
        """Give the lease back, once: the run has ended with this exit code, or by an exception (None)."""
        if self._ended.is_set():
            return
        self._ended.set()
        self._thread.join()
        put_rows(self._lake, RUNS, [self._record.row(code) | {"lease": self._lease}], by="run_id")

    def _renew_until_ended(self) -> None:
        while not self._ended.wait(self._seconds / 3) and now() < self._lease["until"]:
            try:
                self._renew()
            except Exception as error:  # the next attempt may succeed; check() stops the run if none does
                warn_line(f"lease not renewed yet: {type(error).__name__}: {error}")

    def _renew(self) -> None:
        renewed = self._lease | {"until": now() + timedelta(seconds=self._seconds)}
        put_rows(self._lake, RUNS, [begun(self._record, renewed)], by="run_id")
        self._lease = renewed


def take_lease(
    lake: Path,
    record: RunRecord,
    process: str,
    give_up: float,
    say: Callable[[str], None],
    seconds: float = LEASE_SECONDS,
) -> Lease:
    """Take the lease of a lake whose table `runs` exists, for `process` (see process_name).

    Waits as await_free does. Raises Failure that names the holder.
    """
    while True:
        version = await_free(lake, give_up, say)
        lease = {
            "host": socket.gethostname(),
            "process": process,
            "until": now() + timedelta(seconds=seconds),
        }
        if append_row_after(lake, RUNS, begun(record, lease), version):
            return Lease(lake, record, lease, seconds)


def await_free(lake: Path, give_up: float, say: Callable[[str], None]) -> int:
    """Wait until no run holds the lease, at most to `give_up` on the monotonic clock.

    Returns the version of `runs` that says so, -1 where there is none yet. Raises Failure that names the
    holder.
    """
    reported: str | None = None
    while exists(lake, RUNS):
        version, rows = unfinished_runs(lake)
        holder = holder_of(rows, now())
        if holder is None:
            return version
        if time.monotonic() >= give_up:
            raise Failure(f"the lake {lake} is busy: {holder}; --wait SECONDS waits", ExitCode.LAKE_BUSY)
        if holder.run_id != reported:
            say(f"waiting: {holder}")
            reported = holder.run_id
        time.sleep(max(0.0, min(LOOK_SECONDS, give_up - time.monotonic())))
    return -1


def holder_of(rows: Collection[Row], at: datetime) -> Holder | None:
    """The holder by the unfinished rows of `runs`; a run whose process is known to be gone holds none."""
    for row in rows:
        lease = row["lease"]
        if lease and lease["until"] > at and not is_gone(lease["process"]):
            return Holder(row["run_id"], row["job"], since=row["started_at"], **lease)
    return None


def begun(record: RunRecord, lease: Row) -> Row:
    """The row of a run that has not ended."""
    return record.row(None) | {"finished_at": None, "lease": lease}


def now() -> datetime:
    return datetime.now(UTC)


# --- processes ---


def driver_process(spark: Any) -> str:
    """The name of the session's JVM, which writes tables and may outlive Python for a moment."""
    return process_name(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())


def process_name(pid: int) -> str:
    """A name of a process that is unique across machines, containers and boots."""
    return f"{this_machine()} {pid}"


def this_machine() -> str:
    """The boot id and the PID namespace; empty where the system has none."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def is_gone(process: str) -> bool:
    """Whether a process of this machine is known to have ended."""
    machine, _, pid = process.rpartition(" ")
    if not machine or machine != this_machine():
        return False
    try:
        # The state follows the name in parentheses: Z is a process that ended and was not waited for.
        return Path("/proc", pid, "stat").read_text().rpartition(") ")[2][:1] in ("Z", "X")
    except OSError:
        return True
