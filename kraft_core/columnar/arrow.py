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
from kraft_core.columnar.layout import OFFSETS, VALIDITY, VALUES, Node
from kraft_core.columnar.reference import FIRST_MS, LAST_MS
from kraft_core.columnar.schema import HEADERS, MOMENT, RECORDS
from kraft_core.secrets import is_secret_config, named_secret
from kraft_core.segment import Damage

pa = cast(Any, pyarrow)


def to_record_batch(chunk: Chunk) -> Any:
    """What the kernel has written, in schema.RECORDS. The chunk's memory now belongs to the record batch."""
    rows = chunk[words.ROWS]
    columns = message_arrays(chunk)
    # After the messages: they find out what is redacted.
    columns.update(_envelope(chunk, rows))
    arrays = [columns[field.name] if field.name in columns else _nulls(field.type, rows) for field in RECORDS]
    return pa.record_batch(arrays, schema=RECORDS)


def _nulls(type_: Any, rows: int) -> Any:
    return _chunk_of_nulls(type_).slice(0, rows) if rows <= ROWS else pa.nulls(rows, type_)


@cache
def _chunk_of_nulls(type_: Any) -> Any:
    return pa.nulls(ROWS, type_)


def _type(column: str) -> Any:
    return RECORDS.field(column).type


def _envelope(chunk: Chunk, rows: int) -> Iterator[tuple[str, Any]]:
    for name, whole in chunk.envelope.items():
        values = whole[:rows]
        if name == "type":
            yield name, _spelled(values, chunk.program.types)
        elif values.dtype == np.bool_:
            yield name, _array(pa.bool_(), rows, None, np.packbits(values, bitorder="little"))
        else:
            yield name, _moments(values) if name == "appended_at" else _array(_type(name), rows, None, values)


def _spelled(numbers: NDArray[np.uint8], names: tuple[str, ...]) -> Any:
    """The names by their numbers."""
    texts = [name.encode() for name in names]
    held = np.frombuffer(b"".join(texts), dtype=np.uint8)
    sizes = np.array([len(text) for text in texts])
    table = np.stack([held.ctypes.data + np.cumsum(sizes) - sizes, sizes], axis=1)
    rows = len(numbers)
    offsets = np.empty(rows + 1, dtype=np.int32)
    values = np.empty(int(sizes[numbers].sum()), dtype=np.uint8)
    spell(numbers.ctypes.data, rows, table.ctypes.data, offsets.ctypes.data, values.ctypes.data)
    return _array(pa.string(), rows, None, offsets, values)


def _moments(values: NDArray[np.int64]) -> Any:
    """Times in ms; null where Spark and Python can hold no such time."""
    if len(values) == 0 or FIRST_MS <= values.min() <= values.max() <= LAST_MS:
        return _array(MOMENT, len(values), None, values)
    plausible = np.packbits((values >= FIRST_MS) & (values <= LAST_MS), bitorder="little")
    return _array(MOMENT, len(values), plausible, values)


def message_arrays(chunk: Chunk) -> dict[str, Any]:
    """The struct columns of the record types that the chunk holds, by name.

    Marks in the envelope which records had a secret that goes by its name.
    """
    return _MessageColumns(chunk, chunk[words.ROWS]).all()


class _MessageColumns:
    """Makes each node's array once."""

    def __init__(self, chunk: Chunk, rows: int) -> None:
        self._chunk = chunk
        self._rows = rows
        self._arrays: dict[int, Any] = {}

    def all(self) -> dict[str, Any]:
        columns: dict[str, Any] = {}
        for message, node in self._chunk.layout.columns.items():
            if self._chunk.holds(node):
                secret = named_secret(message)
                if secret is not None:
                    self._judge(*(node.children[field.column] for field in secret))
                columns[message.column] = self._array(node, self._rows)
        return columns

    def _array(self, node: Node, rows: int) -> Any:
        array = self._arrays.get(node.index)
        if array is None:
            array = self._arrays[node.index] = self._make(node, rows)
        return array

    def _make(self, node: Node, rows: int) -> Any:
        validity, values = (self._chunk.memory(node, word) for word in (VALIDITY, VALUES))
        if node.kind == "struct":
            children = [
                self._array(node.children[field.name], rows)
                if field.name in node.children
                else _nulls(field.type, rows)
                for field in node.type
            ]
            return _array(node.type, rows, validity, children=children)
        if node.kind not in ("text", "list"):
            return _array(node.type, rows, validity, values)
        length = self._chunk.length_of(node)
        if length:
            close_offsets(self._chunk.address_of(node), rows)
        offsets = self._chunk.memory(node, OFFSETS)
        if node.kind == "text":
            return _array(node.type, rows, validity, offsets, values)
        elements = self._array(node.children["item"], length)
        return _array(node.type, rows, validity, offsets, children=[elements])

    def _judge(self, name: Node, held: Node) -> None:
        """Takes the texts that their name does not make secrets into memory, marks the rows of the others.

        The bytes of secrets are never read.
        """
        if held.kind != "guarded":
            return
        validity: Any = self._chunk.memory(held, VALIDITY)
        places: Any = self._chunk.memory(held, VALUES)
        present = np.flatnonzero(np.unpackbits(validity, count=self._rows, bitorder="little"))
        names = self._array(name, self._rows).take(pa.array(present)).dictionary_encode()
        judged = [is_secret_config(text) for text in names.dictionary.to_pylist()]
        secret = np.array(judged, dtype=np.bool_)[names.indices.to_numpy()]
        self._chunk.envelope["redacted"][present[secret]] = True
        shown = np.zeros(self._rows, dtype=np.bool_)
        shown[present[~secret]] = True
        self._arrays[held.index] = _placed(places.view(np.int64).reshape(-1, 2), shown)


def _placed(places: NDArray[np.int64], shown: NDArray[np.bool_]) -> Any:
    """Texts from the address and size of each, null where they are not shown."""
    rows = len(shown)
    taken = np.flatnonzero(shown)
    offsets = np.zeros(rows + 1, dtype=np.int32)
    offsets[taken + 1] = places[taken, 1]
    np.cumsum(offsets, out=offsets)
    values = np.empty(offsets[-1], dtype=np.uint8)
    place_texts(places.ctypes.data, taken.ctypes.data, len(taken), offsets.ctypes.data, values.ctypes.data)
    return _array(pa.string(), rows, np.packbits(shown, bitorder="little"), offsets, values)


def _array(
    type_: Any, rows: int, validity: NDArray[Any] | None, *buffers: NDArray[Any] | None, children: Any = None
) -> Any:
    held = [None if buffer is None else pa.py_buffer(buffer) for buffer in (validity, *buffers)]
    null_count = 0 if validity is None else -1
    return pa.Array.from_buffers(type_, rows, held, null_count, children=children)


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
        "is_control": _array(pa.bool_(), rows, None, is_control),
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
    return _array(type_, len(values), None, values.astype(type_.to_pandas_dtype(), copy=False))
