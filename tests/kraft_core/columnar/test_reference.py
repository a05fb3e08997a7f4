import re
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_core.columnar.schema import HEADERS, RECORDS, message_columns, message_fields
from kraft_core.format.batch import RawRecord, write_batch
from kraft_core.format.codec import write_metadata_value
from kraft_core.format.log_files import find_log_files
from kraft_core.format.mapped_file import mapped
from kraft_core.format.record import Record, read_log
from kraft_core.format.secrets import is_secret_name
from kraft_core.format.segment import Damage, scan
from kraft_core.messages.control import CONTROL_RECORDS
from kraft_core.messages.metadata import by_api_key
from kraft_core.messages.schema import Field
from tests.kraft_core.batches import NO_OP, log_of, no_op_batch, raw, resealed
from tests.kraft_core.columnar.reference import ROWS, decode, scan_headers

GOLDEN = Path(__file__).parents[2] / "golden"
ALL_TYPES = GOLDEN / "all-record-types-4.4.0/node-7/__cluster_metadata-0/00000000000000000000.log"
CORRUPT = GOLDEN / "corrupt"
FILES = [*find_log_files(GOLDEN / "dynamic-membership" / "node-1"), ALL_TYPES, *find_log_files(CORRUPT)]


def rows(batches) -> list[dict]:
    return [row for batch in batches for row in batch.to_pylist()]


def ms(moment) -> int:
    return round(moment.timestamp() * 1000)


def test_the_envelope_comes_first():
    assert RECORDS.names[:8] == [
        "offset",
        "leader_epoch",
        "batch_crc",
        "position_in_batch",
        "appended_at",
        "type",
        "version",
        "is_control",
    ]
    assert len(set(RECORDS.names)) == len(RECORDS.names)


def test_every_type_has_its_column():
    messages = message_columns()
    assert len({message.column for message in messages}) == len(messages)
    assert set(messages) == {*by_api_key.values(), *CONTROL_RECORDS.values()}
    for message in messages:
        names = [field.name for field in RECORDS.field(message.column).type]
        assert names == ([f.column for f in message_fields(message)] or ["nothing"])


def test_former_layouts_fit_into_the_column():
    for message in message_columns():
        columns = {field.column: field for field in message_fields(message)}
        for former in message.older:
            assert former.column == message.column
            for field in former.fields:
                same = columns[field.column]
                assert (field.type, field.array) == (same.type, same.array)
                assert {f.column for f in field.fields} <= {f.column for f in same.fields}


@pytest.mark.parametrize("path", FILES, ids=lambda p: "/".join(p.parts[-3:]))
def test_headers_are_those_of_the_scan(path):
    found = rows(scan_headers(path))
    with mapped(path) as buf:
        items = list(scan(buf))
    assert len(found) == len(items)
    for row, item in zip(found, items, strict=True):
        assert list(row) == HEADERS.names
        assert (row["position"], row["size_bytes"]) == (item.position, item.size_bytes)
        if isinstance(item, Damage):
            assert (row["reason"], row["sha256"]) == (item.reason, item.sha256)
            assert all(value is None for value in list(row.values())[4:])
        else:
            assert (row["reason"], row["sha256"]) == (None, None)
            assert row["base_offset"] == item.base_offset
            assert row["last_offset"] == item.last_offset
            assert row["leader_epoch"] == item.leader_epoch
            assert (row["crc"], row["attributes"]) == (item.crc, item.attributes)
            assert (row["is_control"], row["record_count"]) == (item.is_control, item.record_count)
            assert ms(row["base_timestamp"]) == item.base_timestamp
            assert ms(row["appended_at"]) == item.max_timestamp


def as_columns(fields: tuple[Field, ...], value: dict) -> dict:
    """What a struct column should hold of a value, every column named."""
    result = {}
    for field in fields:
        held = value.get(field.name)
        if field.type == "struct" and held is not None:
            held = (
                [as_columns(field.fields, e) for e in held] if field.array else as_columns(field.fields, held)
            )
        result[field.column] = held
    return result or {"nothing": None}


@pytest.mark.parametrize("path", FILES, ids=lambda p: "/".join(p.parts[-3:]))
def test_records_are_those_of_the_reader(path):
    found = rows(decode(path, redact=False))
    with mapped(path) as buf:
        records = [item for item in read_log(buf) if isinstance(item, Record)]
    assert len(found) == len(records)
    columns = {message.column: message for message in message_columns()}
    for row, record in zip(found, records, strict=True):
        assert list(row) == RECORDS.names
        assert (row["offset"], row["leader_epoch"]) == (record.offset, record.leader_epoch)
        assert (row["batch_crc"], row["batch_base_offset"]) == (record.batch.crc, record.batch.base_offset)
        assert (row["position_in_batch"], ms(row["appended_at"])) == (
            record.position_in_batch,
            record.timestamp,
        )
        assert (row["type"], row["version"]) == (record.type, record.version)
        assert row["is_control"] == record.batch.is_control
        assert (row["key_size_bytes"], row["value_size_bytes"]) == (record.key_size, record.size_bytes)
        assert row["unread_reason"] == record.reason
        unread = (record.position, len(record.unread), record.digest) if record.reason else (None,) * 3
        assert (row["unread_position"], row["unread_size_bytes"], row["value_sha256"]) == unread
        assert row["redacted"] is False
        held = {name for name in columns if row[name] is not None}
        if record.value is None:
            assert held == set()
        else:
            assert held == {record.message.column}
            fields = message_fields(columns[record.message.column])
            assert row[record.message.column] == as_columns(fields, record.value)


def test_every_type_at_every_version_has_a_row():
    found = rows(decode(ALL_TYPES))
    assert len(found) == 269
    kinds = Counter((row["type"], row["version"]) for row in found)
    assert len(kinds) == 41
    filled = [m.column for m in message_columns() if any(row[m.column] is not None for row in found)]
    assert len(filled) == 30


def test_secrets_are_redacted_by_default():
    for path in (ALL_TYPES, *find_log_files(GOLDEN / "dynamic-membership/node-1")):
        for row in rows(decode(path)):
            scram, token, removed = (
                row[name] for name in ("user_scram_credential", "delegation_token", "remove_delegation_token")
            )
            if scram is not None:
                assert (scram["salt"], scram["stored_key"], scram["server_key"]) == (None, None, None)
                assert scram["mechanism"] is not None
            if token is not None:
                assert re.fullmatch("[0-9a-f]{16}", token["token_id"])
            config = row["config"]
            hidden = config is not None and is_secret_name(config["name"])
            assert not hidden or config["value"] is None
            assert row["redacted"] == (hidden or any(held is not None for held in (scram, token, removed)))
    shown = [row["user_scram_credential"] for row in rows(decode(ALL_TYPES, redact=False))]
    assert any(scram["stored_key"] for scram in shown if scram)


def test_unknown_tagged_fields_are_counted_and_left_out():
    (row,) = (
        r
        for r in rows(decode(CORRUPT / "unknown-tagged-field/00000000000000000408.log"))
        if r["offset"] == 507
    )
    assert (row["type"], row["unknown_tagged_fields"], row["unread_reason"]) == ("NO_OP_RECORD", 1, None)
    assert "xyz" not in str(row)


def test_unknown_tagged_fields_of_structs_count_too(tmp_path):
    message = by_api_key[0]
    endpoint = {
        "name": "a",
        "host": "b",
        "port": 1,
        "securityProtocol": 0,
        "unknownTaggedFields": [(9, b"x")],
    }
    value = {**message.default(0), "endPoints": [endpoint, endpoint], "unknownTaggedFields": [(7, b"y")]}
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(write_batch(0, 1, [raw(0, write_metadata_value(message, 0, value))]))
    (row,) = rows(decode(path))
    assert row["unknown_tagged_fields"] == 3


def test_ranges(tmp_path):
    batches = [no_op_batch(offset, records=10) for offset in range(0, 100, 10)]
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(log_of(*batches))
    size = len(batches[0])
    offsets = [row["offset"] for row in rows(decode(path, [(size, 2 * size), (7 * size, None)]))]
    assert offsets == [*range(10, 20), *range(70, 100)]
    assert rows(decode(path, [])) == []
    assert [row["base_offset"] for row in rows(scan_headers(path, 3 * size, 5 * size))] == [30, 40]


def test_large_files_come_in_batches(tmp_path):
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(write_batch(0, 1, [raw(i, NO_OP) for i in range(ROWS + 1)]) + no_op_batch(ROWS + 1))
    assert [batch.num_rows for batch in decode(path)] == [ROWS, 2]
    for batch in decode(path):
        batch.validate(full=True)
        assert batch.schema == RECORDS


def test_an_empty_file_has_no_rows(tmp_path):
    (tmp_path / "empty.log").write_bytes(b"")
    assert rows(scan_headers(tmp_path / "empty.log")) == rows(decode(tmp_path / "empty.log")) == []
    with pytest.raises(OSError, match="No such file"):
        list(decode(tmp_path / "nowhere.log"))


@pytest.mark.parametrize(
    ("timestamp", "held"),
    [
        (1 << 62, "9999-12-31T23:59:59.999000+00:00"),
        (253_402_300_800_000, "9999-12-31T23:59:59.999000+00:00"),
        (253_402_300_799_998, "9999-12-31T23:59:59.998000+00:00"),
        (-62_135_510_399_999, "0001-01-02T00:00:00.001000+00:00"),
        (-62_135_510_400_000, "0001-01-02T00:00:00+00:00"),
        # PySpark cannot hand out the first day of the calendar.
        (-62_135_510_400_001, "0001-01-02T00:00:00+00:00"),
        (-(1 << 62), "0001-01-02T00:00:00+00:00"),
    ],
)
def test_times_beyond_the_calendar_are_its_first_or_its_last(tmp_path, timestamp, held):
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(write_batch(0, 1, [RawRecord(offset=0, timestamp=timestamp, key=None, value=NO_OP)]))
    assert rows(decode(path))[0]["appended_at"].isoformat() == held
    (header,) = rows(scan_headers(path))
    assert [header[name].isoformat() for name in ("base_timestamp", "appended_at")] == [held] * 2


def columns_of(log: bytes, folder: Path) -> list[dict]:
    path = folder / "00000000000000000000.log"
    path.write_bytes(log)
    for batch in (*scan_headers(path), *decode(path)):
        batch.validate(full=True)
    return rows(decode(path))


FRAMES = st.sampled_from([b"", b"\x01", *(bytes([1, key, 0]) for key in by_api_key)])


@given(
    values=st.lists(st.tuples(FRAMES, st.binary(max_size=30)), min_size=1, max_size=5), control=st.booleans()
)
@settings(max_examples=200)
def test_any_value_gives_a_row(tmp_path_factory, values, control):
    records = [raw(i, frame + rest, b"\x00\x00" + rest[:2]) for i, (frame, rest) in enumerate(values)]
    log = write_batch(0, 1, records, is_control=control)
    found = columns_of(log, tmp_path_factory.getbasetemp())
    assert [row["offset"] for row in found] == list(range(len(values)))


@given(header=st.binary(min_size=61, max_size=61), keep=st.sets(st.sampled_from([0, 12, 21, 23, 27, 35, 57])))
@settings(max_examples=200)
def test_any_header_with_a_fitting_crc_gives_rows(tmp_path_factory, header, keep):
    fields = {0: 8, 12: 4, 21: 2, 23: 4, 27: 8, 35: 8, 57: 4}
    batch = bytearray(no_op_batch(7, records=3))
    for at, size in fields.items():
        if at not in keep:
            batch[at : at + size] = header[at : at + size]
    columns_of(resealed(bytes(batch)), tmp_path_factory.getbasetemp())


def test_types_are_those_spark_has():
    unsigned = {pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()}
    flat = [*RECORDS, *HEADERS]
    while flat:
        field = flat.pop()
        assert field.type not in unsigned
        if pa.types.is_struct(field.type):
            assert field.type.num_fields > 0
            flat += list(field.type)
        elif pa.types.is_list(field.type):
            flat.append(field.type.value_field)
