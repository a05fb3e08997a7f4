"""kafka_dump by the compiled writer: runs of usual batches are written at once, all others one by one."""

from __future__ import annotations

import mmap
from collections.abc import Generator
from dataclasses import dataclass
from typing import cast

from kraft_core.columnar.line_task import LineTask, WrittenLines
from kraft_core.columnar.lines_ahead import lines_ahead
from kraft_core.columnar.window import Window
from kraft_core.format.kafka_dump import FileDump, Piece
from kraft_core.format.varint import Buffer

# How much text is written at once.
_TEXT_BYTES = 1024 * 1024


@dataclass
class CompiledDump(FileDump):
    """A FileDump that prints the same, but faster. A memoryview is valid until the next piece is taken.

    The iterator over pieces must be closed before the file: threads may read it.
    """

    def pieces(self, buf: Buffer, name: str) -> Generator[Piece]:
        """As FileDump.pieces."""
        self._window = Window(cast(bytes | mmap.mmap, buf))
        self._end = self._window.stop(self.options.max_bytes)
        self._task = LineTask(self._window, self.options, _TEXT_BYTES)
        # Where the compiled writer stopped before a batch that it does not write.
        self._left = -1
        with lines_ahead(self._window, self._end, self.options) as self._ahead:
            yield from super().pieces(buf, name)

    def _next(self, buf: Buffer, position: int) -> tuple[Piece, int]:
        self._window.release(position)
        if position != self._left:
            written = self._write(position)
            self._left = written.end if written.is_left else -1
            if written.batches:
                self.last_offset = written.last_offset
                self.batches += written.batches
                return written.text, written.end
        return super()._next(buf, position)

    def _write(self, position: int) -> WrittenLines:
        """Batches from a position on, at least none."""
        if self._ahead is None:
            return self._task.write(position, self._end, self.last_offset)
        ahead = self._ahead.take(position, self.last_offset)
        return ahead or self._task.write(position, self._ahead.begin, self.last_offset)
