"""kraftlake restore rehearse --lake: a row for every rehearsal, however it ends, and what is shown of it."""

from __future__ import annotations

import os
import re
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main
from jobs.runtime.lease import process_name, take_lease
from jobs.runtime.progress import Progress
from jobs.runtime.run_record import RunRecord
from tests.dashboards.small_lakes import written_report
from tests.transforms.quality.sound_cluster import a_row
from transforms.lake.commits import TableWriter
from transforms.lake.delta_rs import rows_with
from transforms.lake.leases import greatest_lease
from transforms.lake.storage import prepare_lake
from transforms.lake.tables import CAPTURES, REHEARSALS, RUNS

CLUSTER = "iWP35uOsShu1pFlBJh_E7w"
SECRETS = ("golden-secret", "salt", "storedKey", "password=")


def _lake(path: Path, cluster: str = CLUSTER) -> Path:
    """A lake that holds a capture of the cluster."""
    prepare_lake(path)
    writer = TableWriter(path, None)
    writer.create(CAPTURES)
    writer.append(CAPTURES, [a_row(CAPTURES, cluster_id=cluster, capture_id="c", node_id=3)])
    return path


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    return _lake(tmp_path / "lake")


@pytest.fixture
def captures(golden: Path, tmp_path: Path) -> Path:
    return shutil.copytree(golden / "uncommitted-truncation/after", tmp_path / "captures")


def _rehearse(captures: Path, lake: Path, *words: str) -> int:
    return main(["restore", "rehearse", "--captures", str(captures), "--lake", str(lake), *words])


def _damage(captures: Path) -> None:
    segment = captures / "node-3/__cluster_metadata-0/00000000000000000000.log"
    segment.write_bytes(b"x" + segment.read_bytes())


def _rows(lake: Path) -> list[dict[str, Any]]:
    return sorted(rows_with(lake, REHEARSALS), key=lambda row: row["rehearsed_at"])


def _ended(lake: Path) -> list[tuple[str, int, list[str]]]:
    """Verb, exit code and failed clusters of the runs."""
    rows = sorted(rows_with(lake, RUNS), key=lambda row: row["started_at"])
    return [(r["job"], r["exit_code"], [name for name, _ in r["failed_clusters"]]) for r in rows]


def test_a_row_under_the_lease(captures: Path, lake: Path) -> None:
    assert _rehearse(captures, lake) == 0
    (row,) = _rows(lake)
    shown = {name: row[name] for name in ("cluster_id", "is_restorable", "verdict", "failure", "losses")}
    assert shown == {
        "cluster_id": CLUSTER,
        "is_restorable": True,
        "verdict": "LOSES",
        "failure": None,
        "losses": ["after-captures"],
    }
    assert (row["end_offset"], row["seen_end_offset"], row["refusals"]) == (507, 507, [])
    assert row["as_of"].isoformat(timespec="milliseconds") == "2026-11-21T09:16:07.934+00:00"
    assert _ended(lake) == [("restore", 0, [])]
    assert row["run_id"] == rows_with(lake, RUNS)[0]["run_id"]
    assert greatest_lease(lake) == 1
    assert _rehearse(captures, lake) == 0
    assert [len(_rows(lake)), greatest_lease(lake)] == [2, 2]


def test_another_run_writes(captures: Path, lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    TableWriter(lake, None).create(RUNS)
    record = RunRecord("run", Progress())
    held = take_lease(lake, record, process_name(os.getpid()), time.monotonic(), lambda _: None)
    assert _rehearse(captures, lake) == 4
    assert "is busy" in capsys.readouterr().err
    assert _rows(lake) == []
    held.end(0)
    assert _rehearse(captures, lake) == 0


def test_a_refused_rehearsal_is_seen(captures: Path, lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _rehearse(captures, lake) == 0
    _damage(captures)
    assert _rehearse(captures, lake) == 1
    row = _rows(lake)[-1]
    assert (row["is_restorable"], row["verdict"], row["end_offset"]) == (False, "REFUSED", None)
    assert any("is damaged" in refusal for refusal in row["refusals"])
    assert _ended(lake)[-1] == ("restore", 1, [CLUSTER])
    capsys.readouterr()
    assert main(["metrics", "--lake", str(lake)]) == 0
    shown = capsys.readouterr().out
    labels = f'{{cluster="{CLUSTER}",cluster_id="{CLUSTER}"}}'
    assert f"kraftlake_restorable{labels} 0\n" in shown
    assert "kraftlake_restorable_end_offset" not in shown


def test_what_cannot_be_written_or_read_has_failed(
    captures: Path, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder for scratch that is gone; captures that are gone, of a cluster that is named, and of none."""
    with monkeypatch.context() as patched:
        patched.setattr("tempfile.tempdir", str(tmp_path / "gone"))
        assert _rehearse(captures, lake) != 0
    row = _rows(lake)[-1]
    assert (row["is_restorable"], row["verdict"]) == (False, "LOSES")
    assert "gone" in row["failure"] or "FileNotFoundError" in row["failure"]
    shutil.rmtree(captures)
    assert _rehearse(captures, lake, "--cluster", CLUSTER) == 2
    row = _rows(lake)[-1]
    assert (row["is_restorable"], row["verdict"]) == (False, None)
    assert row["failure"] == f"{captures} does not exist"
    assert _rehearse(captures, lake) == 2
    assert len(_rows(lake)) == 2
    assert [ended[1:] for ended in _ended(lake)][1:] == [(2, [CLUSTER]), (2, [])]


def test_a_lake_of_other_clusters(captures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake = _lake(tmp_path / "other", "another")
    assert _rehearse(captures, lake) == 2
    assert f"has no captures of cluster {CLUSTER}" in capsys.readouterr().err
    assert _rows(lake) == []
    assert _rehearse(captures, tmp_path / "none") == 2


def test_metrics_have_one_definition(
    captures: Path, lake: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "restore.prom"
    assert _rehearse(captures, lake, "--metrics", str(file)) == 0
    capsys.readouterr()
    assert main(["metrics", "--lake", str(lake)]) == 0
    of_lake = capsys.readouterr().out.splitlines()
    assert [line for line in of_lake if "kraftlake_restor" in line] == file.read_text().splitlines()


def test_no_secret_reaches_the_lake(golden: Path, tmp_path: Path) -> None:
    """Of captures with a SCRAM user, ACLs and password configs; also where they are refused."""
    captures = shutil.copytree(golden / "dynamic-membership", tmp_path / "captures")
    cluster = "rPoTXydvQsK3Nv6AA77Cqg"
    lake = _lake(tmp_path / "lake", cluster)
    codes = [_rehearse(captures, lake)]
    for segment in captures.rglob("*.log"):
        content = segment.read_bytes()
        segment.write_bytes(content[: len(content) // 2] + b"x" + content[len(content) // 2 + 1 :])
    codes.append(_rehearse(captures, lake))
    assert codes == [0, 1]
    written = repr([rows_with(lake, table) for table in (REHEARSALS, RUNS)])
    assert len(_rows(lake)) == 2
    assert not any(word in written for word in SECRETS)


def test_the_page_has_a_line(captures: Path, lake: Path, tmp_path: Path) -> None:
    def page() -> str:
        now = time.time_ns() // 1_000_000
        text = written_report(lake, tmp_path / "page.html", now).data.decode()
        return " ".join(re.sub(r"<[^>]*>", "", text).split())

    assert "Restoration" not in page()
    assert _rehearse(captures, lake) == 0
    words = "would lose no offset that was seen; 1 loss to accept: after-captures."
    assert f"Restorable as of 2026-11-21 09:16:07Z; {words}" in page()
    _damage(captures)
    assert _rehearse(captures, lake) == 1
    assert "not restorable from the captures rehearsed" in page()
    assert "Not restorable from the given captures:" in page()
