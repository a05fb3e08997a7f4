"""kraftlake run over captures by real Kafka: the tables, and that they are a function of the captures."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.lakes import content, opened, report, run, versions
from transforms.frames import to_rows
from transforms.tables import BATCHES, CAPTURES, EPOCHS, QUARANTINE, RECORDS, SNAPSHOTS, TABLES, VOTER_SETS

TRUNCATION = ("uncommitted-truncation/before", "uncommitted-truncation/after")


@pytest.fixture(scope="module")
def lake_path(golden: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of the bundled captures, read in one run."""
    path = tmp_path_factory.mktemp("bundled") / "lake"
    assert run(path, golden / "dynamic-membership", golden / "uncommitted-truncation") == 0
    return path


def voter_sets(lake: Any, cluster_with: int) -> dict[int, tuple[list[int], str | None]]:
    """Offset to (ids, status) of the cluster whose log holds a set at that offset."""
    rows = to_rows(lake.read(VOTER_SETS))
    cluster = next(r["cluster_id"] for r in rows if r["offset"] == cluster_with)
    return {r["offset"]: (r["voter_ids"], r["commit_status"]) for r in rows if r["cluster_id"] == cluster}


def test_voter_history_of_dynamic_membership(spark: Any, lake_path: Path) -> None:
    assert voter_sets(opened(spark, lake_path), 1894) == {
        -1: ([1], None),
        2: ([1], "committed"),
        61: ([1, 2], "committed"),
        72: ([1, 2, 3], "committed"),
        1878: ([1, 2], "committed"),
        1885: ([1, 2, 3], "committed"),
        1894: ([1, 3], "committed"),
        1979: ([1, 2, 3], "committed"),
        1999: ([1, 2, 3], "committed"),
        2022: ([1, 2, 3], "committed"),
    }


def test_the_lost_change_is_truncated_by_the_epoch_that_replaced_it(spark: Any, lake_path: Path) -> None:
    lake = opened(spark, lake_path)
    lost = [r for r in to_rows(lake.read(VOTER_SETS)) if r["offset"] == 355]
    assert [(r["voter_ids"], r["commit_status"], r["truncated_by_epoch"]) for r in lost] == [
        ([1, 2, 3, 4], "truncated", 3)
    ]


def test_leaders(spark: Any, lake_path: Path) -> None:
    rows = to_rows(opened(spark, lake_path).read(EPOCHS).where("start_offset_exact"))
    leaders = {(r["leader_epoch"], r["start_offset"]): r["leader_id"] for r in rows}
    assert leaders == {
        (1, 0): 1,
        (3, 352): 2,
        (3, 1005): 2,
        (4, 1895): 3,
        (6, 2013): 2,
        (7, 2943): 3,
        (9, 2944): 3,
    }


def test_every_key_is_unique_and_no_required_column_null(spark: Any, lake_path: Path) -> None:
    lake = opened(spark, lake_path)
    for table in TABLES:
        frame = lake.read(table)
        assert frame.count() == frame.select(*table.key).distinct().count(), table.name
        for column in table.columns:
            if not column.nullable:
                assert frame.where(f"`{column.name}` IS NULL").isEmpty(), f"{table.name}.{column.name}"


def test_batches_that_replicas_share_are_decoded_once(spark: Any, lake_path: Path) -> None:
    lake = opened(spark, lake_path)
    distinct = lake.read(BATCHES).select("cluster_id", "base_offset", "leader_epoch", "crc", "record_count")
    records = distinct.distinct().agg({"record_count": "sum"}).first()[0]
    assert lake.read(RECORDS).count() == records < lake.read(BATCHES).agg({"record_count": "sum"}).first()[0]


def test_secrets_are_redacted(spark: Any, lake_path: Path) -> None:
    scram = to_rows(
        opened(spark, lake_path)
        .read(RECORDS)
        .where("type = 'USER_SCRAM_CREDENTIAL_RECORD'")
        .select("redacted", "user_scram_credential.*")
    )
    assert scram
    for row in scram:
        assert row["redacted"]
        assert row["name"]
        assert (row["salt"], row["stored_key"], row["server_key"]) == (None, None, None)


def test_known_captures_change_nothing(
    spark: Any, lake_path: Path, golden: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = versions(opened(spark, lake_path))
    assert run(lake_path, golden / "uncommitted-truncation", golden / "dynamic-membership") == 0
    said = report(capsys.readouterr().out)
    assert (said["captures"], said["captures_read"], said["touched_clusters"]) == (11, 0, 0)
    assert versions(opened(spark, lake_path)) == before


# Three ways to hand over the captures of one cluster: oldest last, replica by replica, known ones again.
SPLITS = {
    "newest first": [["after"], ["before"]],
    "replica by replica": [
        ["before/node-4", "after/node-2", "after/node-4", "before/node-1"],
        ["after/node-1", "after/node-3", "before/node-2", "before/node-3"],
    ],
    "known ones again": [["before"], ["after", "before"]],
}


@pytest.mark.parametrize("splits", SPLITS.values(), ids=SPLITS.keys())
def test_any_order_and_split_gives_the_same_tables(
    spark: Any, lake_path: Path, golden: Path, tmp_path: Path, splits: list[list[str]]
) -> None:
    for split in splits:
        assert run(tmp_path / "lake", *(golden / "uncommitted-truncation" / part for part in split)) == 0
    whole = opened(spark, lake_path)
    cluster = to_rows(whole.read(VOTER_SETS).where("`offset` = 355"))[0]["cluster_id"]
    expected = {name: [row for row in rows if cluster in row] for name, rows in content(whole).items()}
    assert content(opened(spark, tmp_path / "lake")) == expected


def test_the_same_directory_copied_elsewhere_is_the_same_capture(
    spark: Any, lake_path: Path, golden: Path, tmp_path: Path
) -> None:
    before = versions(opened(spark, lake_path))
    shutil.copytree(golden / "dynamic-membership/node-2", tmp_path / "elsewhere")
    assert run(lake_path, tmp_path / "elsewhere") == 0
    assert versions(opened(spark, lake_path)) == before


def test_a_better_known_time_is_taken(spark: Any, golden: Path, tmp_path: Path) -> None:
    """File times first, capture.json later: the capture is the same, its time is now known better."""
    shutil.copytree(golden / "v4.4.0-mini/node-1", tmp_path / "untimed")
    (tmp_path / "untimed/capture.json").unlink()
    lake_path = tmp_path / "lake"
    assert run(lake_path, tmp_path / "untimed") == 0
    assert [r["captured_at_source"] for r in to_rows(opened(spark, lake_path).read(CAPTURES))] == [
        "file_time"
    ]
    assert run(lake_path, golden / "v4.4.0-mini/node-1") == 0
    rows = to_rows(opened(spark, lake_path).read(CAPTURES))
    assert [r["captured_at_source"] for r in rows] == ["capture.json"]


LOG = "__cluster_metadata-0/00000000000000000408.log"
DAMAGED = ("crc-flip-middle", "torn-last-batch", "unknown-record-type", "truncated-record-payload")


def damaged_capture(golden: Path, folder: Path, case: str) -> Path:
    """A real captured directory of a cluster named like the case, one segment taken from golden/corrupt."""
    shutil.copytree(golden / "uncommitted-truncation/after/node-1", folder / case)
    shutil.copy(golden / "corrupt" / case / Path(LOG).name, folder / case / LOG)
    meta = folder / case / "meta.properties"
    meta.write_text(meta.read_text().replace("cluster.id=iWP35uOsShu1pFlBJh_E7w", f"cluster.id={case}"))
    return folder / case


def test_what_is_lost_is_quarantined_until_a_copy_supplies_it(
    spark: Any, golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lake_path = tmp_path / "lake"
    assert run(lake_path, *(damaged_capture(golden, tmp_path, case) for case in DAMAGED)) == 1
    lake = opened(spark, lake_path)
    found = {
        r["cluster_id"]: (r["file"], r["position"], r["reason"], r["lost_from_offset"], r["lost_to_offset"])
        for r in to_rows(lake.read(QUARANTINE))
    }
    assert found == {
        "crc-flip-middle": (LOG, 1648, "bad_crc", 428, 439),
        "torn-last-batch": (LOG, 8204, "torn_tail", 506, None),
        "truncated-record-payload": (LOG, 8344, "malformed_value", 507, 508),
    }
    assert "(bad_crc)" in capsys.readouterr().out
    unread = to_rows(lake.read(RECORDS).where("unread_reason = 'unknown_type'"))
    assert [(r["cluster_id"], r["offset"], r["type"]) for r in unread] == [
        ("unknown-record-type", 507, "UNKNOWN")
    ]
    assert unread[0]["value_sha256"]

    whole = tmp_path / "crc-flip-middle"
    shutil.copy(golden / "uncommitted-truncation/after/node-1" / LOG, whole / LOG)
    assert run(lake_path, whole) == 0
    assert "crc-flip-middle" not in {r["cluster_id"] for r in to_rows(lake.read(QUARANTINE))}


def test_checkpoints(spark: Any, lake_path: Path) -> None:
    rows = to_rows(opened(spark, lake_path).read(SNAPSHOTS).where("end_offset = 3692"))
    assert len(rows) == 3
    assert all(r["complete"] and r["kraft_version"] == 1 for r in rows)
    assert {tuple(v["voter_id"] for v in r["voters"]) for r in rows} == {(1, 2, 3)}
