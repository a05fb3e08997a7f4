"""The lines of a large file's next stretches, written by threads while those before are printed.

Plain threads: importing concurrent.futures takes as long as to write the text of 100,000 records.
"""

from __future__ import annotations

import ctypes
import os
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Event, Thread

from kraft_core.columnar import lines_abi as words
from kraft_core.columnar.line_code import line_code
from kraft_core.columnar.line_task import LineTask, WrittenLines
from kraft_core.columnar.window import Window
from kraft_core.format.kafka_dump import DumpOptions

# In a smaller file, starting threads takes about as long as they save.
MIN_BYTES = 8 * 1024 * 1024
# Threads wait for each other at the end of each stretch.
STRETCH_BYTES = 1024 * 1024
# Text is four to six times as long as its records.
_TEXT_BYTES = 8 * STRETCH_BYTES
_MOST_THREADS = 4


class _Stretch:
    """The batches between two positions, and their parts as a task writes them in a thread."""

    def __init__(self, begin: int, end: int, task: LineTask) -> None:
        self.begin = begin
        self.task = task
        self._end = end
        self._is_written = Event()
        self._parts: list[WrittenLines] = []
        self._error: BaseException | None = None

    def write(self) -> None:
        """In a thread. An error is for the one that waits."""
        try:
            self._parts = self.task.write_all(self.begin, self._end)
        except BaseException as error:
            self._error = error
        self._is_written.set()

    def parts(self) -> list[WrittenLines]:
        """Wait for them."""
        self._is_written.wait()
        if self._error is not None:
            raise self._error
        return self._parts


# What threads are to write; None ends one.
_Queue = SimpleQueue[_Stretch | None]


class LinesAhead:
    """Stretches of whole batches from the file's begin on. end: the position at which reading stops."""

    def __init__(self, window: Window, end: int, options: DumpOptions, to_write: _Queue) -> None:
        self._window = window
        self._end = end
        self._to_write = to_write
        # One is printed, and each thread goes on with another one as soon as it has written one.
        self._free = [LineTask(window, options, _TEXT_BYTES) for _ in range(2 * _threads() + 1)]
        self._taken: LineTask | None = None
        self._parts = deque[WrittenLines]()
        self._stretches = deque[_Stretch]()
        self._next_begin = 0

    @property
    def begin(self) -> int:
        """The position at which the next part or stretch begins; the end if there is none."""
        following = self._parts or self._stretches
        return following[0].begin if following else self._end

    def take(self, position: int, last_offset: int) -> WrittenLines | None:
        """The lines from a position on, after a record of that offset; None if they are not written ahead.

        Their text is valid until the next call.
        """
        if not self._parts:
            self._take_stretch(position)
        if not self._parts or position != self.begin:
            return None
        written = self._parts.popleft()
        return written if written.before == last_offset else None

    def _take_stretch(self, position: int) -> None:
        """Wait for the parts of the stretch at a position, if there is one."""
        if self._taken is not None:
            self._free.append(self._taken)
            self._taken = None
        while self._free and self._next_begin < self._end:
            self._start()
        if self._stretches and position == self.begin:
            stretch = self._stretches.popleft()
            self._taken = stretch.task
            self._parts.extend(stretch.parts())

    def _start(self) -> None:
        """Give the next stretch to a free task."""
        begin = self._next_begin
        end = self._end_of_stretch(begin)
        # Nothing can be written ahead of a batch whose size is wrong.
        self._next_begin = end if end >= begin + STRETCH_BYTES else self._end
        if end > begin:
            task = self._free.pop()
            self._stretches.append(_Stretch(begin, end, task))
            self._to_write.put(self._stretches[-1])

    def _end_of_stretch(self, begin: int) -> int:
        """Where the first batch behind STRETCH_BYTES begins, or the first one whose size is wrong."""
        task = (ctypes.c_int64 * words.TASK_WORDS)()
        places = {words.AT: begin, words.SKIP_TO: begin + STRETCH_BYTES, words.STOP: self._end}
        for word, position in places.items():
            task[word // 8] = self._window.address + position
        return line_code().skip_batches(ctypes.addressof(task)) - self._window.address


@contextmanager
def lines_ahead(window: Window, end: int, options: DumpOptions) -> Generator[LinesAhead | None]:
    """What threads write ahead of a file up to a position; None if it is small, or with one processor.

    No thread reads the file afterwards; until then it cannot be closed.
    """
    if end < MIN_BYTES or _threads() == 1:
        yield None
        return
    to_write = _Queue()
    threads: list[Thread] = []
    with memoryview(window.buf):
        try:
            for _ in range(_threads()):
                thread = Thread(target=_write_all, args=(to_write,))
                thread.start()
                threads.append(thread)
            yield LinesAhead(window, end, options, to_write)
        finally:
            for _ in threads:
                to_write.put(None)
            for thread in threads:
                thread.join()


def _write_all(to_write: _Queue) -> None:
    while (stretch := to_write.get()) is not None:
        stretch.write()


def _threads() -> int:
    return min(_MOST_THREADS, os.cpu_count() or 1)
