"""What columns print of whole runs of batches is what kafka_dump prints batch by batch."""

from __future__ import annotations

import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from kraft_core.columnar import kafka_text
from kraft_core.columnar.kafka_text import ColumnarDump
from kraft_core.format.batch import RecordHeader, write_batch
from kraft_core.format.codec import write_metadata_value
from kraft_core.format.kafka_dump import DumpOptions, DumpStopped, FileDump
from kraft_core.format.mapped_file import mapped
from kraft_core.messages.metadata import by_api_key
from tests.kraft_core.batches import no_op_batch, raw

GOLDEN = Path(__file__).parents[2] / "golden"
QUIRKS = Path(__file__).parents[1] / "format" / "kafka_dumps"
LOG = GOLDEN / "dynamic-membership/node-1/__cluster_metadata-0/00000000000000000697.log"


def outcome(dump: FileDump, path: Path) -> object:
    """All that a dump prints and notes of a file."""
    text, stopped = "", None
    try:
        with mapped(path) as buf:
            for piece in dump.pieces(buf, path.name):
                text += piece
    except DumpStopped as stop:
        text, stopped = text + stop.text, (stop.reason, stop.position)
    noted = (dump.jumps, dump.batches, dump.invalid, dump.unread, dump.last_offset, dump.is_empty_log)
    return text, stopped, noted


def assert_same(path: Path, options: DumpOptions) -> None:
    assert outcome(ColumnarDump(options, path=str(path)), path) == outcome(FileDump(options), path), path


@pytest.fixture(autouse=True)
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_text, "_LEAST_RECORDS", 1)


@pytest.mark.parametrize("most", [65536, 7])
def test_every_golden_file(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(kafka_text, "_MOST_RECORDS", most)
    paths = [path for end in ("log", "checkpoint") for path in sorted(GOLDEN.rglob(f"*.{end}"))]
    if most < 65536:
        paths = [path for path in paths if path.stat().st_size < 20_000][::5]
    assert len(paths) > 30
    for path in paths:
        assert_same(path, DumpOptions(show_secrets=True))
        if "all-record-types" in str(path):
            assert_same(path, DumpOptions())


@pytest.mark.parametrize("name", ["values", "batches"])
def test_what_no_kafka_writes(tmp_path: Path, name: str) -> None:
    with tarfile.open(QUIRKS / f"{name}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    paths = sorted(tmp_path.glob("*.log"))
    assert paths
    for path in paths:
        assert_same(path, DumpOptions(show_secrets=True))


def test_usual_batches_are_printed_by_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the comparisons above compare nothing."""
    expected = outcome(FileDump(DumpOptions()), LOG)
    slow: list[int] = []
    one_by_one = FileDump._batch
    monkeypatch.setattr(
        FileDump, "_batch", lambda dump, buf, at: slow.append(at) or one_by_one(dump, buf, at)
    )
    dump = ColumnarDump(DumpOptions(), path=str(LOG))
    assert outcome(dump, LOG) == expected
    assert 0 < len(slow) < dump.batches / 50


def test_jumps_headers_and_other_options(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000005.log"
    config = {"resourceType": 4, "resourceName": "", "name": "ssl.key.password", "value": "hunter2"}
    value = write_metadata_value(by_api_key[4], 0, config)
    headed = write_batch(12, 3, [replace(raw(12, value), headers=(RecordHeader("k", b"v"),))])
    path.write_bytes(no_op_batch(5) + no_op_batch(9) + no_op_batch(8) + headed + no_op_batch(13))
    for options in (
        DumpOptions(),
        DumpOptions(show_secrets=True),
        DumpOptions(skip_metadata=True),
        DumpOptions(max_bytes=150),
    ):
        assert_same(path, options)
    text, *_ = outcome(ColumnarDump(DumpOptions(show_secrets=True), path=str(path)), path)
    assert "headerKeys: [k] " in text
