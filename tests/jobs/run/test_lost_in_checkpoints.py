"""A value in a checkpoint that cannot be decoded, over several nights of one lake."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from jobs.captures.planning import Selection, plan
from jobs.runtime.outcome import ExitCode
from kraft_core.format.log_dirs import LOG_DIR_NAME
from tests.jobs.lakes import content, opened, run, versions
from tests.kraft_core.batches import no_op_batch
from tests.long.load_mutations import MutableLog
from transforms.ingest.captured_files import checkpoints_of
from transforms.ingest.known_files import known_checkpoints
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import FINDINGS, QUARANTINE

CLUSTER = "iWP35uOsShu1pFlBJh_E7w"
NAME = "00000000000000000321-0000000001.checkpoint"
NIGHTS = ("2026-11-22T02:00:00Z", "2026-11-23T02:00:00Z")


@pytest.fixture(scope="module")
def nights(golden: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """All nodes, and in the next night node 1, whose log has grown: it still holds its checkpoint."""
    folder = tmp_path_factory.mktemp("nights")
    copies = [folder / "0", folder / "1"]
    shutil.copytree(golden / "uncommitted-truncation/after", copies[0])
    checkpoint = MutableLog.of(copies[0] / "node-1" / LOG_DIR_NAME / NAME)
    batch, nth = checkpoint.data()[0]
    batch.set_value(nth, b"")
    checkpoint.write()
    grown = Path(shutil.copytree(copies[0] / "node-1", copies[1] / "node-1"))
    log = max((grown / LOG_DIR_NAME).glob("*.log"))
    last = MutableLog.of(log).batches[-1]
    log.write_bytes(log.read_bytes() + no_op_batch(last.records[-1].offset + 1, epoch=last.leader_epoch))
    for copy, at in zip(copies, NIGHTS, strict=True):
        for node in copy.glob("node-*"):
            (node / "capture.json").write_text(json.dumps({"captured_at": at}))
    return copies


@pytest.fixture(scope="module")
def after_one(spark: Any, nights: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of the first night, to read or to copy."""
    assert spark is not None  # the session that the run finds open
    lake = tmp_path_factory.mktemp("first") / "lake"
    assert run(lake, nights[0]) == ExitCode.FOUND
    return lake


@pytest.fixture(scope="module")
def after_both(after_one: Path, nights: list[Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of one night after the other, to read or to copy."""
    lake = Path(shutil.copytree(after_one, tmp_path_factory.mktemp("second") / "lake"))
    assert run(lake, nights[1]) == ExitCode.FINE  # no new finding
    return lake


def test_every_capture_of_it_lost_the_value(
    spark: Any, nights: list[Path], after_one: Path, after_both: Path, tmp_path: Path
) -> None:
    for captures, lake in ((1, after_one), (2, after_both)):
        lost = rows_with(lake, QUARANTINE)
        assert len({row["capture_id"] for row in lost}) == len(lost) == captures
        assert {(row["file"], row["reason"]) for row in lost} == {(f"{LOG_DIR_NAME}/{NAME}", "empty_value")}
        assert {row["lost_from_offset"] for row in lost} == {None}
        assert len({row["position"] for row in lost}) == 1
    lake = Path(shutil.copytree(after_both, tmp_path / "lake"))
    errors = [r for r in rows_with(lake, FINDINGS) if (r["severity"], r["state"]) == ("error", "open")]
    assert {row["rule"] for row in errors} == {0}
    before = versions(opened(spark, lake))
    assert run(lake, *nights) == ExitCode.FINE
    after = versions(opened(spark, lake))
    assert {name for name in after if after[name] != before[name]} <= {"runs"}


def test_it_is_not_read_again(after_one: Path, nights: list[Path]) -> None:
    checkpoints = checkpoints_of(plan(Selection((nights[1],))).captures)
    known = known_checkpoints(after_one, checkpoints)
    assert NAME in {checkpoints[number].path.name for number in known}


def test_any_order_gives_the_same_tables(
    spark: Any, nights: list[Path], after_both: Path, tmp_path: Path
) -> None:
    at_once, backwards = tmp_path / "at once", tmp_path / "backwards"
    run(at_once, *nights)
    for night in reversed(nights):
        run(backwards, night)
    found = [content(opened(spark, lake), CLUSTER) for lake in (after_both, at_once, backwards)]
    assert len(found[0]["quarantine"]) == 2
    assert found[0] == found[1] == found[2]
