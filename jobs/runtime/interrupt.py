"""Ctrl-C ends a job once: how it then ends (lease, threads, Spark) must not be interrupted itself."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn
from uuid import uuid4

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

_POLL_SECONDS = 0.2
_MOST_FAILURES = 100  # in a row
_LATER_POLLS = 50  # ten seconds
_asked = threading.Event()  # the first Ctrl-C came


def interrupt_once() -> None:
    """The first Ctrl-C from now on raises KeyboardInterrupt; others are ignored until the process ends."""
    if threading.current_thread() is threading.main_thread():
        _asked.clear()
        signal.signal(signal.SIGINT, _first)


@contextmanager
def interrupt_each_time() -> Iterator[None]:
    """Within the block each Ctrl-C raises KeyboardInterrupt; afterwards what held before holds again."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def ending_by_sigterm() -> Iterator[None]:
    """Within the block SIGTERM raises KeyboardInterrupt, so that what the block has made is removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def starting_spark() -> Iterator[None]:
    """Within the block Spark starts, which takes SIGINT for itself; afterwards interrupt_once holds again.

    Where the block is interrupted, the JVM that was starting ends, too. A KeyboardInterrupt that was lost in
    the block or before is raised again: libraries are imported there, and C code that asks for an attribute
    takes any error for a no.
    """
    _raise_lost()
    was_once = signal.getsignal(signal.SIGINT) is _first
    try:
        yield
        _raise_lost()
    except BaseException as error:
        _end_begun_jvm(error)
        raise
    if was_once:
        interrupt_once()


@contextmanager
def cancelling(spark: SparkSession) -> Iterator[None]:
    """Ctrl-C within the block cancels what Spark computes for it, also what begins later.

    Otherwise the JVM would finish planning an abandoned query, and then run it.
    """
    context = spark.sparkContext
    group = str(uuid4())
    context.setJobGroup(group, "kraftlake")
    asked: Any = spark._jvm.java.lang.Thread.currentThread()  # pyright: ignore
    try:
        yield
    except BaseException as error:
        if not is_interrupted(error):
            raise
        threading.Thread(target=_cancel, args=(context, group, asked), daemon=True).start()
        raise KeyboardInterrupt from None


def is_interrupted(error: BaseException | None) -> bool:
    """Whether Ctrl-C led to an error: PySpark may fail at what it does on its way out."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _cancel(context: SparkContext, group: str, asked: Any) -> None:
    """Cancel a group's jobs until the thread of the JVM ends that was asked for them, and a while longer.

    An adaptive query submits its stages from other threads, also after its own has ended; Spark's own
    cancelJobGroupAndFutureJobs lets them begin.
    """
    from py4j.protocol import Py4JError

    failures = polls_after_end = 0
    while failures < _MOST_FAILURES and polls_after_end < _LATER_POLLS:
        try:
            polls_after_end += not asked.isAlive()
            context.cancelJobGroup(group)
            failures = 0
        except (Py4JError, OSError):  # a new connection may be refused while the interrupted one ends
            failures += 1
        time.sleep(_POLL_SECONDS)


def _first(*_: Any) -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _asked.set()
    raise KeyboardInterrupt


def _raise_lost() -> None:
    if _asked.is_set():
        raise KeyboardInterrupt


def _end_begun_jvm(error: BaseException) -> None:
    """PySpark forgets the JVM that it waits for, which would live on: `proc` in its frame launch_gateway."""
    trace = error.__traceback__
    while trace is not None:
        begun = trace.tb_frame.f_locals.get("proc")
        if isinstance(begun, subprocess.Popen):
            begun.kill()
        trace = trace.tb_next
