"""kraftlake as real processes: started beside each other, killed, compared by the tables they leave."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.jobs.lakes import NOT_COMPARED, OF_THE_LAKE
from transforms.lake.delta_rs import rows_with
from transforms.lake.storage.location import Location
from transforms.lake.tables import TABLES

CHECKOUT = Path(__file__).parents[2]
# Far more than a run needs on a busy machine. Seconds.
LONGEST = 1800.0


# The command line, with leases of so many seconds.
COMMAND = """
import sys
from jobs.cli import main
from jobs.runtime.lease import take_lease
take_lease.__defaults__ = (float(sys.argv[1]), None)
sys.exit(main(sys.argv[2:]))
"""


class Started:
    """A verb that runs in a process group of its own."""

    def __init__(self, out: Path, *words: str | Path, lease_seconds: float | None = None) -> None:
        self.out, self.err = out.with_suffix(".out"), out.with_suffix(".err")
        command = ["-m", "jobs.cli"] if lease_seconds is None else ["-c", COMMAND, str(lease_seconds)]
        with self.out.open("wb") as stdout, self.err.open("wb") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, *command, *map(str, words)],
                cwd=CHECKOUT,
                stdout=stdout,
                stderr=stderr,
                start_new_session=True,
            )

    def said(self, words: str) -> bool:
        return words in self.err.read_text()

    def until(self, words: str) -> bool:
        """Wait until it says words on stderr. False if it ended without."""
        give_up = time.monotonic() + LONGEST
        while not self.said(words):
            if self._process.poll() is not None:
                return self.said(words)
            assert time.monotonic() < give_up, self.err.read_text()
            time.sleep(0.02)
        return True

    def ended(self) -> int:
        """The exit code, once it has ended."""
        return self._process.wait(LONGEST)

    def is_running(self) -> bool:
        return self._process.poll() is None

    def terminate(self) -> None:
        """SIGTERM to Python alone."""
        self._process.terminate()

    def kill_after(self, seconds: float, only_python: bool) -> bool:
        """SIGKILL after some seconds, to Python alone or to its JVM too. False if it had ended by then."""
        try:
            self._process.wait(seconds)
            return False
        except subprocess.TimeoutExpired:
            pass
        kill = os.kill if only_python else os.killpg
        kill(self._process.pid, signal.SIGKILL)
        self._process.wait()
        return True

    def stop_at_commit(self, lake: Path, number: int) -> int | None:
        """SIGSTOP, to its JVM too, once the lake has so many commits. Returns how many there are then.

        None if it ended before.
        """
        give_up = time.monotonic() + LONGEST
        while (found := commits(lake)) < number:
            if self._process.poll() is not None:
                return None
            assert time.monotonic() < give_up, self.err.read_text()
        os.killpg(self._process.pid, signal.SIGSTOP)
        return max(found, commits(lake))

    def wake(self) -> None:
        """SIGCONT."""
        os.killpg(self._process.pid, signal.SIGCONT)

    def kill_jvm(self) -> None:
        """SIGKILL to Spark's JVM, the child that runs java."""
        for pid in jvms(self._process.pid):
            os.kill(pid, signal.SIGKILL)


def jvms(parent: int) -> list[int]:
    """The process ids of a process's children that run java."""
    children = Path(f"/proc/{parent}/task").glob("*/children")
    pids = [int(pid) for file in children for pid in file.read_text().split()]
    return [pid for pid in pids if "java" in Path(f"/proc/{pid}/comm").read_text()]


def run(
    out: Path,
    lake: Location | str,
    captures: Sequence[Path | str],
    *flags: str | Path,
    lease_seconds: float | None = None,
) -> Started:
    """kraftlake run, which ends with 0 whatever the captures show."""
    words = ("run", "--lake", str(lake), "--captures", *captures, "--fail-on", "never", *flags)
    return Started(out, *words, lease_seconds=lease_seconds)


def commits(lake: Path) -> int:
    """How many commits the tables of a lake have."""
    return sum(1 for table in TABLES for _ in (lake / table.name / "_delta_log").glob("*.json"))


def tables(lake: Location) -> dict[str, list[str]]:
    """Every row of every table that is a function of the captures, sorted."""
    found = {}
    for table in TABLES:
        if table.name not in OF_THE_LAKE:
            columns = [n for n in table.names if n not in NOT_COMPARED]
            found[table.name] = sorted(map(repr, rows_with(lake, table, columns)))
    return found
