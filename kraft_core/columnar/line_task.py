"""A task of the compiled writer (line_kernel.py) with its memory: batches of a file to text."""

from __future__ import annotations

import ctypes
import mmap
from contextlib import suppress
from dataclasses import dataclass

from kraft_core.columnar import lines_abi as words
from kraft_core.columnar.line_code import line_code
from kraft_core.columnar.verdicts import MOST_ENTRIES, ConfigVerdicts
from kraft_core.columnar.window import Window, address_of
from kraft_core.format.batch import read_header
from kraft_core.format.kafka_dump import DumpOptions


@dataclass(frozen=True, slots=True)
class WrittenLines:
    """text: of the batches from one position to another, UTF-8, valid until the task writes again.

    before, last_offset: of the record before them and of their last one. is_left: whether the batch at `end`
    is one for kafka_dump.
    """

    text: memoryview
    begin: int
    before: int
    end: int
    last_offset: int
    batches: int
    is_left: bool


class LineTask:
    """Writes lines of a file. Only one thread may use it at a time.

    text_bytes: how much text is written at once; only a batch of more text takes more memory.
    """

    def __init__(self, window: Window, options: DumpOptions, text_bytes: int) -> None:
        self._code = line_code()
        self._window = window
        self._verdicts = ConfigVerdicts(options.allowed)
        self._text_bytes = text_bytes
        self._text = _memory(text_bytes)
        self._task = (ctypes.c_int64 * words.TASK_WORDS)()
        self._addresses = (ctypes.c_int64 * (2 * words.LINES))()
        self._code.write_addresses(ctypes.addressof(self._addresses))
        hide = int(not options.show_secrets)
        self._set(words.CODE, ctypes.addressof(self._addresses) + 8 * words.LINES * hide)
        self._set(words.FILE, window.address)
        self._set(words.WITHOUT_METADATA, int(options.skip_metadata))
        for word, address in self._verdicts.addresses.items():
            self._set(word, address)

    def _get(self, word: int) -> int:
        return self._task[word // 8]

    def _set(self, word: int, value: int) -> None:
        self._task[word // 8] = value

    def write(self, begin: int, end: int, last_offset: int) -> WrittenLines:
        """Write the batches between two positions, as far as the memory and usual batches reach.

        last_offset: of the record before them.
        """
        self._begin_text(self._text_bytes)
        return self._write(begin, end, last_offset)

    def write_all(self, begin: int, end: int) -> list[WrittenLines]:
        """Write all batches between two positions but those for kafka_dump, as far as the memory reaches.

        Each part is written as if the record before it had the offset before its first.
        """
        self._begin_text(self._text_bytes)
        parts: list[WrittenLines] = []
        while begin < end:
            before = read_header(self._window.buf, begin).base_offset - 1
            parts.append(self._write(begin, end, before))
            if not parts[-1].is_left:
                break
            begin = read_header(self._window.buf, parts[-1].end).end
        return parts

    def _write(self, begin: int, end: int, last_offset: int) -> WrittenLines:
        """As write, behind the text that is there."""
        self._set(words.AT, self._window.address + begin)
        self._set(words.STOP, self._window.address + end)
        self._set(words.LAST_OFFSET, last_offset)
        self._set(words.BATCHES, 0)
        if self._get(words.VERDICT_COUNT) > MOST_ENTRIES // 2:
            self._verdicts.empty()
            self._set(words.VERDICT_COUNT, 0)
        text_begin = self._written()
        while (outcome := self._run()) in (words.FULL, words.TO_JUDGE):
            if outcome == words.FULL:
                if self._written():
                    break
                self._begin_text(2 * len(self._text))
        return WrittenLines(
            memoryview(self._text)[text_begin : self._written()],
            begin,
            last_offset,
            self._get(words.AT) - self._window.address,
            self._get(words.LAST_OFFSET),
            self._get(words.BATCHES),
            outcome == words.LEFT,
        )

    def _written(self) -> int:
        return self._get(words.OUT) - self._text_address

    def _begin_text(self, size: int) -> None:
        if len(self._text) != size:
            self._text = _memory(size)
        address = self._text_address = address_of(self._text)
        self._set(words.OUT, address)
        self._set(words.OUT_END, address + size - words.SPARE_BYTES)

    def _run(self) -> int:
        """Write on, and judge the configs that were met; returns the outcome."""
        outcome = self._code.write_lines(ctypes.addressof(self._task))
        count = self._get(words.OPEN_COUNT)
        self._verdicts.judge(count, self._window.buf, self._window.address)
        self._set(words.OPEN_COUNT, 0)
        return outcome


def _memory(size: int) -> mmap.mmap:
    """Zeros, whose pages take memory and time only once they are written to; large pages take less time."""
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # a kernel without large pages
            memory.madvise(mmap.MADV_HUGEPAGE)
    return memory
