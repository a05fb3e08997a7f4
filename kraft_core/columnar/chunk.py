"""The memory of a record batch while it is written.

Each chunk has its own memory, which the Arrow arrays made from it then own: nothing is copied, and no memory
is reused while it is referenced.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow
from numpy.typing import NDArray

from kraft_core.columnar import kernel_abi as words
from kraft_core.columnar.layout import CAPACITY, FILLED, LENGTH, NODE_BYTES, SPACE, Layout, Node, Span
from kraft_core.columnar.program import Program

pa = cast(Any, pyarrow)

ROWS = 131072
# A chunk takes no further batch after this many bytes of batches.
_BYTES = 16 * 1024 * 1024
_LEFT_BATCHES = 1024
_LEAST_CAPACITY = 4096
_ALIGNMENT = 64
# Columns a power of two apart would evict each other from the processor's cache.
_STAGGER = 5 * 64

Sized = TypeVar("Sized", int, NDArray[np.int64])

# The envelope columns that the kernel writes: the task's word, the column's name, the item's type.
ENVELOPE: tuple[tuple[int, str, Any], ...] = (
    (words.OFFSET, "offset", np.int64),
    (words.LEADER_EPOCH, "leader_epoch", np.int32),
    (words.BATCH_CRC, "batch_crc", np.int64),
    (words.POSITION_IN_BATCH, "position_in_batch", np.int32),
    (words.APPENDED_AT, "appended_at", np.int64),
    (words.TYPES, "type", np.uint8),
    (words.VERSION, "version", np.int16),
    (words.IS_CONTROL, "is_control", np.bool_),
    (words.BATCH_BASE_OFFSET, "batch_base_offset", np.int64),
    (words.KEY_SIZE, "key_size_bytes", np.int32),
    (words.VALUE_SIZE, "value_size_bytes", np.int32),
    (words.UNKNOWN_TAGGED_FIELDS, "unknown_tagged_fields", np.int32),
    (words.WAS_REDACTED, "redacted", np.bool_),
)
_ITEM_BYTES = tuple(np.dtype(dtype).itemsize for _, _, dtype in ENVELOPE)


def _aligned(size: Sized) -> Sized:
    """The size with padding before the next column."""
    return (size + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT + _STAGGER


@dataclass(slots=True)
class Sizes:
    """The lengths of a chunk of `rows` rows by node index; one like it starts with 25 percent more."""

    lengths: NDArray[np.int64]
    rows: int

    @classmethod
    def unknown(cls, layout: Layout) -> Sizes:
        return cls(np.zeros(len(layout.nodes), dtype=np.int64), 1)

    def capacities(self, rows: int) -> NDArray[np.int64]:
        lengths = self.lengths * min(rows, self.rows) // self.rows
        capacities = np.maximum(lengths + lengths // 4, _LEAST_CAPACITY)
        capacities[0] = rows
        return capacities


class Chunk:
    """The kernel's task with memory for `rows` records.

    wanted: by number of the record type, 1 where its records are written, 0 where they are passed over.
    """

    def __init__(
        self,
        layout: Layout,
        program: Program,
        sizes: Sizes,
        wanted: NDArray[np.uint8],
        rows: int = ROWS,
    ) -> None:
        self.layout = layout
        self.program = program
        self._wanted = wanted
        self._rows = rows
        self._envelope = layout.pool.take(sum(_aligned(rows * size) for size in _ITEM_BYTES))
        self.envelope = self._envelope_columns()
        self.envelope["key_size_bytes"].fill(words.NO_KEY)
        self.envelope["unknown_tagged_fields"].fill(0)
        self.envelope["redacted"].fill(False)
        capacities = sizes.capacities(rows)
        # By place: its size in bytes, its start if all columns had memory, and its pyarrow.Buffer.
        self._sizes = layout.places.sizes(capacities)
        ends = np.cumsum(_aligned(self._sizes))
        self._starts = np.concatenate([[0], ends])
        self.buffers: list[Any] = [None] * len(self._sizes)
        self._nodes = np.zeros((len(layout.nodes), NODE_BYTES // 8), dtype=np.int64)
        self._nodes_address = self._nodes.ctypes.data
        # A frame for each nested struct and tagged field: never deeper than there are nodes.
        self._stack = np.zeros((2 * len(layout.nodes), 4), dtype=np.int64)
        self._left = np.zeros((_LEFT_BATCHES, 2), dtype=np.int64)
        self._task = np.zeros(words.TASK_WORDS, dtype=np.int64)
        self.address = self._task.ctypes.data  # for the kernel
        self._nodes[:, SPACE // 8] = layout.spaces
        self._nodes[:, CAPACITY // 8] = capacities
        self._write_task()

    def _envelope_columns(self) -> dict[str, NDArray[Any]]:
        columns: dict[str, NDArray[Any]] = {}
        start = 0
        for (_, name, dtype), size in zip(ENVELOPE, _ITEM_BYTES, strict=True):
            columns[name] = self._envelope.memory[start : start + self._rows * size].view(dtype)
            start += _aligned(self._rows * size)
        return columns

    def envelope_buffer(self, values: NDArray[Any]) -> Any:
        """A column of the envelope, or a part of it, as a pyarrow.Buffer."""
        return self._envelope.buffer(values.ctypes.data - self._envelope.address, values.nbytes)

    def _write_task(self) -> None:
        metadata, control = self.program.metadata, self.program.control
        given = {
            words.PROGRAM: self.program.words.ctypes.data,
            words.CODE: self.program.code.ctypes.data,
            words.NODES: self._nodes_address,
            words.NODE_COUNT: len(self._nodes),
            words.STACK: self._stack.ctypes.data,
            words.METADATA: metadata.ctypes.data,
            words.METADATA_KEYS: metadata.shape[0],
            words.METADATA_VERSIONS: metadata.shape[1],
            words.CONTROL: control.ctypes.data,
            words.CONTROL_TYPES: control.shape[0],
            words.CONTROL_VERSIONS: control.shape[1],
            words.WANTED: self._wanted.ctypes.data,
            words.ROW_CAPACITY: self._rows,
            words.BYTE_CAPACITY: _BYTES,
            words.LEFT: self._left.ctypes.data,
            words.LEFT_CAPACITY: _LEFT_BATCHES,
        }
        given |= {word: self.envelope[name].ctypes.data for word, name, _ in ENVELOPE}
        for word, value in given.items():
            self[word] = value

    def __getitem__(self, word: int) -> int:
        """A word of the task."""
        return int(self._task[word // 8])

    def __setitem__(self, word: int, value: int) -> None:
        self._task[word // 8] = value

    @property
    def left(self) -> NDArray[np.int64]:
        """Batches left to the reference codec: address, and the number of rows written before it."""
        return self._left[: self[words.LEFT_COUNT]]

    def lengths(self) -> list[int]:
        """By node index: bytes of a text, elements of a list."""
        return self._nodes[:, LENGTH // 8].tolist()

    def untouched(self) -> NDArray[np.bool_]:
        """By node index: whether it is a text or list of which no row was written."""
        return self._nodes[:, FILLED // 8] == 0

    def sizes(self) -> Sizes:
        """The lengths of this chunk, which has rows."""
        return Sizes(self._nodes[:, LENGTH // 8].copy(), self[words.ROWS])

    def holds(self, column: Node) -> bool:
        """Whether there are records of that type."""
        return self.buffers[column.buffers[0] or 0] is not None

    def make_room(self) -> None:
        """Allocates the memory that the kernel stopped for."""
        index = (self[words.NODE] - self._nodes_address) // NODE_BYTES
        needed = self[words.NEEDED]
        if needed == 0:
            self._add_column(self.layout.spans[index])
        else:
            self._grow(index, 3 * needed)

    def _add_column(self, span: Span) -> None:
        """Allocates memory for all nodes of a record type, in one buffer."""
        own = slice(span.start, span.end)
        first, bitmaps_end, end = self._starts[[span.start, span.bitmaps_end, span.end]].tolist()
        piece = self.layout.pool.take(end - first)
        piece.memory[: bitmaps_end - first] = 0
        starts = self._starts[own] - first
        self._nodes.reshape(-1)[self.layout.places.address_at[own]] = starts + piece.address
        self.buffers[own] = map(piece.buffer, starts.tolist(), self._sizes[own].tolist())

    def _grow(self, index: int, capacity: int) -> None:
        """Grow a text to `capacity` bytes, or a list to `capacity` elements, keeping its content."""
        places = self.layout.places
        capacities = self._nodes[:, CAPACITY // 8]
        capacities[index] = capacity
        sizes = places.sizes(capacities)
        for number in np.flatnonzero(places.counts == index).tolist():
            held = np.frombuffer(self.buffers[number], dtype=np.uint8)
            size = int(sizes[number])
            piece = self.layout.pool.take(size)
            piece.memory[: len(held)] = held
            if places.is_bitmap[number]:
                piece.memory[len(held) : size] = 0
            self.buffers[number] = piece.buffer(0, size)
            self._nodes.reshape(-1)[places.address_at[number]] = piece.address
