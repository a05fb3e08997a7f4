"""Lives of captured directories that are read without a lake."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from jobs.cli import main
from kraft_core.evidence.collect import collect_lives
from kraft_core.format.controller_dir import find_controller_dirs

# Two quorums by real Kafka, the second the older one.
STRANGERS = ("v4.4.0-mini", "election-storm")


@pytest.fixture(scope="module")
def captures(golden: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("strangers")
    for name in STRANGERS:
        for found in sorted(golden.glob(f"{name}/node-*")):
            copy = folder / name / found.name
            shutil.copytree(found, copy)
            meta = copy / "meta.properties"
            text = re.sub("(directory|cluster).id=.*", "", meta.read_text())
            meta.write_text(f"{text}\ncluster.id=same\n")
    return folder


def test_strangers_are_two_clusters_the_newest_last(captures: Path) -> None:
    older, newer = collect_lives(find_controller_dirs([captures]).directories)
    assert {older.kafka_cluster_id, newer.kafka_cluster_id} == {"same"}
    assert [sorted({c.node_id for c in each.facts.captures}) for each in (older, newer)] == [
        [1, 2, 3],
        [1, 2],
    ]
    assert all(each.facts.cluster_id.startswith("same/") for each in (older, newer))
    assert [len(each.directories) for each in (older, newer)] == [3, 2]
    alone = [collect_lives(find_controller_dirs([captures / name]).directories) for name in STRANGERS]
    for (apart,), together in zip(alone, (newer, older), strict=True):
        assert apart.facts.cluster_id == "same"
        assert apart.facts.captures == together.facts.captures
        assert apart.facts.control_records == together.facts.control_records
        assert apart.facts.snapshots == together.facts.snapshots


def test_plan_answers_for_the_newest_and_says_so(captures: Path, capsys: pytest.CaptureFixture[str]) -> None:
    older, newer = (c.facts.cluster_id for c in collect_lives(find_controller_dirs([captures]).directories))
    main(["plan", "lose", "1", "--captures", str(captures)])
    out, err = capsys.readouterr()
    assert newer in out
    assert older not in out
    assert f"cluster id same names 2 histories: this is about {newer}, which is the newest" in err
    main(["plan", "lose", "1", "--captures", str(captures), "--cluster", older])
    assert older in capsys.readouterr().out
