"""From struct columns (kraft_core.columnar.schema) back to the fields of records that replay reads.

A null column means that the record's version lacks the field, unless the field itself may be null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from kraft_core.columnar.schema import message_fields, table_fields
from kraft_core.image.configs import ShownValue
from kraft_core.image.delegation_tokens import TokenDigest
from kraft_core.image.from_rows import REDACTED
from kraft_core.image.kinds import RULES
from kraft_core.messages.metadata import METADATA_RECORDS
from kraft_core.messages.schema import Field, Message

Row = Mapping[str, Any]
Fields = dict[str, Any]
# The messages that change the metadata, by record type.
MESSAGES: Mapping[str, Message] = {m.type_name: m for m in METADATA_RECORDS if m.type_name in RULES}


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record to replay. timestamp: ms, -1: none. value: fields by Kafka's names, None: unreadable."""

    offset: int
    leader_epoch: int
    timestamp: int
    type: str
    value: Row | None


def fields_of(message: Message, row: Row, redacted: bool) -> Fields:
    """The fields of a message by Kafka's names; secrets are None, the id of a token is its digest.

    redacted: whether secrets were removed from the row; a config that was one counts as set.
    """
    fields = _message_reader(message)(row)
    if message.type_name == "CONFIG_RECORD" and (redacted or fields["value"] is not None):
        fields["value"] = REDACTED if redacted else ShownValue(fields["value"])
    return fields


@cache
def _message_reader(message: Message) -> Callable[[Row], Fields]:
    return _reader(message_fields(message))


def _reader(fields: tuple[Field, ...]) -> Callable[[Row], Fields]:
    readers = [(field.name, field.column, _value_reader(field), _may_be_null(field)) for field in fields]

    def read(row: Row) -> Fields:
        found: Fields = {}
        for name, column, of, may_be_null in readers:
            held = row[column]
            if held is not None:
                found[name] = held if of is None else of(held)
            elif may_be_null:
                found[name] = None
        return found

    return read


def _value_reader(field: Field) -> Callable[[Any], Any] | None:
    if field.digested:
        return TokenDigest
    if field.type != "struct":
        return None
    read = _reader(table_fields(field.fields))
    return (lambda elements: [read(element) for element in elements]) if field.array else read


def _may_be_null(field: Field) -> bool:
    return field.nullable is not None or (field.secret and not field.digested)
