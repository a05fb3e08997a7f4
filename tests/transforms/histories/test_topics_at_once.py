"""Topics that are made again or removed by records that take effect at once, in a transaction or by batches
that conflict: a lake has what the core has.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from jobs.derivation.derive_histories import write_histories
from kraft_core.image.image import Image
from kraft_core.image.replay_path import PathCheckpoint, ReplayRange
from tests.kraft_core.image.refused import OTHER, TOPIC, UNKNOWN
from tests.kraft_core.image.worlds import Made, change_fields, partition_fields, rows, topic_fields
from tests.transforms.histories.replayed import CRC, World, whole
from tests.transforms.histories.test_histories import assert_equal, expected, held
from tests.transforms.histories.test_refused_records import (
    DRAWN,
    by_core,
    odd,
    refused_in,
    without_spark,
    write_records,
)
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import PARTITIONS

DRAWN_OF_EACH = 40
IDS = {"t": TOPIC, "u": OTHER, "v": UNKNOWN}
BEGIN, END = ("BEGIN_TRANSACTION_RECORD", {"name": "t"}), ("END_TRANSACTION_RECORD", {})
MADE, REMOVED = ("TOPIC_RECORD", topic_fields("t", TOPIC)), ("REMOVE_TOPIC_RECORD", {"topicId": TOPIC})
RENAMED = ("TOPIC_RECORD", topic_fields("u", TOPIC))
CLEARED = ("CLEAR_ELR_RECORD", {"topicName": "t"})
REGISTERED = ("PARTITION_RECORD", partition_fields(TOPIC, eligibleLeaderReplicas=[2]))
MISPLACED = ("PARTITION_RECORD", partition_fields(TOPIC, directories=["AAAAAAAAAAAAAAAAAAAAAQ"]))
# What a transaction holds, the topic and its partition standing before, and what ends the partition by then.
ENDS: list[tuple[list[Made], str]] = [
    ([REMOVED], "REMOVE_TOPIC_RECORD"),
    ([MADE], "TOPIC_RECORD"),
    ([RENAMED], "TOPIC_RECORD"),
    ([REMOVED, MADE], "REMOVE_TOPIC_RECORD"),
    ([MADE, REMOVED], "TOPIC_RECORD"),
    ([MADE, REGISTERED], "PARTITION_RECORD"),
    ([MADE, REGISTERED, CLEARED], "CLEAR_ELR_RECORD"),
    ([MADE, REGISTERED, REMOVED], "REMOVE_TOPIC_RECORD"),
    ([REMOVED, MADE, REGISTERED, RENAMED], "TOPIC_RECORD"),
    ([REMOVED, MADE, MISPLACED, RENAMED], "REMOVE_TOPIC_RECORD"),
    ([MADE, REGISTERED, REMOVED, MADE], "REMOVE_TOPIC_RECORD"),
]
Drawn = dict[str, Callable[[Random], Made]]


def elr(random: Random) -> dict[str, list[int]]:
    of_both = {"eligibleLeaderReplicas": [2], "lastKnownElr": [1]}
    return {name: value for name, value in of_both.items() if random.random() < 0.4}


def topic(random: Random) -> str:
    return random.choice([*IDS.values()])


OF_TOPICS: Drawn = {
    **{name: DRAWN[name] for name in ("begin", "end", "abort")},
    "topic": lambda r: ("TOPIC_RECORD", topic_fields(name := r.choice("tuv"), IDS[name])),
    "other name": lambda r: ("TOPIC_RECORD", topic_fields(r.choice("tuv"), topic(r))),
    "removal": lambda r: ("REMOVE_TOPIC_RECORD", {"topicId": topic(r)}),
    "clearing": lambda r: ("CLEAR_ELR_RECORD", {"topicName": r.choice(["t", "u", "v", ""])}),
    "partition": lambda r: (
        "PARTITION_RECORD",
        partition_fields(topic(r), r.randrange(2), **odd(r), **elr(r)),
    ),
    "change": lambda r: (
        "PARTITION_CHANGE_RECORD",
        change_fields(topic(r), r.randrange(2), isr=[1], **odd(r), **elr(r)),
    ),
}
OFTEN = {
    "transactions": ("begin", "topic", "partition", "partition", "partition", "change"),
    "names": ("other name", "other name", "removal", "clearing"),
    "ELRs": ("topic", "partition", "partition", "partition", "clearing", "clearing"),
}


def drawn(kind: str, seed: int) -> World:
    """Three topics and their partitions; half of the clusters have batches that conflict at most offsets."""
    random = Random(f"{kind} {seed}")
    names = [*OF_TOPICS, *OFTEN[kind]]
    made = [OF_TOPICS[random.choice(names)](random) for _ in range(random.choice([20, 40, 80]))]
    world = whole(f"{kind} {seed}", rows(made), random, unread=0.01 * (seed % 3))
    return in_many_conflicts(world, random) if seed % 2 else world


def in_many_conflicts(world: World, random: Random) -> World:
    """Up to three records at an offset, those of other batches from nearby."""
    found = [
        (crc, replace(at, type=other.type, value=other.value))
        for at in world.records
        for crc in random.sample([CRC - 1, CRC + 1, CRC + 2], random.choice([0, 0, 1, 2]))
        for other in [random.choice(world.records[max(0, at.offset - 6) : at.offset + 6])]
    ]
    return replace(world, conflicting=found)


@pytest.mark.parametrize("kind", OFTEN)
def test_drawn_clusters_have_the_histories_of_the_core(tmp_path: Path, kind: str) -> None:
    """By one run, and by two."""
    ended = [drawn(kind, seed) for seed in range(DRAWN_OF_EACH)]
    begun = [world.begun(Random(world.cluster_id)) for world in ended]
    write_records(tmp_path, begun)
    write_histories(without_spark(tmp_path), [world.plan() for world in begun])
    assert_equal(held(tmp_path), expected(begun))
    write_records(tmp_path, ended)
    plans = [world.plan(before.steps) for before, world in zip(begun, ended, strict=True)]
    assert len([plan for plan in plans if plan.start > 0]) > DRAWN_OF_EACH // 4
    write_histories(without_spark(tmp_path), plans)
    assert_equal(held(tmp_path), expected(ended))
    assert refused_in(tmp_path) == by_core(ended)


@pytest.mark.parametrize(("inside", "ended_by"), ENDS)
def test_a_partition_ends_by_what_ended_it_in_a_transaction(
    tmp_path: Path, inside: list[Made], ended_by: str
) -> None:
    made = [MADE, REGISTERED, BEGIN, *inside, END]
    world = World("c", rows(made), [ReplayRange(0, len(made), 1, "committed")])
    assert derived(tmp_path, world)[0]["ended_by"] == ended_by


@pytest.mark.parametrize(
    ("removing", "ended_by"),
    [(-1, "REMOVE_TOPIC_RECORD"), (1, "REMOVE_TOPIC_RECORD"), (None, "TOPIC_RECORD")],
)
def test_a_partition_ends_by_what_ended_it_at_an_offset_with_conflicting_batches(
    tmp_path: Path, removing: int | None, ended_by: str
) -> None:
    """Of two batches one removes the topic, the other makes it; else both make it."""
    *made, last = rows([MADE, REGISTERED, MADE])
    world = World("c", [*made, last], [ReplayRange(0, 3, 1, "committed")])
    other = replace(last, type=REMOVED[0], value=REMOVED[1]) if removing else last
    world = replace(world, conflicting=[(CRC + (removing or 1), other)])
    assert derived(tmp_path, world)[0]["ended_by"] == ended_by


def test_a_partition_goes_on_that_a_conflicting_batch_registers_again(tmp_path: Path) -> None:
    *made, last = rows([MADE, REGISTERED, MADE])
    world = World("c", [*made, last], [ReplayRange(0, 3, 1, "committed")])
    again = replace(last, type=REGISTERED[0], value=REGISTERED[1])
    found = derived(tmp_path, replace(world, conflicting=[(CRC + 1, again)]))
    assert [row["ended_by"] for row in found] == ["PARTITION_RECORD", None]


def test_a_snapshot_ends_what_a_transaction_left_open_makes_again(tmp_path: Path) -> None:
    other = ("TOPIC_RECORD", topic_fields("u", OTHER))
    made = rows([other, other, MADE, REGISTERED, BEGIN, REMOVED, MADE])
    ranges = [ReplayRange(0, 7, 1, "committed")]
    world = World("c", made, ranges, {PathCheckpoint(9, 1, "at 9", None): empty(9)})
    assert derived(tmp_path, world)[0]["ended_by"] == "snapshot"


def empty(end_offset: int) -> Image:
    return Image.of_snapshot([], end_offset, 1, -1)


@pytest.mark.parametrize(("removed_first", "elr_left"), [(True, []), (False, [2])])
def test_elrs_are_cleared_of_the_topic_that_has_the_name_by_then(
    tmp_path: Path, removed_first: bool, elr_left: list[int]
) -> None:
    """The topic that had it, of a greater id, is removed in the same transaction, before or after that."""
    former = "_" * 21 + "w"
    made: list[Made] = [
        ("TOPIC_RECORD", topic_fields("t", former)),
        ("PARTITION_RECORD", partition_fields(former, eligibleLeaderReplicas=[2])),
        BEGIN,
        ("REMOVE_TOPIC_RECORD", {"topicId": former}),
        MADE,
        REGISTERED,
        CLEARED,
        END,
    ]
    if not removed_first:
        made.insert(6, made.pop(3))
    world = World("c", rows(made), [ReplayRange(0, len(made), 1, "committed")])
    found = [row for row in derived(tmp_path, world) if row["topic_id"] == TOPIC]
    assert [row["eligible_leader_replicas"] for row in found] == [elr_left]


def test_elrs_are_cleared_of_the_topic_that_a_conflicting_batch_removes(tmp_path: Path) -> None:
    """What clears them comes first at an offset: the other topic with that name keeps its own."""
    former = "_" * 21 + "w"
    made = [
        ("TOPIC_RECORD", topic_fields("t", former)),
        MADE,
        REGISTERED,
        ("REMOVE_TOPIC_RECORD", {"topicId": former}),
    ]
    *_, last = records = rows(made)
    world = World("c", records, [ReplayRange(0, 4, 1, "committed")])
    cleared = replace(last, type=CLEARED[0], value=CLEARED[1])
    found = derived(tmp_path, replace(world, conflicting=[(CRC + 1, cleared)]))
    assert [row["eligible_leader_replicas"] for row in found] == [[2]]


def derived(lake: Path, world: World) -> list[dict[str, object]]:
    """The versions of partitions that a lake has, as the core has them, in order."""
    write_records(lake, [world])
    write_histories(without_spark(lake), [world.plan()])
    assert_equal(held(lake), expected([world]))
    return sorted(rows_with(lake, PARTITIONS), key=lambda row: row["valid_from_offset"])
