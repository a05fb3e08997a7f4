"""Work on many clusters: the failure of one does not affect the others, but errors of the run stop
everything."""

from __future__ import annotations

import builtins
import re
import sys
import traceback
from collections.abc import Callable, Sequence

from deltalake.exceptions import DeltaError

from transforms.lake.commits import FencedError
from transforms.lake.storage.faults import fault_of
from transforms.lake.storage.location import Location, StoreUrl

# A frame of the traceback that Spark passes on from a task, and the exception below the last one.
_FRAME = re.compile(r'^  File ".*", line (\d+), in (\S+)$', re.MULTILINE)
_EXCEPTION = re.compile(r"^([A-Za-z_][\w.]*)(?:: .*)?$", re.MULTILINE)


def apart(clusters: Sequence[str], work: Callable[[Sequence[str]], None]) -> dict[str, str]:
    """Do the work for all clusters, or, where it fails, for each half apart, down to those that fail alone.

    Returns these, with the reason. Work that was done in part is done again, which must make no difference.
    Raises errors of the run: of Spark, of files and of tables, and any error of work without clusters.
    """
    try:
        work(clusters)
    except Exception as error:
        if is_of_run(error) or not clusters:
            raise
        if len(clusters) == 1:
            return {clusters[0]: described(error)}
    else:
        return {}
    middle = len(clusters) // 2
    return apart(clusters[:middle], work) | apart(clusters[middle:], work)


def described(error: Exception) -> str:
    """Type and message of an exception, and where it was raised, in a task of Spark too."""
    of_task = _of_task(error)
    if of_task is not None:
        what, name, line = of_task
        return f"{what} ({name}, line {line})"
    at = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({at.name}, line {at.lineno})"


def place_of(error: Exception) -> str:
    """The same without the message, which may quote a value of a record."""
    at = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} ({at.name}, line {at.lineno})"


def is_of_task(error: Exception) -> bool:
    """Whether Python raised it in a task of Spark."""
    return _of_task(error) is not None


def is_of_run(error: Exception) -> bool:
    """Whether an exception is not due to the data: Spark, a file or a table failed, or the lease is lost."""
    of_task = _of_task(error)
    if of_task is None:
        return isinstance(error, (*_errors_of_spark(), DeltaError, OSError, FencedError))
    raised = getattr(builtins, of_task[0].split(":")[0], Exception)
    return issubclass(raised, OSError)


def raise_if_of_store(error: Exception, lake: Location) -> None:
    """Raises OSError where the lake's store fails, which is not due to a cluster's data."""
    is_of_files = isinstance(error, (OSError, DeltaError))
    if is_of_files and isinstance(lake, StoreUrl) and fault_of(error, lake) is not None:
        raise OSError(str(error)) from None


def _errors_of_spark() -> tuple[type[Exception], ...]:
    """What a session raises; none before there is one: its import takes longer than many a verb."""
    if "pyspark" not in sys.modules:
        return ()
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError


def _of_task(error: Exception) -> tuple[str, str, str] | None:
    """What Python raised in a task of Spark, the function and the line; None if it did not."""
    if not isinstance(error, _errors_of_spark()):
        return None
    text = str(error)
    frames = list(_FRAME.finditer(text))
    raised = _EXCEPTION.search(text, frames[-1].end()) if frames else None
    return None if raised is None else (raised[0], frames[-1][2], frames[-1][1])
