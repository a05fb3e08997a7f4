"""Histories by SQL windows and by replay of a lake's rows, beside those of the pure core over all there is
(kraft_core.image.history)."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake

from kraft_core.image.line import Checkpoint
from tests.kraft_core.image.worlds import Row, life, random_steps
from tests.transforms.replayed import (
    World,
    gapped,
    records_table,
    snapshot_records_table,
    whole,
)
from transforms.delta_rs import replace_where, rows_with
from transforms.frames import to_frame, to_rows
from transforms.histories import histories
from transforms.replayed_histories import replayed_histories
from transforms.replays import Replay
from transforms.tables import HISTORIES, PARTITIONS, RECORDS, SNAPSHOT_RECORDS, ZK_MIGRATION_STATES

KINDS = {ZK_MIGRATION_STATES: "zk_migration"}
LIVES = 60
STEPS = 90


def made(
    spark: Any, worlds: list[World], replays: list[Replay], kept: dict[str, Any]
) -> dict[str, list[Any]]:
    """The rows of every history by SQL."""
    records = spark.createDataFrame(records_table(worlds))
    snapshot_records = spark.createDataFrame(snapshot_records_table(worlds))
    found = histories(records, snapshot_records, kept, replays)
    rows: dict[str, list[Any]] = {table.name: [] for table in HISTORIES}
    for row in to_rows(found.small):
        rows[row["kind"]].append(row | row[row["kind"]])
    rows[PARTITIONS.name] = to_rows(found.partitions)
    return rows


def expected(worlds: list[World]) -> dict[str, list[Any]]:
    by_core = [world.expected() for world in worlds]
    return {t.name: [row for told in by_core for row in told[KINDS.get(t, t.name)]] for t in HISTORIES}


def assert_equal(found: dict[str, list[Any]], wanted: dict[str, list[Any]]) -> None:
    for table in HISTORIES:
        columns = [n for n in table.names if n != "entity_name"]
        assert as_texts(found[table.name], columns) == as_texts(wanted[table.name], columns), table.name


def as_texts(rows: list[Any], columns: list[str]) -> list[str]:
    return sorted(json.dumps([row[name] for name in columns], default=as_text) for row in rows)


def as_text(time: datetime) -> str:
    return time.astimezone(UTC).isoformat()


def worlds(without: str = "") -> list[World]:
    """Whole logs, and logs with a gap and checkpoints. without: a type of records that say nothing here."""
    told = [
        (seed, [quiet(record) if record.type == without else record for record in records])
        for seed, records in ((seed, life(random_steps(seed, STEPS))) for seed in range(LIVES))
    ]
    return [
        (whole if seed % 2 else gapped)(f"cluster {seed}", records, Random(seed)) for seed, records in told
    ]


def test_random_lives_by_sql_give_what_the_core_gives_at_once_and_in_two_runs(spark: Any) -> None:
    """The first run sees the beginning of each log, the second one goes on from where anything changed."""
    ended = worlds()
    begun = [world.begun(Random(world.cluster_id)) for world in ended]
    first = made(spark, begun, [w.replay() for w in begun], {})
    assert_equal(first, expected(begun))

    replays = [now.replay(before.steps) for before, now in zip(begun, ended, strict=True)]
    starts = {replay.cluster_id: replay.start for replay in replays}
    assert len({start for start in starts.values() if start > 0}) > LIVES // 4

    def stands(row: dict[str, Any]) -> bool:
        end = row["valid_to_offset"]
        return end is None or end >= starts[row["cluster_id"]]

    kept = {
        table.name: to_frame(
            spark,
            [
                {name: row[name] for name in table.names}
                for row in first[table.name]
                if stands(row) and row["valid_from_offset"] < starts[row["cluster_id"]]
            ],
            table.schema,
        )
        for table in HISTORIES
    }
    second = made(spark, ended, replays, kept)
    left = {name: [row for row in rows if not stands(row)] for name, rows in first.items()}
    assert_equal({name: left[name] + second[name] for name in left}, expected(ended))


@pytest.mark.usefixtures("spark")
def test_random_lives_replayed_from_the_lake_give_the_same(tmp_path: Path) -> None:
    ended = worlds()
    begun = [world.begun(Random(world.cluster_id)) for world in ended]
    write_records(tmp_path, begun)
    replay_from(tmp_path, [w.replay() for w in begun])
    assert_equal(held(tmp_path), expected(begun))

    write_records(tmp_path, ended)
    replay_from(tmp_path, [w.replay(b.steps) for b, w in zip(begun, ended, strict=True)])
    assert_equal(held(tmp_path), expected(ended))
    versions = {table: DeltaTable(tmp_path / table.name).version() for table in HISTORIES}
    replay_from(tmp_path, [w.replay() for w in ended])
    assert versions == {table: DeltaTable(tmp_path / table.name).version() for table in HISTORIES}


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("together", [100, 1_000_000])
def test_partitions_by_columns_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    """Of lives without what goes by SQL: checkpoints over gaps, cleared ELRs."""
    monkeypatch.setattr("transforms.replayed_histories.MOST_IN_ALL", 0)
    monkeypatch.setattr("transforms.partition_replay.TOGETHER", together)
    ended = [world for world in worlds(without="CLEAR_ELR_RECORD") if not jumps(world)]
    begun = [world.begun(Random(world.cluster_id)) for world in ended]
    assert len(ended) > LIVES // 2
    assert any(world.checkpoints for world in ended)
    write_records(tmp_path, begun)
    replay_from(tmp_path, [w.replay() for w in begun])
    assert_equal(held(tmp_path), expected(begun))

    write_records(tmp_path, ended)
    replay_from(tmp_path, [w.replay(b.steps) for b, w in zip(begun, ended, strict=True)])
    assert_equal(held(tmp_path), expected(ended))


def quiet(record: Row) -> Row:
    return replace(record, type="NO_OP_RECORD", value={})


def jumps(world: World) -> bool:
    """Whether a checkpoint takes the place of a state known before."""
    return any(isinstance(step, Checkpoint) for step in world.steps[1:])


def write_records(lake: Path, worlds: list[World]) -> None:
    write_deltalake(lake / RECORDS.name, records_table(worlds), mode="overwrite")
    write_deltalake(lake / SNAPSHOT_RECORDS.name, snapshot_records_table(worlds), mode="overwrite")


def replay_from(lake: Path, replays: list[Replay]) -> None:
    changed = replayed_histories(lake, replays)
    assert changed is not None
    for each in changed:
        replace_where(lake, each.table, each.rows, each.condition)


def held(lake: Path) -> dict[str, list[Any]]:
    return {table.name: rows_with(lake, table) for table in HISTORIES}


def test_much_is_left_to_sql(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records, checkpoints' records and versions that stand count together."""
    (world,) = [gapped("cluster", life(random_steps(3, STEPS)), Random(3))]
    write_records(tmp_path, [world])
    replay = world.replay()
    assert replayed_histories(tmp_path, [replay]) is not None
    monkeypatch.setattr("transforms.replayed_histories.MOST_IN_ALL", 30)
    monkeypatch.setattr("transforms.replayed_histories.MOST_BUT_PARTITIONS", 20)
    assert replayed_histories(tmp_path, [replay]) is None


def test_two_batches_of_one_epoch_at_one_offset_are_left_to_sql(tmp_path: Path) -> None:
    world = whole("cluster", life(random_steps(3, STEPS)), Random(3))
    records = records_table([world])
    replay = world.replay()
    write_records(tmp_path, [world])
    assert replayed_histories(tmp_path, [replay]) is not None
    twice = pc.equal(records["offset"], next(r.offset for r in world.records if r.type == "TOPIC_RECORD"))
    write_deltalake(tmp_path / RECORDS.name, records.filter(twice), mode="append")
    assert replayed_histories(tmp_path, [replay]) is None
