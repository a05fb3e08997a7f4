"""Faults of copies heal: a later whole copy ends each finding, and known bytes are fresh again.

By default, test_unreadable.py has a fault that heals, and test_any_order.py one that a whole copy ends.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main
from jobs.runtime.outcome import ExitCode
from kraft_core.format.log_dirs import LOG_DIR_NAME
from tests.jobs.lakes import content, opened, run
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import CAPTURES, FINDINGS, QUARANTINE

CLUSTER = "iWP35uOsShu1pFlBJh_E7w"
NIGHTS = ["2026-11-22T02:00:00Z", "2026-11-23T02:00:00Z", "2026-11-24T02:00:00Z"]


def night(golden: Path, to: Path, number: int) -> Path:
    """Stopped controllers: the same bytes every night."""
    for node in sorted((golden / "uncommitted-truncation/after").iterdir()):
        copied = Path(shutil.copytree(node, to / f"{number}" / node.name))
        (copied / "capture.json").write_text(json.dumps({"captured_at": NIGHTS[number]}))
    return to / f"{number}"


def harm(nodes: Path) -> None:
    """A torn last batch, a flipped byte, a quorum-state left out, a capture.json that cannot be parsed."""
    torn, flipped = (max((nodes / f"node-{node}" / LOG_DIR_NAME).glob("*.log")) for node in (1, 2))
    torn.write_bytes(torn.read_bytes()[:-20])
    content = bytearray(flipped.read_bytes())
    content[len(content) // 2] ^= 1
    flipped.write_bytes(bytes(content))
    (nodes / "node-3" / LOG_DIR_NAME / "quorum-state").unlink()
    (nodes / "node-4/capture.json").write_text("{")


def findings(lake: Path, state: str) -> dict[str, str]:
    """Sentences with the reasons of the findings in a state, of rule 0."""
    rows = rows_with(lake, FINDINGS, rule=[0])
    return {row["sentence"]: row["reason"] for row in rows if row["state"] == state}


def planned(lake: Path, capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    main(["plan", "lose", "1", "--lake", str(lake), "--now", NIGHTS[2]])
    return capsys.readouterr().out


def captured_timestamps(lake: Path, capsys: pytest.CaptureFixture[str]) -> set[str]:
    capsys.readouterr()
    main(["metrics", "--lake", str(lake)])
    lines = capsys.readouterr().out.splitlines()
    return {line.split()[-1] for line in lines if line.startswith("kraftlake_captured_timestamp_seconds{")}


@pytest.mark.long
def test_every_fault_of_a_copy_heals(
    spark: Any, golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake, nights = tmp_path / "lake", tmp_path / "nights"
    harm(night(golden, nights, 0))
    assert run(lake, nights) == ExitCode.FOUND
    faults = findings(lake, "open")
    (torn,) = (sentence for sentence in faults if " is incomplete, " in sentence)
    (corrupt,) = (sentence for sentence in faults if "bad_crc" in sentence)
    (invalid,) = (sentence for sentence in faults if "capture.json" in sentence)
    assert " 1@" in torn
    assert " 2@" in corrupt
    assert " 4@" in invalid
    assert len(faults) == 3
    assert "its quorum-state was not captured, or cannot be read" in planned(lake, capsys)

    night(golden, nights, 1)
    assert run(lake, nights) == ExitCode.FINE
    assert findings(lake, "open") == {}
    resolved = findings(lake, "resolved")
    assert resolved.keys() == {torn, corrupt, invalid}
    for sentence, node in ((torn, 1), (corrupt, 2), (invalid, 4)):
        assert resolved[sentence].startswith(f"supplied by the capture of {node}@")
        assert resolved[sentence].endswith(" of 2026-11-23 02:00:00Z")
    assert rows_with(lake, QUARANTINE) == []
    assert "quorum-state was not captured" not in planned(lake, capsys)
    first = captured_timestamps(lake, capsys)

    night(golden, nights, 2)
    assert run(lake, nights) == ExitCode.FINE
    assert {row["last_captured_at"].day for row in whole(lake)} == {24}
    assert captured_timestamps(lake, capsys) > set()
    assert captured_timestamps(lake, capsys).isdisjoint(first)

    at_once = tmp_path / "at once"
    run(at_once, nights)
    assert content(opened(spark, at_once), CLUSTER) == content(opened(spark, lake), CLUSTER)


def whole(lake: Path) -> list[dict[str, Any]]:
    """The captures of the nights without a fault."""
    return [
        row
        for row in rows_with(lake, CAPTURES)
        if row["quorum_state"] and not row["damage"] and row["captured_at_source"] == "capture.json"
    ]
