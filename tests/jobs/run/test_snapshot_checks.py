"""Rule 22 in the lake: the checkpoints of real captures, as they are and broken, together and one by one."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import groupby
from operator import attrgetter, itemgetter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import write_deltalake

from jobs.derivation.compare_snapshots import cluster_comparisons, key_of, wanted_comparisons
from jobs.runtime.task_counts import task_count
from kraft_core.findings.snapshot_replays import Comparison, replays
from transforms.histories.replay_records import opened
from transforms.lake.delta_rs import arrow_with, rows_with
from transforms.lake.lake import existing_lake
from transforms.lake.tables import (
    BATCHES,
    CAPTURES,
    RECORDS,
    SNAPSHOT_CHECKS,
    SNAPSHOT_RECORDS,
    SNAPSHOTS,
)
from transforms.quality import snapshot_checks
from transforms.quality.replay_pieces import READ, StoredRecords
from transforms.quality.snapshot_checks import (
    DEVIATES,
    EQUAL,
    UNREAD_CHECKPOINT,
    UNREAD_LOG,
    checked_snapshots,
)

Row = dict[str, Any]
# Node 1's checkpoints of dynamic-membership from 1956 on lack a credential.
CLUSTER = "rPoTXydvQsK3Nv6AA77Cqg"
LACKING = {1956, 2939, 3692}


@pytest.fixture(scope="module")
def wanted(lake: Any) -> list[Comparison]:
    """The comparisons of the cluster."""
    known = rows_with(lake.path, SNAPSHOT_CHECKS, cluster_id=[CLUSTER])
    captures = rows_with(lake.path, CAPTURES, cluster_id=[CLUSTER])
    return cluster_comparisons(CLUSTER, captures, {key_of(row) for row in known}, ())


def records_of(lake: Any, table: Any) -> pa.Table:
    """All columns of the cluster's records."""
    return arrow_with(lake.path, table, table.names, cluster_id=[CLUSTER])


def changed_lake(
    lake: Any,
    path: Path,
    log: Callable[[pa.Table], pa.Table] = lambda rows: rows,
    checkpoints: Callable[[pa.Table], pa.Table] = lambda rows: rows,
) -> Path:
    """A lake with the records of the cluster, but for a change of those of the log or of the checkpoints."""
    write_deltalake(path / RECORDS.name, log(records_of(lake, RECORDS)))
    write_deltalake(path / SNAPSHOT_RECORDS.name, checkpoints(records_of(lake, SNAPSHOT_RECORDS)))
    return path


def with_column(rows: pa.Table, name: str, values: Any) -> pa.Table:
    return rows.set_column(rows.column_names.index(name), rows.schema.field(name), values)


def outcomes(lake: Path, wanted: list[Comparison], known: dict[Comparison, Row]) -> dict[Comparison, Row]:
    """The outcomes of the comparisons, by replays that start from what is known to be equal."""
    equal = [c for c, row in known.items() if row["outcome"] == EQUAL]
    found: dict[Comparison, Row] = {}
    for replay in replays(wanted, equal):
        of_key = {c.checkpoint: c for c in replay.comparisons}
        records = StoredRecords(opened(lake, *READ), CLUSTER)
        found |= {of_key[key_of(row)]: row for row in snapshot_checks.outcomes(records, replay)}
    return found


def test_the_lake_keeps_the_outcome_of_every_comparison(lake: Any, wanted: list[Comparison]) -> None:
    rows = rows_with(lake.path, SNAPSHOT_CHECKS, cluster_id=[CLUSTER])
    assert len(rows) == len(wanted) == 12
    assert {row["outcome"] for row in rows} == {EQUAL, DEVIATES}
    found = {
        r["end_offset"]: [d["subject"] for d in r["deviations"]] for r in rows if r["outcome"] == DEVIATES
    }
    assert found == {end: ["2 alice"] for end in LACKING}
    digests = {row["end_offset"]: row["log_digest"] for row in rows}
    assert digests == {c.checkpoint.end_offset: c.log_digest for c in wanted}


@pytest.mark.parametrize("seed", range(3))
def test_runs_that_bring_checkpoints_in_any_order_come_to_the_same(
    lake: Any, wanted: list[Comparison], seed: int
) -> None:
    random = Random(seed)
    whole = outcomes(lake.path, wanted, {})
    known: dict[Comparison, Row] = {}
    rest = random.sample(wanted, len(wanted))
    while rest:
        count = random.randint(1, len(rest))
        known |= outcomes(lake.path, rest[:count], known)
        rest = rest[count:]
    assert known == whole
    assert {c.checkpoint.end_offset for c, row in whole.items() if row["outcome"] == DEVIATES} == LACKING


def test_in_pieces_of_the_log_it_is_the_same(
    lake: Any, wanted: list[Comparison], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = outcomes(lake.path, wanted, {})
    monkeypatch.setattr("transforms.histories.replay_records.TOGETHER", 150)
    assert outcomes(lake.path, wanted, {}) == whole


@pytest.mark.parametrize("twice", [False, True])
def test_above_a_record_that_cannot_be_read_nothing_is_judged(
    lake: Any, wanted: list[Comparison], tmp_path: Path, twice: bool
) -> None:
    """Nor above an offset at which batches conflict."""
    changes = rows_with(lake.path, RECORDS, cluster_id=[CLUSTER], type=["PARTITION_CHANGE_RECORD"])
    torn = min(row["offset"] for row in changes if row["offset"] > 2000)

    def tear(rows: pa.Table) -> pa.Table:
        at = pc.equal(rows["offset"], torn)
        if twice:
            return pa.concat_tables([rows, rows.filter(at)])
        return with_column(rows, "unread_reason", pc.if_else(at, "malformed_value", rows["unread_reason"]))

    found = outcomes(changed_lake(lake, tmp_path, log=tear), wanted, {})
    blocked = {c.checkpoint.end_offset for c, row in found.items() if row["outcome"] == UNREAD_LOG}
    assert blocked == {c.checkpoint.end_offset for c in wanted if c.checkpoint.end_offset > torn}


def test_offsets_that_a_captured_log_holds_twice_are_not_compared(
    lake: Any, wanted: list[Comparison]
) -> None:
    captures = rows_with(lake.path, CAPTURES, cluster_id=[CLUSTER])
    whole = {c.checkpoint for c in wanted}
    fault = {"offset": 2000, "leader_epoch": 4, "kind": "overlap", "expected": 2100}
    captures[0] = captures[0] | {"order_faults": [fault]}
    found = cluster_comparisons(CLUSTER, captures, whole, ())
    assert {c for c in found if c.checkpoint.end_offset <= 2000} < set(wanted)
    above = [c for c in found if c.checkpoint.end_offset > 2000]
    assert above
    assert all(c.base and c.base.end_offset == c.log[0].first_offset >= 2100 for c in above)


def test_nothing_is_compared_with_a_log_of_which_captures_hold_different_batches(
    lake: Any, wanted: list[Comparison], tmp_path: Path
) -> None:
    """Also of what was compared before: another capture of epoch 3 is loaded that contradicts the first."""
    for table in (SNAPSHOTS, CAPTURES, BATCHES):
        rows = records_of(lake, table)
        if table is BATCHES:
            first = rows.filter(pc.equal(rows["leader_epoch"], 3)).slice(0, 1)
            other = with_column(first, "crc", pc.add(first["crc"], 1))
            rows = pa.concat_tables([rows, other])
        write_deltalake(tmp_path / table.name, rows)
    (tmp_path / "lake.json").write_text('{"format_version": 1}')
    failed: dict[str, str] = {}
    found = wanted_comparisons(existing_lake(lake.spark, tmp_path), [CLUSTER], [], failed)
    below = [c for c in wanted if c.log[-1].leader_epoch < 3]
    # Above it, a replica's oldest checkpoint is trusted.
    above = [c for c in found[CLUSTER] if c not in below]
    assert set(below) < set(found[CLUSTER])
    assert 0 < len(below) < len(found[CLUSTER]) < len(wanted)
    assert all(c.base is not None and c.log[0].leader_epoch > 3 for c in above)
    assert not failed


def test_a_checkpoint_that_cannot_be_read_is_not_judged(
    lake: Any, wanted: list[Comparison], tmp_path: Path
) -> None:
    torn = wanted[0].checkpoint

    def tear(rows: pa.Table) -> pa.Table:
        at = pc.and_(pc.equal(rows["content_digest"], torn.content_digest), pc.equal(rows["position"], 3))
        return with_column(rows, "unread_reason", pc.if_else(at, "malformed_value", rows["unread_reason"]))

    found = outcomes(changed_lake(lake, tmp_path, checkpoints=tear), wanted, {})
    unread = [c.checkpoint for c, row in found.items() if row["outcome"] == UNREAD_CHECKPOINT]
    assert unread == [torn]


def test_driver_and_tasks_find_the_same_and_say_how_much_of_the_logs_is_replayed(
    lake: Any, wanted: list[Comparison], monkeypatch: pytest.MonkeyPatch
) -> None:
    todo = [(CLUSTER, replay) for some in (wanted, wanted[:3]) for replay in replays(some, [])]
    found: list[list[Row]] = []
    for most in (snapshot_checks.IN_DRIVER, 0):
        monkeypatch.setattr(snapshot_checks, "IN_DRIVER", most)
        with task_count() as replayed:
            assert replayed.total == 0
            rows = checked_snapshots(lake.spark, lake.path, todo, replayed.add)
            assert replayed.total == sum(p.end_offset - p.first_offset for _, r in todo for p in r.log) > 0
            in_driver = str(os.getpid()) in {file.name for file in replayed.folder.iterdir()}
            assert in_driver == (most > 0)
        found.append(sorted(rows, key=lambda row: (row["replay"], key_of(row))))
    assert found[0] == found[1]
    assert len(found[0]) == len(wanted) + 3


def test_broken_checkpoints_are_found_by_the_executors_and_a_broken_replay_harms_no_other(
    lake: Any, wanted: list[Comparison], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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

    def strange(rows: pa.Table) -> pa.Table:
        return with_column(rows, "cluster_id", pa.array(["strange"] * len(rows)))

    def lose(rows: pa.Table) -> pa.Table:
        topics = pc.struct_field(rows["topic"].combine_chunks(), "name")
        lost = pc.and_(pc.equal(rows["content_digest"], broken.content_digest), pc.equal(topics, "t-rf2"))
        without = with_column(strange(rows), "topic", pa.nulls(len(rows), rows["topic"].type))
        return pa.concat_tables([rows.filter(pc.invert(pc.fill_null(lost, False))), without])

    path = changed_lake(
        lake, tmp_path, log=lambda rows: pa.concat_tables([rows, strange(rows)]), checkpoints=lose
    )
    todo = [(CLUSTER, replay), ("strange", replay), (CLUSTER, third)]
    monkeypatch.setattr(snapshot_checks, "IN_DRIVER", 0)
    found = checked_snapshots(lake.spark, path, todo)
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
