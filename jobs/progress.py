"""What a job says while it works: one line a stage on stderr, redrawn in place on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager


class Progress:
    """Says stages on stderr and keeps how long each took, in seconds."""

    def __init__(self) -> None:
        self.stage_seconds: dict[str, float] = {}
        self._terminal = sys.stderr.isatty()

    def say(self, line: str) -> None:
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
        self.say(f"{name}{f': {detail}' if detail else ''}")
        began = time.monotonic()
        try:
            yield
        finally:
            taken = time.monotonic() - began
            self.stage_seconds[name] = round(self.stage_seconds.get(name, 0.0) + taken, 3)
