"""kraftlake run over captures by real Kafka: the tables, and that they are a function of the captures."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions as F

from tests.jobs.lakes import content, opened, run
from transforms.frames import to_rows
from transforms.tables import (
    BATCHES,
    CAPTURES,
    EPOCHS,
    QUARANTINE,
    RECORDS,
    SNAPSHOTS,
    TABLES,
    VOTER_SETS,
    Table,
)


def voter_sets(lake: Any, cluster_with: int) -> dict[int, tuple[list[int], str | None]]:
    """Offset to (ids, status) of the cluster whose log holds a set at that offset."""
    rows = to_rows(lake.read(VOTER_SETS))
    cluster = next(r["cluster_id"] for r in rows if r["offset"] == cluster_with)
    return {r["offset"]: (r["voter_ids"], r["commit_status"]) for r in rows if r["cluster_id"] == cluster}


def test_voter_history_of_dynamic_membership(lake: Any) -> None:
    assert voter_sets(lake, 1894) == {
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


def test_the_lost_change_is_truncated_by_the_epoch_that_replaced_it(lake: Any) -> None:
    lost = [r for r in to_rows(lake.read(VOTER_SETS)) if r["offset"] == 355]
    assert [(r["voter_ids"], r["commit_status"], r["truncated_by_epoch"]) for r in lost] == [
        ([1, 2, 3, 4], "truncated", 3)
    ]


def test_leaders_of_dynamic_membership(lake: Any) -> None:
    rows = to_rows(lake.read(EPOCHS).where("cluster_id = 'rPoTXydvQsK3Nv6AA77Cqg' AND start_offset_exact"))
    leaders = {(r["leader_epoch"], r["start_offset"]): r["leader_id"] for r in rows}
    assert leaders == {(1, 0): 1, (3, 1005): 2, (4, 1895): 3, (6, 2013): 2, (7, 2943): 3, (9, 2944): 3}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_key_is_unique_and_no_required_column_null(lake: Any, table: Table) -> None:
    required = [c.name for c in table.columns if not c.nullable]
    nulls = [F.count_if(F.col(f"`{name}`").isNull()).alias(name) for name in required]
    distinct = F.count_distinct(*table.key).alias("distinct_keys")
    counted = to_rows(lake.read(table).agg(F.count("*").alias("rows"), distinct, *nulls))[0]
    assert counted["distinct_keys"] == counted["rows"]
    assert {name: counted[name] for name in required} == dict.fromkeys(required, 0)


def test_batches_that_replicas_share_are_decoded_once(lake: Any) -> None:
    identity = ["cluster_id", "base_offset", "leader_epoch", "crc", "record_count"]
    held = lake.read(BATCHES).select(identity)
    once = held.distinct().agg({"record_count": "sum"}).first()[0]
    assert lake.read(RECORDS).count() == once < held.agg({"record_count": "sum"}).first()[0]


def test_secrets_are_redacted(lake: Any) -> None:
    scram = to_rows(
        lake.read(RECORDS)
        .where("type = 'USER_SCRAM_CREDENTIAL_RECORD'")
        .select("redacted", "user_scram_credential.*")
    )
    assert scram
    for row in scram:
        assert row["redacted"]
        assert row["name"]
        assert (row["salt"], row["stored_key"], row["server_key"]) == (None, None, None)


FAMILY = ("uncommitted-truncation", "uncommitted-removal", "uncommitted-then-committed")
# Ways to hand over the captures of one cluster's life.
SPLITS = {
    "newest first": [[f"{FAMILY[2]}/*/node-*"], [f"{FAMILY[1]}/*/node-*", f"{FAMILY[0]}/*/node-*"]],
    "replica by replica": [
        [f"{name}/*/node-{node}" for name in FAMILY for node in nodes] for nodes in ((4, 1), (3, 2))
    ],
}


@pytest.mark.parametrize("splits", SPLITS.values(), ids=SPLITS.keys())
def test_any_order_and_split_gives_the_same_tables(
    lake: Any, golden: Path, tmp_path: Path, splits: list[list[str]]
) -> None:
    for patterns in splits:
        assert run(tmp_path / "lake", *(path for p in patterns for path in sorted(golden.glob(p)))) == 0
    assert_same_family(lake, opened(lake.spark, tmp_path / "lake"))


def test_a_time_known_better_later_gives_the_same_tables(lake: Any, golden: Path, tmp_path: Path) -> None:
    """Some captures first without their capture.json: their times are then known better."""
    for node in (1, 4):
        copy = tmp_path / "untimed" / f"node-{node}"
        shutil.copytree(golden / FAMILY[0] / "before" / f"node-{node}", copy)
        (copy / "capture.json").unlink()
    assert run(tmp_path / "lake", tmp_path / "untimed") == 0
    sources = {r["captured_at_source"] for r in to_rows(opened(lake.spark, tmp_path / "lake").read(CAPTURES))}
    assert sources == {"file_time"}
    assert run(tmp_path / "lake", *(golden / name for name in FAMILY)) == 0
    assert_same_family(lake, opened(lake.spark, tmp_path / "lake"))


def assert_same_family(whole: Any, other: Any) -> None:
    """The other lake holds what the golden lake holds of the cluster, in every table."""
    cluster = "iWP35uOsShu1pFlBJh_E7w"
    expected = {name: [row for row in rows if cluster in row] for name, rows in content(whole).items()}
    assert sum(map(len, expected.values())) > 1000
    assert content(other) == expected


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
        "truncated-record-payload": (LOG, 8343, "malformed_value", 507, 508),
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


def test_checkpoints(lake: Any) -> None:
    rows = to_rows(lake.read(SNAPSHOTS).where("end_offset = 3692"))
    assert len(rows) == 3
    assert all(r["complete"] and r["kraft_version"] == 1 for r in rows)
    assert {tuple(v["voter_id"] for v in r["voters"]) for r in rows} == {(1, 2, 3)}
