"""How a job ends: exit codes, and failures that become one line on stderr."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import IntEnum


class ExitCode(IntEnum):
    """Exit codes, the same for every verb. Those above 64 are the system's (sysexits.h, signals)."""

    FINE = 0
    FOUND = 1  # a finding that --fail-on selects, a failed expectation, a cluster that failed
    USAGE = 2
    NOTHING_READABLE = 3
    LAKE_BUSY = 4
    WILL_NOT_LOAD = 5  # of plan load alone
    INTERNAL = 70
    TRY_AGAIN = 75
    ENVIRONMENT = 78
    INTERRUPTED = 130


MEANINGS = {
    ExitCode.FINE: "success",
    ExitCode.FOUND: "an error was found",
    ExitCode.USAGE: "wrong usage",
    ExitCode.NOTHING_READABLE: "nothing readable",
    ExitCode.LAKE_BUSY: "another run is writing the lake or has taken it over",
    ExitCode.WILL_NOT_LOAD: "the release will not load these logs (plan load)",
    ExitCode.INTERNAL: "internal error",
    ExitCode.TRY_AGAIN: "a temporary failure (full disk, storage, lost JVM): try again",
    ExitCode.ENVIRONMENT: "wrong environment (Java, permissions)",
    ExitCode.INTERRUPTED: "interrupted",
}
# A later try may succeed without a change of the command or the machine.
WORTH_ANOTHER_TRY = (ExitCode.NOTHING_READABLE, ExitCode.LAKE_BUSY, ExitCode.TRY_AGAIN)


def one_line(error: BaseException) -> str:
    """The first line of an error; of Spark's, without the plan that follows it."""
    lines = [line.strip() for line in str(error).splitlines()]
    return next(filter(None, lines), type(error).__name__).split(" SQLSTATE:")[0]


def reason_of(error: BaseException) -> str:
    """Why a file cannot be read or written, without the number and the path that an OSError also has."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


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


class UnknownCluster(Failure):
    """A cluster that is not there: `known` are the ids and names of those that are.

    cli.main adds the one that may have been meant, also by the names in the settings.
    """

    def __init__(self, message: str, word: str, known: Iterable[str]) -> None:
        super().__init__(message)
        self.word = word
        self.known = tuple(known)
