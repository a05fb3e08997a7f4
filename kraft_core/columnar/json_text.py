"""Decoded records as JSON text, the "data" of kafka-dump-log's payload: codec.to_json over whole columns.

Texts are joined column by column, without a Python object per record. Secrets are null in the columns, and
so in the text.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, cast

import numpy as np
import pyarrow
import pyarrow.compute

from kraft_core.columnar.schema import RECORDS, message_columns
from kraft_core.format.java_text import java_double, quoted
from kraft_core.messages.schema import Field, Message

pa = cast(Any, pyarrow)
pc = cast(Any, pyarrow.compute)

_NULL = "null"
_QUOTE, _BACKSLASH, _FIRST_PLAIN = 0x22, 0x5C, 0x20
_FIRST_STRUCT = len(RECORDS) - len(message_columns())


def json_texts(records: Any) -> Any:
    """The text of each record (rows of schema.RECORDS): a pyarrow.StringArray, null where a value is unread.

    As `to_json` of the value and `json.dumps` without spaces and ASCII escapes, with Java's form of doubles.
    """
    rows = len(records)
    texts: list[Any] = []
    places: list[Any] = []
    for message, column in zip(message_columns(), records.columns[_FIRST_STRUCT:], strict=True):
        if column.null_count == rows:
            continue
        for present, layout, version in _layouts(message, column, records["version"]):
            whole = len(present) == rows
            values = column if whole else column.take(pa.array(present))
            texts.append(_struct(layout.fields, version, values))
            places.append(present)
    if not texts:
        return pa.nulls(rows, pa.string())
    joined = texts[0] if len(texts) == 1 else pa.concat_arrays(texts)
    if len(texts) == 1 and len(joined) == rows:
        return joined
    order = np.zeros(rows, dtype=np.int64)
    filled = np.zeros(rows, dtype=np.bool_)
    at = np.concatenate(places)
    order[at] = np.arange(len(at))
    filled[at] = True
    return joined.take(pa.array(order, mask=~filled))


def _layouts(message: Message, column: Any, versions: Any) -> Iterator[tuple[Any, Message, int]]:
    """The rows of a struct column by layout and version: (row numbers, layout, version)."""
    present = np.flatnonzero(column.is_valid().to_numpy(zero_copy_only=False))
    held = versions.to_numpy(zero_copy_only=False)[present]
    for version in np.unique(held).tolist():
        rows = present[held == version]
        for former in message.older:
            if version in former.versions:
                is_former = _is_former(message, former, column, rows)
                if is_former.any():
                    yield rows[is_former], former, version
                    rows = rows[~is_former]
        if len(rows):
            yield rows, message, int(version)


def _is_former(message: Message, former: Message, column: Any, rows: Any) -> Any:
    """Which rows have the former layout: they lack a field that the current one always has."""
    name = _lacking(message, former)
    return pc.struct_field(column, name).take(pa.array(rows)).is_null().to_numpy(zero_copy_only=False)


@cache
def _lacking(message: Message, former: Message) -> str:
    held = {field.column for field in former.fields}
    return next(
        field.column
        for field in message.fields
        if field.column not in held and not field.secret and field.nullable is None
    )


def _struct(fields: tuple[Field, ...], version: int, values: Any) -> Any:
    """The text of each struct; values: a StructArray without nulls."""
    members = dict(zip((f.name for f in values.type), values.flatten(), strict=True))
    pieces: list[Any] = []
    constant = "{"
    # What separates a member from the one before, where that may be absent: a column.
    present: Any = None
    is_first = True
    for field in fields:
        if version not in field.versions:
            continue
        prefix, text, suffix = _value(field, version, members[field.column])
        if not field.is_tagged(version):
            comma = "" if is_first else ","
            if is_first and present is not None:
                pieces.append(constant)
                pieces.append(pc.if_else(present, ",", ""))
                constant, present = "", None
            constant += f'{comma}"{field.name}":{prefix}'
            pieces += [constant, text]
            constant, is_first = suffix, False
            continue
        shown = _is_shown(field, version, members[field.column])
        named = pc.binary_join_element_wise(f'"{field.name}":{prefix}', text, suffix, "")
        if is_first:
            comma = "" if present is None else pc.if_else(present, ",", "")
            present = shown if present is None else pc.or_(present, shown)
        else:
            comma = ","
        pieces += [constant, pc.if_else(shown, pc.binary_join_element_wise(comma, named, ""), "")]
        constant = ""
    pieces.append(constant + "}")
    return _joined(pieces, len(values))


def _joined(pieces: list[Any], rows: int) -> Any:
    """The pieces of each row, texts and columns, one after the other."""
    kept = [piece for piece in pieces if not (isinstance(piece, str) and not piece)]
    if all(isinstance(piece, str) for piece in kept):
        return pa.repeat("".join(kept), rows)
    return pc.binary_join_element_wise(*kept, "")


def _is_shown(field: Field, version: int, values: Any) -> Any:
    """Where a tagged field differs from its default, which JSON leaves out."""
    default = field.default_value(version)
    if default is None:
        return values.is_valid()
    if field.array:
        if default != []:
            raise ValueError(f"no comparison for the default of {field.name}: {default!r}")
        return pc.fill_null(pc.not_equal(pc.list_value_length(values), 0), True)
    if field.type == "struct":
        raise ValueError(f"no comparison for the tagged struct {field.name}")
    return pc.fill_null(pc.not_equal(values, pa.scalar(default, values.type)), True)


def _value(field: Field, version: int, values: Any) -> tuple[str, Any, str]:
    """The text before each value, the value, the text after it.

    A value that may be null has its quotes or brackets in its text.
    """
    if values.null_count == len(values):
        return "", pa.repeat(_NULL, len(values)), ""
    opening, texts, closing = _list(field, version, values) if field.array else _one(field, version, values)
    if values.null_count == 0:
        return opening, texts, closing
    whole = pc.binary_join_element_wise(opening, texts, closing, "") if opening else texts
    return "", pc.fill_null(pc.if_else(values.is_valid(), whole, None), _NULL), ""


def _list(field: Field, version: int, values: Any) -> tuple[str, Any, str]:
    held = values.flatten()
    opening, texts, closing = _one(field, version, held)
    if opening:
        texts = pc.binary_join_element_wise(opening, texts, closing, "")
    lists = pa.ListArray.from_arrays(list_offsets(values), texts)
    return "[", pc.binary_join(lists, ","), "]"


def list_offsets(values: Any) -> Any:
    """Where each list of a ListArray begins in its flattened values, and their number; a null is empty."""
    lengths = pc.fill_null(pc.list_value_length(values), 0).to_numpy(zero_copy_only=False)
    return pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))


def _one(field: Field, version: int, values: Any) -> tuple[str, Any, str]:
    """The texts of single values, null where they are."""
    if field.type == "struct":
        return "", _struct(field.fields, version, values), ""
    if field.type == "string":
        return '"', _escaped(values), '"'
    if field.type == "uuid":
        return '"', values, '"'
    if field.type == "bytes":
        return '"', _by_value(values, _base64), '"'
    if field.type == "float64":
        return "", _by_value(values, java_double), ""
    return "", values.cast(pa.string()), ""


def _base64(value: bytes) -> str:
    return b64encode(value).decode()


def _by_value(values: Any, text: Callable[[Any], str]) -> Any:
    """What a function makes of each distinct value. Binary and doubles: the rarest fields."""
    return pa.array([None if value is None else text(value) for value in values.to_pylist()], pa.string())


def _escaped(values: Any) -> Any:
    """Texts with what Jackson escapes as it does; mostly the same array."""
    if not _needs_escape(values):
        return values
    coded = values.dictionary_encode()
    texts = [quoted(text)[1:-1] for text in coded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(coded.indices)


def _needs_escape(values: Any) -> bool:
    """Whether any byte of the texts is one that JSON escapes; such bytes are not parts of others in UTF-8."""
    _, offsets, content = values.buffers()
    if content is None:
        return False
    ends = np.frombuffer(offsets, dtype=np.int32)
    first, last = int(ends[values.offset]), int(ends[values.offset + len(values)])
    held = np.frombuffer(content, dtype=np.uint8)[first:last]
    return bool(((held < _FIRST_PLAIN) | (held == _QUOTE) | (held == _BACKSLASH)).any())
