"""The form in which Kafka's messages are declared: a Message has Fields, which have Versions.

Declarations state what Kafka's message definitions (the JSON in its jars) state, for all codecs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from kraft_core.messages.uuid_text import ZERO_UUID

FieldType = Literal[
    "bool",
    "int8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "float64",
    "string",
    "bytes",
    "uuid",
    "struct",
]

# The default of a field for which Kafka declares none.
ZERO_VALUES: dict[FieldType, Any] = {
    "bool": False,
    "int8": 0,
    "int16": 0,
    "uint16": 0,
    "int32": 0,
    "uint32": 0,
    "int64": 0,
    "float64": 0.0,
    "string": "",
    "bytes": b"",
    "uuid": ZERO_UUID,
}


@dataclass(frozen=True)
class Versions:
    """A range of versions, both ends inclusive; high None = open."""

    low: int
    high: int | None = None

    def __contains__(self, version: int) -> bool:
        return self.low <= version and (self.high is None or version <= self.high)

    def __iter__(self) -> Iterator[int]:
        """Each version in turn; ValueError for an open range."""
        if self.high is None:
            raise ValueError("an open range of versions has no end")
        return iter(range(self.low, self.high + 1))


ALL = Versions(0)
V0 = Versions(0, 0)


def since(version: int) -> Versions:
    """From that version on."""
    return Versions(version)


class _Zero:
    """Marks a field that has its type's zero value as default: None is a default of its own (null)."""

    def __repr__(self) -> str:
        return "ZERO"


ZERO = _Zero()


@dataclass(frozen=True, eq=False)
class Field:
    """A field of a message.

    name: Kafka's, first letter lowered as kafka-dump-log prints it ("brokerId", "kRaftVersion").
    type: of the field, or of its elements where array is set. fields: those of a struct, in wire order.
    tag: number of a tagged field; tagged: the versions in which it is one (all its versions by default).
    default: Kafka's; None = null, ZERO = the type's zero value (empty for strings, bytes and arrays).
    nullable: the versions in which null is allowed. A nullable struct is preceded by a byte, -1 or 1.
    secret: never shown, as this value authenticates its owner.
    digested: shown as a digest, since other records reference it.
    """

    name: str
    type: FieldType
    array: bool = False
    versions: Versions = ALL
    tag: int | None = None
    tagged: Versions | None = None
    nullable: Versions | None = None
    default: Any = ZERO
    fields: tuple[Field, ...] = ()
    secret: bool = False
    digested: bool = False

    @cached_property
    def column(self) -> str:
        """The name of the field in a table ("broker_id", "kraft_version")."""
        return snake_case(self.name)

    def is_tagged(self, version: int) -> bool:
        return self.tag is not None and version in (self.tagged or self.versions)

    def is_nullable(self, version: int) -> bool:
        return self.nullable is not None and version in self.nullable

    def default_value(self, version: int) -> Any:
        """The default: a new list or dict, a scalar or None."""
        if self.default is not ZERO:
            return self.default
        if self.array:
            return []
        if self.type == "struct":
            return default_struct(self.fields, version)
        return ZERO_VALUES[self.type]


def struct(name: str, *fields: Field, versions: Versions = ALL, tag: int | None = None) -> Field:
    """A field that is a struct."""
    return Field(name, "struct", versions=versions, tag=tag, fields=fields)


def structs(name: str, *fields: Field, versions: Versions = ALL, tag: int | None = None) -> Field:
    """A field that is an array of structs."""
    return Field(name, "struct", array=True, versions=versions, tag=tag, fields=fields)


def default_struct(fields: tuple[Field, ...], version: int) -> dict[str, Any]:
    """A struct whose fields hold their defaults."""
    return {field.name: field.default_value(version) for field in fields if version in field.versions}


@dataclass(frozen=True, eq=False)
class Message:
    """One of Kafka's message definitions: a record type, a request or a response.

    name: Kafka's ("RegisterBrokerRecord"). api_key: the metadata record's id, the key of a request and of its
    response, or None.
    versions: those known here, always with an upper end. fields: in the order of Kafka's definition, which
    is the order on the wire for all but tagged ones.
    type_name: as kafka-dump-log names the type ("REGISTER_BROKER_RECORD", "LeaderChange").
    column: the name of the type's struct in a table ("register_broker").
    flexible: False for the encoding before KIP-482, without sections of tagged fields.
    layout: None for a current definition, otherwise the last release that had this type, or this layout of a
    type under the same id and version ("3.2"). older: its legacy layouts, newest first.
    """

    name: str
    api_key: int | None
    versions: Versions
    fields: tuple[Field, ...] = ()
    type_name: str = ""
    column: str = ""
    flexible: bool = True
    layout: str | None = None
    older: tuple[Message, ...] = ()

    def __post_init__(self) -> None:
        if not self.type_name:
            object.__setattr__(self, "type_name", snake_case(self.name).upper())
        if not self.column:
            object.__setattr__(self, "column", snake_case(self.name).removesuffix("_record"))

    def default(self, version: int) -> dict[str, Any]:
        """The message with every field at its default."""
        return default_struct(self.fields, version)


def metadata_record(
    name: str,
    id_: int,
    versions: Versions,
    *fields: Field,
    layout: str | None = None,
    older: tuple[Message, ...] = (),
) -> Message:
    """The definition of a metadata record."""
    return Message(name, id_, versions, fields, layout=layout, older=older)


def snake_case(name: str) -> str:
    """A name in snake_case; KRaft is one word."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().replace("k_raft", "kraft")
