"""JSON made of columns is what the reference codec makes of each value, secrets removed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_core.columnar.fast import decode
from kraft_core.columnar.json_text import json_texts
from kraft_core.columnar.reference import to_columns
from kraft_core.format.batch import BatchHeader, read_header
from kraft_core.format.codec import to_json
from kraft_core.format.kafka_json import json_writer
from kraft_core.format.mapped_file import mapped
from kraft_core.format.record import Record, read_log
from kraft_core.format.secrets import redact
from kraft_core.messages.schema import Message
from tests.kraft_core.strategies import CONTROL_VERSIONS, METADATA_VERSIONS, message_id, values

GOLDEN = Path(__file__).parents[2] / "golden"
FOLDERS = ("all-record-types", "all-record-types-4.4.0", "born-on-3.4", "corrupt", "v4.4.0-mini")
ALL_TYPES = GOLDEN / "all-record-types/node-7/__cluster_metadata-0/00000000000000000000.log"
VERSIONS = [*METADATA_VERSIONS, *((message, version) for _, message, version in CONTROL_VERSIONS)]


def expected(record: Record) -> Any:
    if record.message is None or record.value is None:
        return None
    value, _ = redact(record.message, record.value)
    return to_json(record.message, record.version or 0, value)


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_golden_record(folder: str) -> None:
    paths = [*(GOLDEN / folder).rglob("*.log"), *(GOLDEN / folder).rglob("*.checkpoint")]
    assert paths
    for path in paths:
        with mapped(path) as buf:
            wanted = [expected(record) for record in read_log(buf) if isinstance(record, Record)]
        texts = [text for records in decode(path) for text in json_texts(records).to_pylist()]
        assert [None if text is None else json.loads(text) for text in texts] == wanted


def test_the_text_is_that_of_kafka_dump_log() -> None:
    """By the writer that is held against Kafka's own output, byte for byte."""
    texts = [text for records in decode(ALL_TYPES) for text in json_texts(records).to_pylist()]
    with mapped(ALL_TYPES) as buf:
        records = [record for record in read_log(buf) if isinstance(record, Record)]
        # Of a compressed batch the values lie nowhere in the file; what has a former layout is none to Kafka.
        plain = [
            number
            for number, record in enumerate(records)
            if record.position > record.batch.position and record.message and record.message.layout is None
        ]
        written = [kafka_text(buf, records[number]) for number in plain]
    assert len(plain) > 20
    assert [texts[number] for number in plain] == written


def kafka_text(buf: Any, record: Record) -> str:
    assert record.message is not None
    value = bytes(buf[record.position : record.position + record.size_bytes])
    start = 0 if record.batch.is_control else frame_bytes(value)
    out: list[str] = []
    json_writer(record.message, record.version or 0, hide=True)(value, start, out)
    return "".join(out)


def frame_bytes(value: bytes) -> int:
    """Frame version, api key and version: an unsigned varint each."""
    at = 0
    for _ in range(3):
        while value[at] >= 0x80:
            at += 1
        at += 1
    return at


def assert_any_value_is_text(case: tuple[Message, int], data: st.DataObject) -> None:
    """Former layouts, nulls, defaults of tagged fields, quotes, control characters and any Unicode."""
    message, version = case
    held = data.draw(st.lists(values(message, version), min_size=1, max_size=4))
    records = [record_of(message, version, value) for value in held]
    texts = json_texts(to_columns(records, redact=True)).to_pylist()
    assert [json.loads(text) for text in texts] == [expected(record) for record in records]


@pytest.mark.parametrize("case", VERSIONS, ids=message_id)
@settings(max_examples=6)
@given(data=st.data())
def test_any_value(case: tuple[Message, int], data: st.DataObject) -> None:
    assert_any_value_is_text(case, data)


@pytest.mark.long
@pytest.mark.parametrize("case", VERSIONS, ids=message_id)
@given(data=st.data())
def test_many_values(case: tuple[Message, int], data: st.DataObject) -> None:
    assert_any_value_is_text(case, data)


@settings(max_examples=30)
@given(data=st.data())
def test_types_of_one_chunk_are_kept_apart(data: st.DataObject) -> None:
    """Each text belongs to its record, whatever stands before and behind it."""
    cases = data.draw(st.lists(st.sampled_from(METADATA_VERSIONS), min_size=1, max_size=8))
    records = [record_of(message, version, data.draw(values(message, version))) for message, version in cases]
    texts = json_texts(to_columns(records, redact=True)).to_pylist()
    assert [json.loads(text) for text in texts] == [expected(record) for record in records]


def record_of(message: Message, version: int, value: dict[str, Any]) -> Record:
    return Record(
        offset=1,
        leader_epoch=1,
        timestamp=0,
        batch=HEADER,
        position_in_batch=0,
        type=message.type_name,
        version=version,
        api_key=message.api_key,
        message=message,
        value=value,
        key_size=-1,
        size_bytes=0,
        position=0,
    )


def _header() -> BatchHeader:
    with mapped(ALL_TYPES) as buf:
        return read_header(buf, 0)


HEADER = _header()
