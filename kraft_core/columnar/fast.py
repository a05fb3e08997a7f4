"""Files to Arrow columns by the compiled kernel: the rows that the reference codec gives, read much faster.

Batches that the kernel does not read (compressed ones, values that match no declaration) go through the
reference codec, and their rows are inserted where they belong.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow

from kraft_core.columnar import kernel_abi as words
from kraft_core.columnar.arrow import damage_batch, header_batch, to_record_batch
from kraft_core.columnar.chunk import ROWS, Chunk, Sizes
from kraft_core.columnar.headers import Headers, next_good, scan_window
from kraft_core.columnar.kernel import decode_batches
from kraft_core.columnar.layout import Layout, build_layout
from kraft_core.columnar.program import Program, compile_program
from kraft_core.columnar.reference import to_columns
from kraft_core.columnar.schema import message_columns
from kraft_core.columnar.straight import with_machine_code
from kraft_core.columnar.window import Window, opened
from kraft_core.format.batch import read_header
from kraft_core.format.record import Record, read_batch
from kraft_core.format.secrets import NONE_ALLOWED
from kraft_core.messages.control import CONTROL_RECORDS
from kraft_core.messages.metadata import by_api_key

pa = cast(Any, pyarrow)

WHOLE_FILE: tuple[tuple[int, int | None], ...] = ((0, None),)
# Short files get less memory than long ones. Smaller records only cause more chunks.
_USUAL_RECORD_BYTES = 32
_LEAST_ROWS = 256
# By `redact` and what is wanted, the sizes of the last full chunk. A file's first chunk starts with them:
# otherwise its columns would grow several times.
_last_sizes: dict[tuple[bool, bytes], Sizes] = {}
# Of batches that the kernel leaves out: a record batch ends after this many records or bytes of values.
_LEFT_ROWS = 8192
_LEFT_BYTES = 16 * 1024 * 1024


def scan_headers(
    path: Path | str, start: int = 0, end: int | None = None, next_offset: int | None = None
) -> Iterator[Any]:
    """Every batch and damaged range of a file between two positions (start inclusive, end exclusive).

    pyarrow.RecordBatches in schema.HEADERS, ordered by position; CRCs are checked. next_offset: as in
    segment.scan. OSError when the file cannot be read.
    """
    with opened(path) as window:
        for piece in scan_window(window, start, end, next_offset):
            yield header_batch(piece) if isinstance(piece, Headers) else damage_batch(piece)


def decode(
    path: Path | str,
    ranges: Sequence[tuple[int, int | None]] = WHOLE_FILE,
    redact: bool = True,
    allowed: Set[str] = NONE_ALLOWED,
) -> Iterator[Any]:
    """Every record in ranges of a file, as pyarrow.RecordBatches in schema.RECORDS, most of chunk.ROWS rows.

    ranges: positions (start inclusive, end exclusive) at which batches begin and end; ascending ones are read
    in bounded memory, whatever the size of the file. Damaged bytes give no rows; scan_headers reports them.
    redact: secrets become null (secrets.redact), but for configs of the allowed names. OSError when the file
    cannot be read.
    """
    with opened(path) as window:
        yield from _Decoder(window, redact, allowed).batches(ranges)


def decode_by_type(
    path: Path | str,
    ranges: Sequence[tuple[int, int | None]],
    types: Set[str],
    redact: bool = True,
    allowed: Set[str] = NONE_ALLOWED,
) -> tuple[Iterator[Any], Iterator[Any]]:
    """The rows of `decode` in two parts, of which the second is read once the first has been exhausted.

    The first has the records of some types (as kafka-dump-log names them), and whatever else is in batches
    that the kernel leaves out; the second has all others. What has few types has few columns with values, and
    is written in half the time; to pass over records takes hardly any.
    """
    left: list[tuple[int, int]] = []

    def of_types() -> Iterator[Any]:
        with opened(path) as window:
            decoder = _Decoder(window, redact, allowed, types)
            yield from decoder.batches(ranges)
            left.extend(decoder.left)

    def of_others() -> Iterator[Any]:
        with opened(path) as window:
            decoder = _Decoder(window, redact, allowed, types, inverted=True)
            yield from decoder.batches(without(ranges, left))

    return of_types(), of_others()


def without(
    ranges: Iterable[tuple[int, int | None]], parts: Iterable[tuple[int, int]]
) -> list[tuple[int, int | None]]:
    """Ranges without parts of them (start inclusive, end exclusive), both in ascending order."""
    rest: list[tuple[int, int | None]] = []
    cut = iter([*parts, None])
    part = next(cut)
    for start, end in ranges:
        while part is not None and (end is None or part[0] < end):
            rest.append((start, part[0]))
            start, part = part[1], next(cut)
        rest.append((start, end))
    return [(start, end) for start, end in rest if start != end]


def decode_bytes(content: bytes, redact: bool = True, allowed: Set[str] = NONE_ALLOWED) -> Iterator[Any]:
    """The rows of the batches that these bytes hold."""
    yield from _Decoder(Window(content), redact, allowed).batches(WHOLE_FILE)


@cache
def _compiled(redact: bool) -> tuple[Layout, Program]:
    layout = build_layout(message_columns(), redact)
    return layout, with_machine_code(compile_program(layout, by_api_key, CONTROL_RECORDS))


class _Decoder:
    """Reads ranges of one file, chunk after chunk.

    types: of the records that are read; None: of all. inverted: those of all other types, also unknown ones.
    left: the positions (start inclusive, end exclusive) of batches that the kernel did not read; unless
    inverted, all their records are among the rows.
    """

    def __init__(
        self,
        window: Window,
        redact: bool,
        allowed: Set[str],
        types: Set[str] | None = None,
        inverted: bool = False,
    ) -> None:
        self.left: list[tuple[int, int]] = []
        self._window = window
        self._redact = redact
        self._allowed = allowed
        self._passed_over = types if inverted and types else frozenset[str]()
        self._layout, self._program = _compiled(redact)
        wanted = [types is None or (name in types) != inverted for name in self._program.types]
        self._wanted = np.array(wanted, dtype=np.uint8)
        self._like = redact, self._wanted.tobytes()
        self._sizes = _last_sizes.get(self._like) or Sizes.unknown(self._layout)

    def batches(self, ranges: Sequence[tuple[int, int | None]]) -> Iterator[Any]:
        size = sum(self._window.stop(end) - start for start, end in ranges)
        chunk = self._chunk(rows=max(_LEAST_ROWS, min(ROWS, size // _USUAL_RECORD_BYTES)))
        for start, end in ranges:
            chunk[words.AT] = self._window.address + start
            chunk[words.STOP] = self._window.address + self._window.stop(end)
            while (outcome := decode_batches(chunk.address)) != words.DONE:
                if outcome == words.NO_ROOM:
                    chunk.make_room()
                elif outcome == words.DAMAGED:
                    self._skip_damage(chunk)
                else:
                    yield from self._finish(chunk)
                    chunk = self._successor(chunk)
        yield from self._finish(chunk)

    def _chunk(self, **rows: int) -> Chunk:
        return Chunk(self._layout, self._program, self._sizes, self._wanted, **rows)

    def _successor(self, full: Chunk) -> Chunk:
        """The chunk that continues where a full one stopped, with room for the batch there."""
        if full[words.ROWS]:
            self._sizes = _last_sizes[self._like] = full.sizes()
        position = full[words.AT] - self._window.address
        larger = {} if full[words.BYTES] else {"rows": read_header(self._window.buf, position).record_count}
        chunk = self._chunk(**larger)
        chunk[words.AT], chunk[words.STOP] = full[words.AT], full[words.STOP]
        return chunk

    def _skip_damage(self, chunk: Chunk) -> None:
        at, stop = (chunk[word] - self._window.address for word in (words.AT, words.STOP))
        chunk[words.AT] = self._window.address + next_good(self._window, at, stop)

    def _finish(self, chunk: Chunk) -> Iterator[Any]:
        batch = to_record_batch(chunk, self._allowed) if chunk[words.ROWS] else None
        if len(chunk.left):
            yield from self._with_left(chunk, batch)
        elif batch is not None:
            yield batch
        self._window.release(chunk[words.AT] - self._window.address)

    def _with_left(self, chunk: Chunk, batch: Any) -> Iterator[Any]:
        """The rows of the record batch (None: no rows) with those of the batches that the kernel left out."""
        done = 0
        for places, records in _pieces(self._left_records(chunk)):
            left = to_columns(records, self._redact, self._allowed)
            until = places[-1]
            if until == done:
                yield left
                continue
            rows = until - done
            order = np.insert(np.arange(rows), np.array(places) - done, np.arange(rows, rows + len(left)))
            yield pa.concat_batches([batch.slice(done, rows), left]).take(pa.array(order))
            done = until
        if batch is not None and done < len(batch):
            yield batch.slice(done)

    def _left_records(self, chunk: Chunk) -> Iterator[tuple[int, Record]]:
        """The records of the batches left out, each with the row that follows it."""
        buf = self._window.buf
        for address, row in chunk.left.tolist():
            header = read_header(buf, address - self._window.address)
            self.left.append((header.position, header.end))
            for record in read_batch(buf, header):
                if record.type not in self._passed_over:
                    yield row, record


def _pieces(records: Iterable[tuple[int, Record]]) -> Iterator[tuple[list[int], list[Record]]]:
    """Records with their places, as many at once as the memory for Python's objects allows."""
    places: list[int] = []
    held: list[Record] = []
    held_bytes = 0
    for place, record in records:
        places.append(place)
        held.append(record)
        held_bytes += max(record.size_bytes, len(record.unread))
        if len(held) == _LEFT_ROWS or held_bytes >= _LEFT_BYTES:
            yield places, held
            places, held, held_bytes = [], [], 0
    if held:
        yield places, held
