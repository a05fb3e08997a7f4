"""External causes that end a verb: a full disk, an unwritable folder, storage that does not answer."""

from __future__ import annotations

import errno
import os
import re
import traceback
from collections.abc import Iterator

from jobs.runtime.interrupt import is_interrupted
from jobs.runtime.outcome import ExitCode, Failure, one_line
from jobs.runtime.output import warn_line
from transforms.lake.storage.conditions import UnsafeStoreError
from transforms.lake.storage.faults import Remedy, fault_of
from transforms.lake.storage.files import write_fault
from transforms.lake.storage.location import Location, StoreUrl
from transforms.lake.storage.profile import StoreVariableError

TRACEBACK = "KRAFTLAKE_TRACEBACK"

# The libraries in Rust and Java pass on the system's errors as text only.
_FULL = re.compile(
    r"No space left on device|Disk quota exceeded|File too large|\b(os error|code:) (28|122|27)\b"
)
_READ_ONLY = re.compile(r"Read-only file system|\b(os error|code:) 30\b")
_DENIED = re.compile(r"Permission denied|Operation not permitted|\b(os error|code:) (13|1)\b")
_STORAGE = re.compile(r"Generic (S3|GCS|MicrosoftAzure|HTTP) error|Connection (refused|reset)|timed out")
_NO_JVM = re.compile(r"JAVA_GATEWAY_EXITED|Java gateway process exited")
_ERRNOS = {
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: _FULL,
    errno.EROFS: _READ_ONLY,
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
}

_ASKING = {"deltalake", "_internal", "py4j", "pyspark"}
_EXIT_CODES = {
    Remedy.NAME: ExitCode.USAGE,
    Remedy.ENVIRONMENT: ExitCode.ENVIRONMENT,
    Remedy.TIME: ExitCode.TRY_AGAIN,
}


def failure_of(error: BaseException, lake: Location | None) -> Failure | None:
    """The Failure that an error of the system is, in whatever library it arose; None for any other error.

    lake: what a verb writes unless the error names a file.
    """
    for each in _chain(error):
        failure = _of_store(each, lake) or _judged(each, _place(each, lake))
        if failure is not None:
            return failure
    return None


def words_of(error: BaseException, lake: Location | None) -> str:
    """An error in one line, of the system or of a store in its own words."""
    failure = failure_of(error, lake)
    return f"{type(error).__name__}: {one_line(error)}" if failure is None else str(failure)


def must_be_writable(lake: Location) -> None:
    """Raises Failure where nothing may be written into a folder, before anything is started for it."""
    error = write_fault(lake)
    if error is not None:
        raise failure_of(error, lake) or error


def exit_code_of(error: BaseException, lake: Location | None) -> ExitCode:
    """The exit code of a run that an error ends; that of a lost JVM is TRY_AGAIN."""
    if is_interrupted(error):
        return ExitCode.INTERRUPTED
    failure = error if isinstance(error, Failure) else failure_of(error, lake)
    if failure is not None:
        return failure.exit_code
    return ExitCode.TRY_AGAIN if type(error).__name__.startswith("Py4J") else ExitCode.INTERNAL


def internal(error: BaseException) -> Failure:
    """The Failure that an error of kraftlake itself is."""
    if os.environ.get(TRACEBACK):
        for line in traceback.format_exception(error):
            warn_line(line.rstrip("\n"))
    return Failure(
        f"internal error, please report it: {type(error).__name__}: {one_line(error)} "
        f"({TRACEBACK}=1 shows where)",
        ExitCode.INTERNAL,
    )


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error, and those that led to it."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _place(error: BaseException, lake: Location | None) -> str:
    if isinstance(error, OSError):
        if isinstance(error.filename, str | bytes):
            return os.fsdecode(error.filename)
        if error.errno is not None and lake is None:
            return "the output"
        if error.errno is not None:
            return f"{lake} or the output"
    return "its files" if lake is None else str(lake)


def _of_store(error: BaseException, lake: Location | None) -> Failure | None:
    """The Failure that an error of the lake's store is."""
    if isinstance(error, UnsafeStoreError):
        return Failure(str(error))
    if isinstance(error, StoreVariableError):
        return Failure(str(error), ExitCode.ENVIRONMENT)
    if not isinstance(lake, StoreUrl) or not _may_be_of_store(error):
        return None
    fault = fault_of(error, lake)
    return None if fault is None else Failure(fault.sentence, _EXIT_CODES[fault.remedy])


def _may_be_of_store(error: BaseException) -> bool:
    """Whether it is of the system or of a library that asks stores: values may quote any text."""
    return isinstance(error, OSError) or type(error).__module__.split(".")[0] in _ASKING


def _judged(error: BaseException, where: str) -> Failure | None:
    text = str(error)
    known = _ERRNOS.get(error.errno or 0) if isinstance(error, OSError) else None
    if known is _FULL or _FULL.search(text):
        return Failure(
            f"no space left to write {where}: free some, then run the same command again",
            ExitCode.TRY_AGAIN,
        )
    if known is _READ_ONLY or _READ_ONLY.search(text):
        return Failure(f"{where} is on a read-only file system: mount it writable", ExitCode.ENVIRONMENT)
    if known is _DENIED or _DENIED.search(text):
        return Failure(f"permission denied for {where}: run as the user that owns it", ExitCode.ENVIRONMENT)
    if isinstance(error, MemoryError):
        return Failure(
            "out of memory: give it more memory, then run the same command again", ExitCode.TRY_AGAIN
        )
    if _NO_JVM.search(text):
        return Failure("Java exited before Spark could start: see its output above", ExitCode.ENVIRONMENT)
    if isinstance(error, ConnectionError | TimeoutError) or _STORAGE.search(text):
        said = one_line(error)[:200]
        return Failure(f"storage did not answer: {said}: run the same command again", ExitCode.TRY_AGAIN)
    return None
