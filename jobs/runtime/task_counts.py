"""Progress of Spark's tasks while they run: their accumulators are updated only when a task has ended."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory


@dataclass(frozen=True, slots=True)
class TaskCount:
    """A sum in a folder of the driver's machine, to which tasks add; those on other machines do not."""

    folder: Path

    def add(self, count: int) -> None:
        """Add a number, from any process."""
        # A process that may not write there, or finds it gone, only shows no progress.
        with suppress(OSError), (self.folder / str(os.getpid())).open("a") as file:
            file.write(f"{count}\n")

    @property
    def total(self) -> int:
        with suppress(OSError):
            lines = [line for file in self.folder.iterdir() for line in file.read_text().splitlines(True)]
            return sum(int(line) for line in lines if line.endswith("\n"))
        return 0


@contextmanager
def task_count() -> Iterator[TaskCount]:
    """A sum that is forgotten at the end."""
    with TemporaryDirectory(prefix="kraftlake-") as folder:
        yield TaskCount(Path(folder))
