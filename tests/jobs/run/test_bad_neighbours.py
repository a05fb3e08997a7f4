"""One run over a sound capture and others that no Kafka wrote: each costs itself only."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from kraft_core.format.batch import write_batch
from tests.jobs.lakes import run
from tests.kraft_core.batches import NO_OP, raw
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import CAPTURES, RECORDS

MINI = "v4.4.0-mini/node-1"
RECORDS_IN_A_BATCH = 40_000


def with_meta(golden: Path, target: Path, *lines: str) -> None:
    """The sound capture with these lines at the end of its meta.properties."""
    shutil.copytree(golden / MINI, target)
    with (target / "meta.properties").open("a") as meta:
        meta.write("\n" + "\n".join(lines) + "\n")


def compressed(target: Path) -> None:
    """A directory whose log is one zstd batch of many records."""
    log = target / "__cluster_metadata-0"
    log.mkdir(parents=True)
    (target / "meta.properties").write_text("version=1\ncluster.id=packed\nnode.id=1\n")
    batch = write_batch(0, 1, [raw(n, NO_OP) for n in range(RECORDS_IN_A_BATCH)], codec=4)
    (log / f"{0:020d}.log").write_bytes(batch)


@pytest.mark.usefixtures("spark")
def test_a_sound_cluster_beside_others(
    golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    captures = tmp_path / "captures"
    shutil.copytree(golden / MINI, captures / "sound")
    with_meta(golden, captures / "pair", "cluster.id=\\ud83d\\udca5")
    with_meta(golden, captures / "half", "cluster.id=\\ud800")
    with_meta(golden, captures / "huge", "cluster.id=huge", f"node.id={1 << 40}")
    compressed(captures / "packed")
    fields = "ClusterId: deep\nLeaderId: 1\nLeaderEpoch: 1\nHighWatermark: 1\nCurrentObservers: []\n"
    (captures / "1750000000000.txt").write_text(f"{fields}CurrentVoters: {'[' * 100_000}\n")
    os.mkfifo(captures / "1750000000001.txt")
    lake, alone = tmp_path / "lake", tmp_path / "alone"

    assert run(lake, captures) in (0, 1)
    text = capsys.readouterr()
    assert "Traceback" not in text.out + text.err
    for reason in ("half of a surrogate pair", "does not fit in 32 bits", "1750000000000.txt"):
        assert reason in text.err
    assert run(alone, golden / MINI) == 0

    (sound,) = rows_with(alone, CAPTURES, ["cluster_id"])
    of = {"cluster_id": [sound["cluster_id"]]}
    count = len(rows_with(alone, RECORDS, ["offset"], **of))
    assert len(rows_with(lake, RECORDS, ["offset"], **of)) == count > 0
    assert len(rows_with(lake, RECORDS, ["offset"], cluster_id=["\U0001f4a5"])) == count
    assert len(rows_with(lake, RECORDS, ["offset"], cluster_id=["packed"])) == RECORDS_IN_A_BATCH
