import json
import shutil
import subprocess
import sys
from base64 import b64decode
from pathlib import Path

import pytest

from jobs.cli import main
from kraft_core.format.batch import write_batch
from kraft_core.format.codec import write_metadata_value
from kraft_core.messages.metadata import by_api_key
from tests.kraft_core.batches import NO_OP, log_of, no_op_batch, raw

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"
CORRUPT = GOLDEN / "corrupt"
NODE = GOLDEN / "dynamic-membership" / "node-1"
SEGMENT = "00000000000000000408.log"
KEYS = [
    "file",
    "position",
    "offset",
    "leader_epoch",
    "timestamp",
    "is_control",
    "type",
    "version",
    "payload",
    "redacted",
    "unread",
]


def dump(capsys, *arguments: object) -> tuple[int, list[dict], list[dict]]:
    """Exit code, the objects on stdout, the objects on stderr."""
    code = main(["dump", *map(str, arguments)])
    out, err = capsys.readouterr()
    return code, *([json.loads(line) for line in text.splitlines()] for text in (out, err))


def test_one_object_a_record(capsys):
    code, records, faults = dump(capsys, NODE / "__cluster_metadata-0" / "00000000000000000000.log")
    assert (code, faults) == (0, [])
    assert len(records) == 697
    assert all(list(record) == KEYS for record in records)
    assert records[0] == {
        "file": str(NODE / "__cluster_metadata-0" / "00000000000000000000.log"),
        "position": 0,
        "offset": 0,
        "leader_epoch": 1,
        "timestamp": 1795254031847,
        "is_control": True,
        "type": "LeaderChange",
        "version": 0,
        "payload": {
            "version": 0,
            "leaderId": 1,
            "voters": [{"voterId": 1}],
            "grantingVoters": [{"voterId": 1}],
        },
        "redacted": False,
        "unread": None,
    }


def test_checkpoints_and_segments_of_a_directory(capsys):
    code, records, faults = dump(capsys, NODE)
    assert (code, faults) == (0, [])
    names = list(dict.fromkeys(Path(record["file"]).name for record in records))
    assert names == [
        "bootstrap.checkpoint",
        *sorted(p.name for p in (NODE / "__cluster_metadata-0").glob("*.checkpoint")),
        *sorted(p.name for p in (NODE / "__cluster_metadata-0").glob("*.log")),
    ]


def test_secrets_are_redacted_by_default(capsys):
    _, hidden, _ = dump(capsys, NODE / "bootstrap.checkpoint")
    _, shown, _ = dump(capsys, "--show-secrets", NODE / "bootstrap.checkpoint")
    (scram,) = (record for record in hidden if record["type"] == "USER_SCRAM_CREDENTIAL_RECORD")
    assert (scram["payload"]["salt"], scram["payload"]["storedKey"], scram["redacted"]) == (None, None, True)
    assert scram["payload"]["name"] == "boot"
    (scram,) = (record for record in shown if record["type"] == "USER_SCRAM_CREDENTIAL_RECORD")
    assert scram["payload"]["salt"] == "MTRydDRoenY2OWoyam9lbzFxamR2bnZhdmw="
    assert scram["redacted"] is False


EXIT_CODES = {
    "good": 0,
    "empty-segment": 0,
    "unknown-tagged-field": 0,
    "torn-last-batch": 0,
    "torn-in-batch-header": 0,
    "torn-in-length-field": 0,
    "all-zero": 3,
    "checkpoint-empty": 3,
    "checkpoint-part": 3,  # in a directory an unfinished snapshot is passed over
}


@pytest.mark.parametrize("case", sorted(path.name for path in CORRUPT.iterdir() if path.is_dir()))
def test_the_exit_code_for_a_broken_file(capsys, case):
    code, _, faults = dump(capsys, CORRUPT / case)
    assert code == EXIT_CODES.get(case, 1)
    severities = {fault["severity"] for fault in faults}
    assert severities == ({"error"} if code else {"warning"} if case.startswith("torn") else set())


def test_what_could_not_be_read_is_named(capsys):
    code, records, faults = dump(capsys, CORRUPT / "crc-flip-middle" / SEGMENT)
    assert code == 1
    assert len(records) == 88
    (fault,) = faults
    assert fault == {
        "kind": "damage",
        "severity": "error",
        "file": str(CORRUPT / "crc-flip-middle" / SEGMENT),
        "position": 1648,
        "size_bytes": 599,
        "reason": "bad_crc",
        "sha256": "b11b142aa86468279b4447cbed50809896fff5929b5713863fedeaa0f8701a57",
    }


def test_a_value_that_cannot_be_decoded(capsys):
    path = CORRUPT / "unknown-record-type" / SEGMENT
    _, records, faults = dump(capsys, path)
    (unread,) = (record for record in records if record["unread"])
    assert (unread["offset"], unread["type"], unread["payload"]) == (507, "UNKNOWN", None)
    assert unread["unread"]["reason"] == "unknown_type"
    assert unread["unread"]["api_key"] == 999
    assert "value" not in unread["unread"]
    assert [(f["kind"], f["position"], f["size_bytes"]) for f in faults] == [("quarantined", 8343, 7)]
    _, records, _ = dump(capsys, "--raw-unknown", path)
    (unread,) = (record for record in records if record["unread"])
    assert b64decode(unread["unread"]["value"]) == path.read_bytes()[8343:8350]


def test_order_faults_are_named(capsys):
    code, _, faults = dump(capsys, CORRUPT / "missing-batch" / SEGMENT)
    assert code == 1
    assert [(f["kind"], f["fault"], f["expected"], f["found"]) for f in faults] == [
        ("order", "gap", 428, 439)
    ]


def test_an_unfinished_snapshot_given_by_name(capsys):
    (path,) = (CORRUPT / "checkpoint-part").glob("*.part")
    code, records, faults = dump(capsys, path)
    assert code == 0
    assert [record["type"] for record in records] == ["SnapshotHeader", "KRaftVersion", "KRaftVoters"]
    assert [(fault["kind"], fault["severity"]) for fault in faults] == [
        ("damage", "warning"),
        ("incomplete", "warning"),
    ]


def test_a_torn_segment_that_is_not_the_last(capsys, tmp_path):
    log = log_of(no_op_batch(0), no_op_batch(1))
    (tmp_path / "00000000000000000000.log").write_bytes(log[:-5])
    assert dump(capsys, tmp_path)[0] == 0
    (tmp_path / "00000000000000000002.log").write_bytes(no_op_batch(2))
    assert dump(capsys, tmp_path)[0] == 1


def test_paths_that_are_wrong(capsys, tmp_path):
    assert main(["dump", str(tmp_path / "nowhere")]) == 2
    assert capsys.readouterr().err == f"kraftlake dump: no such file or directory: {tmp_path / 'nowhere'}\n"
    assert dump(capsys, tmp_path)[0] == 3
    (tmp_path / "text.log").write_text("not a log")
    code, records, (fault,) = dump(capsys, tmp_path / "text.log")
    assert (code, records, fault["reason"]) == (3, [], "garbage_tail")
    old = tmp_path / "@metadata-0"
    old.mkdir()
    (old / "00000000000000000000.log").write_bytes(no_op_batch(0))
    for path in (old, old / "00000000000000000000.log"):
        code, records, (fault,) = dump(capsys, path)
        assert (code, records, fault["kind"]) == (3, [], "refused")
        assert "Kafka 2.8" in fault["reason"]


def test_a_directory_whose_name_is_no_text(capsys, tmp_path):
    path = Path(str(tmp_path / "caf\udce9")) / "00000000000000000000.log"
    path.parent.mkdir()
    path.write_bytes(no_op_batch(0))
    code, (record,), _ = dump(capsys, tmp_path)
    assert code == 0
    assert record["file"] == str(path)
    assert main(["dump", "--format", "text", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith(f"{tmp_path}/caf\\udce9/00000000000000000000.log:0 epoch 1 ")


def test_payloads_json_has_no_numbers_for(capsys, tmp_path):
    quota = by_api_key[14]
    values = [float("nan"), float("inf"), 1e300]
    records = [
        raw(i, write_metadata_value(quota, 0, {**quota.default(0), "value": value}))
        for i, value in enumerate(values)
    ]
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(write_batch(0, 1, records))
    _, dumped, _ = dump(capsys, path)
    assert [record["payload"]["value"] for record in dumped] == ["NaN", "Infinity", 1e300]


def test_text(capsys):
    path = NODE / "bootstrap.checkpoint"
    assert main(["dump", "--format", "text", str(path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == (
        f"{path}:1 epoch 0 2026-11-21T09:40:22.937Z FEATURE_LEVEL_RECORD v0 "
        '{"name": "metadata.version", "featureLevel": 25}'
    )
    assert lines[4].endswith("(secrets redacted)")
    assert main(["dump", "--format", "text", str(CORRUPT / "unknown-record-type")]) == 1
    captured = capsys.readouterr()
    assert '"reason": "unknown_type"' in captured.out.splitlines()[-2]
    assert captured.err.startswith(
        f"error: {CORRUPT / 'unknown-record-type' / SEGMENT}: quarantined: position 8343"
    )


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "jobs.cli", "dump", *map(str, arguments)]


def test_a_closed_pipe_is_no_error():
    shell = f"{' '.join(command(GOLDEN / 'stale-split' / 'final'))} | head -1"
    done = subprocess.run(shell, shell=True, capture_output=True, text=True, cwd=ROOT, check=True)
    assert json.loads(done.stdout)["offset"] == 0
    assert done.stderr == ""


@pytest.mark.parametrize("format_", ["jsonl", "kafka"])
def test_its_process_ends_as_others_do(format_, tmp_path):
    good, bad = CORRUPT / "good" / SEGMENT, tmp_path / SEGMENT
    bad.write_bytes(bytes(100))
    for path, code in ((good, 0), (bad, 1 if format_ == "kafka" else 3)):
        words = command("--format", format_, path)
        closed = ["sh", "-c", 'exec "$@" 2>&-', "sh", *words]
        for started in (words, closed):
            assert subprocess.run(started, stdout=subprocess.DEVNULL, cwd=ROOT).returncode == code
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command("--format", format_, good), stdout=full, stderr=subprocess.PIPE, cwd=ROOT
        )
    assert done.returncode == 75
    assert done.stderr.startswith(b"kraftlake dump: no space left")


def test_neither_spark_nor_pyarrow_is_loaded(tmp_path):
    shutil.copy(CORRUPT / "good" / SEGMENT, tmp_path)
    program = (
        "import sys; from jobs.cli import main; code = main(['dump', sys.argv[1]]); "
        "print({'pyspark', 'pyarrow', 'numpy', 'pandas'} & set(sys.modules), code, file=sys.stderr)"
    )
    words = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stderr == "set() 0\n"
    assert len(done.stdout.splitlines()) == 99


def test_values_that_are_damaged_show_no_secret(capsys, tmp_path):
    config = by_api_key[4]
    value = {"resourceType": 4, "resourceName": "", "name": "ssl.key.password", "value": "hunter2"}
    written = write_metadata_value(config, 0, value)
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(write_batch(0, 1, [raw(0, written + b"x"), raw(1, written[:-3]), raw(2, NO_OP)]))
    main(["dump", str(path)])
    captured = capsys.readouterr()
    assert "hunter" not in captured.out + captured.err
