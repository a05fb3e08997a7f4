"""Clusters of one cluster id: each life is a cluster of its own, in any order and any split of runs."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from jobs.captures import lives
from jobs.cli import main
from jobs.runtime.lake_clusters import lake_clusters, one_cluster
from kraft_core.messages.uuid_text import uuid_text
from tests.jobs.captured_logs import captured, metadata
from tests.jobs.lakes import content, opened, run
from tests.kraft_core.evidence.test_collected_lives import HEALTHY, LATER, OLDER, copied, wiped
from transforms.lake.commits import TableWriter
from transforms.lake.delta_rs import among, rows_with
from transforms.lake.lake import Lake
from transforms.lake.tables import (
    CAPTURES,
    EXPIRED_CAPTURES,
    FINDINGS,
    LIVES,
    RECORDS,
    RECOVERIES,
    SEGMENTS,
    TABLES,
    TOPICS,
)

# Two quorums by real Kafka, whose nodes have the same ids.
STRANGERS = ("election-storm", "v4.4.0-mini")
ID = "tutorial"
# What hangs on the id, is said of the lives themselves, or is advice, which the other life voids.
OF_LIVES = {"lives", "findings", "derivations", "recoveries"}


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


def newest_lives(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, bool]:
    """Whether each life is the newest of its id, as a verb prints it."""
    capsys.readouterr()
    assert main([*words, "--format", "json"]) == 0
    rows = map(json.loads, capsys.readouterr().out.splitlines())
    return {row["cluster_id"]: row["is_newest_life"] for row in rows}


@pytest.mark.parametrize("with_directories", [pytest.param(True, marks=pytest.mark.long), False])
def test_strangers_of_one_id_are_told_apart(
    golden: Path, spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], with_directories: bool
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
    for words in (["clusters"], ["sql", "SELECT * FROM clusters"]):
        assert newest_lives(capsys, *words, "--lake", str(lake.path)) == {mini: True, storm: False}
    # The captures of the one were taken after, those of the other before it began.
    why = {row["cluster_id"]: row["why"] for row in rows_with(lake.path, RECOVERIES)}
    assert f"was captured in {mini}, another history" in why[storm]
    assert "another history" not in why[mini]


@pytest.mark.long
@pytest.mark.parametrize("with_directories", [True, False])
def test_any_split_of_strangers_comes_to_the_same(
    golden: Path, spark: Any, tmp_path: Path, with_directories: bool
) -> None:
    """By default, test_a_later_capture_in_another_life_voids_what_was_safe compares a split."""
    captures, lake, split = tmp_path / "captures", tmp_path / "lake", tmp_path / "split"
    for name in STRANGERS:
        renamed(golden, captures, f"{name}/node-*", ID, with_directories)
    first, second = (captures / name for name in STRANGERS)
    run(lake, captures)
    for paths in ([second / "node-2"], [first / "node-1", first / "node-3"], [captures]):
        run(split, *paths)
    assert ids_of(split) == ids_of(lake)
    assert content_of_all(spark, split) == content_of_all(spark, lake)


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
    return {row["topic_name"] for row in rows_with(lake, TOPICS, ["topic_name"], cluster_id=[cluster_id])}


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
    assert f"this answer is about {new['cluster_id']}, which is the newest; " in capsys.readouterr().err
    assert one_cluster(lake, old["cluster_id"]) == old["cluster_id"]
    assert f"which is an earlier one; {new['cluster_id']} is the newest; " in capsys.readouterr().err
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


# --- verdicts of one life that hang on the others


def content_of_all(spark: Any, lake: Path) -> dict[str, dict[str, list[str]]]:
    return {id_: content(opened(spark, lake), id_) for id_ in sorted(ids_of(lake))}


def is_safe(lake: Path, cluster_id: str) -> bool:
    """What the lake's advice says of a recovery; plan agrees whether the loss of node 3 is safe."""
    flags = ["--now", LATER, "--cluster", cluster_id]
    code = main(["plan", "lose", "3", "--lake", str(lake), *flags])
    (advice,) = rows_with(lake, RECOVERIES, cluster_id=[cluster_id])
    assert (code == 0) == advice["is_safe"]
    return advice["is_safe"]


@pytest.mark.long
def test_a_later_capture_in_another_life_voids_what_was_safe(
    golden: Path, spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    healthy, older = copied(golden, HEALTHY, tmp_path / "h"), copied(golden, OLDER, tmp_path / "s")
    lake = tmp_path / "lake"
    run(lake, healthy, older)
    newest = one_cluster(lake, None)
    assert is_safe(lake, newest)
    before = content_of_all(spark, lake)

    disk = wiped(tmp_path / "w" / "node-2", LATER)
    run(lake, disk)
    assert not is_safe(lake, newest)
    at_once = tmp_path / "at-once"
    run(at_once, disk, healthy, older)
    assert content_of_all(spark, lake) == content_of_all(spark, at_once)
    (empty,) = ids_of(lake) - set(before)

    # Seen once more, unchanged and later: what it says against others holds longer.
    (disk / "capture.json").write_text('{"captured_at": "2026-11-21T10:00:00Z"}')
    run(lake, disk)
    run(at_once, disk)
    assert content_of_all(spark, lake) == content_of_all(spark, at_once)

    assert main(["forget", "--lake", str(lake), "--cluster", empty]) == 0
    assert is_safe(lake, newest)
    assert content_of_all(spark, lake) == before
    capsys.readouterr()


@pytest.mark.long
def test_a_forget_that_is_killed_while_rows_move_removes_only_what_was_named(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone, lake = tmp_path / "alone", tmp_path / "lake"
    first, second = (
        node(tmp_path / "a", topics(0, "a", "b")),
        node(tmp_path / "b", topics(0, "x", at=BORN + 1)),
    )
    run(alone, first)
    run(lake, first, second)
    named = {next(iter(named_topics(lake, id_))): id_ for id_ in ids_of(lake)}
    write = lives._write_lives

    def killed(*args: Any) -> None:
        write(*args)
        raise KeyboardInterrupt

    monkeypatch.setattr(lives, "_write_lives", killed)
    assert main(["forget", "--lake", str(lake), "--cluster", named["x"]]) == 130
    monkeypatch.undo()
    assert main(["derive", "--lake", str(lake)]) == 0
    assert ids_of(lake) == {ID}
    assert content(opened(spark, lake), ID) == content(opened(spark, alone), ID)


@pytest.mark.usefixtures("spark")
def test_forget_takes_all_lives_of_an_id(tmp_path: Path) -> None:
    """Empty checkpoints, which are equal, connect them neither at once nor with what the lake holds."""
    lake = tmp_path / "lake"
    captures = [node(tmp_path / f"{n}", topics(0, f"{n}", at=BORN + n)) for n in range(3)]
    for capture in captures:
        (log_dir,) = capture.rglob("__cluster_metadata-0")
        (log_dir / "00000000000000000001-0000000001.checkpoint").touch()
    run(lake, *captures[:2])
    assert len(ids_of(lake)) == 2
    run(lake, captures[2])
    assert len(ids_of(lake)) == 3
    assert main(["forget", "--lake", str(lake), "--cluster", ID]) == 0
    assert ids_of(lake) == set()
    assert not rows_with(lake, LIVES)


@pytest.mark.long
@pytest.mark.usefixtures("spark")
def test_a_capture_that_expired_is_not_loaded_again_into_a_life_of_its_id(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    older = node(tmp_path / "older", topics(0, "a"))
    newer = node(tmp_path / "newer", topics(0, "a") + topics(1, "b"))
    for capture, day in ((older, "01"), (newer, "02")):
        run(lake, capture, flags=("--captured-at", f"2026-11-{day}T00:00:00Z"))
    assert main(["maintain", "--lake", str(lake), "--keep-days", "7", "--now", "2026-11-30T00:00:00Z"]) == 0
    assert len(rows_with(lake, CAPTURES)) == 1
    run(lake, node(tmp_path / "stranger", topics(0, "x", at=BORN + 1)))
    assert len(ids_of(lake) - {ID}) == 2
    assert rows_with(lake, EXPIRED_CAPTURES, ["cluster_id"]) == [{"cluster_id": ID}]
    run(lake, older, flags=("--captured-at", "2026-11-01T00:00:00Z"))
    assert len(rows_with(lake, CAPTURES)) == 2


def test_a_life_of_captures_that_are_given_is_named_where_it_cannot_be(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        run(tmp_path / "lake", node(tmp_path / "a", topics(0, "a")), flags=("--cluster", "ID/1a2b3c4d")) == 2
    )
    assert "their lives are not known before they are read" in capsys.readouterr().err
