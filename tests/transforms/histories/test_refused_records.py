"""What Kafka refuses to replay, in a lake: the same as by the plain core, in any split into runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest
from deltalake import write_deltalake

from jobs.derivation.derive_histories import write_histories
from kraft_core.image.change import RefusedRecord
from kraft_core.image.image import Image
from kraft_core.image.refusals import UNKNOWN_PARTITION, UNKNOWN_TOPIC, UNKNOWN_VALUE, WRONG_DIRECTORIES
from kraft_core.image.replay_path import PathCheckpoint, ReplayRange
from tests.kraft_core.image.refused import CAUSES, DIRECTORY, EVERY_REFUSAL, OTHER, TOPIC, UNKNOWN
from tests.kraft_core.image.worlds import (
    Made,
    change_fields,
    life,
    partition_fields,
    random_steps,
    rows,
    topic_fields,
)
from tests.transforms.histories.replayed import (
    World,
    forgetful,
    gapped,
    in_conflict,
    records_table,
    snapshot_records_table,
    whole,
    with_refused,
)
from transforms.histories.refused_records import REFUSAL
from transforms.histories.replay_plan import replays
from transforms.histories.replay_steps import step_row
from transforms.lake.commits import TableWriter
from transforms.lake.delta_rs import among, rows_with
from transforms.lake.lake import Lake
from transforms.lake.tables import (
    LOG_RANGES,
    RECORDS,
    REFUSED_RECORDS,
    REPLAY_VERSION,
    REPLAYS,
    SNAPSHOT_RECORDS,
)

LIVES = 16
TRANSACTIONS = 28
NAMESAKES = 20
OF_CHECKPOINTS: list[Made] = [
    ("PARTITION_RECORD", partition_fields(UNKNOWN, 5)),
    ("PARTITION_CHANGE_RECORD", change_fields(UNKNOWN, 6, isr=[1])),
    ("REMOVE_TOPIC_RECORD", {"topicId": UNKNOWN}),
]


TOPICS = {TOPIC: "t", OTHER: "u"}
Drawn = dict[str, Callable[[Random], Made]]
DRAWN: Drawn = {
    "begin": lambda _: ("BEGIN_TRANSACTION_RECORD", {"name": "t"}),
    "end": lambda _: ("END_TRANSACTION_RECORD", {}),
    "abort": lambda _: ("ABORT_TRANSACTION_RECORD", {"reason": None}),
    "topic": lambda r: ("TOPIC_RECORD", topic_fields(TOPICS[id_ := one_of(r)], id_)),
    "removal": lambda r: ("REMOVE_TOPIC_RECORD", {"topicId": one_of(r)}),
    "partition": lambda r: ("PARTITION_RECORD", partition_fields(one_of(r), r.randrange(3), **odd(r))),
    "change": lambda r: (
        "PARTITION_CHANGE_RECORD",
        change_fields(one_of(r), r.randrange(3), isr=[1], **odd(r)),
    ),
}


# Of topics with the same names.
OF_NAMESAKES: Drawn = {
    **{name: DRAWN[name] for name in ("begin", "end", "abort", "partition", "change")},
    "topic": lambda r: ("TOPIC_RECORD", topic_fields(r.choice("tu"), one_of(r, UNKNOWN))),
    "removal": lambda r: ("REMOVE_TOPIC_RECORD", {"topicId": one_of(r, UNKNOWN)}),
    "clearing": lambda r: ("CLEAR_ELR_RECORD", {"topicName": r.choice("tu")}),
}


def one_of(random: Random, *more: str) -> str:
    return random.choice([*TOPICS, *more])


def odd(random: Random) -> dict[str, Any]:
    """Fields of a partition, some of which Kafka refuses."""
    return random.choice(
        [
            {},
            {},
            {"directories": [DIRECTORY]},
            {"directories": [DIRECTORY] * 2},
            {"leaderRecoveryState": 7},
            {"replicas": [1, 2, 3]},
            {"replicas": [3], "leader": 3, "directories": [DIRECTORY]},
        ]
    )


def of_transactions(seed: int) -> World:
    """Two topics are made and removed, their partitions registered and changed, most of it in transactions
    that end, are aborted, or stay open: in any order, as no controller writes them.
    """
    random = Random(seed)
    often = ("topic", "partition", "partition", "change", "change", "begin")
    made = [DRAWN[random.choice([*DRAWN, *often])](random) for _ in range(random.choice([12, 60, 120]))]
    return whole(f"cluster of transactions {seed}", rows(made), random, unread=seed % 3 * 0.01)


def of_namesakes(seed: int) -> World:
    """Names are given to topics that bear others, or whose names others bear, and topics are removed."""
    random = Random(seed)
    often = ("topic", "topic", "removal", "clearing")
    made = [OF_NAMESAKES[random.choice([*OF_NAMESAKES, *often])](random) for _ in range(60)]
    world = whole(f"cluster of namesakes {seed}", rows(made), random, unread=0)
    return in_conflict(world, random) if seed % 4 == 0 else world


def worlds() -> list[World]:
    """Clusters whose logs lack what they refer to, and logs with gaps; some have conflicting batches.

    Over some gaps are checkpoints that hold refused records.
    """
    lives = [(seed, life(random_steps(seed, 90))) for seed in range(LIVES)]
    found = [
        (gapped if seed % 3 == 0 else forgetful)(f"cluster {seed}", records, Random(seed))
        for seed, records in lives
    ]
    found = [with_refused(w, OF_CHECKPOINTS) if n % 2 == 0 else w for n, w in enumerate(found)]
    of_every_cause = rows([made for made, _ in EVERY_REFUSAL])
    ranges = [ReplayRange(0, len(of_every_cause), 1, "committed")]
    every = World("cluster of every cause", of_every_cause, ranges)
    found = [in_conflict(world, Random(n)) if n % 7 == 0 else world for n, world in enumerate(found)]
    of_partitions = [of_transactions(seed) for seed in range(TRANSACTIONS)]
    of_partitions = [in_conflict(w, Random(n)) if n % 7 == 0 else w for n, w in enumerate(of_partitions)]
    namesakes = [of_namesakes(seed) for seed in range(NAMESAKES)]
    return [*found, *of_partitions, *namesakes, every, above_a_refused_checkpoint()]


def above_a_refused_checkpoint() -> World:
    """The log refers to what the checkpoint below it refuses, and to what the next one holds no more."""
    made = rows([*OF_CHECKPOINTS[1:], *OF_CHECKPOINTS[1:]], first_offset=5)
    ranges = [ReplayRange(5, 7, 1, "committed"), ReplayRange(10, 12, 1, "committed")]
    made = [replace(row, offset=row.offset + 3) if row.offset > 6 else row for row in made]
    below = {PathCheckpoint(end, 1, f"at {end}", None): Image() for end in (5, 10)}
    return with_refused(World("above a refused checkpoint", made, ranges, below), OF_CHECKPOINTS[:1])


def write_records(lake: Path, held: list[World]) -> None:
    write_deltalake(lake / RECORDS.name, records_table(held), mode="overwrite")
    write_deltalake(lake / SNAPSHOT_RECORDS.name, snapshot_records_table(held), mode="overwrite")


def refused_in(lake: Path) -> dict[str, list[RefusedRecord]]:
    found: dict[str, list[RefusedRecord]] = {}
    for row in rows_with(lake, REFUSED_RECORDS):
        found.setdefault(row["cluster_id"], []).append(RefusedRecord(*(row[name] for name in REFUSAL)))
    return {cluster: sorted(records) for cluster, records in found.items()}


def by_core(held: list[World]) -> dict[str, list[RefusedRecord]]:
    return {world.cluster_id: sorted(set(world.refused())) for world in held if world.refused()}


def without_spark(path: Path) -> Lake:
    """A lake whose histories the driver makes."""
    return Lake(cast("Any", None), path)


def test_the_lives_hold_refusals_of_every_cause() -> None:
    causes = {record.cause for records in by_core(worlds()).values() for record in records}
    assert causes == CAUSES


def test_partitions_are_refused_for_every_cause_in_transactions_of_every_outcome() -> None:
    found = {
        (transaction.outcome, record.cause)
        for world in worlds()
        for transaction in world.plan().transactions
        for record in world.refused()
        if "PARTITION" in record.type and transaction.begin_offset <= record.offset <= transaction.last_offset
    }
    causes = (UNKNOWN_TOPIC, UNKNOWN_PARTITION, WRONG_DIRECTORIES, UNKNOWN_VALUE)
    assert found == set(product(("ended", "aborted", "open"), causes))


def test_nothing_is_said_of_records_above_a_checkpoint_that_lacks_a_refused_one() -> None:
    refused = by_core([above_a_refused_checkpoint()])["above a refused checkpoint"]
    assert [record.offset for record in refused] == [4, 10, 11]


def test_checkpoints_hold_refusals() -> None:
    of_checkpoints = {
        (world.cluster_id, checkpoint.first_offset)
        for world in worlds()
        for checkpoint in world.refused_in
        if checkpoint in world.steps
    }
    refused = {(cluster, r.offset) for cluster, records in by_core(worlds()).items() for r in records}
    assert len(of_checkpoints & refused) > 2


def test_the_lake_holds_what_the_core_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In pieces of the log and buckets on disk."""
    monkeypatch.setattr("transforms.histories.partition_replay.TOGETHER", 100)
    monkeypatch.setattr("transforms.histories.replay_records.TOGETHER", 25)
    ended = worlds()
    write_records(tmp_path, ended)
    refusing = write_histories(without_spark(tmp_path), [world.plan() for world in ended])
    assert refused_in(tmp_path) == by_core(ended)
    assert refusing == list(by_core(ended))
    assert write_histories(without_spark(tmp_path), [world.plan() for world in ended]) == []


def test_two_runs_come_to_the_same(tmp_path: Path) -> None:
    ended = worlds()
    begun = [world.begun(Random(world.cluster_id)) for world in ended]
    write_records(tmp_path, begun)
    write_histories(without_spark(tmp_path), [world.plan() for world in begun])
    assert refused_in(tmp_path) == by_core(begun) != by_core(ended)
    write_records(tmp_path, ended)
    plans = [world.plan(before.steps) for before, world in zip(begun, ended, strict=True)]
    assert len([plan for plan in plans if plan.start > 0]) > LIVES // 4
    write_histories(without_spark(tmp_path), plans)
    again = tmp_path / "again"
    write_records(again, ended)
    write_histories(without_spark(again), [world.plan() for world in ended])
    assert refused_in(tmp_path) == by_core(ended)
    assert sorted_rows(tmp_path) == sorted_rows(again)


def sorted_rows(lake: Path) -> list[Any]:
    return sorted(
        rows_with(lake, REFUSED_RECORDS), key=lambda row: [row[name] for name in REFUSED_RECORDS.key]
    )


def test_sparks_tasks_find_the_same(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobs.derivation.derive_histories.OTHERS_IN_DRIVER", 300)
    monkeypatch.setattr("jobs.derivation.derive_histories.PARTITIONS_IN_DRIVER", 300)
    ended = worlds()
    write_records(tmp_path, ended)
    write_histories(Lake(spark, tmp_path), [world.plan() for world in ended])
    assert refused_in(tmp_path) == by_core(ended)


@pytest.mark.parametrize(("version", "start"), [(REPLAY_VERSION, None), (None, 0)])
def test_what_an_earlier_version_replayed_is_replayed_anew(
    tmp_path: Path, version: int | None, start: int | None
) -> None:
    """It did not look for what Kafka refuses."""
    step = ReplayRange(0, 10, 1, "committed")
    held = {"cluster_id": "c", "first_offset": 0, "end_offset": 10, "leader_epoch": 1}
    ranges = [held | {"commit_status": "committed"}]
    writer, of_c = TableWriter(tmp_path, None), among({"cluster_id": ["c"]})
    writer.replace_where(LOG_RANGES, of_c, ranges)
    steps = [step_row("c", 0, step) | {"replay_version": version}]
    writer.replace_where(REPLAYS, of_c, steps)
    assert [plan.start for plan in replays(tmp_path, ["c"], whole=())] == ([] if start is None else [start])
