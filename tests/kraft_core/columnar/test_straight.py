"""Machine code for straight routines gives what the machine gives, whatever the bytes."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kraft_core.columnar import fast
from kraft_core.columnar.layout import build_layout
from kraft_core.columnar.program import NO_CODE, NO_ENTRY, Program, compile_program
from kraft_core.columnar.schema import RECORDS, message_columns
from kraft_core.columnar.straight import with_machine_code
from kraft_core.columnar.window import Window
from kraft_core.format.batch import RawRecord, write_batch
from kraft_core.format.codec import write_control_value, write_metadata_value
from kraft_core.format.secrets import NONE_ALLOWED
from kraft_core.messages.control import CONTROL_RECORDS
from kraft_core.messages.metadata import by_api_key
from tests.kraft_core.batches import raw
from tests.kraft_core.columnar.comparing import differing
from tests.kraft_core.strategies import CONTROL_VERSIONS, METADATA_VERSIONS, message_id, values

GOLDEN = Path(__file__).parents[2] / "golden"
ALL_TYPES = GOLDEN / "all-record-types" / "node-7" / "__cluster_metadata-0" / "00000000000000000000.log"
# They hold arrays of structs.
LEFT_TO_THE_MACHINE = {
    "LeaderChange",
    "KRaftVoters",
    "REGISTER_BROKER_RECORD",
    "CLIENT_QUOTA_RECORD",
    "REGISTER_CONTROLLER_RECORD",
}

settled = settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow], deadline=None)
thorough = settings(settled, max_examples=100)


@cache
def interpreted(redact: bool) -> Program:
    return compile_program(build_layout(message_columns(), redact), by_api_key, CONTROL_RECORDS)


@cache
def compiled(redact: bool) -> Program:
    return with_machine_code(interpreted(redact))


def decoded(log: bytes, redact: bool, program: Program) -> pa.Table:
    decoder = fast._Decoder(Window(log), redact, NONE_ALLOWED)
    decoder._program = program
    return pa.Table.from_batches(list(decoder.batches([(0, None)])), schema=RECORDS)


def assert_alike(log: bytes) -> None:
    for redact in (True, False):
        found = decoded(log, redact, compiled(redact))
        found.validate(full=True)
        assert differing(found, decoded(log, redact, interpreted(redact))) == []


def codes(program: Program) -> dict[str, set[int]]:
    """By record type, the numbers of the machine code of its versions."""
    found: dict[str, set[int]] = {}
    for begin in np.concatenate([program.metadata.ravel(), program.control.ravel()]).tolist():
        if begin != NO_ENTRY:
            found.setdefault(program.types[program.words[begin + 3]], set()).add(
                int(program.words[begin + 4])
            )
    return found


@pytest.mark.parametrize("redact", [True, False])
def test_all_but_nested_types_have_machine_code(redact):
    assert set().union(*codes(interpreted(redact)).values()) == {NO_CODE}
    found = codes(compiled(redact))
    assert {name for name, numbers in found.items() if NO_CODE in numbers} == LEFT_TO_THE_MACHINE
    assert sum(map(len, found.values())) > 35


def damaged(value: bytes, data: st.DataObject) -> bytes:
    """The value as it is, cut, with a few bits flipped, with bytes put in, or with more behind it."""
    change = data.draw(st.sampled_from(["none", "cut", "flip", "insert", "extend"]))
    at = data.draw(st.integers(0, len(value)))
    if change == "cut":
        return value[:at]
    if change == "flip":
        held = bytearray(value)
        for place in data.draw(st.lists(st.integers(0, len(held) - 1), min_size=1, max_size=3)):
            held[place] ^= 1 << data.draw(st.integers(0, 7))
        return bytes(held)
    if change in ("insert", "extend"):
        at = at if change == "insert" else len(value)
        return value[:at] + data.draw(st.binary(min_size=1, max_size=40)) + value[at:]
    return value


def assert_alike_in_batches(held: list[bytes], data: st.DataObject, key: bytes | None = None) -> None:
    """Valid values in one batch, each changed one in its own."""
    batches = [write_batch(0, 1, [raw(n, value, key) for n, value in enumerate(held)], is_control=bool(key))]
    for number, value in enumerate(held, len(held)):
        record = RawRecord(number, 0, key, damaged(value, data))
        batches.append(write_batch(number, 1, [record], is_control=bool(key)))
    assert_alike(b"".join(batches))


def assert_metadata_records_alike(case, data: st.DataObject) -> None:
    held = data.draw(st.lists(values(*case), min_size=1, max_size=5))
    assert_alike_in_batches([write_metadata_value(*case, value) for value in held], data)


@pytest.mark.parametrize("case", METADATA_VERSIONS, ids=message_id)
@given(data=st.data())
@settled
def test_metadata_records(case, data):
    assert_metadata_records_alike(case, data)


@pytest.mark.long
@pytest.mark.parametrize("case", METADATA_VERSIONS, ids=message_id)
@given(data=st.data())
@thorough
def test_many_metadata_records(case, data):
    assert_metadata_records_alike(case, data)


def assert_control_records_alike(case, data: st.DataObject) -> None:
    control_type, message, version = case
    held = data.draw(st.lists(values(message, version), min_size=1, max_size=3))
    key = b"\0\0" + control_type.to_bytes(2, "big")
    assert_alike_in_batches([write_control_value(control_type, value) for value in held], data, key)


@pytest.mark.parametrize("case", CONTROL_VERSIONS, ids=message_id)
@given(data=st.data())
@settled
def test_control_records(case, data):
    assert_control_records_alike(case, data)


@pytest.mark.long
@pytest.mark.parametrize("case", CONTROL_VERSIONS, ids=message_id)
@given(data=st.data())
@thorough
def test_many_control_records(case, data):
    assert_control_records_alike(case, data)


@given(data=st.data())
@settled
def test_records_of_all_types_in_turn(data):
    cases = data.draw(st.lists(st.sampled_from(METADATA_VERSIONS), min_size=1, max_size=30))
    held = [write_metadata_value(*case, data.draw(values(*case))) for case in cases]
    assert_alike_in_batches(held, data)


def test_a_real_log():
    assert_alike(ALL_TYPES.read_bytes())


@pytest.mark.parametrize("count", [0, 1, 3, 8, 9, 200])
@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 5000])
def test_texts_and_lists_of_every_size(count, size):
    partition = by_api_key[3]
    value = partition.default(2) | {name: list(range(count)) for name in ("replicas", "isr")}
    value |= {"directories": ["A" * 22] * count, "eligibleLeaderReplicas": [-1] * count}
    topic = {"name": "x" * (size - 1) + "é"[: size and 1], "topicId": "A" * 22}
    held = [write_metadata_value(partition, 2, value), write_metadata_value(by_api_key[2], 0, topic)] * 40
    assert_alike(write_batch(0, 1, [raw(n, value) for n, value in enumerate(held)]))


def test_a_quota_that_is_no_number():
    case = next(case for case in METADATA_VERSIONS if case[0].type_name == "CLIENT_QUOTA_RECORD")
    value = write_metadata_value(*case, {"entity": [], "key": "", "value": math.nan, "remove": False})
    assert_alike(write_batch(0, 1, [raw(0, value)]))
