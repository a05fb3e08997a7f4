"""--format kafka: every golden capture as Kafka's own tool prints it, and what no Kafka writes."""

import tarfile
from pathlib import Path

import pytest

from kraft_core.format.batch import write_batch
from kraft_core.format.codec import write_metadata_value
from kraft_core.format.java_text import java_double
from kraft_core.format.kafka_dump import DumpOptions, FileDump
from kraft_core.messages.metadata import by_api_key
from tests.golden_compare import golden_dumps
from tests.kraft_core.batches import raw
from tests.kraft_core.format.kafka_dumps import difference

GOLDEN = Path(__file__).parents[2] / "golden"
QUIRKS = Path(__file__).parent / "kafka_dumps"

# 4.4.0's tool lacked a class of its own and ended so after each file.
OWN_FAULT = 'Exception in thread "main" java.lang.NoSuchMethodError'

# Dumped by the tool of that release, whose output differs; tests/long dumps them by 4.3.1.
BY_ANOTHER_RELEASE = "at-3.9.2"


def test_every_golden_dump_byte_for_byte():
    compared, differing = 0, {}
    for file, printed, skipped in golden_dumps(GOLDEN):
        if file.suffix in (".log", ".checkpoint") and BY_ANOTHER_RELEASE not in file.parts:
            compared += 1
            text = printed.split(OWN_FAULT)[0]
            found = difference(file, file.name, text, skipped)
            if found is not None:
                differing[file] = found
    assert differing == {}
    assert compared == 310


@pytest.mark.parametrize(("name", "logs"), [("values", 1), ("batches", 488)])
def test_what_no_kafka_writes_byte_for_byte(tmp_path, name, logs):
    with tarfile.open(QUIRKS / f"{name}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    files = sorted(tmp_path.glob("*.log"))
    found = {
        file.name: difference(file, file.name, Path(f"{file}.txt").read_bytes().decode()) for file in files
    }
    assert {name: text for name, text in found.items() if text is not None} == {}
    assert len(files) == logs


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (100.0, "100.0"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (1.5e-3, "0.0015"),
        (9.99e-4, "9.99E-4"),
        (5e-324, "4.9E-324"),
        (-123456.789, "-123456.789"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
    ],
)
def test_doubles_as_java_writes_them(value, text):
    assert java_double(value) == text


def dumped(type_id: int, fields: dict, options: DumpOptions) -> str:
    value = write_metadata_value(by_api_key[type_id], 0, fields)
    log = write_batch(0, 1, [raw(0, value)])
    return "".join(FileDump(options).texts(log, "00000000000000000000.log"))


CONFIG = {"resourceType": 4, "resourceName": "", "name": "ssl.key.password", "value": "hunter2"}


def test_secrets_are_null_unless_shown():
    assert '"name":"ssl.key.password","value":null}' in dumped(4, CONFIG, DumpOptions())
    assert '"value":"hunter2"' in dumped(4, CONFIG, DumpOptions(show_secrets=True))
    plain = {**CONFIG, "name": "retention.ms", "value": "7"}
    assert '"value":"7"' in dumped(4, plain, DumpOptions())
    allowed = {**CONFIG, "name": "my.plugin"}
    assert '"value":null' in dumped(4, allowed, DumpOptions())
    assert '"value":"hunter2"' in dumped(4, allowed, DumpOptions(allowed=frozenset({"my.plugin"})))


def test_the_secret_name_of_one_config_does_not_carry_over_to_the_next():
    names = ["ssl.key.password", "retention.ms", "ssl.key.password"]
    values = [
        write_metadata_value(by_api_key[4], 0, {**CONFIG, "name": name, "value": "v"}) for name in names
    ]
    log = write_batch(0, 1, [raw(index, value) for index, value in enumerate(values)])
    text = "".join(FileDump(DumpOptions()).texts(log, "00000000000000000000.log"))
    assert [line.rpartition('"value":')[2] for line in text.splitlines() if "payload" in line] == [
        "null}}",
        '"v"}}',
        "null}}",
    ]
