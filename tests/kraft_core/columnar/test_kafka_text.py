"""What compiled code writes of whole batches is what kafka_dump writes record by record."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kraft_core.columnar import kafka_text, lines
from kraft_core.columnar.kafka_text import CompiledDump
from kraft_core.columnar.verdicts import MOST_ENTRIES, ConfigVerdicts
from kraft_core.format.batch import RawRecord, RecordHeader, write_batch
from kraft_core.format.codec import write_metadata_value
from kraft_core.format.kafka_dump import DumpOptions, DumpStopped, FileDump
from kraft_core.format.mapped_file import mapped
from kraft_core.format.secrets import is_secret_config, is_secret_name
from kraft_core.format.varint import Buffer
from kraft_core.messages.metadata import by_api_key
from kraft_core.messages.schema import Message
from tests.kraft_core.batches import NO_OP, no_op_batch, raw, raw_records, resealed
from tests.kraft_core.strategies import METADATA_VERSIONS, message_id, values

GOLDEN = Path(__file__).parents[2] / "golden"
QUIRKS = Path(__file__).parents[1] / "format" / "kafka_dumps"
LOG = GOLDEN / "dynamic-membership/node-1/__cluster_metadata-0/00000000000000000697.log"
NAME = "00000000000000000000.log"
HIDDEN, SHOWN = DumpOptions(), DumpOptions(show_secrets=True)
CONFIG, QUOTA = by_api_key[4], by_api_key[14]

settled = settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow], deadline=None)
thorough = settings(settled, max_examples=200)


def outcome(dump: FileDump, buf: Buffer, name: str = NAME) -> tuple[str, Any, Any]:
    """All that a dump prints and notes of a file."""
    text, stopped = "", None
    try:
        for piece in dump.texts(buf, name):
            text += piece
    except DumpStopped as stop:
        text, stopped = text + stop.text, (stop.reason, stop.position)
    noted = (dump.jumps, dump.batches, dump.invalid, dump.unread, dump.last_offset, dump.is_empty_log)
    return text, stopped, noted


class Counted(CompiledDump):
    """left: how many batches were left to kafka_dump."""

    left = 0

    def _batch(self, buf: Buffer, position: int) -> str:
        self.left += 1
        return super()._batch(buf, position)


def compared(buf: Buffer, options: DumpOptions = HIDDEN, name: str = NAME) -> Counted:
    dump = Counted(options)
    assert outcome(dump, buf, name) == outcome(FileDump(options), buf, name)
    return dump


def compared_file(path: Path, options: DumpOptions) -> Counted:
    with mapped(path) as buf:
        return compared(buf, options, path.name)


def logs(*held: bytes) -> Iterator[bytes]:
    """All values in one batch, and each in its own."""
    yield write_batch(0, 1, [raw(n, value) for n, value in enumerate(held)])
    yield b"".join(write_batch(n, 1, [raw(n, value)]) for n, value in enumerate(held))


@pytest.mark.parametrize("size", [1 << 20, 4096])
def test_every_golden_file(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(kafka_text, "_TEXT_BYTES", size)
    paths = [path for end in ("log", "checkpoint") for path in sorted(GOLDEN.rglob(f"*.{end}"))]
    if size == 4096:
        paths = [path for path in paths if path.stat().st_size < 20_000][::5]
    assert len(paths) > 30
    for path in paths:
        compared_file(path, SHOWN)
        if "all-record-types" in str(path):
            compared_file(path, HIDDEN)
            compared_file(path, DumpOptions(skip_metadata=True))


@pytest.mark.parametrize("name", ["values", "batches"])
def test_what_no_kafka_writes(tmp_path: Path, name: str) -> None:
    with tarfile.open(QUIRKS / f"{name}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    paths = sorted(tmp_path.glob("*.log"))
    assert paths
    for path in paths:
        compared_file(path, SHOWN)


def test_usual_batches_are_compiled() -> None:
    """Else the comparisons above compare nothing."""
    dump = compared_file(LOG, HIDDEN)
    assert 0 < dump.left < dump.batches / 20


def test_jumps_headers_and_other_options() -> None:
    config = {"resourceType": 4, "resourceName": "", "name": "ssl.key.password", "value": "hunter2"}
    value = write_metadata_value(CONFIG, 0, config)
    headed = write_batch(12, 3, [raw(12, value)._replace(headers=(RecordHeader("k", b"v"),))])
    log = no_op_batch(5) + no_op_batch(9) + no_op_batch(8) + headed + no_op_batch(13)
    for options in (HIDDEN, SHOWN, DumpOptions(skip_metadata=True), DumpOptions(max_bytes=150)):
        compared(log, options)
    text, *_ = outcome(CompiledDump(SHOWN), log)
    assert "headerKeys: [k] " in text


def test_all_lines_but_those_of_digests_and_bytes_are_compiled() -> None:
    left = {(line.message.type_name, line.hide) for line in lines.LINES if not lines.is_supported(line)}
    assert left == {
        ("DELEGATION_TOKEN_RECORD", True),
        ("REMOVE_DELEGATION_TOKEN_RECORD", True),
        ("USER_SCRAM_CREDENTIAL_RECORD", False),
    }


@pytest.mark.parametrize("case", METADATA_VERSIONS, ids=message_id)
def test_defaults_of_every_record_type(case: Any) -> None:
    message, version = case
    value = write_metadata_value(message, version, message.default(version))
    for options in (HIDDEN, SHOWN):
        dump = compared(write_batch(0, 1, [raw(0, value)]), options)
        line = lines.TextLine(message, version, not options.show_secrets)
        assert dump.left == int(message.layout is not None or not lines.is_supported(line))


def damaged(value: bytes, data: st.DataObject) -> bytes:
    """Bytes that are cut, with a few bits flipped, or with bytes put in."""
    at = data.draw(st.integers(0, len(value)))
    change = data.draw(st.sampled_from(["cut", "flip", "insert"]))
    if change == "cut":
        return value[:at]
    if change == "insert":
        return value[:at] + data.draw(st.binary(min_size=1, max_size=40)) + value[at:]
    held = bytearray(value)
    for place in data.draw(st.lists(st.integers(0, len(held) - 1), min_size=1, max_size=3)):
        held[place] ^= 1 << data.draw(st.integers(0, 7))
    return bytes(held)


def assert_records_alike(case: tuple[Message, int], data: st.DataObject) -> None:
    drawn = data.draw(st.lists(values(*case), min_size=1, max_size=5))
    held = [write_metadata_value(*case, value) for value in drawn]
    options = data.draw(st.sampled_from([HIDDEN, SHOWN]))
    for log in [*logs(*held), *logs(*(damaged(value, data) for value in held))]:
        compared(log, options)


@pytest.mark.parametrize("case", METADATA_VERSIONS, ids=message_id)
@given(data=st.data())
@settled
def test_records_and_damaged_records(case: Any, data: st.DataObject) -> None:
    assert_records_alike(case, data)


@pytest.mark.long
@pytest.mark.parametrize("case", METADATA_VERSIONS, ids=message_id)
@given(data=st.data())
@thorough
def test_many_records_and_damaged_records(case: Any, data: st.DataObject) -> None:
    assert_records_alike(case, data)


@given(data=st.data())
@settings(thorough, max_examples=100)
def test_logs_torn_and_flipped(data: st.DataObject) -> None:
    """Of batches of metadata and of any bytes; a flipped bit is one of a header, a record, or a CRC."""
    log = drawn_log(data)
    compared(log)
    compared(damaged(log, data), data.draw(st.sampled_from([HIDDEN, SHOWN])))


def drawn_log(data: st.DataObject) -> bytes:
    batches: list[bytes] = []
    offset = 0
    for _ in range(data.draw(st.integers(1, 6))):
        if data.draw(st.booleans()):
            records = data.draw(raw_records(offset))
        else:
            cases = data.draw(st.lists(st.sampled_from(METADATA_VERSIONS), min_size=1, max_size=5))
            written = [write_metadata_value(*case, data.draw(values(*case))) for case in cases]
            records = [raw(offset + n, value) for n, value in enumerate(written)]
        batches.append(write_batch(offset, data.draw(st.integers(0, 9)), records))
        offset = records[-1].offset + 1
    return b"".join(batches)


@given(numbers=st.lists(st.floats(allow_nan=False) | st.integers(-(10**16), 10**16).map(float), min_size=1))
@settled
def test_doubles(numbers: list[float]) -> None:
    quotas = [{"entity": [], "key": "k", "value": number, "remove": False} for number in numbers]
    for log in logs(*(write_metadata_value(QUOTA, 0, quota) for quota in quotas)):
        compared(log)


def test_whole_doubles_are_compiled() -> None:
    numbers = [0.0, -0.0, 7.0, -123.0, 9999999.0, 1e7, 10485760.0, -12345678.0, 999999999999999.0]
    quotas = [{"entity": [], "key": "k", "value": number, "remove": False} for number in numbers]
    for log in logs(*(write_metadata_value(QUOTA, 0, quota) for quota in quotas)):
        assert compared(log).left == 0


def of_configs(configs: Sequence[tuple[str, str | None]]) -> bytes:
    held = [
        write_metadata_value(
            CONFIG, 0, {"resourceType": 2, "resourceName": "t", "name": name, "value": value}
        )
        for name, value in configs
    ]
    return b"".join(logs(*held))


def test_configs_are_judged_once_and_secrets_are_null() -> None:
    configs = [
        ("retention.ms", "7"),
        ("ssl.key.password", "hunter2"),
        ("retention.ms", None),
        ("sasl.jaas.config", 'x required password="p";'),
        ("my.plugin", "shown?"),
        ("retention.ms", "7"),
        ("advertised.listeners", "SASL://u:p@h:9092"),
        ("ssl.key.password", "hunter2"),
    ]
    log = of_configs(configs)
    for options in (HIDDEN, SHOWN, DumpOptions(allowed=frozenset({"my.plugin"}))):
        assert compared(log, options).left == 1  # the second log begins at 0 again
    text, *_ = outcome(CompiledDump(HIDDEN), log)
    for secret in ("hunter2", "required", "u:p@h", "shown?"):
        assert secret not in text


def test_a_long_config_is_left() -> None:
    assert compared(of_configs([("retention.ms", "7" * 500)])).left == 2


@pytest.mark.parametrize("count", [MOST_ENTRIES - 1, 3 * MOST_ENTRIES])
@pytest.mark.parametrize("config", [("retention.ms", "-{}"), ("plugin.{}", "7")])
def test_more_configs_than_the_table_of_verdicts_holds(count: int, config: tuple[str, str]) -> None:
    name, value = config
    configs = [(name.format(number), value.format(number)) for number in range(count)]
    assert compared(of_configs(configs)).left <= 2


def test_a_name_is_judged_once_for_all_values_of_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[bytes] = []
    verdict = ConfigVerdicts._verdict

    def noted(verdicts: ConfigVerdicts, config: bytes) -> int:
        judged.append(config)
        return verdict(verdicts, config)

    monkeypatch.setattr(ConfigVerdicts, "_verdict", noted)
    names = ("retention.ms", "ssl.key.password", "my.plugin", "cleanup.policy")
    log = of_configs([(name, str(number)) for number in range(100) for name in names])
    assert compared(log).left == 1  # the second log begins at 0 again
    assert len(judged) == len(set(judged)) == len(names)
    text, *_ = outcome(CompiledDump(HIDDEN), log)
    assert text.count('"value":null') == 2 * 200
    assert text.count('"value":"99"') == 2 * 2


NAMES = st.sampled_from(["retention.ms", "ssl.key.password", "sasl.jaas.config", "my.plugin", "é", ""])
VALUES = st.from_regex(r"[0-9]{1,20}", fullmatch=True) | st.sampled_from(
    ["", "-1", "1.5", "12a", "7 ", "٣٤", "1²", "password=1", "AKIA0123456789012345", "http://1:2@3", "\x00"]
)


@given(configs=st.lists(st.tuples(NAMES, st.none() | VALUES), min_size=1, max_size=12))
@thorough
def test_what_is_hidden_of_values_that_are_digits_or_nearly(configs: list[tuple[str, str | None]]) -> None:
    for allowed in (frozenset[str](), frozenset({"my.plugin", "é", "ssl.key.password"})):
        assert compared(of_configs(configs), DumpOptions(allowed=allowed)).left <= 1


@given(name=NAMES, digits=st.from_regex(r"[0-9]+", fullmatch=True))
@thorough
def test_digits_carry_no_credentials(name: str, digits: str) -> None:
    """What verdicts.py relies on."""
    assert is_secret_config(name, digits) == is_secret_name(name)


@pytest.mark.parametrize("size", [0, 1, 31, 32, 33, 64, 5000, 0x7FFF - 3])
@pytest.mark.parametrize("odd", ["", "é", '"', "\\", "\n", "\x1f", "\x7f", "\u2028"])
def test_texts_of_every_size(size: int, odd: str) -> None:
    value = write_metadata_value(by_api_key[2], 0, {"name": "x" * size + odd, "topicId": "A" * 22})
    assert compared(write_batch(0, 1, [raw(0, value)])).left == 0
    assert compared(write_batch(0, 1, [raw(0, value), raw(1, value)])).left == 0


@pytest.mark.parametrize("number", [0, 9, 10, 99, 100, 101, 10**6, 1 << 31, 10**18, (1 << 63) - 1])
def test_numbers(number: int) -> None:
    record = by_api_key[15]
    for value in (number, -number, -number - 1):
        held = write_metadata_value(record, 0, record.default(0) | {"nextProducerId": value})
        assert compared(write_batch(0, 1, [RawRecord(0, number, None, held)])).left == 0


def test_lists_of_numbers() -> None:
    record = by_api_key[3]
    held = write_metadata_value(record, 0, record.default(0) | {"replicas": list(range(-12, 120))})
    dump = compared(write_batch(0, 1, [raw(0, held)]))
    assert dump.left == 0
    assert ",-1,0,1,2,3,4,5,6,7,8,9,10,11," in "".join(dump.texts(write_batch(0, 1, [raw(0, held)]), NAME))


@pytest.mark.parametrize("others", [[0], [5, 0, 5], [-1, 1 << 41], [-(1 << 62), 3], [(1 << 62) + 1]])
def test_times_that_are_the_batch_s_and_others(others: list[int]) -> None:
    """Of the last records, after others and before others."""
    for times in ([*others, 9, 9], [9, *others], [9, 9, *others, 9]):
        records = [RawRecord(n, time, None, NO_OP) for n, time in enumerate(times)]
        assert compared(write_batch(0, 1, records)).left == 0


@pytest.mark.parametrize("size", [-1, -2, -64])
def test_no_key_of_any_negative_size(size: int) -> None:
    """Kafka reads each as no key, and prints -1."""
    batch = bytearray(write_batch(0, 1, [raw(0, NO_OP)]))
    key_size_at = batch.rindex(NO_OP) - 2
    assert batch[key_size_at] == 1
    batch[key_size_at] = -2 * size - 1  # zigzag
    assert compared(resealed(bytes(batch)), SHOWN).left == 0


def test_a_batch_of_more_text_than_a_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_text, "_TEXT_BYTES", 8192)
    log = no_op_batch(0) + no_op_batch(1, records=1000) + no_op_batch(1001, records=2)
    assert compared(log).left == 0
