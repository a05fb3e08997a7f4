"""Functions asked about moments that no record covers: undecided, with what is known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dashboards.catalog import define
from dashboards.definitions import needed
from dashboards.published import current_kept
from tests.dashboards.histories import gone_by, known_since, time_at, topic
from tests.dashboards.small_lakes import BY_NAME, write
from transforms.lake.lake import existing_lake

TOPICS = [
    known_since(topic("a", "of the first snapshot", 10)),
    topic("b", "of a record", 15),
    gone_by(topic("c", "lost in a gap", 16, 30), 20),
    known_since(topic("d", "made in a gap", 30), 20),
]


def voter_set(offset: int, to: int | None, source: str = "record", **more: Any) -> dict[str, Any]:
    row = {
        "cluster_id": "a",
        "offset": offset,
        "leader_epoch": 1,
        "source": source,
        "voter_ids": [1, 2, offset],
        "commit_status": "committed",
        "in_force_from": time_at(offset),
        "in_force_to": None if to is None else time_at(to),
        "in_force_from_exact": source == "record",
        "in_force_to_exact": None if to is None else True,
    }
    return row | more


SETS = [
    voter_set(10, 15, "snapshot"),
    voter_set(15, 30, in_force_to_exact=False),
    voter_set(30, None, "snapshot"),
    voter_set(12, None, cluster_id="b"),
]
CAPTURES = [{"cluster_id": cluster, "captured_at": time_at(40)} for cluster in ("a", "b", "c")]


@pytest.fixture(scope="module")
def ask(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Answers of SQL over a lake of these rows."""
    path = tmp_path_factory.mktemp("before")
    for name, rows in {"topics": TOPICS, "voter_sets": SETS, "captures": CAPTURES}.items():
        write(path, BY_NAME[name], rows)
    (path / "lake.json").write_text('{"format_version": 1}')
    with current_kept(spark):
        spark.sql("CREATE DATABASE before_the_proof")
        spark.sql("USE before_the_proof")
        define(existing_lake(spark, path), needed("SELECT topics_as_of, topics_at, voters_at"))
        yield lambda statement: [tuple(row) for row in spark.sql(statement).collect()]
        spark.sql("DROP DATABASE before_the_proof CASCADE")


@pytest.mark.parametrize(
    ("offset", "wanted"),
    [
        (0, {("a", "undecided")}),
        (9, {("a", "undecided")}),
        (10, {("a", "valid")}),
        (15, {("a", "valid"), ("b", "valid")}),
        (19, {("a", "valid"), ("b", "valid"), ("c", "valid")}),
        (20, {("a", "valid"), ("b", "valid"), ("c", "undecided"), ("d", "undecided")}),
        (29, {("a", "valid"), ("b", "valid"), ("c", "undecided"), ("d", "undecided")}),
        (30, {("a", "valid"), ("b", "valid"), ("d", "valid")}),
    ],
)
def test_versions_as_of_an_offset_and_at_its_time(
    ask: Any, offset: int, wanted: set[tuple[str, str]]
) -> None:
    assert set(ask(f"SELECT topic_id, validity FROM topics_as_of('a', {offset})")) == wanted
    at = f"TIMESTAMP '{time_at(offset).isoformat()}'"
    assert set(ask(f"SELECT topic_id, validity FROM topics_at('a', {at})")) == wanted


@pytest.mark.parametrize(
    ("cluster", "offset", "wanted"),
    [
        ("a", 9, [(10, "undecided")]),
        ("a", 10, [(10, "valid")]),
        ("a", 15, [(15, "undecided"), (30, "undecided")]),
        ("a", 29, [(15, "undecided"), (30, "undecided")]),
        ("a", 30, [(30, "valid")]),
        ("a", 40, [(30, "valid")]),
        # After the newest capture another set may have replaced it.
        ("a", 41, [(30, "undecided")]),
        # Nothing is known before the first record, or of a cluster without voter sets: a row says so.
        ("b", 11, [(None, "undecided")]),
        ("b", 12, [(12, "valid")]),
        ("c", 12, [(None, "undecided")]),
    ],
)
def test_who_could_vote_at_a_time(
    ask: Any, cluster: str, offset: int, wanted: list[tuple[int | None, str]]
) -> None:
    at = f"TIMESTAMP '{time_at(offset).isoformat()}'"
    found = ask(f"SELECT `offset`, validity FROM voters_at('{cluster}', {at}) ORDER BY `offset`")
    assert found == wanted
