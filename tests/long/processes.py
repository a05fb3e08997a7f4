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
from transforms.lake.tables import TABLES

CHECKOUT = Path(__file__).parents[2]
# Far more than a run needs on a busy machine. Seconds.
LONGEST = 1800.0


class Started:
    """A verb that runs in a process group of its own."""

    def __init__(self, out: Path, *words: str | Path) -> None:
        self.out, self.err = out.with_suffix(".out"), out.with_suffix(".err")
        with self.out.open("wb") as stdout, self.err.open("wb") as stderr:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "jobs.cli", *map(str, words)],
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

    def kill_jvm(self) -> None:
        """SIGKILL to Spark's JVM, the child that runs java."""
        for pid in jvms(self._process.pid):
            os.kill(pid, signal.SIGKILL)


def jvms(parent: int) -> list[int]:
    """The process ids of a process's children that run java."""
    children = Path(f"/proc/{parent}/task").glob("*/children")
    pids = [int(pid) for file in children for pid in file.read_text().split()]
    return [pid for pid in pids if "java" in Path(f"/proc/{pid}/comm").read_text()]


def run(out: Path, lake: Path, captures: Sequence[Path | str], *flags: str | Path) -> Started:
    """kraftlake run, which ends with 0 whatever the captures show."""
    return Started(out, "run", "--lake", lake, "--captures", *captures, "--fail-on", "never", *flags)


def tables(lake: Path) -> dict[str, list[str]]:
    """Every row of every table that is a function of the captures, sorted."""
    found = {}
    for table in TABLES:
        if table.name not in OF_THE_LAKE:
            columns = [n for n in table.names if n not in NOT_COMPARED]
            found[table.name] = sorted(map(repr, rows_with(lake, table, columns)))
    return found
