"""Hypothesis strategies for the values of declared messages, made from the declarations themselves."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from kraft_core.format.message_reader import UNKNOWN_TAGGED_FIELDS
from kraft_core.messages.control import CONTROL_RECORDS
from kraft_core.messages.metadata import METADATA_RECORDS
from kraft_core.messages.schema import Field, Message
from kraft_core.messages.uuid_text import uuid_text

# (message, version) of every metadata record, those of former layouts and retired types too.
METADATA_VERSIONS = [
    (layout, version)
    for message in METADATA_RECORDS
    for layout in (message, *message.older)
    for version in layout.versions
]
CONTROL_VERSIONS = [
    (control_type, message, version)
    for control_type, message in CONTROL_RECORDS.items()
    for version in message.versions
]

texts = st.text(st.characters(codec="utf-8"), max_size=12)
uuids = st.binary(min_size=16, max_size=16).map(uuid_text)

_INTEGER_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "uint16": st.integers(0, (1 << 16) - 1),
    "uint32": st.integers(0, (1 << 32) - 1),
    "float64": st.floats(allow_nan=False),
    "string": texts,
    "bytes": st.binary(max_size=12),
    "uuid": uuids,
} | {name: st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) for name, bits in _INTEGER_BITS.items()}


def message_id(case: tuple[Any, ...]) -> str:
    """A test's name for a (message, version) or (control type, message, version)."""
    *_, message, version = case
    return f"{message.type_name}-v{version}" + (f"-{message.layout}" if message.layout else "")


@cache
def values(message: Message, version: int, unknown_tags: bool = True) -> st.SearchStrategy[dict[str, Any]]:
    """Any value that a message can hold at a version; unknown_tags: with tagged fields nobody declared."""
    strategy = _structs(message.fields, version, unknown_tags and message.flexible)
    if any(field.name == "version" for field in message.fields):
        return strategy.map(lambda value: value | {"version": version})
    return strategy


def _structs(
    fields: tuple[Field, ...], version: int, unknown_tags: bool
) -> st.SearchStrategy[dict[str, Any]]:
    present = [field for field in fields if version in field.versions]
    known = st.fixed_dictionaries({field.name: _fields(field, version, unknown_tags) for field in present})
    if not unknown_tags:
        return known
    own_tags = {field.tag for field in present if field.is_tagged(version)}
    tags = st.integers(0, (1 << 31) - 1).filter(lambda tag: tag not in own_tags)
    unknown = st.dictionaries(tags, st.binary(max_size=6), max_size=2).map(lambda held: sorted(held.items()))
    return st.tuples(known, unknown).map(
        lambda both: both[0] | ({UNKNOWN_TAGGED_FIELDS: both[1]} if both[1] else {})
    )


def _fields(field: Field, version: int, unknown_tags: bool) -> st.SearchStrategy[Any]:
    is_struct = field.type == "struct"
    one = _structs(field.fields, version, unknown_tags) if is_struct else _SCALARS[field.type]
    any_value = st.lists(one, max_size=4) if field.array else one
    choices = [any_value]
    if field.is_nullable(version):
        choices.append(st.none())
    if field.is_tagged(version):
        choices.append(st.builds(field.default_value, st.just(version)))
    return st.one_of(choices)
