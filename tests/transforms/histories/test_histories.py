"""Histories made from a lake's rows equal those of the plain core (kraft_core.image.history)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
from deltalake import DeltaTable, write_deltalake

from jobs.derivation.derive_histories import write_histories
from kraft_core.image.replay_path import PathCheckpoint, ReplayRange
from tests.kraft_core.image.worlds import (
    change_fields,
    life,
    partition_fields,
    random_steps,
    topic_fields,
)
from tests.kraft_core.image.worlds import rows as rows_of
from tests.transforms.histories.replayed import (
    CRC,
    World,
    gapped,
    in_conflict,
    records_table,
    snapshot_records_table,
    whole,
)
from transforms.lake.delta_rs import rows_with
from transforms.lake.lake import Lake
from transforms.lake.tables import (
    HISTORIES,
    PARTITIONS,
    RECORDS,
    SNAPSHOT_RECORDS,
    ZK_MIGRATION_STATES,
)

KINDS = {ZK_MIGRATION_STATES: "zk_migration"}
LIVES = 33
MANY_LIVES = 60
STEPS = 90


def expected(worlds: list[World]) -> dict[str, list[Any]]:
    by_core = [world.expected() for world in worlds]
    return {t.name: [row for found in by_core for row in found[KINDS.get(t, t.name)]] for t in HISTORIES}


def assert_equal(found: dict[str, list[Any]], wanted: dict[str, list[Any]]) -> None:
    for table in HISTORIES:
        columns = [n for n in table.names if n != "entity_name"]
        assert as_texts(found[table.name], columns) == as_texts(wanted[table.name], columns), table.name


def as_texts(rows: list[Any], columns: list[str]) -> list[str]:
    return sorted(json.dumps([row[name] for name in columns], default=as_text) for row in rows)


def as_text(time: datetime) -> str:
    return time.astimezone(UTC).isoformat()


@cache
def worlds(number: int = LIVES) -> list[World]:
    """Whole logs, and logs with a gap and checkpoints; every third has batches that conflict."""
    lives = [(seed, life(random_steps(seed, STEPS))) for seed in range(number)]
    found = [
        (whole if seed % 2 else gapped)(f"cluster {seed}", records, Random(seed)) for seed, records in lives
    ]
    return [world if n % 3 else in_conflict(world, Random(n)) for n, world in enumerate(found)]


def test_the_lives_hold_what_is_rare() -> None:
    """Conflicting batches and checkpoints without a timestamp lie on their replay paths."""
    steps = [step for world in worlds() for step in world.steps]
    assert len([s for s in steps if isinstance(s, PathCheckpoint) and s.timestamp is None]) > 5
    conflicts = [r for w in worlds() for s in w.ranges for crc, r in w.on(s) if crc != CRC]
    assert len(conflicts) > 100
    assert len({r.type for r in conflicts}) > 15


@pytest.mark.parametrize("number", [LIVES, pytest.param(MANY_LIVES, marks=pytest.mark.long)])
@pytest.mark.parametrize("together", [100, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_random_lives_give_what_the_core_gives(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: int, number: int
) -> None:
    """In one piece, and in pieces of the log and buckets on disk."""
    monkeypatch.setattr("transforms.histories.partition_replay.TOGETHER", together)
    monkeypatch.setattr("transforms.histories.replay_records.TOGETHER", together // 4)
    lake = Lake(spark, tmp_path)
    write_in_two_runs(lake, worlds(number))
    versions = {table: DeltaTable(tmp_path / table.name).version() for table in HISTORIES}
    write_histories(lake, [w.plan() for w in worlds(number)])
    assert versions == {table: DeltaTable(tmp_path / table.name).version() for table in HISTORIES}


@pytest.mark.parametrize("number", [LIVES // 3, pytest.param(MANY_LIVES, marks=pytest.mark.long)])
def test_sparks_tasks_give_the_same(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """Where a history has few rows delta-rs writes it, else Spark does."""
    monkeypatch.setattr("jobs.derivation.derive_histories.OTHERS_IN_DRIVER", 300)
    monkeypatch.setattr("jobs.derivation.derive_histories.PARTITIONS_IN_DRIVER", 300)
    write_in_two_runs(Lake(spark, tmp_path), worlds(number))


def write_in_two_runs(lake: Lake, ended: list[World]) -> None:
    """The first run sees the beginning of each log, the second one goes on from where anything changed."""
    begun = [world.begun(Random(world.cluster_id)) for world in ended]
    write_records(lake.path, begun)
    write_histories(lake, [w.plan() for w in begun])
    assert_equal(held(lake.path), expected(begun))

    write_records(lake.path, ended)
    plans = [w.plan(b.steps) for b, w in zip(begun, ended, strict=True)]
    assert len({plan.start for plan in plans if plan.start > 0}) > len(ended) // 4
    write_histories(lake, plans)
    assert_equal(held(lake.path), expected(ended))


def test_directories_that_do_not_fit_the_replicas_are_refused(spark: Any, tmp_path: Path) -> None:
    """A record that leaves other than one directory a replica changes nothing, whatever it names."""
    topic, one, other = "AAAAAAAAAAAAAAAAAAAAAQ", "BBBBBBBBBBBBBBBBBBBBBQ", "CCCCCCCCCCCCCCCCCCCCCQ"
    found = [
        ("TOPIC_RECORD", topic_fields("t", topic)),
        ("PARTITION_RECORD", partition_fields(topic, 0, directories=[one, other])),
        ("PARTITION_CHANGE_RECORD", change_fields(topic, 0, replicas=[1, 2, 3], leader=2)),
        ("PARTITION_CHANGE_RECORD", change_fields(topic, 0, replicas=[3], directories=[other], isr=[3])),
        ("PARTITION_CHANGE_RECORD", change_fields(topic, 0, directories=[one, other])),
        ("PARTITION_CHANGE_RECORD", change_fields(topic, 0, replicas=[2, 1], isr=[1])),
        ("PARTITION_CHANGE_RECORD", change_fields(topic, 0, isr=[])),
        ("PARTITION_RECORD", partition_fields(topic, 1, directories=[one])),
        ("PARTITION_CHANGE_RECORD", change_fields(topic, 1, isr=[1])),
        ("PARTITION_RECORD", partition_fields(topic, 2, directories=None)),
        ("PARTITION_CHANGE_RECORD", change_fields(topic, 2, replicas=[1, 2, 3])),
    ]
    world = World("cluster", rows_of(found), [ReplayRange(0, len(found), 1, "committed")])
    write_records(tmp_path, [world])
    versions = [(0, [1, 2]), (0, [3]), (0, [3]), (2, [1, 2]), (2, [1, 2, 3])]
    write_histories(Lake(spark, tmp_path), [world.plan()])
    assert_equal(held(tmp_path), expected([world]))
    assert versions == sorted(
        (row["partition_id"], row["replicas"]) for row in rows_with(tmp_path, PARTITIONS)
    )


def test_elrs_are_cleared_of_one_of_the_topics_with_a_name(tmp_path: Path) -> None:
    ids = ("AAAAAAAAAAAAAAAAAAAAAQ", "BBBBBBBBBBBBBBBBBBBBBQ")
    found = [("TOPIC_RECORD", topic_fields("t", id_)) for id_ in ids]
    found += [("PARTITION_RECORD", partition_fields(id_, eligibleLeaderReplicas=[2])) for id_ in ids]
    clear, removal = ("CLEAR_ELR_RECORD", {"topicName": "t"}), ("REMOVE_TOPIC_RECORD", {"topicId": ids[1]})
    found += [clear, removal, clear]
    world = World("cluster", rows_of(found), [ReplayRange(0, len(found), 1, "committed")])
    write_records(tmp_path, [world])
    write_histories(Lake(cast("Any", None), tmp_path), [world.plan()])
    assert_equal(held(tmp_path), expected([world]))
    cleared = {(r["topic_id"], r["valid_from_offset"]) for r in rows_with(tmp_path, PARTITIONS)}
    assert cleared == {(ids[0], 2), (ids[0], 6), (ids[1], 3), (ids[1], 4)}


def write_records(lake: Path, worlds: list[World]) -> None:
    write_deltalake(lake / RECORDS.name, records_table(worlds), mode="overwrite")
    write_deltalake(lake / SNAPSHOT_RECORDS.name, snapshot_records_table(worlds), mode="overwrite")


def held(lake: Path) -> dict[str, list[Any]]:
    return {table.name: rows_with(lake, table) for table in HISTORIES}


def test_negative_partition_ids_and_the_largest_epochs(spark: Any, tmp_path: Path) -> None:
    """Kafka writes none, but would replay them."""
    largest = {"leaderEpoch": (1 << 31) - 1, "partitionEpoch": (1 << 31) - 1}
    topics = {"t": "AAAAAAAAAAAAAAAAAAAAAQ", "u": "BBBBBBBBBBBBBBBBBBBBBQ"}
    ids = (-1, -(1 << 31), 0, (1 << 31) - 1)
    found = [("TOPIC_RECORD", topic_fields(name, id_)) for name, id_ in topics.items()]
    found += [
        ("PARTITION_RECORD", partition_fields(id_, n, **largest)) for id_ in topics.values() for n in ids
    ]
    found += [("PARTITION_CHANGE_RECORD", change_fields(topics["u"], n, isr=[1], leader=1)) for n in ids]
    found += [("CLEAR_ELR_RECORD", {"topicName": name}) for name in ("t", "")]
    world = World("cluster", rows_of(found), [ReplayRange(0, len(found), 1, "committed")])
    write_records(tmp_path, [world])
    write_histories(Lake(spark, tmp_path), [world.plan()])
    assert_equal(held(tmp_path), expected([world]))
    assert {row["partition_id"] for row in rows_with(tmp_path, PARTITIONS)} == set(ids)
