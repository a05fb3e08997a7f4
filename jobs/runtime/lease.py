"""The lease of a lake: which run may write it.

A lease is the run's row in `runs` with an expiry. The row is appended by Delta's optimistic commit unless
another run holds the lease, and of two runs at once only one commits. A killed run loses its lease when it
expires, or at once where the next run is on the same machine and finds its process gone.

Leases are numbered. A run that takes one over that was not given back fences all tables before it reads any:
the other may only sleep, and must not write any more (transforms.lake.commits).
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from jobs.runtime.crash import exit_code_of, words_of
from jobs.runtime.outcome import ExitCode, Failure
from jobs.runtime.output import warn_line
from jobs.runtime.run_record import RunRecord
from transforms.lake.arrow_rows import Row
from transforms.lake.commits import FencedError, TableWriter
from transforms.lake.delta_rs import exists
from transforms.lake.leases import LeaseState, greatest_lease, lease_state
from transforms.lake.storage.location import Location
from transforms.lake.storage.table_folders import written_alone
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
            f"run {self.run_id} ({self.job}) on {self.host} has been writing since "
            f"{self.since:%Y-%m-%d %H:%M:%SZ}; its lease lasts until {self.until:%Y-%m-%d %H:%M:%SZ} "
            f"unless renewed"
        )


class Lease:
    """The lease that a run holds; a thread renews it until it is ended. writer: of the tables, under it."""

    def __init__(self, writer: TableWriter, record: RunRecord, lease: Row, seconds: float) -> None:
        self.writer = writer
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
                f"the lease of run {self._record.run_id} expired at {until:%H:%M:%SZ} before it could be "
                f"renewed (the machine slept, or storage did not answer): run again",
                ExitCode.LAKE_BUSY,
            )

    def end(self, code: int | None, by_error: bool = False) -> None:
        """End the run, once: with this exit code, None if it is not known.

        by_error: a write may be under way: the lease is not given back, and the next run fences. So it is
        where the code is not known. Raises FencedError.
        """
        if self._ended.is_set():
            return
        self._ended.set()
        self._thread.join()
        row = self._record.row(code) | {"lease": self._lease}
        self.writer.put(RUNS, [row], by="run_id", gives_back=code is not None and not by_error)

    def _renew_until_ended(self) -> None:
        while not self._ended.wait(self._seconds / 3) and now() < self._lease["until"]:
            try:
                self._renew()
            except FencedError:  # which the run's next commit says, too
                return
            except Exception as error:  # the next attempt may succeed; check() stops the run if none does
                warn_line(f"lease not renewed yet: {words_of(error, self.writer.lake)}")

    def _renew(self) -> None:
        renewed = self._lease | {"until": now() + timedelta(seconds=self._seconds)}
        self.writer.put(RUNS, [begun(self._record, renewed)], by="run_id")
        self._lease = renewed


@contextmanager
def held_lease(
    lake: Location,
    record: RunRecord,
    give_up: float,
    say: Callable[[str], None],
    of_others: int | None = None,
) -> Iterator[Lease]:
    """The lease of a lake whose table `runs` exists, for this process, until the block ends.

    of_others: the greatest number of a lease in other tables, if it is known. Waits as await_free does.
    Raises Failure that names the holder, or that says who took the lease over.
    """
    lease = take_lease(lake, record, process_name(os.getpid()), give_up, say, of_others=of_others)
    try:
        try:
            with written_alone(lake, RUNS):
                yield lease
        except FencedError:
            raise
        except BaseException as error:
            _end_by(error, lease, lake)
            raise
        finally:
            lease.end(None)
    except FencedError:
        raise Failure(lost_lease(lake, record.run_id), ExitCode.LAKE_BUSY) from None


def _end_by(error: BaseException, lease: Lease, lake: Location) -> None:
    """Record how an error ends the run, if it lets us: a full disk may not. Raises FencedError."""
    try:
        lease.end(exit_code_of(error, lake), by_error=True)
    except FencedError:
        raise
    except Exception as unrecorded:
        warn_line(f"exit code not recorded: {words_of(unrecorded, lake)}")


def take_lease(
    lake: Location,
    record: RunRecord,
    process: str,
    give_up: float,
    say: Callable[[str], None],
    seconds: float = LEASE_SECONDS,
    of_others: int | None = None,
) -> Lease:
    """Take the lease of a lake whose table `runs` exists, for `process` (see process_name).

    of_others: as held_lease has it. The run starts when it has the lease.
    Fences the tables where the last lease was not given back. Waits as await_free does. Raises Failure that
    names the holder.
    """
    while True:
        last = await_free(lake, give_up, say)
        if last is None:
            raise ValueError(f"{lake} has no table {RUNS.name}")
        # Rows are ordered by the start of the run that wrote them: by the lease, not by who waited longest.
        record.started_at = now()
        taken = {
            "host": socket.gethostname(),
            "process": process,
            "until": now() + timedelta(seconds=seconds),
        }
        greatest = greatest_lease(lake, of_others)
        writer = TableWriter(lake, greatest + 1)
        if writer.append_after(RUNS, begun(record, taken), last.version):
            break
    lease = Lease(writer, record, taken, seconds)
    if not last.given_back or last.number != greatest:
        try:
            writer.fence()
        except BaseException:
            lease.end(None)
            raise
    return lease


def await_free(lake: Location, give_up: float, say: Callable[[str], None]) -> LeaseState | None:
    """Wait until no run holds the lease, at most to `give_up` on the monotonic clock.

    Returns what `runs` then says, None where there is none yet. Raises Failure that names the holder.
    """
    reported: str | None = None
    while exists(lake, RUNS):
        last = lease_state(lake)
        holder = holder_of(last.unfinished, now())
        if holder is None:
            return last
        if time.monotonic() >= give_up:
            raise Failure(
                f"the lake {lake} is busy: {holder}; --wait SECONDS waits for it", ExitCode.LAKE_BUSY
            )
        if holder.run_id != reported:
            say(f"waiting: {holder}")
            reported = holder.run_id
        time.sleep(max(0.0, min(LOOK_SECONDS, give_up - time.monotonic())))
    return None


def lost_lease(lake: Location, run_id: str) -> str:
    """Why a run that was fenced ends."""
    return (
        f"the lease of run {run_id} on {lake} expired (the machine slept, or storage did not answer) and "
        f"another run took over, which undoes or completes what this one left unfinished: run again"
    )


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
