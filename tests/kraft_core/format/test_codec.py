import gzip
import json
import re
from math import inf, nan
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kraft_core.format.batch import iter_records, read_header
from kraft_core.format.codec import (
    read_control_value,
    read_message,
    read_metadata_value,
    to_json,
    write_control_value,
    write_message,
    write_metadata_value,
)
from kraft_core.format.errors import DecodeError, EncodeError, TrailingBytes, UnknownRecord
from kraft_core.format.message_reader import UNKNOWN_TAGGED_FIELDS
from kraft_core.messages.control import CONTROL_RECORDS, KRAFT_VERSION, LEADER_CHANGE
from kraft_core.messages.legacy_layouts import (
    DELEGATION_TOKEN_RECORD_3_5,
    FEATURE_LEVEL_RECORD_3_2,
    USER_SCRAM_CREDENTIAL_RECORD_3_4,
)
from kraft_core.messages.metadata import by_api_key
from kraft_core.messages.schema import ALL, V0, Field, Message
from tests.kraft_core.strategies import CONTROL_VERSIONS, METADATA_VERSIONS, message_id, values

GOLDEN = Path(__file__).parents[2] / "golden"
# Without former layouts: what the frame of a record names.
BY_FRAME = [case for case in METADATA_VERSIONS if case[0] is by_api_key[case[0].api_key]]

every_metadata_version = pytest.mark.parametrize("case", METADATA_VERSIONS, ids=message_id)
every_control_version = pytest.mark.parametrize("case", CONTROL_VERSIONS, ids=message_id)
a_few = settings(max_examples=25, deadline=None)

# A message of everything that the format has and today's records do not use.
INNER = Field("inner", "struct", nullable=ALL, fields=(Field("number", "int8"),))
ODD = Message(
    "OddRecord",
    99,
    V0,
    (
        INNER,
        Field("big", "uint32"),
        Field("blob", "bytes", nullable=ALL),
        Field("structs", "struct", array=True, nullable=ALL, fields=INNER.fields),
        Field("tagged", "struct", tag=3, nullable=ALL, default=None, fields=INNER.fields),
        Field("flag", "bool", tag=1, default=True),
        Field("word", "string", tag=2, nullable=ALL, default="w"),
    ),
)


def read_whole(message, version, buf):
    value, position = read_message(message, version, buf)
    assert position == len(buf)
    return value


# Round trips


@every_metadata_version
def test_metadata_values_are_read_back(case):
    message, version = case
    names = list(message.default(version))

    @a_few
    @given(values(message, version))
    def check(value):
        encoded = write_message(message, version, value)
        read = read_whole(message, version, encoded)
        assert read == value
        assert [name for name in read if name != UNKNOWN_TAGGED_FIELDS] == names
        assert write_message(message, version, read) == encoded

    check()


@pytest.mark.parametrize("case", BY_FRAME, ids=message_id)
def test_framed_metadata_values_are_read_back(case):
    message, version = case

    @a_few
    @given(values(message, version))
    def check(value):
        read = read_metadata_value(write_metadata_value(message, version, value))
        assert read == (message, 1, message.api_key, version, value)

    check()


@every_control_version
def test_control_values_are_read_back(case):
    control_type, message, version = case

    @a_few
    @given(values(message, version))
    def check(value):
        read = read_control_value(control_type, write_control_value(control_type, value))
        assert read == (message, control_type, version, value)

    check()


@given(values(ODD, 0))
def test_rare_forms_are_read_back(value):
    assert read_whole(ODD, 0, write_message(ODD, 0, value)) == value


# Any bytes


def decode_error(read, *arguments):
    """The DecodeError that reading raises, None if it succeeds; any other exception passes through."""
    try:
        read(*arguments)
    except DecodeError as error:
        return error
    return None


def assert_well_formed(error, buf):
    assert error is None or (0 <= error.position <= len(buf) and error.reason)


@given(st.binary(max_size=80))
@example(b"\x01\x02\x00\xff\xff\xff\xff\x0f")
def test_random_bytes_raise_only_decode_errors(buf):
    assert_well_formed(decode_error(read_metadata_value, buf), buf)
    assert_well_formed(decode_error(read_message, ODD, 0, buf), buf)
    for control_type in range(-1, 9):
        assert_well_formed(decode_error(read_control_value, control_type, buf), buf)


@every_metadata_version
def test_mutated_bytes_raise_only_decode_errors(case):
    message, version = case

    @a_few
    @given(st.data())
    def check(data):
        buf = bytearray(write_message(message, version, data.draw(values(message, version))))
        for _ in range(data.draw(st.integers(1, 3))):
            start = data.draw(st.integers(0, len(buf)))
            buf[start : start + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=2))
        error = decode_error(read_message, message, version, bytes(buf))
        assert_well_formed(error, buf)
        if error is None:
            value, _ = read_message(message, version, bytes(buf))
            again = write_message(message, version, value)
            assert write_message(message, version, read_whole(message, version, again)) == again

    check()


@every_metadata_version
def test_every_cut_is_noticed(case):
    message, version = case

    @settings(max_examples=5, deadline=None)
    @given(values(message, version))
    def check(value):
        encoded = write_message(message, version, value)
        for end in range(len(encoded)):
            with pytest.raises(DecodeError):
                read_message(message, version, encoded, 0, end)

    check()


@pytest.mark.parametrize(
    ("encoded", "position", "field", "reason"),
    [
        ("", 0, "inner", "struct of 1 bytes, 0 remain"),
        ("01", 1, "inner.number", "int8 of 1 bytes, 0 remain"),
        ("ff 0000", 1, "big", "uint32 of 4 bytes, 2 remain"),
        ("ff 00000000 ffffffff0f", 10, "blob", "bytes of 4294967294 bytes, 0 remain"),
        ("ff 00000000 00 ffffffff0f", 6, "structs", "array of 4294967294 elements, 0 bytes remain"),
        ("ff 00000000 00 03 0700 08", 10, "structs", "varint ends early"),
        ("ff 00000000 00 00", 7, "", "varint ends early"),
        ("ff 00000000 00 00 02 01 01 00", 11, "", "varint ends early"),
        ("ff 00000000 00 00 02 02 0100 01 01 00", 11, "", "tag 1 after tag 2"),
        ("ff 00000000 00 00 02 01 0100 01 01 00", 11, "", "tag 1 after tag 1"),
        ("ff 00000000 00 00 01 01 02 0000", 10, "flag", "tagged field of 2 bytes holds 1"),
        ("ff 00000000 00 00 01 01 00 00", 10, "flag", "tagged field of 0 bytes holds 1"),
        ("ff 00000000 00 00 01 01 05 00", 10, "", "tagged field of 5 bytes, 1 remain"),
        ("ff 00000000 00 00 01 02 03 03 c328", 11, "word", "string is not UTF-8"),
    ],
)
def test_errors_say_where_and_why(encoded, position, field, reason):
    with pytest.raises(DecodeError) as caught:
        read_message(ODD, 0, bytes.fromhex(encoded))
    error = caught.value
    assert (error.position, error.field, error.reason) == (position, field, reason)
    assert str(error) == f"{field}: {reason} (byte {position})".removeprefix(": ")


def test_null_where_none_is_allowed():
    with pytest.raises(DecodeError) as caught:
        read_message(by_api_key[2], 0, bytes(18))
    assert (caught.value.position, caught.value.field, caught.value.reason) == (0, "name", "string is null")
    with pytest.raises(DecodeError, match="replicas: array is null"):
        read_message(by_api_key[3], 0, bytes(60))


def test_strings_as_long_as_kafka_allows():
    topic = by_api_key[2]
    longest = write_message(topic, 0, {"name": "n" * 32767})
    assert len(read_whole(topic, 0, longest)["name"]) == 32767
    with pytest.raises(EncodeError, match="name: string of 32768 bytes"):
        write_message(topic, 0, {"name": "n" * 32768})
    with pytest.raises(DecodeError, match="name: string of 32768 bytes, at most 32767"):
        read_message(topic, 0, bytes.fromhex("818002") + b"n" * 32768 + bytes(17))


def test_positions_count_from_the_start_of_the_buffer():
    message = by_api_key[12]
    buf = b"??" + write_message(message, 0, {"name": "metadata.version", "featureLevel": 7}) + b"rest"
    value, position = read_message(message, 0, memoryview(buf), 2)
    assert value == {"name": "metadata.version", "featureLevel": 7}
    assert buf[position:] == b"rest"
    with pytest.raises(DecodeError) as caught:
        read_message(message, 0, buf, 2, position - 2)
    assert (caught.value.position, caught.value.field) == (position - 3, "featureLevel")


# Frames


def test_records_that_no_declaration_covers():
    def unknown(buf):
        with pytest.raises(UnknownRecord) as caught:
            read_metadata_value(buf)
        error = caught.value
        return error.frame_version, error.api_key, error.version

    assert unknown(b"\x00\x07\x00") == (0, None, None)
    assert unknown(b"\x07\x02\x00") == (7, None, None)
    assert unknown(b"\x01\x0d\x00") == (1, 13, 0)
    assert unknown(b"\x01\xe7\x07\x00") == (1, 999, 0)
    assert unknown(b"\x01\x02\x63") == (1, 2, 99)
    controls = [(77, b"", None), (-1, b"", None), (5, b"\0\x01", 1), (2, b"\xff\xff", -1)]
    for control_type, buf, version in controls:
        with pytest.raises(UnknownRecord) as caught:
            read_control_value(control_type, buf)
        assert (caught.value.api_key, caught.value.version) == (control_type, version)


@pytest.mark.parametrize(
    ("encoded", "position", "reason"),
    [
        ("", 0, "varint ends early"),
        ("01", 1, "varint ends early"),
        ("0114", 2, "varint ends early"),
        ("01808002", 1, "api key 32768 is too large"),
        ("0114ffffffff0f", 2, "version 4294967295 is too large"),
        ("011400", 3, "varint ends early"),
    ],
)
def test_unreadable_frames(encoded, position, reason):
    with pytest.raises(DecodeError) as caught:
        read_metadata_value(bytes.fromhex(encoded))
    assert (type(caught.value), caught.value.position, caught.value.reason) == (DecodeError, position, reason)


def test_nothing_may_follow():
    with pytest.raises(TrailingBytes) as caught:
        read_metadata_value(bytes.fromhex("01140000beef"))
    assert (caught.value.position, caught.value.count) == (4, 2)
    with pytest.raises(TrailingBytes):
        read_control_value(KRAFT_VERSION, bytes.fromhex("000000010000"))
    with pytest.raises(DecodeError, match="version of 2 bytes, 1 remain"):
        read_control_value(KRAFT_VERSION, b"\0")


# Writing


def test_fields_left_out_hold_their_defaults():
    message = by_api_key[0]
    value = read_whole(message, 4, write_message(message, 4, {"brokerId": 5}))
    assert value == message.default(4) | {"brokerId": 5}
    assert (value["fenced"], value["rack"], value["cordonedLogDirs"]) == (True, "", None)


@pytest.mark.parametrize(
    ("api_key", "version", "value", "reason"),
    [
        (0, 0, {"brokerId": 1 << 31}, "brokerId: 2147483648 is no int32"),
        (0, 0, {"endPoints": [{"port": -1}]}, "endPoints.port: -1 is no uint16"),
        (0, 0, {"endPoints": [5]}, "endPoints: a struct is needed, not 5"),
        (0, 0, {"endPoints": None}, "endPoints: null is not allowed"),
        (0, 0, {"endPoints": 5}, "endPoints: a list is needed, not 5"),
        (0, 0, {"incarnationId": "x"}, "incarnationId: 'x' is not a uuid"),
        (0, 0, {"incarnationId": 5}, "incarnationId: 5 is not a uuid"),
        (0, 0, {"fenced": 1}, "fenced: 1 is not a bool"),
        (0, 0, {"rack": 5}, "rack: 5 is not text"),
        (0, 0, {"rack": "\ud800"}, "rack: '\\ud800' is not text"),
        (0, 0, {"logDirs": []}, "no such field in version 0: ['logDirs']"),
        (11, 0, {"salt": "text"}, "salt: 'text' is not bytes"),
        (23, 0, {"unknownTaggedFields": [(0, b"")]}, "unknownTaggedFields: tag 0 is taken"),
    ],
)
def test_values_that_a_message_cannot_hold(api_key, version, value, reason):
    with pytest.raises(EncodeError) as caught:
        write_message(by_api_key[api_key], version, value)
    assert str(caught.value) == reason


def test_versions_and_types_that_do_not_exist():
    for call in (read_message, write_message):
        with pytest.raises(ValueError, match="TopicRecord has no version 1"):
            call(by_api_key[2], 1, b"")
    with pytest.raises(ValueError, match="is not a metadata record"):
        write_metadata_value(CONTROL_RECORDS[LEADER_CHANGE], 0, {})
    with pytest.raises(EncodeError, match="unknown control record 77"):
        write_control_value(77, {})


# Former layouts

SCRAM_3_4 = {"mechanism": 1, "salt": b"salt", "saltedPassword": bytes(32), "iterations": 4096}


@pytest.mark.parametrize(
    ("layout", "value"),
    [
        (FEATURE_LEVEL_RECORD_3_2, {"name": "metadata.version", "minFeatureLevel": 1, "maxFeatureLevel": 5}),
        (FEATURE_LEVEL_RECORD_3_2, {"name": "f", "minFeatureLevel": 0, "maxFeatureLevel": 0}),
        (DELEGATION_TOKEN_RECORD_3_5, {"owner": "User:a", "renewers": ["User:b"], "tokenId": "t"}),
        (DELEGATION_TOKEN_RECORD_3_5, {"owner": "User:a", "tokenId": "t"}),
        (USER_SCRAM_CREDENTIAL_RECORD_3_4, {"name": "a", "credentialInfos": [SCRAM_3_4]}),
        (USER_SCRAM_CREDENTIAL_RECORD_3_4, {"name": "a", "credentialInfos": [SCRAM_3_4] * 2}),
    ],
)
def test_bytes_of_a_former_layout_are_read_by_it(layout, value):
    read = read_metadata_value(write_metadata_value(layout, 0, value))
    assert read.message is layout
    assert read.value == layout.default(0) | value


def test_bytes_that_fit_no_layout_are_judged_by_todays():
    with pytest.raises(DecodeError) as caught:
        read_metadata_value(bytes.fromhex("010c00 026600070007 00ff"))
    assert isinstance(caught.value, TrailingBytes)


# Real records


def golden_records(folder):
    """(offset, is control, key, value) of every record of a segment's intact batches."""
    buf = next((GOLDEN / folder).glob("node-7/__cluster_metadata-0/*.log")).read_bytes()
    position = 0
    while position < len(buf):
        header = read_header(buf, position)
        for record in iter_records(buf, header):
            yield record.offset, header.is_control, record.key, record.value
        position += header.size_bytes


def dumped_payloads(folder):
    """What kafka-dump-log printed for each record, by offset."""
    dump = next((GOLDEN / folder).glob("dump/node-7/*.log.txt.gz"))
    lines = gzip.decompress(dump.read_bytes()).decode().splitlines()
    matches = (re.match(r"\| offset: (\d+) .*headerKeys: \[\] (.*)", line) for line in lines)
    return {int(match[1]): match[2] for match in matches if match}


def printed(message, version, value):
    return json.dumps(to_json(message, version, value), separators=(",", ":"), ensure_ascii=False)


@pytest.mark.parametrize("folder", ["all-record-types", "all-record-types-4.4.0"])
def test_every_record_type_written_by_kafka(folder):
    payloads = dumped_payloads(folder)
    types = set()
    for offset, is_control, key, buf in golden_records(folder):
        if is_control:
            read = read_control_value(int.from_bytes(key[2:4], "big"), buf)
            assert write_control_value(read.control_type, read.value) == buf
            expected = payloads[offset].split(" ", 1)[1]
            assert printed(read.message, read.version, read.value) == expected
        else:
            read = read_metadata_value(buf)
            assert write_metadata_value(read.message, read.version, read.value) == buf
            head = f'{{"type":"{read.message.type_name}","version":{read.version},"data":'
            data = printed(read.message, read.version, read.value)
            assert f"payload: {head}{data}}}" == payloads[offset]
        types.add((read.message.type_name, read.version))
    assert offset == max(payloads)
    newest = 28 if folder == "all-record-types" else 29
    written_today = {
        (message.type_name, version)
        for message, version in BY_FRAME
        if message.layout is None and message.api_key <= newest
    }
    assert written_today <= types


def test_json_of_what_json_cannot_hold():
    quota = by_api_key[14]
    for number, shown in [(nan, "NaN"), (inf, "Infinity"), (-inf, "-Infinity")]:
        assert to_json(quota, 0, quota.default(0) | {"value": number})["value"] == shown


@given(values(ODD, 0))
@example(ODD.default(0) | {"inner": None})
def test_json_omits_tagged_defaults(value):
    shown = to_json(ODD, 0, value)
    tagged = {field.name for field in ODD.fields if field.is_tagged(0) and value[field.name] == field.default}
    assert set(shown) == {field.name for field in ODD.fields} - tagged
    json.dumps(shown, allow_nan=False)


def test_unknown_tagged_fields_are_kept_in_structs_too():
    controller = by_api_key[27]
    value = controller.default(0) | {
        "features": [
            {
                "name": "f",
                "minSupportedVersion": 0,
                "maxSupportedVersion": 1,
                "unknownTaggedFields": [(5, b"x")],
            }
        ],
        "unknownTaggedFields": [(0, b""), (9, b"yz")],
    }
    encoded = write_message(controller, 0, value)
    assert read_whole(controller, 0, encoded) == value
    assert "unknownTaggedFields" not in json.dumps(to_json(controller, 0, value))
