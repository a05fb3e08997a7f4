import subprocess
import sys
from pathlib import Path

import pytest

from jobs import dump_kafka
from jobs.cli import main
from kraft_core.format.batch import write_batch
from kraft_core.format.codec import write_metadata_value
from kraft_core.format.kafka_dump import DumpOptions
from kraft_core.messages.metadata import by_api_key
from tests.kraft_core.batches import no_op_batch, raw

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"
CORRUPT = GOLDEN / "corrupt"
LOGS = GOLDEN / "dynamic-membership" / "node-1" / "__cluster_metadata-0"
FIRST, SECOND = LOGS / "00000000000000000000.log", LOGS / "00000000000000000697.log"
BOOTSTRAP = LOGS.parent / "bootstrap.checkpoint"


def dump(capfdbinary, *arguments: object) -> tuple[int, str, str]:
    code = main(["dump", *map(str, arguments)])
    out, err = capfdbinary.readouterr()
    return code, out.decode(), err.decode()


def test_what_fingers_type(capfdbinary):
    code, out, err = dump(capfdbinary, "--cluster-metadata-decoder", "--files", f"{FIRST},{SECOND}")
    assert code == 0
    lines = out.splitlines()
    assert lines[:2] == [f"Dumping {FIRST}", "Log starting offset: 0"]
    assert lines[2].startswith("baseOffset: 0 lastOffset: 2 count: 3 baseSequence: -1 ")
    assert f"Dumping {SECOND}" in lines
    assert err == f"Non-consecutive offsets in {SECOND}\n  -1 is followed by 697\n"


@pytest.mark.parametrize("option", ["--print-data-log", "--deep-iteration", "--format=kafka"])
def test_each_option_of_kafkas_tool_selects_its_format(capfdbinary, option):
    expected = dump(capfdbinary, "--cluster-metadata-decoder", "--files", FIRST)
    assert dump(capfdbinary, option, FIRST) == expected
    assert expected[1].startswith("Dumping ")


def test_files_alone_are_json_lines(capfdbinary):
    assert dump(capfdbinary, "--files", f"{FIRST},{SECOND}") == dump(capfdbinary, FIRST, SECOND)


def test_skip_record_metadata(capfdbinary):
    code, out, _ = dump(capfdbinary, "--skip-record-metadata", FIRST)
    assert code == 0
    # An empty line for each control record.
    assert out.splitlines()[3:6] == ["", "", ""]
    assert '| payload: {"type":"FEATURE_LEVEL_RECORD"' in out
    assert dump(capfdbinary, "--skip-record-metadata", "--format", "text", FIRST)[0::2] == (
        2,
        "kraftlake dump: --skip-record-metadata is an option of --format kafka, not of text\n",
    )


def test_max_bytes_is_for_every_format(capfdbinary):
    code, out, err = dump(capfdbinary, "--max-bytes", 3000, "--format", "kafka", FIRST)
    assert (code, err) == (0, "")
    last = [line for line in out.splitlines() if line.startswith("baseOffset")][-1]
    assert int(last.partition(" position: ")[2].split()[0]) < 3000
    code, records, err = dump(capfdbinary, "--max-bytes", 3000, FIRST)
    assert (code, err) == (0, "")
    assert len(records.splitlines()) == out.count("\n| ")
    checkpoint = next(LOGS.glob("*-0000000009.checkpoint"))
    assert dump(capfdbinary, "--max-bytes", 3000, checkpoint)[::2] == (0, "")
    assert dump(capfdbinary, "--max-bytes", -1, FIRST)[0] == 2


def test_secrets_are_null_unless_shown(capfdbinary, tmp_path):
    scram = {"name": "alice", "mechanism": 1, "salt": b"a", "storedKey": b"b", "serverKey": b"c"}
    value = write_metadata_value(by_api_key[11], 0, {**scram, "iterations": 4096})
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(write_batch(0, 1, [raw(0, value)]))
    _, out, _ = dump(capfdbinary, "--format", "kafka", path)
    assert '"salt":null,"storedKey":null,"serverKey":null,"iterations":4096}' in out
    _, out, _ = dump(capfdbinary, "--format", "kafka", "--show-secrets", path)
    assert '"salt":"YQ==","storedKey":"Yg==","serverKey":"Yw==","iterations":4096}' in out


@pytest.mark.parametrize(
    ("case", "code", "says"),
    [
        ("crc-flip-middle", 1, "1 batch with a wrong CRC"),
        ("unknown-record-type", 1, "1 record cannot be read"),
        ("length-too-small", 1, "a batch of 10 bytes: kafka-dump-log stops here; --format jsonl continues"),
        ("torn-last-batch", 0, ""),
        ("empty-segment", 0, ""),
        ("all-zero", 1, "at position 0: a batch of 0 bytes: kafka-dump-log stops here"),
        ("zero-tail", 1, "kafka-dump-log stops here"),
    ],
)
def test_faults(capfdbinary, case, code, says):
    found, _, err = dump(capfdbinary, "--format", "kafka", CORRUPT / case / "00000000000000000408.log")
    assert (found, says in err) == (code, True)


def test_a_file_of_no_known_suffix_is_ignored_as_by_kafka(capfdbinary, tmp_path):
    other = tmp_path / "a.checkpoint.part"
    other.write_bytes(b"")
    code, out, err = dump(capfdbinary, "--format", "kafka", other)
    assert (code, out, err) == (3, f"Dumping {other}\n", f"Ignoring unknown file {other}\n")


def test_kafkas_indexes_are_refused(capfdbinary):
    code, out, err = dump(capfdbinary, "--format", "kafka", LOGS / "00000000000000000697.snapshot")
    assert (code, out) == (2, "")
    assert err.endswith("is not a log: dump reads .log and .checkpoint files, not Kafka's indexes\n")


def test_a_folder_is_all_that_it_contains(capfdbinary):
    _, out, _ = dump(capfdbinary, "--format", "kafka", LOGS.parent)
    named = [
        Path(line.removeprefix("Dumping ")).name for line in out.splitlines() if line.startswith("Dumping ")
    ]
    assert named[0] == BOOTSTRAP.name
    assert len(named) == 10


def test_no_file_is_wrong_usage(capfdbinary):
    assert dump(capfdbinary)[0] == 2
    assert dump(capfdbinary, "--files", ",")[0] == 2


def test_paths_are_printed_as_they_are_given():
    """As Java's File has them: neither resolved nor shortened, but for doubled slashes."""
    given = "./tests//golden/../golden/corrupt/empty-segment/00000000000000000408.log"
    done = subprocess.run(
        [sys.executable, "-m", "jobs.cli", "dump", "--format", "kafka", given],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    assert done.stdout.splitlines()[0] == f"Dumping {given.replace('//', '/')}"


def test_names_cannot_act_on_a_terminal(tmp_path):
    """What is piped is as Kafka prints it; a terminal gets the escape."""
    path = tmp_path / "00000000000000000000.log"
    fields = {"name": "a\x9b31m", "topicId": "A" * 22}
    path.write_bytes(write_batch(0, 1, [raw(0, write_metadata_value(by_api_key[2], 0, fields))]))
    command = f"{sys.executable} -m jobs.cli dump --format kafka {path}"
    piped = subprocess.run(command.split(), cwd=ROOT, capture_output=True, check=True).stdout
    shown = subprocess.run(
        ["script", "-qec", command, "/dev/null"], cwd=ROOT, capture_output=True, check=True
    ).stdout
    assert "a\x9b31m".encode() in piped
    assert "\x9b".encode() not in shown
    assert b"a\\u009b31m" in shown


def test_two_files_of_a_log_that_jumps(capfdbinary, tmp_path):
    path = tmp_path / "00000000000000000005.log"
    path.write_bytes(no_op_batch(5) + no_op_batch(9) + no_op_batch(8))
    code, _, err = dump(capfdbinary, "--format", "kafka", path)
    assert code == 0
    assert err.splitlines()[1:] == ["  -1 is followed by 5", "  5 is followed by 9", "  9 is followed by 8"]


def test_a_large_file_is_printed_as_a_small_one(capfdbinary, monkeypatch):
    small = dump(capfdbinary, "--format", "kafka", FIRST, SECOND)
    monkeypatch.setattr(dump_kafka, "_LARGE_BYTES", 0)
    monkeypatch.setattr(dump_kafka, "_WORTH_COMPILING_BYTES", 0)
    assert type(dump_kafka._file_dump(str(FIRST), DumpOptions())).__name__ == "CompiledDump"
    assert dump(capfdbinary, "--format", "kafka", FIRST, SECOND) == small
    assert dump(capfdbinary, "--format", "kafka", "/nowhere.log")[0] == 2
