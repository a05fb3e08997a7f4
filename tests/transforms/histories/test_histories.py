"""Histories by SQL windows and by replay of a lake's rows, beside those of the pure core over all there is
(kraft_core.image.history)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable, write_deltalake

from jobs.derivation.derive_histories import write_by_sql
from kraft_core.image.replay_path import ReplayRange
from tests.kraft_core.image.worlds import (
    change_fields,
    life,
    partition_fields,
    random_steps,
    topic_fields,
)
from tests.kraft_core.image.worlds import rows as rows_of
from tests.transforms.histories.replayed import World, gapped, records_table, snapshot_records_table, whole
from transforms.histories.partition_replay import partition_rows
from transforms.histories.replay_plan import ReplayPlan, replaced_by
from transforms.histories.replayed_histories import Rewritten, replayed_histories
from transforms.lake.arrow_rows import to_arrow
from transforms.lake.delta_rs import among_texts, replace_where, rows_with
from transforms.lake.lake import Lake
from transforms.lake.tables import (
    HISTORIES,
    PARTITIONS,
    RECORDS,
    SNAPSHOT_RECORDS,
    ZK_MIGRATION_STATES,
    Table,
)

KINDS = {ZK_MIGRATION_STATES: "zk_migration"}
LIVES = 60
STEPS = 90
MOST = 1_000_000
OTHERS = tuple(table for table in HISTORIES if table is not PARTITIONS)


def expected(worlds: list[World]) -> dict[str, list[Any]]:
    by_core = [world.expected() for world in worlds]
    return {t.name: [row for told in by_core for row in told[KINDS.get(t, t.name)]] for t in HISTORIES}


def assert_equal(
    found: dict[str, list[Any]], wanted: dict[str, list[Any]], tables: Sequence[Table] = HISTORIES
) -> None:
    for table in tables:
        columns = [n for n in table.names if n != "entity_name"]
        assert as_texts(found[table.name], columns) == as_texts(wanted[table.name], columns), table.name


def as_texts(rows: list[Any], columns: list[str]) -> list[str]:
    return sorted(json.dumps([row[name] for name in columns], default=as_text) for row in rows)


def as_text(time: datetime) -> str:
    return time.astimezone(UTC).isoformat()


def worlds() -> list[World]:
    """Whole logs, and logs with a gap and checkpoints."""
    told = [(seed, life(random_steps(seed, STEPS))) for seed in range(LIVES)]
    return [
        (whole if seed % 2 else gapped)(f"cluster {seed}", records, Random(seed)) for seed, records in told
    ]


def test_random_lives_by_sql_give_what_the_core_gives(spark: Any, tmp_path: Path) -> None:
    """All but partitions, which have a way of their own."""

    def replay_by_sql(path: Path, replays: list[ReplayPlan]) -> None:
        write_by_sql(Lake(spark, path), replays)
        replay_partitions(path, replays)

    write_in_two_runs(tmp_path, replay_by_sql)


@pytest.mark.usefixtures("spark")
def test_random_lives_replayed_from_the_lake_give_the_same(tmp_path: Path) -> None:
    write_in_two_runs(tmp_path, replay_all)
    versions = {table: DeltaTable(tmp_path / table.name).version() for table in HISTORIES}
    replay_all(tmp_path, [w.replay() for w in worlds()])
    assert versions == {table: DeltaTable(tmp_path / table.name).version() for table in HISTORIES}


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("together", [100, 1_000_000])
def test_partitions_by_columns_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: int
) -> None:
    """In one piece, and in buckets on disk."""
    monkeypatch.setattr("transforms.histories.partition_replay.TOGETHER", together)
    write_in_two_runs(tmp_path, replay_by_columns)


def write_in_two_runs(lake: Path, replay: Callable[[Path, list[ReplayPlan]], None]) -> None:
    """The first run sees the beginning of each log, the second one goes on from where anything changed."""
    ended = worlds()
    begun = [world.begun(Random(world.cluster_id)) for world in ended]
    write_records(lake, begun)
    replay(lake, [w.replay() for w in begun])
    assert_equal(held(lake), expected(begun))

    write_records(lake, ended)
    replays = [w.replay(b.steps) for b, w in zip(begun, ended, strict=True)]
    assert len({r.start for r in replays if r.start > 0}) > LIVES // 4
    replay(lake, replays)
    assert_equal(held(lake), expected(ended))


@pytest.mark.usefixtures("spark")
def test_directories_that_do_not_fit_the_replicas_are_refused(tmp_path: Path) -> None:
    """A record that leaves other than one directory a replica changes nothing, whatever it names."""
    topic, one, other = "AAAAAAAAAAAAAAAAAAAAAQ", "BBBBBBBBBBBBBBBBBBBBBQ", "CCCCCCCCCCCCCCCCCCCCCQ"
    told = [
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
    world = World("cluster", rows_of(told), [ReplayRange(0, len(told), 1, "committed")])
    write_records(tmp_path, [world])
    versions = [(0, [1, 2]), (0, [3]), (0, [3]), (2, [1, 2]), (2, [1, 2, 3])]
    for replay in (replay_by_columns, replay_all):
        replay(tmp_path, [world.replay()])
        assert_equal(held(tmp_path), expected([world]))
        assert versions == sorted(
            (row["partition_id"], row["replicas"]) for row in rows_with(tmp_path, PARTITIONS)
        )


def write_records(lake: Path, worlds: list[World]) -> None:
    write_deltalake(lake / RECORDS.name, records_table(worlds), mode="overwrite")
    write_deltalake(lake / SNAPSHOT_RECORDS.name, snapshot_records_table(worlds), mode="overwrite")


def replay_all(lake: Path, replays: list[ReplayPlan]) -> None:
    write_all(lake, replayed_histories(lake, replays, HISTORIES, MOST))


def replay_by_columns(lake: Path, replays: list[ReplayPlan]) -> None:
    write_all(lake, replayed_histories(lake, replays, OTHERS, MOST))
    replay_partitions(lake, replays)


def replay_partitions(lake: Path, replays: list[ReplayPlan]) -> None:
    condition = replaced_by(replays, among_texts("cluster_id", [replay.cluster_id for replay in replays]))
    replace_where(lake, PARTITIONS, partition_rows(lake, replays), condition)


def write_all(lake: Path, changed: Sequence[Rewritten] | None) -> None:
    assert changed is not None
    for each in changed:
        replace_where(lake, each.table, to_arrow(each.rows, each.table.schema), each.condition)


def held(lake: Path) -> dict[str, list[Any]]:
    return {table.name: rows_with(lake, table) for table in HISTORIES}


def test_much_is_left_to_others(tmp_path: Path) -> None:
    """Records, checkpoints' records and versions that stand count together."""
    world = gapped("cluster", life(random_steps(3, STEPS)), Random(3))
    write_records(tmp_path, [world])
    count = records_table([world]).num_rows + snapshot_records_table([world]).num_rows
    assert replayed_histories(tmp_path, [world.replay()], HISTORIES, count) is not None
    assert replayed_histories(tmp_path, [world.replay()], HISTORIES, count // 3) is None


def test_two_batches_of_one_epoch_at_one_offset_are_left_to_others(tmp_path: Path) -> None:
    world = whole("cluster", life(random_steps(3, STEPS)), Random(3))
    records = records_table([world])
    write_records(tmp_path, [world])
    assert replayed_histories(tmp_path, [world.replay()], HISTORIES, MOST) is not None
    twice = pc.equal(records["offset"], next(r.offset for r in world.records if r.type == "TOPIC_RECORD"))
    write_deltalake(tmp_path / RECORDS.name, records.filter(twice), mode="append")
    assert replayed_histories(tmp_path, [world.replay()], HISTORIES, MOST) is None
