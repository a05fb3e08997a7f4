"""Rule 22 in the lake: the checkpoints of real captures, as they are and broken, together and one by one."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter, itemgetter
from random import Random
from typing import Any

import pytest
from pyspark.sql import functions as F

from jobs.derivation.compare_snapshots import cluster_comparisons, key_of
from kraft_core.findings.snapshot_replays import Comparison, replays
from transforms.lake.arrow_rows import to_rows
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import CAPTURES, RECORDS, SNAPSHOT_CHECKS, SNAPSHOT_RECORDS
from transforms.quality.snapshot_checks import (
    CHECKPOINT,
    DEVIATES,
    EQUAL,
    KEY,
    RECORD,
    START,
    UNREAD_LOG,
    checked,
    checked_snapshots,
    checkpoint_records,
    log_records,
)

Row = dict[str, Any]
# Node 1's checkpoints of dynamic-membership from 1956 on lack a credential.
CLUSTER = "rPoTXydvQsK3Nv6AA77Cqg"
LACKING = {1956, 2939, 3692}


@pytest.fixture(scope="module")
def wanted(lake: Any) -> list[Comparison]:
    """What is to be compared of the cluster."""
    known = rows_with(lake.path, SNAPSHOT_CHECKS, cluster_id=[CLUSTER])
    captures = rows_with(lake.path, CAPTURES, cluster_id=[CLUSTER])
    return cluster_comparisons(CLUSTER, captures, {key_of(row) for row in known})


@pytest.fixture(scope="module")
def steps(lake: Any, wanted: list[Comparison]) -> list[Row]:
    """The records of the whole replay and of every checkpoint, in their order."""
    (replay,) = replays(wanted, [])
    todo = [(CLUSTER, replay)]
    frames = (
        log_records(lake.spark, lake.read(RECORDS).where(F.col("cluster_id") == CLUSTER), todo),
        checkpoint_records(lake.spark, lake.read(SNAPSHOT_RECORDS), todo),
    )
    return in_order(row for frame in frames for row in to_rows(frame))


def in_order(rows: Iterable[Row]) -> list[Row]:
    return sorted(
        rows, key=lambda r: (r["at"], r["rank"], r["leader_epoch"], r["content_digest"] or "", r["place"])
    )


def outcomes(
    steps: list[Row], wanted: list[Comparison], known: dict[Comparison, Row]
) -> dict[Comparison, Row]:
    """What the wanted comparisons come to, by replays that start from what is known to be equal."""
    equal = [c for c, row in known.items() if row["outcome"] == EQUAL]
    found: dict[Comparison, Row] = {}
    for replay in replays(wanted, equal):
        of_key = {c.checkpoint: c for c in replay.comparisons}
        first = replay.start.end_offset if replay.start else 0
        log = [row for row in steps if row["rank"] == RECORD and row["at"] >= first]
        others = [row for row in steps if row["rank"] == CHECKPOINT]
        starts = [row | {"rank": START} for row in others if key_of_step(row) == replay.start]
        rows = in_order([*log, *starts, *(row for row in others if key_of_step(row) in of_key)])
        found |= {of_key[key_of(row)]: row for row in checked(replay.start, rows)}
    return found


def key_of_step(row: Row) -> Any:
    return key_of({"end_offset": row["at"], **{n: row[n] for n in KEY if n != "end_offset"}})


def test_the_lake_remembers_what_every_checkpoint_came_to(lake: Any, wanted: list[Comparison]) -> None:
    rows = rows_with(lake.path, SNAPSHOT_CHECKS, cluster_id=[CLUSTER])
    assert len(rows) == len(wanted) == 12
    assert {row["outcome"] for row in rows} == {EQUAL, DEVIATES}
    told = {r["end_offset"]: [d["thing"] for d in r["deviations"]] for r in rows if r["outcome"] == DEVIATES}
    assert told == {end: ["2 alice"] for end in LACKING}
    digests = {row["end_offset"]: row["log_digest"] for row in rows}
    assert digests == {c.checkpoint.end_offset: c.log_digest for c in wanted}


@pytest.mark.parametrize("seed", range(3))
def test_runs_that_bring_checkpoints_in_any_order_come_to_the_same(
    steps: list[Row], wanted: list[Comparison], seed: int
) -> None:
    random = Random(seed)
    whole = outcomes(steps, wanted, {})
    known: dict[Comparison, Row] = {}
    rest = random.sample(wanted, len(wanted))
    while rest:
        count = random.randint(1, len(rest))
        known |= outcomes(steps, rest[:count], known)
        rest = rest[count:]
    assert known == whole
    assert {c.checkpoint.end_offset for c, row in whole.items() if row["outcome"] == DEVIATES} == LACKING


def test_above_a_record_that_cannot_be_read_nothing_is_judged(
    steps: list[Row], wanted: list[Comparison]
) -> None:
    unread = next(row for row in steps if row["rank"] == RECORD and row["place"] > 2000)
    torn = [row | {"is_unread": True} if row is unread else row for row in steps]
    found = outcomes(torn, wanted, {})
    blocked = {c.checkpoint.end_offset for c, row in found.items() if row["outcome"] == UNREAD_LOG}
    assert blocked == {c.checkpoint.end_offset for c in wanted if c.checkpoint.end_offset > unread["place"]}


def test_broken_checkpoints_are_found_by_the_executors_and_a_broken_replay_harms_no_other(
    lake: Any, wanted: list[Comparison]
) -> None:
    """One checkpoint lost a topic; the records of the second replay hold what no codec wrote.

    The third starts from a checkpoint that ends where another one does.
    """
    (replay,) = replays(wanted, [])
    start, *later = sorted(
        (c for c in wanted if c.checkpoint.end_offset in (697, 1431)), key=attrgetter("checkpoint")
    )
    (third,) = replays(later, [start])
    broken = next(c.checkpoint for c in wanted if c.checkpoint.end_offset == 453)
    kept = lake.read(SNAPSHOT_RECORDS).where(F.col("cluster_id") == CLUSTER)
    lost = (F.col("content_digest") == broken.content_digest) & (F.col("topic.name") == "t-rf2")
    without = F.lit(None).cast(kept.schema["topic"].dataType)
    strange = kept.withColumn("cluster_id", F.lit("strange")).withColumn("topic", without)
    records = lake.read(RECORDS).where(F.col("cluster_id") == CLUSTER)
    found = to_rows(
        checked_snapshots(
            records.unionByName(records.withColumn("cluster_id", F.lit("strange"))),
            kept.where(~F.coalesce(lost, F.lit(False))).unionByName(strange),
            [(CLUSTER, replay), ("strange", replay), (CLUSTER, third)],
            tasks=1,
        )
    )
    by_replay = {
        n: list(rows) for n, rows in groupby(sorted(found, key=itemgetter("replay")), itemgetter("replay"))
    }
    (failed,) = by_replay[1]
    assert "TypeError" in failed["failure"]
    assert {row["end_offset"] for row in by_replay[0] if row["outcome"] == DEVIATES} == {453, *LACKING}
    (row,) = (row for row in by_replay[0] if key_of(row) == broken)
    assert [row["outcome"] for row in by_replay[2]] == [EQUAL] * 3
    # Its partitions and its configs went with it.
    kinds = {d["kind"] for d in row["deviations"]}
    assert {"topics", "partitions"} <= kinds
    assert all(d["is_missing"] and not d["explanation"] for d in row["deviations"])
