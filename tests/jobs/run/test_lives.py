"""Clusters of one cluster id: each life is a cluster of its own, in any order and any split of runs."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main
from jobs.runtime.lake_clusters import lake_clusters, one_cluster
from kraft_core.messages.uuid_text import uuid_text
from tests.jobs.captured_logs import captured, metadata
from tests.jobs.lakes import content, opened, run
from transforms.lake.commits import TableWriter
from transforms.lake.delta_rs import among, rows_with
from transforms.lake.lake import Lake
from transforms.lake.tables import CAPTURES, FINDINGS, LIVES, RECORDS, SEGMENTS, TABLES, TOPICS

# Two quorums by real Kafka, whose nodes have the same ids.
STRANGERS = ("election-storm", "v4.4.0-mini")
ID = "tutorial"
# What hangs on the id, or is said of the lives themselves.
OF_LIVES = {"lives", "findings", "derivations"}


def renamed(golden: Path, folder: Path, pattern: str, cluster_id: str, with_directories: bool = True) -> Path:
    """Copies of golden captures under another cluster id, perhaps as of a Kafka without directory ids."""
    for found in sorted(golden.glob(pattern)):
        copy = folder / found.relative_to(golden)
        shutil.copytree(found, copy)
        meta = (copy / "meta.properties").read_text()
        meta = re.sub("cluster.id=.*", f"cluster.id={cluster_id}", meta)
        if not with_directories:
            meta = re.sub("directory.id=.*\n", "", meta)
        (copy / "meta.properties").write_text(meta)
    return folder


def ids_of(lake: Path) -> set[str]:
    """Every cluster id in any table."""
    owned = [table for table in TABLES if "cluster_id" in table.names]
    return {row["cluster_id"] for table in owned for row in rows_with(lake, table, ["cluster_id"])}


def of_life(lake: Lake, cluster_id: str) -> dict[str, list[str]]:
    """The rows of a cluster as `content` returns them, without what says which life it is."""
    tables = content(lake, cluster_id)
    return {
        name: [re.sub(r", 'life': [^,}]*", "", row) for row in rows]
        for name, rows in tables.items()
        if name not in OF_LIVES
    }


@pytest.mark.parametrize("with_directories", [pytest.param(True, marks=pytest.mark.long), False])
def test_strangers_of_one_id_are_told_apart(
    golden: Path, spark: Any, tmp_path: Path, with_directories: bool
) -> None:
    for name in STRANGERS:
        renamed(golden, tmp_path / "apart", f"{name}/node-*", name, with_directories)
        renamed(golden, tmp_path / "captures", f"{name}/node-*", ID, with_directories)
    run(tmp_path / "apart-lake", tmp_path / "apart")
    run(tmp_path / "lake", tmp_path / "captures")
    apart, lake = opened(spark, tmp_path / "apart-lake"), opened(spark, tmp_path / "lake")
    found = sorted(rows_with(lake.path, LIVES), key=lambda row: row["nodes"])
    assert [row["nodes"] for row in found] == [[1, 2], [1, 2, 3]]
    mini, storm = (row["cluster_id"] for row in found)
    assert of_life(lake, storm) == of_life(apart, STRANGERS[0])
    assert of_life(lake, mini) == of_life(apart, STRANGERS[1])
    assert ids_of(lake.path) == {mini, storm}

    first, second = (tmp_path / "captures" / name for name in STRANGERS)
    split = tmp_path / "split"
    for paths in ([second / "node-2"], [first / "node-1", first / "node-3"], [tmp_path / "captures"]):
        run(split, *paths)
    for cluster_id in (storm, mini):
        assert content(opened(spark, split), cluster_id) == content(lake, cluster_id)
    assert ids_of(split) == {mini, storm}


# --- small logs, without directory ids ---

TOPIC, MINUTE = 2, 60_000
BORN = 1_700_000_000_000


def topics(first: int, *names: str, at: int = BORN) -> bytes:
    """A batch of topics, at a time (ms)."""
    values = [(TOPIC, 0, {"name": name, "topicId": uuid_text(name.encode().ljust(16))}) for name in names]
    return metadata(first, values, [at + n for n in range(len(names))])


def node(folder: Path, log: bytes, node_id: int = 1) -> Path:
    """A captured directory of the cluster ID."""
    captured(folder, ID, log)
    meta = folder / ID / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=1", f"node.id={node_id}"))
    return folder


def named_topics(lake: Path, cluster_id: str) -> set[str]:
    return {row["name"] for row in rows_with(lake, TOPICS, ["name"], cluster_id=[cluster_id])}


def test_a_node_that_was_formatted_anew_has_the_newest_life(
    spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake = tmp_path / "lake"
    past = topics(0, "a", "b") + topics(2, "c")
    run(lake, node(tmp_path / "old", past))
    assert ids_of(lake) == {ID}
    assert not rows_with(lake, LIVES)
    run(lake, node(tmp_path / "anew", topics(0, "x", "y", at=BORN + MINUTE)))
    old, new = rows_with(lake, LIVES)
    old, new = (old, new) if new["is_newest"] else (new, old)
    assert (old["is_newest"], new["is_newest"]) == (False, True)
    assert ids_of(lake) == {old["cluster_id"], new["cluster_id"]}
    assert named_topics(lake, old["cluster_id"]) == {"a", "b", "c"}
    assert named_topics(lake, new["cluster_id"]) == {"x", "y"}
    assert {row["life"] for row in rows_with(lake, CAPTURES)} == {old["life"], new["life"]}
    (finding,) = (row for row in rows_with(lake, FINDINGS) if row["rule"] == 47)
    assert finding["cluster_id"] == new["cluster_id"]
    assert old["cluster_id"] in finding["evidence"]

    capsys.readouterr()
    assert lake_clusters(lake, [ID]) == sorted([old["cluster_id"], new["cluster_id"]])
    assert (one_cluster(lake, None), one_cluster(lake, ID)) == (new["cluster_id"], new["cluster_id"])
    assert f"this is about {new['cluster_id']}, which is the newest; " in capsys.readouterr().err
    assert one_cluster(lake, old["cluster_id"]) == old["cluster_id"]
    assert f"which is an earlier one, {new['cluster_id']} is the newest; " in capsys.readouterr().err
    assert main(["shell", "--lake", str(lake), "ls", "/image/topics/byName"]) == 0
    assert capsys.readouterr().out.split() == ["x", "y"]

    # Killed while rows moved: what was meant is completed by the next run.
    expected = {row["cluster_id"]: content(opened(spark, lake), row["cluster_id"]) for row in (old, new)}
    writer = TableWriter(lake, None)
    for table in (RECORDS, SEGMENTS, CAPTURES):
        rows = rows_with(lake, table, cluster_id=[old["cluster_id"]])
        back = [row | {"cluster_id": ID} | ({"life": None} if "life" in row else {}) for row in rows]
        writer.remove_where(table, among({"cluster_id": [old["cluster_id"]]}))
        writer.replace_where(table, among({"cluster_id": [ID]}), back)
    run(lake, node(tmp_path / "grown", past + topics(3, "d")))
    again = rows_with(lake, LIVES)
    assert {row["cluster_id"] for row in again} == set(expected) == ids_of(lake)
    assert (
        content(opened(spark, lake), new["cluster_id"])["records"] == expected[new["cluster_id"]]["records"]
    )
    assert named_topics(lake, old["cluster_id"]) == {"a", "b", "c", "d"}


@pytest.mark.usefixtures("spark")
def test_a_clone_with_its_common_past_is_one_life_that_breaks_rules(tmp_path: Path) -> None:
    common = topics(0, "a", "b")
    lake = tmp_path / "lake"
    run(lake, node(tmp_path / "one", common + topics(2, "c")))
    run(lake, node(tmp_path / "clone", common + topics(2, "d", at=BORN + MINUTE), node_id=2))
    assert ids_of(lake) == {ID}
    errors = {row["rule"] for row in rows_with(lake, FINDINGS, severity=["error"])}
    assert 3 in errors
