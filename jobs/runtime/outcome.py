"""How a job ends: exit codes, and failures that become one line on stderr."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes, the same for every verb."""

    FINE = 0
    FOUND = 1  # a finding that --fail-on selects, a failed expectation, a cluster that failed
    USAGE = 2
    NOTHING_READABLE = 3
    LAKE_BUSY = 4


def one_line(error: Exception) -> str:
    """The first line of an error; of Spark's, without the plan that follows it."""
    lines = [line.strip() for line in str(error).splitlines()]
    return next(filter(None, lines), type(error).__name__).split(" SQLSTATE:")[0]


class Failure(Exception):
    """A job that cannot continue: the message says what is wrong, where, and what to do next.

    details: lines to print before it.
    """

    def __init__(
        self, message: str, exit_code: ExitCode = ExitCode.USAGE, details: Sequence[str] = ()
    ) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.details = details
