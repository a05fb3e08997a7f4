"""What a declaration may hold beyond what Kafka's have today: the kernel reads it without knowing it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_core.columnar import kernel_abi as words
from kraft_core.columnar.arrow import message_arrays
from kraft_core.columnar.chunk import Chunk, Sizes
from kraft_core.columnar.kernel import decode_batches
from kraft_core.columnar.layout import Layout, build_layout
from kraft_core.columnar.program import Program, compile_program
from kraft_core.columnar.schema import arrow_type, projection
from kraft_core.format.batch import read_header, write_batch
from kraft_core.format.codec import write_metadata_value
from kraft_core.messages.schema import ALL, V0, Field, Message, Versions, since
from tests.kraft_core.batches import raw
from tests.kraft_core.strategies import values

KEY = 77
SCALARS = (
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
)


def message(*fields: Field, versions: Versions = V0) -> Message:
    return Message("ImaginedRecord", KEY, versions, fields)


INNER = (
    Field("id", "int32"),
    Field("name", "string", nullable=ALL),
    Field("tags", "uuid", array=True),
    Field("late", "bytes", tag=0),
)
EVERY_SCALAR = message(*(Field(f"f{type_}", type_) for type_ in SCALARS))
EVERY_ARRAY = message(*(Field(f"f{type_}", type_, array=True, nullable=ALL) for type_ in SCALARS))
EVERY_TAGGED = message(*(Field(f"f{type_}", type_, tag=tag) for tag, type_ in enumerate(SCALARS)))
STRUCTS = message(
    Field("plain", "struct", fields=INNER),
    Field("maybe", "struct", nullable=ALL, fields=INNER),
    Field(
        "many",
        "struct",
        array=True,
        nullable=ALL,
        fields=(*INNER, Field("deep", "struct", array=True, fields=INNER)),
    ),
    Field("after", "int16"),
)
TAGGED_STRUCTS = message(
    Field("struct", "struct", tag=0, fields=INNER),
    Field("maybe", "struct", tag=1, nullable=ALL, default=None, fields=INNER),
    Field("many", "struct", array=True, tag=2, fields=INNER),
    Field("last", "int64", tag=3, default=-7),
)
DEFAULTS = message(
    Field("text", "string", tag=0, default="what else?"),
    Field("none", "string", tag=1, nullable=ALL, default=None),
    Field("empty", "int8", array=True, tag=2),
    Field("yes", "bool", tag=3, default=True),
    Field("low", "int64", tag=4, default=-5),
    Field("wide", "uint32", tag=5, default=9),
    Field("uuid", "uuid", tag=6),
)
GROWN = message(
    Field("always", "int32"),
    Field("gone", "string", versions=Versions(0, 0)),
    Field("late", "string", versions=since(1)),
    Field("moved", "int32", tag=0, tagged=since(1), versions=since(0), default=4),
    versions=Versions(0, 2),
)
IMAGINED = [EVERY_SCALAR, EVERY_ARRAY, EVERY_TAGGED, STRUCTS, TAGGED_STRUCTS, DEFAULTS, GROWN]


def machinery(declared: Message) -> tuple[Layout, Program]:
    layout = build_layout([declared], redact=False)
    return layout, compile_program(layout, {KEY: declared}, {})


def read(declared: Message, log: bytes) -> Chunk:
    """The chunk after one run over the log, with as little memory at first as there can be."""
    layout, program = machinery(declared)
    wanted = np.ones(len(program.types), dtype=np.uint8)
    chunk = Chunk(layout, program, Sizes.unknown(layout), wanted, rows=64)
    held = np.frombuffer(log, dtype=np.uint8)
    chunk[words.AT] = held.ctypes.data
    chunk[words.STOP] = held.ctypes.data + len(log)
    while decode_batches(chunk.address) == words.NO_ROOM:
        chunk.make_room()
    return chunk


@pytest.mark.parametrize("declared", IMAGINED, ids=lambda declared: declared.fields[0].name)
@given(data=st.data())
@settings(max_examples=25, deadline=None)
def test_imagined_messages(declared, data):
    version = data.draw(st.sampled_from(list(declared.versions)))
    held = data.draw(st.lists(values(declared, version), min_size=1, max_size=5))
    records = [
        raw(offset, write_metadata_value(declared, version, value)) for offset, value in enumerate(held)
    ]
    chunk = read(declared, write_batch(0, 1, records))
    assert chunk[words.ROWS] == len(held)
    array = message_arrays(chunk)[declared.column]
    array.validate(full=True)
    type_ = arrow_type(Field("", "struct", fields=declared.fields))
    assert array.equals(pa.array(map(projection(declared.fields), held), type=type_))


def test_absent_tagged_fields_take_their_defaults():
    chunk = read(DEFAULTS, write_batch(0, 1, [raw(0, bytes([1, KEY, 0, 0]))]))
    (row,) = message_arrays(chunk)[DEFAULTS.column].to_pylist()
    assert row == {
        "text": "what else?",
        "none": None,
        "empty": [],
        "yes": True,
        "low": -5,
        "wide": 9,
        "uuid": "A" * 22,
    }


@pytest.mark.parametrize(
    ("field", "reason"),
    [
        (Field("list", "int32", array=True, tag=0, default=[1]), "list"),
        (Field("wide", "int64", tag=0, default=1 << 40), "wide"),
        (Field("far", "int32", tag=63), "tag 63"),
        (Field("secrets", "string", array=True, secret=True), "secrets"),
    ],
    ids=lambda held: held if isinstance(held, str) else "",
)
def test_what_no_instruction_covers_is_refused(field, reason):
    layout = build_layout([message(field)], redact=True)
    with pytest.raises(ValueError, match=reason):
        compile_program(layout, {KEY: next(iter(layout.columns))}, {})


def test_room_that_grows_keeps_what_was_written():
    declared = message(
        Field("text", "string"),
        Field(
            "many", "struct", array=True, fields=(Field("name", "string"), Field("ids", "int32", array=True))
        ),
    )
    held = [
        {
            "text": f"{number}" * 999,
            "many": [{"name": f"{number}-{index}" * 50, "ids": list(range(index))} for index in range(40)],
        }
        for number in range(60)
    ]
    records = [raw(offset, write_metadata_value(declared, 0, value)) for offset, value in enumerate(held)]
    log = write_batch(0, 1, records)
    chunk = read(declared, log)
    assert chunk[words.ROWS] == read_header(log, 0).record_count
    assert message_arrays(chunk)[declared.column].to_pylist() == held
