"""The view of migrations from ZooKeeper, over rows made for it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from dashboards.catalog import define
from dashboards.definitions import needed
from dashboards.published import current_kept
from tests.dashboards.small_lakes import write_for
from tests.jobs.sql.test_broker_views import broker
from transforms.lake.lake import existing_lake

pytestmark = pytest.mark.usefixtures("interpreted")

AT = datetime(2026, 11, 21, tzinfo=UTC)


def state(offset: int, value: int, epoch: int = 1) -> dict[str, Any]:
    row = {"cluster_id": "c", "offset": offset, "leader_epoch": epoch, "batch_crc": offset, "appended_at": AT}
    return row | {"type": "ZK_MIGRATION_STATE_RECORD", "zk_migration_state": {"zk_migration_state": value}}


def log_range(first: int, end: int, status: str, epoch: int = 1) -> dict[str, Any]:
    return {
        "cluster_id": "c",
        "leader_epoch": epoch,
        "first_offset": first,
        "end_offset": end,
        "commit_status": status,
    }


@pytest.fixture(scope="module")
def ask(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    path = tmp_path_factory.mktemp("lake")
    records = [
        state(1, 0),
        state(5, 2),
        state(9, 1),
        state(12, 2),
        state(14, 1),
        state(20, 3),
        state(21, 3, 2),
    ]
    ranges = [log_range(0, 21, "committed"), log_range(21, 30, "truncated", 2)]
    brokers = [
        broker(6, 18, 1, is_migrating_zk_broker=True),
        broker(18, None, 1, is_migrating_zk_broker=False),
        broker(10, None, 2, is_migrating_zk_broker=True),
    ]
    for row in brokers:
        row["cluster_id"] = "c"
    write_for(path, "zk_migrations", {"records": records, "log_ranges": ranges, "brokers": brokers})
    (path / "lake.json").write_text('{"format_version": 1}')
    with current_kept(spark):
        spark.sql("CREATE DATABASE zk_views")
        spark.sql("USE zk_views")
        define(existing_lake(spark, path), needed("SELECT zk_migrations"))
        yield lambda query: [tuple(row) for row in spark.sql(query).collect()]
        spark.sql("DROP DATABASE zk_views CASCADE")


def test_states_with_the_brokers_that_still_migrate(ask: Any) -> None:
    found = ask("SELECT `offset`, state, brokers_in_zk_mode, finished_early, is_restart FROM zk_migrations")
    assert found == [
        (1, "NONE", [], False, False),
        (5, "PRE_MIGRATION", [], False, False),
        (9, "MIGRATION", [1], False, False),
        (12, "PRE_MIGRATION", [1, 2], False, True),
        (14, "MIGRATION", [1, 2], False, False),
        (20, "POST_MIGRATION", [2], True, False),
    ]
