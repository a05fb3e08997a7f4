"""kraftlake run over captures by real Kafka: the tables, and that they are a function of the captures."""

from __future__ import annotations

from typing import Any

import pytest

from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import BATCHES, EPOCHS, RECORDS, SNAPSHOTS, TABLES, VOTER_SETS, Table


def voter_sets(lake: Any, cluster_with: int) -> dict[int, tuple[list[int], str | None]]:
    """Offset to (ids, status) of the cluster whose log holds a set at that offset."""
    rows = rows_with(lake.path, VOTER_SETS)
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
    lost = rows_with(lake.path, VOTER_SETS, offset=[355])
    assert [(r["voter_ids"], r["commit_status"], r["truncated_by_epoch"]) for r in lost] == [
        ([1, 2, 3, 4], "truncated", 3)
    ]


def test_leaders_of_dynamic_membership(lake: Any) -> None:
    rows = rows_with(lake.path, EPOCHS, cluster_id=["rPoTXydvQsK3Nv6AA77Cqg"], start_offset_exact=[True])
    leaders = {(r["leader_epoch"], r["start_offset"]): r["leader_id"] for r in rows}
    assert leaders == {(1, 0): 1, (3, 1005): 2, (4, 1895): 3, (6, 2013): 2, (7, 2943): 3, (9, 2944): 3}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_every_key_is_unique_and_no_required_column_null(lake: Any, table: Table) -> None:
    required = {c.name for c in table.columns if not c.nullable}.union(table.key)
    rows = rows_with(lake.path, table, sorted(required))
    assert not [row for row in rows if None in row.values()]
    assert len({tuple(row[name] for name in table.key) for row in rows}) == len(rows)


def test_batches_that_replicas_share_are_decoded_once(lake: Any) -> None:
    identity = ["cluster_id", "base_offset", "leader_epoch", "crc", "record_count"]
    held = lake.read(BATCHES).select(identity)
    once = held.distinct().agg({"record_count": "sum"}).first()[0]
    assert lake.read(RECORDS).count() == once < held.agg({"record_count": "sum"}).first()[0]


def test_secrets_are_redacted(lake: Any) -> None:
    column = "user_scram_credential"
    scram = rows_with(lake.path, RECORDS, ["redacted", column], type=[column.upper() + "_RECORD"])
    assert scram
    for each in scram:
        assert each["redacted"]
        row = each[column]
        assert row["name"]
        assert (row["salt"], row["stored_key"], row["server_key"]) == (None, None, None)


def test_checkpoints(lake: Any) -> None:
    rows = rows_with(lake.path, SNAPSHOTS, end_offset=[3692])
    assert len(rows) == 3
    assert all(r["complete"] and r["kraft_version"] == 1 for r in rows)
    assert {tuple(v["voter_id"] for v in r["voters"]) for r in rows} == {(1, 2, 3)}
