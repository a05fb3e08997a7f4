"""Memory as pyarrow.RecordBatches, without an object for any row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from typing import Any, cast

import numpy as np
import pyarrow
from numpy.typing import NDArray

from kraft_core.columnar import task as words
from kraft_core.columnar.chunk import ROWS, Chunk
from kraft_core.columnar.headers import Headers
from kraft_core.columnar.kernel import CONTROL_BIT, close_offsets, place_texts, spell
from kraft_core.columnar.layout import Node
from kraft_core.columnar.reference import FIRST_MS, LAST_MS
from kraft_core.columnar.schema import HEADERS, MOMENT, RECORDS
from kraft_core.secrets import is_secret_config, named_secret
from kraft_core.segment import Damage

pa = cast(Any, pyarrow)


_COLUMNS: tuple[tuple[str, Any], ...] = tuple((field.name, field.type) for field in RECORDS)


def to_record_batch(chunk: Chunk) -> Any:
    """What the kernel has written, in schema.RECORDS. The chunk's memory now belongs to the record batch."""
    rows = chunk[words.ROWS]
    columns = message_arrays(chunk)
    # After the messages: they find out what is redacted.
    columns.update(_envelope(chunk, rows))
    arrays = [columns[name] if name in columns else _nulls(type_, rows) for name, type_ in _COLUMNS]
    return pa.RecordBatch.from_arrays(arrays, schema=RECORDS)


def _nulls(type_: Any, rows: int) -> Any:
    return _chunk_of_nulls(type_).slice(0, rows) if rows <= ROWS else pa.nulls(rows, type_)


@cache
def _chunk_of_nulls(type_: Any) -> Any:
    return pa.nulls(ROWS, type_)


def _envelope(chunk: Chunk, rows: int) -> Iterator[tuple[str, Any]]:
    for name, whole in chunk.envelope.items():
        values = whole[:rows]
        if name == "type":
            yield name, _spelled(values, chunk.program.types)
        elif name == "appended_at":
            yield name, _moments(values)
        elif values.dtype == np.bool_:
            yield name, _array(pa.bool_(), rows, np.packbits(values, bitorder="little"))
        else:
            yield name, _array(RECORDS.field(name).type, rows, values)


def _array(type_: Any, rows: int, *buffers: NDArray[Any], validity: Any = None) -> Any:
    held = [
        None if validity is None else pa.py_buffer(validity),
        *(pa.py_buffer(buffer) for buffer in buffers),
    ]
    return pa.Array.from_buffers(type_, rows, held, 0 if validity is None else -1)


def _spelled(numbers: NDArray[np.uint8], names: tuple[str, ...]) -> Any:
    """The names by their numbers."""
    text, starts, sizes = _spelling(names)
    table = np.stack([starts + text.ctypes.data, sizes], axis=1)
    rows = len(numbers)
    offsets = np.empty(rows + 1, dtype=np.int32)
    values = np.empty(int(sizes[numbers].sum()), dtype=np.uint8)
    spell(numbers.ctypes.data, rows, table.ctypes.data, offsets.ctypes.data, values.ctypes.data)
    return _array(pa.string(), rows, offsets, values)


@cache
def _spelling(names: tuple[str, ...]) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int64]]:
    """All names in one text, where each begins, and their sizes."""
    texts = [name.encode() for name in names]
    sizes = np.array([len(text) for text in texts])
    return np.frombuffer(b"".join(texts), dtype=np.uint8), np.cumsum(sizes) - sizes, sizes


def _moments(values: NDArray[np.int64]) -> Any:
    """Times in ms; null where Spark and Python can hold no such time."""
    if len(values) == 0 or FIRST_MS <= values.min() <= values.max() <= LAST_MS:
        return _array(MOMENT, len(values), values)
    plausible = np.packbits((values >= FIRST_MS) & (values <= LAST_MS), bitorder="little")
    return _array(MOMENT, len(values), values, validity=plausible)


def message_arrays(chunk: Chunk) -> dict[str, Any]:
    """The struct columns of the record types that the chunk holds, by name.

    Marks in the envelope which records had a secret that goes by its name.
    """
    close_offsets(chunk.address)
    return _MessageArrays(chunk).all()


class _MessageArrays:
    """Makes each node's array once."""

    def __init__(self, chunk: Chunk) -> None:
        self._chunk = chunk
        self._buffers = chunk.buffers
        self._lengths = chunk.lengths()
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
        children = None
        if node.kind == "struct":
            children = [
                self._array(node.children[name]) if name in node.children else _nulls(type_, rows)
                for name, type_ in _members(node.type)
            ]
        elif node.kind == "list":
            children = [self._array(node.children["item"])]
        buffers = [None if place is None else self._buffers[place] for place in node.buffers]
        return pa.Array.from_buffers(node.type, rows, buffers, -1 if node.nullable else 0, children=children)

    def _judge(self, name: Node, held: Node) -> None:
        """Takes the texts that their name does not make secrets into memory, marks the rows of the others.

        The bytes of secrets are never read.
        """
        if held.kind != "guarded":
            return
        rows = self._lengths[0]
        validity, places = (np.frombuffer(self._buffers[place or 0], np.uint8) for place in held.buffers)
        present = np.flatnonzero(np.unpackbits(validity, count=rows, bitorder="little"))
        names = self._array(name).take(pa.array(present)).dictionary_encode()
        judged = [is_secret_config(text) for text in names.dictionary.to_pylist()]
        secret = np.array(judged, dtype=np.bool_)[names.indices.to_numpy()]
        self._chunk.envelope["redacted"][present[secret]] = True
        shown = np.zeros(rows, dtype=np.bool_)
        shown[present[~secret]] = True
        self._arrays[held.index] = _placed(places.view(np.int64).reshape(-1, 2), shown)


@cache
def _members(type_: Any) -> tuple[tuple[str, Any], ...]:
    """Names and types of a struct type's fields."""
    return tuple((field.name, field.type) for field in type_)


def _placed(places: NDArray[np.int64], shown: NDArray[np.bool_]) -> Any:
    """Texts from the address and size of each, null where they are not shown."""
    rows = len(shown)
    taken = np.flatnonzero(shown)
    offsets = np.zeros(rows + 1, dtype=np.int32)
    offsets[taken + 1] = places[taken, 1]
    np.cumsum(offsets, out=offsets)
    values = np.empty(offsets[-1], dtype=np.uint8)
    place_texts(places.ctypes.data, taken.ctypes.data, len(taken), offsets.ctypes.data, values.ctypes.data)
    return _array(pa.string(), rows, offsets, values, validity=np.packbits(shown, bitorder="little"))


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
        "base_timestamp": _moments(headers.base_timestamp),
        "appended_at": _moments(headers.max_timestamp),
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
