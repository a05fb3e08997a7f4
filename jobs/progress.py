"""What a job says while it works: one line a stage on stderr, redrawn in place on a terminal.

Asked to (--log), it also appends lines of JSON to a file: at, run_id, event, and what the event tells. Lines
of several runs may stand there mixed.
"""

from __future__ import annotations

import json
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


class Progress:
    """Says stages on stderr and keeps how long each took, in seconds.

    run_id: of the run whose progress it is. log: the file that lines of JSON are appended to, if any.
    """

    def __init__(self, log: Path | None = None) -> None:
        self.run_id = uuid.uuid4().hex
        self.stage_seconds: dict[str, float] = {}
        self._log = log
        self._terminal = sys.stderr.isatty()

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
        self._show(f"{name}{f': {detail}' if detail else ''}")
        self.log("began", stage=name, detail=detail)
        began = time.monotonic()
        failed = True
        try:
            yield
            failed = False
        finally:
            taken = time.monotonic() - began
            self.stage_seconds[name] = round(self.stage_seconds.get(name, 0.0) + taken, 3)
            self.log("failed" if failed else "done", stage=name, seconds=round(taken, 3))
