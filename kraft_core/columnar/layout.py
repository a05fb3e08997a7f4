"""The memory that the kernel writes to: one node for each Arrow array of the record columns.

A node lives in a space of rows: the records themselves, or the elements of a list. Structs share the space
of their parent; the elements of a list have their own. Fields of legacy layouts only have no node, as the
kernel does not read those layouts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kraft_core.columnar.buffer_pool import BufferPool
from kraft_core.columnar.schema import arrow_type, message_fields, table_fields
from kraft_core.columnar.vectors import SLACK
from kraft_core.format.secrets import named_secret
from kraft_core.messages.schema import Field, Message, Versions

# text: strings, bytes and uuids. bit: Arrow packs booleans. guarded: a text that may be a secret;
# the kernel notes only its address and size until the config's name has been checked.
Kind = Literal["rows", "struct", "list", "text", "guarded", "number", "bit"]

# The kernel's table has a row of int64 words for each node; these are the byte offsets of the words.
# VALUES (text: its bytes; guarded: address and size of each), OFFSETS, VALIDITY: addresses, 0 without memory.
# LENGTH: bytes of text or elements of a list so far; CAPACITY: how many there is memory for.
# FILLED: how many OFFSETS are written; the rest follow when a later row is appended to, or at the end.
# ROW: the row being written in the space of a list's elements, or of the records.
# SPACE: byte offset, in the table, of the node whose space this one is in.
NODE_BYTES = 64
VALUES, OFFSETS, VALIDITY, LENGTH, CAPACITY, FILLED, ROW, SPACE = range(0, NODE_BYTES, 8)

_BITS = {"bit": 1, "guarded": 128}
_WIDTHS = {"int8": 1, "int16": 2, "uint16": 4, "int32": 4, "uint32": 8, "int64": 8, "float64": 8}


@dataclass(slots=True, eq=False)
class Node:
    """One Arrow array, or the rows themselves (index 0).

    space: index of the node whose rows these are. nullable: whether it needs a validity bitmap.
    width: bytes of a number. type: the pyarrow.DataType. children: a struct's by column, without those that
    are always null; a list's element under "item". buffers: the places of its memory in Arrow's order, None
    where it has no validity bitmap.
    """

    index: int
    kind: Kind
    space: int
    nullable: bool = False
    width: int = 0
    type: Any = None
    children: dict[str, Node] = field(default_factory=dict[str, "Node"])
    buffers: list[int | None] = field(default_factory=list[int | None])

    @property
    def descendants(self) -> Iterator[Node]:
        """The node and all below it, parents first."""
        yield self
        for child in self.children.values():
            yield from child.descendants


class Place(NamedTuple):
    """A piece of a node's memory, with room for as many items as the capacity of node `counts`.

    node: index; word: of the address; bits: of an item; extra: bytes beside the items.
    """

    node: int
    word: int
    counts: int
    bits: int
    extra: int = 0


@dataclass(frozen=True, slots=True)
class Span:
    """The places of one column: from `start` to `end` (exclusive), the bitmaps before `bitmaps_end`."""

    start: int
    end: int
    bitmaps_end: int


class Places:
    """All places, as columns."""

    def __init__(self, places: Sequence[Place]) -> None:
        self.node, self._word, self.counts, self._bits, self._extra = np.array(places, dtype=np.int64).T
        # Bitmaps must be zeroed before use.
        self.is_bitmap: NDArray[np.bool_] = self._word == VALIDITY
        # Index of the address in the kernel's table, flattened to words.
        self.address_at: NDArray[np.int64] = self.node * (NODE_BYTES // 8) + self._word // 8

    def sizes(self, capacities: NDArray[np.int64]) -> NDArray[np.int64]:
        """In bytes. capacities: by index of the node."""
        return (capacities[self.counts] * self._bits + 7) // 8 + self._extra


@dataclass(frozen=True, slots=True)
class Layout:
    """All nodes and places by index; the struct node of each message, and its span of places by node index.

    spaces: SPACE of each node. pool: memory for columns of this layout only, so that memory that held secrets
    is never used by a layout that redacts.
    """

    nodes: tuple[Node, ...]
    spaces: NDArray[np.int64]
    places: Places
    columns: dict[Message, Node]
    spans: dict[int, Span]
    pool: BufferPool


def build_layout(messages: Iterable[Message], redact: bool) -> Layout:
    """The nodes of the columns of these messages; redact: secrets have no memory."""
    builder = _Builder(redact)
    columns = {message: builder.message(message) for message in messages}
    places: list[Place] = []
    spans: dict[int, Span] = {}
    for column in columns.values():
        # Bitmaps come first: only they must be zeroed before use.
        own = [place for node in column.descendants for place in _places(node)]
        bitmaps = sum(place.word == VALIDITY for place in own)
        own.sort(key=lambda place: place.word != VALIDITY)
        spans[column.index] = Span(len(places), len(places) + len(own), len(places) + bitmaps)
        numbers = {place: number for number, place in enumerate(own, len(places))}
        for node in column.descendants:
            node.buffers = [] if node.nullable else [None]
            node.buffers += [numbers[place] for place in _places(node)]
        places += own
    spaces = np.array([node.space * NODE_BYTES for node in builder.nodes], dtype=np.int64)
    return Layout(tuple(builder.nodes), spaces, Places(places), columns, spans, BufferPool())


def _places(node: Node) -> Iterator[Place]:
    """In the order of Arrow's buffers."""
    if node.nullable:
        yield Place(node.index, VALIDITY, node.space, 1)
    if node.kind in ("text", "list"):
        yield Place(node.index, OFFSETS, node.space, 32, 4 + SLACK)
    if node.kind == "text":
        yield Place(node.index, VALUES, node.index, 8, SLACK)
    elif node.kind in _BITS or node.kind == "number":
        yield Place(node.index, VALUES, node.space, _BITS.get(node.kind, 8 * node.width), SLACK)


class _Builder:
    def __init__(self, redact: bool) -> None:
        self._redact = redact
        self.nodes = [Node(0, "rows", 0)]

    def message(self, message: Message) -> Node:
        node = self._add("struct", 0, nullable=True)
        node.type = arrow_type(Field(message.name, "struct", fields=message_fields(message)))
        self._fields(node, message.fields, message.versions)
        secret = named_secret(message)
        if self._redact and secret is not None:
            _, held = secret
            node.children[held.column].kind = "guarded"
            node.children[held.column].nullable = True
        return node

    def _fields(self, parent: Node, facts: Iterable[Field], versions: Versions) -> None:
        for fact in table_fields(facts):
            if not (self._redact and fact.secret):
                parent.children[fact.column] = self._field(fact, parent.space, versions)

    def _field(self, fact: Field, space: int, versions: Versions) -> Node:
        nullable = fact.nullable is not None or any(version not in fact.versions for version in versions)
        if not fact.array:
            return self._value(fact, space, nullable, versions)
        node = self._add("list", space, nullable=nullable)
        node.type = arrow_type(fact)
        node.children["item"] = self._value(fact, node.index, False, versions)
        return node

    def _value(self, fact: Field, space: int, nullable: bool, versions: Versions) -> Node:
        if fact.type == "struct":
            node = self._add("struct", space, nullable=nullable)
            self._fields(node, fact.fields, versions)
        elif fact.type == "bool":
            node = self._add("bit", space, nullable=nullable)
        elif fact.type in _WIDTHS:
            node = self._add("number", space, nullable=nullable)
            node.width = _WIDTHS[fact.type]
        else:
            node = self._add("text", space, nullable=nullable)
        whole = arrow_type(fact)
        node.type = whole.value_type if fact.array else whole
        return node

    def _add(self, kind: Kind, space: int, *, nullable: bool) -> Node:
        node = Node(len(self.nodes), kind, space, nullable)
        self.nodes.append(node)
        return node
