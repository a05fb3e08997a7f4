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

pytestmark = pytest.mark.usefixtures("interpreted")

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
        "in_force_from_offset": offset,
        "in_force_to": None if to is None else time_at(to),
        "in_force_from_exact": source == "record",
        "in_force_to_exact": None if to is None else True,
    }
    return row | more


def reported_set(offset: int, since: int, until: int, to: int | None) -> dict[str, Any]:
    """What describe commands from `since` to `until` report, until the next set at `to`."""
    observed = {
        "observed_from": time_at(since),
        "observed_to": time_at(until),
        "in_force_from": time_at(since),
    }
    unknown = {"in_force_from_offset": None, "in_force_to_exact": None if to is None else False}
    return voter_set(offset, to, "describe", commit_status="undecided", **observed, **unknown)


SETS = [
    voter_set(10, 15, "snapshot"),
    voter_set(15, 30, in_force_to_exact=False),
    voter_set(30, None, "snapshot"),
    voter_set(12, None, cluster_id="b"),
    # Reported at 4, and from 19 to 25 in the gap; and a set after the newest capture.
    reported_set(-1, 4, 4, 10),
    reported_set(16, 19, 25, 30),
    reported_set(31, 44, 48, None),
]


def leader_epoch(number: int, elected: int | None, last: int | None, **more: Any) -> dict[str, Any]:
    """An epoch by its LEADER_CHANGE, or by its batches alone."""
    row = {
        "cluster_id": "a",
        "leader_epoch": number,
        "start_offset_exact": elected is not None,
        "leader_id": None if elected is None else number,
        "leader_source": None if elected is None else "record",
        "elected_at": None if elected is None else time_at(elected),
        "known_from": None if elected is None else time_at(elected),
        "known_to": None if last is None else time_at(last),
    }
    return row | more


EPOCHS = [
    leader_epoch(
        1, None, None, leader_id=3, leader_source="describe", known_from=time_at(6),
        observed_from=time_at(3), observed_to=time_at(8),
    ),
    leader_epoch(3, 10, 15),
    # Only its batches were captured, and an output of a describe command.
    leader_epoch(
        4, None, 22, known_from=time_at(18), leader_id=2, leader_source="describe",
        observed_from=time_at(23), observed_to=time_at(25),
    ),
    leader_epoch(6, 30, 40),
]  # fmt: skip
CAPTURES = [
    {"cluster_id": cluster, "captured_at": time_at(40), "last_captured_at": time_at(40)}
    for cluster in ("a", "b", "c")
]


@pytest.fixture(scope="module")
def ask(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Answers of SQL over a lake of these rows."""
    path = tmp_path_factory.mktemp("before")
    written = {"topics": TOPICS, "voter_sets": SETS, "captures": CAPTURES, "epochs": EPOCHS}
    for name, rows in written.items():
        write(path, BY_NAME[name], rows)
    (path / "lake.json").write_text('{"format_version": 1}')
    with current_kept(spark):
        spark.sql("CREATE DATABASE before_the_proof")
        spark.sql("USE before_the_proof")
        define(existing_lake(spark, path), needed("SELECT topics_as_of, topics_at, voters_at, leaders_at"))
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
        ("a", 3, [(-1, "undecided")]),
        ("a", 4, [(-1, "observed"), (10, "undecided")]),
        ("a", 9, [(-1, "undecided"), (10, "undecided")]),
        ("a", 10, [(10, "valid")]),
        ("a", 15, [(15, "undecided"), (16, "undecided")]),
        ("a", 19, [(15, "undecided"), (16, "observed"), (30, "undecided")]),
        ("a", 25, [(15, "undecided"), (16, "observed"), (30, "undecided")]),
        ("a", 29, [(15, "undecided"), (16, "undecided"), (30, "undecided")]),
        # What is reported later may have been in force before.
        ("a", 30, [(30, "valid"), (31, "undecided")]),
        ("a", 40, [(30, "valid"), (31, "undecided")]),
        # After the newest capture another set may have replaced it.
        ("a", 41, [(30, "undecided"), (31, "undecided")]),
        ("a", 46, [(30, "undecided"), (31, "observed")]),
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


@pytest.mark.parametrize(
    ("cluster", "offset", "wanted"),
    [
        ("a", 2, [(1, 3, "undecided")]),
        ("a", 3, [(1, 3, "observed")]),
        ("a", 8, [(1, 3, "observed")]),
        # Still, or nobody.
        ("a", 9, [(1, 3, "undecided")]),
        ("a", 10, [(3, 3, "valid")]),
        ("a", 15, [(3, 3, "valid")]),
        # Elected after the last batch of epoch 3 and at or before 18.
        ("a", 16, [(3, 3, "undecided"), (4, 2, "undecided")]),
        ("a", 18, [(4, 2, "observed")]),
        ("a", 25, [(4, 2, "observed")]),
        ("a", 26, [(4, 2, "undecided")]),
        ("a", 40, [(6, 6, "valid")]),
        ("a", 41, [(6, 6, "undecided")]),
        ("b", 12, [(None, None, "undecided")]),
    ],
)
def test_who_led_at_a_time(
    ask: Any, cluster: str, offset: int, wanted: list[tuple[int | None, int | None, str]]
) -> None:
    at = f"TIMESTAMP '{time_at(offset).isoformat()}'"
    found = ask(
        f"SELECT leader_epoch, leader_id, validity FROM leaders_at('{cluster}', {at}) ORDER BY leader_epoch"
    )
    assert found == wanted
