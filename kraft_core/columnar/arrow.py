"""Chunks as pyarrow.RecordBatches, without a Python object per row."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Set
from dataclasses import asdict
from functools import cache, partial
from typing import Any, cast

import numpy as np
import pyarrow
from numpy.typing import NDArray

from kraft_core.columnar import kernel_abi as words
from kraft_core.columnar.buffer_pool import BufferPool
from kraft_core.columnar.chunk import ROWS, Chunk
from kraft_core.columnar.finish import close_offsets, list_rows, place_texts, write_texts_by_number
from kraft_core.columnar.headers import Headers
from kraft_core.columnar.kernel import CONTROL_BIT
from kraft_core.columnar.layout import Node
from kraft_core.columnar.schema import HEADERS, MOMENT, RECORDS
from kraft_core.columnar.vectors import REACH
from kraft_core.format.secrets import NONE_ALLOWED, is_credential, is_secret_name, named_secret
from kraft_core.format.segment import Damage

pa = cast(Any, pyarrow)


_CHUNK_OF_ZEROS = pa.py_buffer(bytes(4 * (ROWS + 1)))
# Nodes with offsets.
_SIZED = ("text", "list")


def to_record_batch(chunk: Chunk, allowed: Set[str] = NONE_ALLOWED) -> Any:
    """The chunk's rows in schema.RECORDS. The record batch owns the chunk's memory from now on.

    allowed: as in secrets.is_secret_config.
    """
    rows = chunk[words.ROWS]
    columns = message_arrays(chunk, allowed)
    # After the messages, which determine what is redacted.
    columns.update(_envelope(chunk, rows))
    arrays = [columns[name] if name in columns else _cut(nulls, rows) for name, nulls in _null_columns()]
    return pa.RecordBatch.from_arrays(arrays, schema=RECORDS)


@cache
def _null_columns() -> tuple[tuple[str, Any], ...]:
    """By name, each column as it is when a chunk has no record of that type."""
    return tuple((field.name, pa.nulls(ROWS, field.type)) for field in RECORDS)


def _cut(nulls: Any, rows: int) -> Any:
    return nulls.slice(0, rows) if rows <= ROWS else pa.nulls(rows, nulls.type)


def _envelope(chunk: Chunk, rows: int) -> Iterator[tuple[str, Any]]:
    for name, whole in chunk.envelope.items():
        values = whole[:rows]
        if name == "type":
            yield name, _names(values, chunk.program.types, chunk.layout.pool)
        elif values.dtype == np.bool_:
            yield name, _array(pa.bool_(), rows, np.packbits(values, bitorder="little"))
        else:
            yield name, _array(RECORDS.field(name).type, rows, chunk.envelope_buffer(values))


def _array(type_: Any, rows: int, *buffers: Any, validity: Any = None) -> Any:
    """Of pyarrow.Buffers or numpy.ndarrays."""
    held = [None if buffer is None else pa.py_buffer(buffer) for buffer in (validity, *buffers)]
    return pa.Array.from_buffers(type_, rows, held, 0 if validity is None else -1)


def _names(numbers: NDArray[np.uint8], names: tuple[str, ...], pool: BufferPool) -> Any:
    """The name for each number."""
    rows = len(numbers)
    _, table = _name_table(names)
    offsets_bytes = 4 * (rows + 1)
    piece = pool.take(offsets_bytes + rows * int(table[:, 1].max()) + REACH)
    values_at = piece.address + offsets_bytes
    size = write_texts_by_number(numbers.ctypes.data, rows, table.ctypes.data, piece.address, values_at)
    return _array(pa.string(), rows, piece.buffer(0, offsets_bytes), piece.buffer(offsets_bytes, size))


@cache
def _name_table(names: tuple[str, ...]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """All names in one text with REACH bytes behind them, and the address and size of each."""
    texts = [name.encode() for name in names]
    text = np.frombuffer(b"".join([*texts, bytes(REACH)]), dtype=np.uint8)
    sizes = np.array([len(text) for text in texts])
    return text, np.stack([np.cumsum(sizes) - sizes + text.ctypes.data, sizes], axis=1)


def message_arrays(chunk: Chunk, allowed: Set[str] = NONE_ALLOWED) -> dict[str, Any]:
    """The struct columns of the record types that the chunk holds, by name.

    Sets `redacted` in the envelope for records of secret configs.
    """
    close_offsets(chunk.address)
    return _MessageArrays(chunk, allowed).all()


class _MessageArrays:
    """Makes each node's array once."""

    def __init__(self, chunk: Chunk, allowed: Set[str]) -> None:
        self._chunk = chunk
        self._allowed = allowed
        self._buffers = chunk.buffers
        self._lengths = chunk.lengths()
        self._untouched = chunk.untouched().tolist()
        self._arrays: dict[int, Any] = {}

    def all(self) -> dict[str, Any]:
        columns: dict[str, Any] = {}
        for message, node in self._chunk.layout.columns.items():
            if self._chunk.holds(node):
                secret = named_secret(message)
                if secret is not None:
                    self._judge(*(node.children[field.column] for field in secret))
                columns[message.column] = self._array(node)
        return columns

    def _array(self, node: Node) -> Any:
        array = self._arrays.get(node.index)
        if array is None:
            array = self._arrays[node.index] = self._make(node)
        return array

    def _make(self, node: Node) -> Any:
        rows = self._lengths[node.space]
        if node.kind in _SIZED and node.nullable and self._untouched[node.index]:
            return _cut(_nulls(node), rows)
        children = None
        if node.kind == "struct":
            children = [
                self._array(member) if isinstance(member, Node) else _cut(member, rows)
                for member in _members(node)
            ]
        elif node.kind == "list":
            children = [self._array(node.children["item"])]
        buffers = [None if place is None else self._buffers[place] for place in node.buffers]
        if node.kind in _SIZED and self._lengths[node.index] == 0:
            buffers[1] = _zeros(4 * (rows + 1))
        return pa.Array.from_buffers(node.type, rows, buffers, -1 if node.nullable else 0, children=children)

    def _judge(self, name: Node, held: Node) -> None:
        """Copies the texts that are not secrets; marks the rows of the others as redacted.

        The bytes of those that their name makes secret are never read.
        """
        if held.kind != "guarded":
            return
        rows = self._lengths[0]
        validity, places = (self._buffers[place or 0] for place in held.buffers)
        present = np.empty(rows, dtype=np.int64)
        present = present[: list_rows(validity.address, rows, present.ctypes.data)]
        present = self._shown(present, self._array(name), partial(is_secret_name, allowed=self._allowed))
        texts = _placed(places, present, rows)
        shown = self._shown(present, texts, is_credential)
        self._arrays[held.index] = texts if len(shown) == len(present) else _placed(places, shown, rows)

    def _shown(
        self, rows: NDArray[np.int64], texts: Any, is_secret: Callable[[str], bool]
    ) -> NDArray[np.int64]:
        """The rows of which no text is secret; marks the others as redacted."""
        distinct = texts.take(pa.array(rows)).dictionary_encode()
        judged = np.array([is_secret(text) for text in distinct.dictionary.to_pylist()], dtype=np.bool_)
        secret = judged[distinct.indices.to_numpy()]
        self._chunk.envelope["redacted"][rows[secret]] = True
        return rows[~secret]


def _zeros(size: int) -> Any:
    """Offsets of an empty column."""
    return _CHUNK_OF_ZEROS.slice(0, size) if size <= len(_CHUNK_OF_ZEROS) else pa.py_buffer(bytes(size))


@cache
def _nulls(node: Node) -> Any:
    return pa.nulls(ROWS, node.type)


@cache
def _members(node: Node) -> tuple[Any, ...]:
    """A struct's children in the order of its type; nulls for those without a node."""
    return tuple(node.children.get(field.name) or pa.nulls(ROWS, field.type) for field in node.type)


def _placed(places: Any, shown: NDArray[np.int64], rows: int) -> Any:
    """Texts from the address and size of each, null where they are not shown."""
    sizes = np.frombuffer(places, dtype=np.int64)[1::2]
    validity = np.zeros((rows + 7) // 8, dtype=np.uint8)
    offsets = np.empty(rows + 1, dtype=np.int32)
    values = np.empty(sizes[shown].sum(), dtype=np.uint8)
    memory = (held.ctypes.data for held in (validity, offsets, values))
    place_texts(places.address, shown.ctypes.data, len(shown), rows, *memory)
    return _array(pa.string(), rows, offsets, values, validity=validity)


def header_batch(headers: Headers) -> Any:
    """Good batches in schema.HEADERS."""
    rows = len(headers.position)
    is_control = np.packbits(headers.attributes & CONTROL_BIT != 0, bitorder="little")
    columns = {
        "position": _integers("position", headers.position),
        "size_bytes": _integers("size_bytes", headers.size_bytes),
        "base_offset": _integers("base_offset", headers.base_offset),
        "last_offset": _integers("last_offset", headers.last_offset),
        "leader_epoch": _integers("leader_epoch", headers.leader_epoch),
        "crc": _integers("crc", headers.crc),
        "attributes": _integers("attributes", headers.attributes),
        "is_control": _array(pa.bool_(), rows, is_control),
        "record_count": _integers("record_count", headers.record_count),
        "base_timestamp": _array(MOMENT, rows, headers.base_timestamp),
        "appended_at": _array(MOMENT, rows, headers.max_timestamp),
    }
    return pa.record_batch(
        [columns.get(field.name, pa.nulls(rows, field.type)) for field in HEADERS], schema=HEADERS
    )


def damage_batch(damages: list[Damage]) -> Any:
    """Damage in schema.HEADERS."""
    return pa.RecordBatch.from_pylist([asdict(damage) for damage in damages], schema=HEADERS)


def _integers(column: str, values: NDArray[np.int64]) -> Any:
    type_ = HEADERS.field(column).type
    return _array(type_, len(values), values.astype(type_.to_pandas_dtype(), copy=False))
