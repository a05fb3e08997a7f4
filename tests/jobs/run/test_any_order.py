"""The tables are a function of the captures: whatever order they come in, whatever was lost in between.

Two runs over one lake load several clusters, each a copy of real captures under another cluster id, each
handed over in another way.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.lakes import content, opened, run
from transforms.lake.arrow_rows import Row
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import CAPTURES, QUARANTINE, RECORDS

CLUSTER = "iWP35uOsShu1pFlBJh_E7w"
FAMILY = ("uncommitted-truncation", "uncommitted-removal", "uncommitted-then-committed")
ALL = tuple(f"{name}/*/node-*" for name in FAMILY)
# Cluster id to what the first and the second run are given of the family, as patterns.
SPLITS = {
    "newest-first": ((f"{FAMILY[2]}/*/node-*",), (f"{FAMILY[1]}/*/node-*", f"{FAMILY[0]}/*/node-*")),
    "replica-by-replica": (
        tuple(f"{name}/*/node-[14]" for name in FAMILY),
        tuple(f"{name}/*/node-[23]" for name in FAMILY),
    ),
    "untimed-first": ((f"{FAMILY[0]}/before/node-[14]",), ALL),
}
LOG = "__cluster_metadata-0/00000000000000000408.log"
DAMAGED = ("crc-flip-middle", "torn-last-batch", "unknown-record-type", "truncated-record-payload")


def as_cluster(folder: Path, cluster: str) -> None:
    """Give a copied directory another cluster id."""
    meta = folder / "meta.properties"
    meta.write_text(meta.read_text().replace(f"cluster.id={CLUSTER}", f"cluster.id={cluster}"))


def copied_quorum(quorum: Path, to: Path) -> Path:
    """Copy the directories of one cluster to a new folder, whose name is the copy's cluster id."""
    shutil.copytree(quorum, to)
    for directory in to.glob("node-*"):
        as_cluster(directory, to.name)
    return to


def copied(golden: Path, pattern: str, folder: Path, cluster: str) -> None:
    """Copy the captured directories of the pattern, with their times."""
    for found in sorted(golden.glob(pattern)):
        copy = folder / cluster / found.relative_to(golden)
        shutil.copytree(found, copy)
        as_cluster(copy, cluster)


def copied_outputs(golden: Path, name: str, folder: Path, cluster: str) -> None:
    """Copy the describe outputs of a scenario."""
    copy = folder / cluster / name / "quorum"
    copy.mkdir(parents=True)
    for output in sorted((golden / name / "quorum").glob("*.txt")):
        (copy / output.name).write_text(output.read_text().replace(CLUSTER, cluster))


def damaged(golden: Path, folder: Path, case: str) -> None:
    """A captured directory of a cluster named like the case, one segment taken from golden/corrupt."""
    shutil.copytree(golden / "uncommitted-truncation/after/node-1", folder / case)
    shutil.copy(golden / "corrupt" / case / Path(LOG).name, folder / case / LOG)
    as_cluster(folder / case, case)


@dataclass(frozen=True)
class FirstRun:
    """A lake, the folder of its captures, and rows of the lake after the first run."""

    lake: Any
    folder: Path
    captures: list[Row]
    quarantine: list[Row]
    unread: list[Row]


@pytest.fixture(scope="module")
def first_run(golden: Path, spark: Any, tmp_path_factory: pytest.TempPathFactory) -> FirstRun:
    folder = tmp_path_factory.mktemp("orders")
    for cluster, (early, _) in SPLITS.items():
        for pattern in early:
            copied(golden, pattern, folder / "early", cluster)
        copied_outputs(golden, FAMILY[-1], folder / "early", cluster)
    for timed in (folder / "early" / "untimed-first").rglob("capture.json"):
        timed.unlink()
    for case in DAMAGED:
        damaged(golden, folder / "early", case)
    assert run(folder / "lake", folder / "early") == 1
    lake = folder / "lake"
    return FirstRun(
        opened(spark, lake),
        folder,
        rows_with(lake, CAPTURES),
        rows_with(lake, QUARANTINE),
        rows_with(lake, RECORDS, unread_reason=["unknown_type"]),
    )


def test_a_capture_without_a_stated_time_goes_by_its_files(first_run: FirstRun) -> None:
    captures = [r for r in first_run.captures if r["cluster_id"] == "untimed-first"]
    assert {r["captured_at_source"] for r in captures} == {"file_time"}


def test_what_is_lost_is_quarantined(first_run: FirstRun) -> None:
    found = {
        r["cluster_id"]: (r["file"], r["position"], r["reason"], r["lost_from_offset"], r["lost_to_offset"])
        for r in first_run.quarantine
    }
    assert found == {
        "crc-flip-middle": (LOG, 1648, "bad_crc", 428, 439),
        "torn-last-batch": (LOG, 8204, "torn_tail", 506, None),
        "truncated-record-payload": (LOG, 8343, "malformed_value", 507, 508),
    }
    (unread,) = first_run.unread
    assert (unread["cluster_id"], unread["offset"], unread["type"]) == ("unknown-record-type", 507, "UNKNOWN")
    assert unread["value_sha256"]


@pytest.fixture(scope="module")
def second_run(golden: Path, first_run: FirstRun) -> Any:
    """The lake after the rest of the captures, and a whole copy of a segment that was damaged."""
    lake, folder = first_run.lake, first_run.folder
    for cluster, (_, late) in SPLITS.items():
        for pattern in late:
            copied(golden, pattern, folder / "late", cluster)
        for name in FAMILY[:-1]:
            copied_outputs(golden, name, folder / "late", cluster)
    mended = folder / "late" / "crc-flip-middle"
    shutil.copytree(golden / "uncommitted-truncation/after/node-1", mended)
    as_cluster(mended, "crc-flip-middle")
    assert run(lake.path, folder / "late") == 0
    return lake


@pytest.mark.parametrize("split", SPLITS)
def test_any_order_and_split_gives_the_same_tables(lake: Any, second_run: Any, split: str) -> None:
    expected = content(lake, CLUSTER)
    assert sum(map(len, expected.values())) > 1000
    assert content(second_run, split) == expected


def test_a_whole_copy_ends_the_quarantine(second_run: Any) -> None:
    assert "crc-flip-middle" not in {r["cluster_id"] for r in rows_with(second_run.path, QUARANTINE)}
