"""Ctrl-C ends a job once: how it then ends (lease, threads, Spark) must not be interrupted itself."""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn


def interrupt_once() -> None:
    """The first Ctrl-C from now on raises KeyboardInterrupt; others are ignored until the process ends."""
    if threading.current_thread() is threading.main_thread():
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
def starting_spark() -> Iterator[None]:
    """Within the block Spark starts, which takes SIGINT for itself; afterwards interrupt_once holds again.

    Where the block is interrupted, the JVM that was starting ends, too.
    """
    was_once = signal.getsignal(signal.SIGINT) is _first
    try:
        yield
    except BaseException as error:
        _end_begun_jvm(error)
        raise
    if was_once:
        interrupt_once()


def _first(*_: Any) -> NoReturn:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def _end_begun_jvm(error: BaseException) -> None:
    """PySpark forgets the JVM that it waits for, which would live on: `proc` in its frame launch_gateway."""
    trace = error.__traceback__
    while trace is not None:
        begun = trace.tb_frame.f_locals.get("proc")
        if isinstance(begun, subprocess.Popen):
            begun.kill()
        trace = trace.tb_next
