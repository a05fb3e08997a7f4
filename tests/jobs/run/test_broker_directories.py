"""Copies of brokers' log directories among captures, compared with the metadata of their time."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main
from jobs.runtime.outcome import ExitCode
from tests.jobs.lakes import content, opened, run, versions
from transforms.lake.delta_rs import rows_with
from transforms.lake.lake import Lake
from transforms.lake.tables import BROKER_DIRECTORIES, BROKER_PARTITIONS, FINDINGS
from transforms.quality.broker_partitions import NOT_REACHED

SCENARIO, CLUSTER = "dynamic-membership", "rPoTXydvQsK3Nv6AA77Cqg"
FIRST, SECOND, UNKNOWN = "ECXYSN93htt8LGtl5pvPUQ", "mIsQW14cZ9nd_szUl1a_6g", "u" * 21 + "A"
SMALL, WIDE, GONE = "eZB6fPSFQvSct_S9fSuALQ", "40GystKWR4ebGKe3i7Yr4w", "g" * 21 + "A"
# t-del was deleted more than a minute before, t-assign is deleted later, and the log goes on for a minute.
THEN, LATER = "2026-11-21T09:42:45Z", "2026-11-21T09:44:03Z"
Held = list[tuple[str, str]]


def copied(folder: Path, directory_id: str, held: Held, at: str = THEN) -> Path:
    """A copy of a log directory of broker 11: names of folders and topic ids."""
    path = folder / f"{directory_id}-{at}"
    for name, topic_id in held:
        (path / name).mkdir(parents=True)
        (path / name / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}")
    path.mkdir(parents=True, exist_ok=True)
    text = f"version=1\nnode.id=11\ncluster.id={CLUSTER}\ndirectory.id={directory_id}\n"
    (path / "meta.properties").write_text(text)
    (path / "capture.json").write_text(json.dumps({"captured_at": at}))
    return path


def brokers(folder: Path) -> Path:
    strays = [("t-small-0", SMALL), ("t-wide-0", GONE), (f"t-del-0.{'0' * 32}-stray", GONE)]
    copied(folder, FIRST, [("t-small-1", SMALL), *strays])
    copied(folder, SECOND, [("t-small-1", SMALL), ("t-del-0", GONE)])
    copied(folder, UNKNOWN, [("t-small-1", SMALL)])
    # An earlier copy, which no longer counts, and two that the captured log does not reach.
    copied(folder, SECOND, [("t-del-9", GONE)], at="2026-11-21T09:42:30Z")
    copied(folder, FIRST, [("t-small-1", SMALL)], at=LATER)
    copied(folder, "l" * 21 + "A", [("t-small-1", SMALL)], at=LATER)
    return folder


@dataclass(frozen=True)
class Loaded:
    """A lake of captured controllers and of copies of a broker's directories, and their folders."""

    lake: Lake
    controllers: Path
    copies: Path


@pytest.fixture(scope="module")
def loaded(golden: Path, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Loaded:
    folder = tmp_path_factory.mktemp("brokers")
    controllers = folder / "controllers"
    for node in ("node-1", "node-2", "node-3"):
        shutil.copytree(golden / SCENARIO / node, controllers / node)
    brokers(folder / "brokers")
    assert run(folder / "lake", controllers, folder / "brokers") == ExitCode.FINE
    return Loaded(opened(spark, folder / "lake"), controllers, folder / "brokers")


def test_what_the_metadata_says_of_each_partition(loaded: Loaded) -> None:
    rows = rows_with(loaded.lake.path, BROKER_PARTITIONS)
    states = {(row["directory_id"], row["topic_name"], row["partition_id"]): row["state"] for row in rows}
    placed = {FIRST: states[FIRST, "t-small", 1], SECOND: states[SECOND, "t-small", 1]}
    assert sorted(placed.values()) == ["assigned", "other_directory"]
    assert {key: state for key, state in states.items() if key[1:] != ("t-small", 1)} == {
        (FIRST, "t-small", 0): "stray_replica",
        (FIRST, "t-wide", 0): "other_topic_id",
        (FIRST, "t-del", 0): "marked_stray",
        (SECOND, "t-del", 0): "unknown_topic",
    }
    assert states[UNKNOWN, "t-small", 1] == "unregistered_directory"
    undecided = [row["reason"] for row in rows if row["state"] == "undecided"]
    assert undecided == [NOT_REACHED]
    # What the captured log does not reach refutes nothing of an earlier copy.
    assert {row["captured_at"].isoformat() for row in rows if row["directory_id"] == FIRST} == {
        THEN.replace("Z", "+00:00")
    }


def test_each_kind_of_fault_of_a_directory_is_a_finding(loaded: Loaded) -> None:
    found = [row for row in rows_with(loaded.lake.path, FINDINGS) if row["rule"] == 52]
    assert [row["severity"] for row in found] == ["warning"] * 5
    sentences = sorted(row["sentence"] for row in found)
    assert sentences[-1].startswith("Broker 11 holds 1 partition that the metadata does not place there: ")
    assert any(f"t-wide-0 of topic id {GONE}" in row["evidence"] for row in found)
    assert WIDE not in {row["evidence"] for row in found}


def test_any_order_gives_the_same_tables(
    loaded: Loaded, spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    controllers, copies = loaded.controllers, loaded.copies
    other = tmp_path / "lake"
    later = copied(tmp_path / "again", SECOND, [("t-small-1", SMALL), ("t-del-0", GONE)])
    run(other, controllers / "node-2", later)
    run(other, copies, controllers / "node-1", controllers / "node-3")
    assert content(opened(spark, other), CLUSTER) == content(loaded.lake, CLUSTER)
    before = versions(opened(spark, other))
    capsys.readouterr()
    assert run(other, controllers, copies) == ExitCode.FINE
    assert "nothing new" in capsys.readouterr().out
    assert versions(opened(spark, other)) == before


def test_views_show_them(loaded: Loaded, capsys: pytest.CaptureFixture[str]) -> None:
    query = (
        "SELECT topic_name, partition_id, assigned_topic_id FROM stray_replicas "
        "WHERE state = 'other_topic_id' "
        "UNION ALL SELECT state, CAST(partitions AS INT), first_partitions[0] FROM broker_directory_states "
        "WHERE state = 'undecided' ORDER BY 1"
    )
    capsys.readouterr()
    assert main(["sql", "--lake", str(loaded.lake.path), query, "--format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [f"t-wide,0,{WIDE}", "undecided,1,t-small-1"]


def test_old_copies_expire_and_a_forgotten_cluster_has_none(loaded: Loaded, tmp_path: Path) -> None:
    controllers, copies = loaded.controllers, loaded.copies
    lake = tmp_path / "lake"
    shutil.copytree(loaded.lake.path, lake)
    assert len(rows_with(lake, BROKER_DIRECTORIES)) == 6
    days = ("--keep-days", "1", "--now", "2026-11-30T00:00:00Z")
    assert main(["maintain", "--lake", str(lake), *days]) == ExitCode.FINE
    assert len(rows_with(lake, BROKER_DIRECTORIES)) == 4
    assert run(lake, controllers, copies) == ExitCode.FINE
    assert len(rows_with(lake, BROKER_DIRECTORIES)) == 4
    assert main(["forget", "--lake", str(lake), "--cluster", CLUSTER]) == ExitCode.FINE
    assert (rows_with(lake, BROKER_DIRECTORIES), rows_with(lake, BROKER_PARTITIONS)) == ([], [])


def test_a_copy_that_is_not_whole_is_left_out(
    golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = copied(tmp_path / "brokers", FIRST, [("t-small-1", SMALL)])
    (path / "t-small-1/partition.metadata").write_text("version: 0\ntopic_id: no uuid")
    whole = copied(tmp_path / "brokers", SECOND, [("t-small-1", SMALL)])
    words = ["run", "--lake", str(tmp_path / "lake"), "--dry-run", "--captures", str(tmp_path / "brokers")]
    assert main([*words, str(golden / SCENARIO / "node-1")]) == ExitCode.FINE
    said = capsys.readouterr()
    assert f"left out: {path}: {path}/t-small-1/partition.metadata cannot be read" in said.err
    assert str(whole) not in said.err
    line = f"{CLUSTER}  broker 11  2026-11-21T09:42:45.000Z  1 partition  directory {SECOND}"
    assert said.out.splitlines()[1:] == [line]
