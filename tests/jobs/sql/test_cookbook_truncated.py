"""The cookbook on a log that no longer begins at 0: what checkpoints show is not missed."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.lakes import asking, run
from tests.jobs.sql.test_cookbook import RECIPES

FIRST = 697


Ask = Callable[[str], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def truncated(spark: Any, golden: Path, tmp_path_factory: pytest.TempPathFactory) -> Ask:
    """Asks the lake of two nodes without their first segment."""
    tmp = tmp_path_factory.mktemp("truncated")
    for node in ("node-2", "node-3"):
        copy = Path(shutil.copytree(golden / "dynamic-membership" / node, tmp / "captures" / node))
        log = copy / "__cluster_metadata-0"
        (log / "00000000000000000000.log").unlink()
        assert min(int(path.stem) for path in log.glob("*.log")) == FIRST
        assert list(log.glob(f"{FIRST:020}-*.checkpoint"))
    assert run(tmp / "lake", tmp / "captures", flags=("--fail-on", "never")) == 0
    ask = asking(spark, tmp / "lake")
    return lambda sql: [row.asDict() for row in ask(sql).collect()]


def answer(ask: Ask, number: int) -> list[dict[str, Any]]:
    """The rows of a recipe."""
    _, sql, _ = RECIPES[number - 1]
    return ask(sql)


def test_topics_that_are_older_than_the_log(truncated: Ask) -> None:
    found = {row["topic_name"]: row for row in answer(truncated, 11)}
    assert {"t-small", "t-rf2", "t-wide", "t-assign", "t-x", "t-last"} <= found.keys()
    assert [found[name]["is_exact"] for name in ("t-small", "t-x")] == [False, True]
    assert found["t-small"]["offset"] < FIRST <= found["t-x"]["offset"]
    assert found["t-assign"]["removed_at"] is not None


def test_configs_that_are_older_than_the_log(truncated: Ask) -> None:
    found = answer(truncated, 12)
    assert {row["name"] for row in found} >= {"retention.ms"}
    assert min(row["offset"] for row in found) < FIRST


def test_changes_of_partitions_whose_topic_is_older_than_the_log(truncated: Ask) -> None:
    found = answer(truncated, 14)
    assert [row["changes"] for row in found] == [9] * 5
    assert all(row["topic_name"] for row in found)


def test_times_of_fencing_after_the_checkpoint(truncated: Ask) -> None:
    """Both were unfenced by the checkpoint; what follows is the same as from the whole log."""
    found = answer(truncated, 13)
    assert [row["broker_id"] for row in found] == [12, 12, 11, 11]
    assert all(row["fenced_by"] == "BROKER_REGISTRATION_CHANGE_RECORD" for row in found)


@pytest.mark.long
@pytest.mark.parametrize("number", range(1, len(RECIPES) + 1))
def test_every_recipe_answers(truncated: Ask, number: int) -> None:
    answer(truncated, number)


def test_brokers_whose_registration_is_older_than_the_log(truncated: Ask) -> None:
    lost = {(row["broker_id"], row["cause"], row["left_leaderless"]) for row in answer(truncated, 23)}
    assert lost >= {(12, "no heartbeat", 6), (11, "controlled shutdown", 349)}
    assert {(row["broker_id"], row["state"]) for row in answer(truncated, 24)} >= {
        (11, "active"),
        (12, "active"),
        (12, "unregistered"),
    }


def test_features_that_are_older_than_the_log(truncated: Ask) -> None:
    found = {row["name"]: row for row in answer(truncated, 25)}
    assert found["metadata.version"]["finalized"] == found["metadata.version"]["all_support"] == 30
    assert {row["nodes"] for row in found.values()} == {4}
