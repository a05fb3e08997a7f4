"""The histories in the lake of real captures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from jobs.replica_files import open_replica
from kraft_core.image.history import History, rows
from kraft_core.image.image import Image
from kraft_core.image.tables import KINDS
from transforms.delta_rs import rows_with
from transforms.frames import moment
from transforms.tables import (
    DELEGATION_TOKENS,
    HISTORIES,
    METADATA_TRANSACTIONS,
    REPLAYS,
    ZK_MIGRATION_STATES,
)

DYNAMIC = "rPoTXydvQsK3Nv6AA77Cqg"
# Replicas that hold the whole log of their cluster.
WHOLE_LOGS = {
    DYNAMIC: "dynamic-membership/node-3",
    "iWP35uOsShu1pFlBJh_E7w": "uncommitted-then-committed/after/node-1",
    "cdUcB7OYQSW2BEWmIRzmkg": "disk-failure/node-2",
    "6H0D77QjTmKI23eYS_Y-Kw": "election-storm/node-1",
    "roWi3HLRRCuDirielH5nnw": "v4.4.0-mini/node-1",
}
KIND_OF = {ZK_MIGRATION_STATES: "zk_migration"}
# A token is named otherwise where its id is known; all of these logs are committed.
OWN = {"cluster_id", "entity_name", "token_digest", "commit_status", "end_commit_status"}


def by_core(directory: Path) -> dict[str, list[dict[str, Any]]]:
    told = History()
    for step in open_replica(directory).steps():
        if isinstance(step, Image):
            told.load(step)
        else:
            told.apply(step)
    return {kind: [with_times(row) for row in rows(told.versions(kind))] for kind in KINDS}


def with_times(row: dict[str, Any]) -> dict[str, Any]:
    return row | {name: moment(row[name]) for name in ("valid_from_at", "valid_to_at", "appended_at")}


@pytest.mark.parametrize("cluster", WHOLE_LOGS)
def test_every_history_is_what_the_core_says(lake: Any, golden: Path, cluster: str) -> None:
    core = by_core(golden / WHOLE_LOGS[cluster])
    for table in HISTORIES:
        if table is DELEGATION_TOKENS:
            continue
        columns = [name for name in table.names if name not in OWN]
        held = rows_with(lake.path, table, cluster_id=[cluster])
        wanted = core[KIND_OF.get(table, table.name)]
        assert texts(held, columns) == texts(wanted, columns), table.name
        assert {row["commit_status"] for row in held} <= {"committed"}


def texts(rows: list[dict[str, Any]], columns: list[str]) -> list[str]:
    return sorted(repr([plain(row[name]) for name in columns]) for row in rows)


def plain(value: Any) -> Any:
    return value.timestamp() if hasattr(value, "timestamp") else value


def test_the_line_that_was_replayed(lake: Any) -> None:
    steps = sorted(rows_with(lake.path, REPLAYS, cluster_id=[DYNAMIC]), key=lambda row: row["step"])
    assert [(s["first_offset"], s["end_offset"], s["leader_epoch"], s["commit_status"]) for s in steps] == [
        (0, 1005, 1, "committed"),
        (1005, 1895, 3, "committed"),
        (1895, 2013, 4, "committed"),
        (2013, 2943, 6, "committed"),
        (2943, 2944, 7, "committed"),
        (2944, 3697, 9, "committed"),
        (3697, 3698, 9, "uncommitted"),
    ]


def test_the_bootstrap_transaction(lake: Any) -> None:
    (bootstrap,) = rows_with(lake.path, METADATA_TRANSACTIONS, cluster_id=[DYNAMIC])
    told = (bootstrap["name"], bootstrap["outcome"], bootstrap["commit_status"])
    assert told == ("Bootstrap records", "ended", "committed")
