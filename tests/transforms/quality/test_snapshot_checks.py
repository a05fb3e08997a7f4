"""Rule 22 by columns comes to what the plain core comes to, over random logs and checkpoints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from kraft_core.findings.snapshot_deviations import MAX_REPORTED
from kraft_core.findings.snapshot_replays import (
    CheckpointKey,
    Comparison,
    Part,
    SnapshotReplay,
    log_from,
)
from kraft_core.image.from_rows import change_of
from kraft_core.image.image import Image
from kraft_core.image.tables import PARTITIONS, TOPICS, Tables
from tests.kraft_core.image.worlds import (
    Made,
    Row,
    change_fields,
    life,
    partition_fields,
    random_steps,
    replay,
    topic_fields,
    uuid,
)
from tests.transforms.histories.replayed import as_row, with_columns
from tests.transforms.quality import plain_replay
from transforms.histories import replay_records
from transforms.histories.partition_states import worded
from transforms.lake.tables import RECORDS, SNAPSHOT_RECORDS, Table
from transforms.quality.replay_pieces import READ, Records, SmallRecords, StoredRecords
from transforms.quality.replayed import Replayed
from transforms.quality.snapshot_checks import (
    DEVIATES,
    EQUAL,
    LAWFUL,
    UNREAD_CHECKPOINT,
    UNREAD_LOG,
    LogReplay,
    loaded,
    outcomes,
)

Outcome = dict[str, Any]
CLUSTER = "cluster"
SEEDS = 30
MANY_SEEDS = 80
STEPS = 150
# Of an epoch that the replayed log does not have.
ELSEWHERE = 1_000


@dataclass(frozen=True)
class Case:
    """A cluster's tables and a replay over them."""

    held: dict[Table, ds.Dataset]
    replay: SnapshotReplay


@cache
def case(seed: int) -> Case:
    """A log with whatever can be in one, checkpoints of it that are right or wrong, a replay over some."""
    random = Random(seed)
    log = random_log(random)
    ends = sorted(random.sample(range(1, len(log) + 1), 4))
    keys = [CheckpointKey(end, log[end - 1].leader_epoch, f"digest {n}") for n, end in enumerate(ends)]
    if random.random() < 0.3:
        keys.append(replace(keys[-1], content_digest="other"))
    epochs = sorted({record.leader_epoch for record in log})
    own = [[r.offset for r in log if r.leader_epoch == epoch] for epoch in epochs]
    parts = tuple(Part(e, offsets[0], offsets[-1] + 1) for e, offsets in zip(epochs, own, strict=True))
    start = random.choice([None, None, keys[0]])
    base = 0 if start is None else start.end_offset
    made = [Comparison(key, start, log_from(parts, base)) for key in keys if key != start]
    checkpoints = {key: contents(log[: key.end_offset], key == start, random) for key in keys}
    held = {
        RECORDS: ds.dataset(in_files(stored_log(log, random), random)),
        SNAPSHOT_RECORDS: ds.dataset(stored_checkpoints(checkpoints, random, unread=0.05)),
    }
    return Case(held, SnapshotReplay(start, log_from(parts, base), tuple(made)))


def random_log(random: Random) -> list[Row]:
    """A life, in which some records are missing and others are what no controller would write."""
    kept = life(random_steps(random.getrandbits(32), STEPS))
    if random.random() < 0.3:
        kept = [record for record in kept if random.random() > 0.1]
    found: list[tuple[str, Any]] = []
    odd = random.choice([0.0, 0.05, 0.3])
    for record in kept:
        found.append((record.type, record.value))
        if random.random() < odd:
            found.append(odd_record(replay(rows(found)), random))
    return rows(found)


def rows(made: Sequence[tuple[str, Any]]) -> list[Row]:
    return [Row(n, 1 + n // 40, 1_000 + n, type_, value) for n, (type_, value) in enumerate(made)]


def odd_record(image: Image, random: Random) -> Made:
    """A record that Kafka refuses, or one that replaces what is there."""
    topics = [topic for _, topic in image.tables.items(TOPICS)]
    partitions = [partition for _, partition in image.tables.items(PARTITIONS)]
    topic = random.choice(topics) if topics and random.random() < 0.9 else None
    topic_id, name = (topic.topic_id, topic.name) if topic else (uuid(random), "unknown")
    number = random.choice([p.partition_id for p in partitions] or [0])
    short = {"directories": ["A" * 21 + "Q"]}
    return random.choice(
        [
            ("TOPIC_RECORD", topic_fields(name, topic_id)),
            ("TOPIC_RECORD", topic_fields("renamed", topic_id)),
            ("TOPIC_RECORD", topic_fields(name, uuid(random))),
            ("REMOVE_TOPIC_RECORD", {"topicId": topic_id}),
            ("PARTITION_RECORD", partition_fields(topic_id, number)),
            ("PARTITION_RECORD", partition_fields(topic_id, number, eligibleLeaderReplicas=[2])),
            ("PARTITION_RECORD", partition_fields(topic_id, -1, leaderEpoch=(1 << 31) - 1, directories=[])),
            ("PARTITION_RECORD", partition_fields(topic_id, number, **short)),
            ("PARTITION_RECORD", partition_fields(topic_id, number, leaderRecoveryState=-1)),
            ("PARTITION_CHANGE_RECORD", change_fields(topic_id, -1, leader=1)),
            ("PARTITION_CHANGE_RECORD", change_fields(topic_id, number, **short)),
            ("PARTITION_CHANGE_RECORD", change_fields(topic_id, number, leaderRecoveryState=7, leader=1)),
            ("PARTITION_CHANGE_RECORD", change_fields(topic_id, number, replicas=[3], directories=[])),
            ("CLEAR_ELR_RECORD", {"topicName": random.choice(["", name])}),
            ("BEGIN_TRANSACTION_RECORD", {"name": "odd"}),
            ("END_TRANSACTION_RECORD", {}),
            ("ABORT_TRANSACTION_RECORD", {"reason": None}),
        ]
    )


def contents(log: Sequence[Row], is_start: bool, random: Random) -> list[Made]:
    """The records of a checkpoint, mostly with something wrong."""
    found = list(replay(log).to_records())
    for _ in range(random.choice([0, 0, 1, 2, 6]) if not is_start else random.choice([0, 1])):
        place = random.randrange(len(found) + 1)
        match random.randrange(6):
            case 0:
                found[place : place + 1] = []
            case 1:
                random.shuffle(found)
            case 2:
                found.insert(place, odd_record(replay(rows(found)), random))
            case 3:
                found = [changed(*each, random) if random.random() < 0.2 else each for each in found]
            case 4:
                found = [renamed(*each) if random.random() < 0.3 else each for each in found]
            case _:
                found = [each for each in found if each[0] != "PARTITION_RECORD" or random.random() < 0.8]
    return found


def changed(type_: str, value: dict[str, Any], random: Random) -> Made:
    """The record of a partition with another value in one field."""
    if type_ != "PARTITION_RECORD":
        return type_, value
    lists = ("isr", "removingReplicas", "addingReplicas", "eligibleLeaderReplicas", "lastKnownElr")
    number = random.choice(["leader", "leaderEpoch", "partitionEpoch"])
    return type_, value | random.choice(
        [
            {number: value[number] ^ 1},
            {"leaderRecoveryState": 1 - value["leaderRecoveryState"]},
            {random.choice(lists): random.choice([[], [1], [2, 1]])},
            {"directories": [uuid(random) for _ in value["replicas"]]},
            {"replicas": list(reversed(value["replicas"]))},
        ]
    )


def renamed(type_: str, value: dict[str, Any]) -> Made:
    return type_, (value | {"name": value["name"] + "2"} if type_ == "TOPIC_RECORD" else value)


def stored_log(log: Sequence[Row], random: Random) -> pa.Table:
    """The records in the lake: of other epochs too, some of them unread, some in conflict with others."""
    found = [as_row(record) for record in log]
    for _ in range(random.choice([0, 0, 0, 1])):
        torn = random.choice(found)
        torn |= random.choice([{"unread_reason": "malformed_value"}, UNKNOWN])
    for _ in range(random.choice([0, 0, 0, 1])):
        found.append(random.choice(found) | {"batch_crc": 1})
    found += [as_row(replace(random.choice(log), leader_epoch=ELSEWHERE)) for _ in range(5)]
    random.shuffle(found)
    return stored(found)


def stored(records: list[dict[str, Any]]) -> pa.Table:
    return with_columns(records, {"cluster_id": [CLUSTER] * len(records)})


UNKNOWN = {"type": "UNKNOWN(99)", "unread_reason": "unknown_type"}


def stored_checkpoints(
    checkpoints: dict[CheckpointKey, list[Made]], random: Random, unread: float = 0
) -> pa.Table:
    found: list[dict[str, Any]] = []
    places: list[tuple[int, str, int]] = []
    for key, made in checkpoints.items():
        of_it = [as_row(Row(0, key.leader_epoch, 0, *each)) for each in made]
        if of_it and random.random() < unread:
            of_it[random.randrange(len(of_it))] |= random.choice([{"unread_reason": "torn"}, UNKNOWN])
        # A file of the same content may end with a record of another epoch.
        of_it += [as_row(Row(0, ELSEWHERE, 0, *each)) for each in made[: len(made) // 2] if unread]
        found += of_it
        places += [(key.end_offset, key.content_digest, n) for n in range(len(of_it))]
    ends, digests, positions = zip(*places, strict=True) if places else ((), (), ())
    columns = {
        "cluster_id": [CLUSTER] * len(found),
        "content_digest": list(digests),
        "end_offset": pa.array(ends, pa.int64()),
        "position": pa.array(positions, pa.int64()),
    }
    return with_columns(found, columns)


def in_files(records: pa.Table, random: Random) -> pa.Table:
    """The rows in several chunks."""
    cut = random.randrange(len(records) + 1)
    return pa.concat_tables([records.slice(cut), records.slice(0, cut)])


def tables_of(state: Replayed) -> Tables:
    """All that a state holds, as the core has it."""
    tables = state.image.tables.copy()
    words = worded(state.partitions["leader_recovery_state"].combine_chunks()).to_pylist()
    for row, word in zip(state.partitions.to_pylist(), words, strict=True):
        topic: Any = tables.get(TOPICS, (row["topic_id"],))
        tables.put(change_of(PARTITIONS, row | {"topic_name": topic.name, "leader_recovery_state": word}))
    return tables


@cache
def by_core(seed: int) -> list[tuple[Outcome, Image | None, Image | None]]:
    """Of each comparison of a case its outcome, the image of the replay, and that of the checkpoint."""
    one = case(seed)
    log = plain_replay.LogReplay(one.held, CLUSTER, one.replay)
    found: list[tuple[Outcome, Image | None, Image | None]] = []
    for checkpoint, row in zip(
        checkpoints_of(one), plain_replay.outcomes(one.held, CLUSTER, one.replay), strict=True
    ):
        replayed = log.image_below(checkpoint.end_offset)
        held = plain_replay.image_of(one.held, CLUSTER, checkpoint)
        found.append((row, replayed and replayed.copy(), held))
    return found


def stored_records(one: Case) -> Records:
    return StoredRecords(one.held, CLUSTER)


def small_records(one: Case) -> Records:
    return SmallRecords(replay_records.in_memory(one.held, READ, [CLUSTER])[CLUSTER])


def checkpoints_of(one: Case) -> list[CheckpointKey]:
    return sorted(comparison.checkpoint for comparison in one.replay.comparisons)


def test_the_cases_hold_what_is_rare() -> None:
    every = [each for seed in range(SEEDS) for each in by_core(seed)]
    found = Counter(row["outcome"] for row, _, _ in every)
    assert min(found[each] for each in (EQUAL, LAWFUL, DEVIATES, UNREAD_LOG, UNREAD_CHECKPOINT)) > 3, found
    images = [image for _, *two in every for image in two if image is not None]
    assert len([image for image in images if image.tables.count(PARTITIONS) > 3]) > SEEDS // 2
    assert len([image for image in images if image.in_transaction]) > SEEDS // 8
    assert len({refused.cause for image in images for refused in image.refusals}) > 6


@pytest.mark.parametrize("seeds", [SEEDS, pytest.param(MANY_SEEDS, marks=pytest.mark.long)])
@pytest.mark.parametrize("together", [7, pytest.param(50_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("records", [stored_records, small_records])
def test_random_logs_are_judged_as_by_the_core(
    monkeypatch: pytest.MonkeyPatch, records: Callable[[Case], Records], together: int, seeds: int
) -> None:
    """In pieces of a few records, and in one; every value is equal, also those that no deviation shows."""
    monkeypatch.setattr(replay_records, "TOGETHER", together)
    for seed in range(seeds):
        one, wanted = case(seed), by_core(seed)
        read = records(one)
        assert list(outcomes(read, one.replay)) == [row for row, _, _ in wanted], seed
        log = LogReplay(read, one.replay)
        for checkpoint, (_, *images) in zip(checkpoints_of(one), wanted, strict=True):
            states = log.below(checkpoint.end_offset), loaded(read, checkpoint)
            for state, image in zip(states, images, strict=True):
                assert (state is None) == (image is None), seed
                if state is not None and image is not None:
                    assert tables_of(state) == image.tables, seed
                    assert state.in_transaction == image.in_transaction, seed


def test_every_offset_of_the_log_is_counted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Piece by piece, and in the end also what nothing asked for."""
    monkeypatch.setattr(replay_records, "TOGETHER", 7)
    for seed in range(20):
        one = case(seed)
        counts: list[int] = []
        list(outcomes(stored_records(one), one.replay, counts.append))
        assert sum(counts) == sum(part.end_offset - part.first_offset for part in one.replay.log)
        assert min(counts, default=1) > 0


def simple_case(log: Sequence[Row], checkpoint: Sequence[Made]) -> Case:
    """A log and one checkpoint of all of it."""
    key = CheckpointKey(len(log), log[-1].leader_epoch, "digest")
    parts = tuple(
        Part(epoch, min(of), max(of) + 1)
        for epoch in sorted({record.leader_epoch for record in log})
        for of in [[record.offset for record in log if record.leader_epoch == epoch]]
    )
    held = {
        RECORDS: ds.dataset(stored([as_row(record) for record in log])),
        SNAPSHOT_RECORDS: ds.dataset(stored_checkpoints({key: list(checkpoint)}, Random(0))),
    }
    return Case(held, SnapshotReplay(None, parts, (Comparison(key, None, parts),)))


def test_of_many_partitions_that_differ_the_first_are_reported() -> None:
    """Those that the core finds first, which are all that is kept; then other kinds are not spoken of."""
    topics = ["CCCCCCCCCCCCCCCCCCCCCQ", "BBBBBBBBBBBBBBBBBBBBBQ"]
    made: list[Made] = [("TOPIC_RECORD", topic_fields(f"topic {n}", id_)) for n, id_ in enumerate(topics)]
    made += [("PARTITION_RECORD", partition_fields(id_, n)) for n in range(700) for id_ in topics]
    made += [("PRODUCER_IDS_RECORD", {"brokerId": 1, "brokerEpoch": 1, "nextProducerId": 5})]
    one = simple_case(rows(made), made[:2] + [changed(*each, Random(1)) for each in made[2:-1:2]])
    (row,) = outcomes(stored_records(one), one.replay)
    assert [row] == list(plain_replay.outcomes(one.held, CLUSTER, one.replay))
    assert len(row["deviations"]) == MAX_REPORTED
    assert {d["kind"] for d in row["deviations"]} == {PARTITIONS}
    assert len({d["subject"].split()[0] for d in row["deviations"]}) == 2


@pytest.mark.parametrize("column", ["partition", "partition_change"])
def test_records_of_partitions_that_no_codec_wrote_fail_the_replay(column: str) -> None:
    topic = "BBBBBBBBBBBBBBBBBBBBBQ"
    made: list[Made] = [
        ("TOPIC_RECORD", topic_fields("topic", topic)),
        ("PARTITION_RECORD", partition_fields(topic)),
        ("PARTITION_CHANGE_RECORD", change_fields(topic, leader=2)),
    ]
    one = simple_case(rows(made), made)
    table = one.held[RECORDS].to_table()
    at = table.column_names.index(column)
    one.held[RECORDS] = ds.dataset(
        table.set_column(at, table.schema.field(at), pa.nulls(3, table.schema.field(at).type))
    )
    with pytest.raises(ValueError, match=f"type {column} lacks fields"):
        list(outcomes(stored_records(one), one.replay))
