"""A user's own expectations: what settings may declare, and how they are evaluated."""

from __future__ import annotations

import json
from math import inf, nan
from typing import Any

import pytest

from tests.transforms.quality.sound_cluster import at, sound_cluster
from tests.transforms.quality.test_expectations import frames_of
from transforms.quality.expectation_scope import Scope, scoped
from transforms.quality.expectation_settings import UnknownExpectationError, configured
from transforms.quality.expectation_suites import suites
from transforms.quality.expectations import results

NOW = at(24)
QUERY = "SELECT cluster_id, epoch FROM own_epochs WHERE epoch > 2 -- of any cluster"


@pytest.mark.parametrize(
    ("suite", "name", "words", "message"),
    [
        ("topic", "named", {"sql": "SELECT 1"}, "no suite topic"),
        ("topics", "key_is_unique", {"sql": "SELECT 1"}, "topics.key_is_unique is built in: choose another"),
        ("topics", "Named", {"sql": "SELECT 1"}, "a name consists of lower-case letters, digits and _"),
        ("topics", "named", {"sql": "SELECT 1", "levl": 1}, "unknown setting levl; known: allowed, column"),
        ("topics", "named", {"sql": "SELECT 1", "max": 1}, "either sql, or column with min or max"),
        ("topics", "named", {"sql": " "}, "sql must be a string"),
        ("topics", "named", {"sql": 3}, "sql must be a string, not 3"),
        ("topics", "named", {"column": "name"}, "column needs min or max"),
        ("topics", "named", {"column": "name", "min": "a"}, "min must be a number, not 'a'"),
        ("topics", "named", {"column": "name", "max": True}, "max must be a number, not True"),
        ("topics", "named", {"column": "name", "max": inf}, "max must be a number, not inf"),
        ("topics", "named", {"sql": "SELECT 1", "severity": "fatal"}, "error or warning, not fatal"),
        ("topics", "named", {"sql": "SELECT 1", "allowed": "1"}, "allowed must be a number, not '1'"),
        ("topics", "named", {"sql": "SELECT 1", "allowed": nan}, "allowed must be a number, not nan"),
        ("topics", "named", {"sentence": "x"}, "suite topics has no expectation named"),
    ],
)
def test_a_wrong_declaration_is_refused(suite: str, name: str, words: Any, message: str) -> None:
    with pytest.raises(UnknownExpectationError, match=message):
        configured(suites(), {suite: {name: words}})


def evaluated(spark: Any, own: dict[str, Any]) -> dict[tuple[str, str], tuple[bool, float | None, list[Any]]]:
    """By name and cluster: whether it is met, the observed value, and the failing rows."""
    one, two = sound_cluster("one"), sound_cluster("two")
    frames = frames_of(spark, {table: one[table] + two[table] for table in one})
    spark.sql(
        "SELECT * FROM VALUES ('one', 1), ('two', 3), ('two', 4) AS t(cluster_id, epoch)"
    ).createTempView("own_epochs")
    frames["log_ranges"].createOrReplaceTempView("log_ranges")
    try:
        chosen = configured(suites(), {"log_ranges": own})
        found = list(results(chosen, scoped(frames, Scope([], ())), frames, NOW, []))
    finally:
        spark.catalog.dropTempView("own_epochs")
        spark.catalog.dropTempView("log_ranges")
    assert {row["suite"] for row in found} > {"log_ranges", "captures"}
    return {
        (row["expectation"], row["cluster_id"]): (
            row["success"],
            row["observed"],
            [json.loads(text) for text in row["failing_rows"]],
        )
        for row in found
        if row["expectation"] in own
    }


@pytest.mark.usefixtures("interpreted")
def test_each_is_judged_by_cluster_over_all_rows(spark: Any) -> None:
    """Also where no row is new. Without a column cluster_id it is about the lake as a whole."""
    found = evaluated(
        spark,
        {
            "epochs_are_low": {"sql": QUERY},
            "two_are_allowed": {"sql": QUERY, "allowed": 2},
            "no_rows": {"sql": "WITH x AS (SELECT 1 AS a) SELECT a FROM x WHERE a > 1"},
            "of_the_lake": {"sql": "SELECT 7 AS n, {now} AS at"},
            "end_is_low": {"column": "end_offset", "min": 3, "max": 4},
            "is_known": {"column": "truncated_by_epoch", "min": 2},
        },
    )
    high = [{"cluster_id": "two", "epoch": epoch} for epoch in (3, 4)]
    assert found["epochs_are_low", "one"] == (True, 0, [])
    assert found["epochs_are_low", "two"] == (False, 2, high)
    assert found["two_are_allowed", "two"] == (True, 2, [])
    assert found["no_rows", "*"] == (True, 0, [])
    success, observed, (row,) = found["of_the_lake", "*"]
    assert (success, observed, row["n"], row["at"][:13]) == (False, 1, 7, "2026-11-22T09")
    for cluster in ("one", "two"):
        success, observed, (row,) = found["end_is_low", cluster]
        assert (success, observed, row["first_offset"], row["measured"]) == (False, 1, 0, 2)
        assert found["is_known", cluster] == (True, 0, [])  # null is within all bounds
    assert len(found) == 10


# Queries that cannot be evaluated, by the reason.
WRONG = {
    "nowhere": "SELECT * FROM nowhere",
    "PARSE_SYNTAX_ERROR": "DROP TABLE captures",
    "DIVIDE_BY_ZERO": "SELECT cluster_id, 1 / 0 AS x FROM own_epochs",
}


@pytest.mark.usefixtures("interpreted")
def test_what_cannot_be_evaluated_is_not_met(spark: Any) -> None:
    """And keeps no other from being evaluated."""
    cannot = {f"cannot_{n}": {"sql": sql} for n, sql in enumerate(WRONG.values())}
    found = evaluated(spark, cannot | {"can": {"sql": QUERY}})
    for name, reason in zip(cannot, WRONG, strict=True):
        success, observed, (row,) = found[name, "*"]
        assert (success, observed) == (False, None)
        assert reason in row["error"]
    assert found["can", "two"][0] is False
