"""Tables whose things are read when they are first asked for, beside those that hold them from the start."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings

from kraft_core.image.change import Change, Key
from kraft_core.image.tables import FEATURES, KINDS, PARTITIONS, TOPICS, Tables
from kraft_core.image.topics import Topic
from tests.kraft_core.image.worlds import lives, replay


class Read:
    """Gives the things of tables, and records of which kinds."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self.kinds: list[str] = []

    def __call__(self, kind: str) -> Iterable[tuple[Key, Any]]:
        self.kinds.append(kind)
        return self._tables.items(kind)


def of_topics(*topics: Topic) -> Tables:
    tables = Tables()
    for topic in topics:
        tables.put(Change(TOPICS, (topic.topic_id,), topic))
    return tables


@settings(deadline=None)
@given(lives)
def test_they_have_the_same_things_and_names(records: Any) -> None:
    tables = replay(records).tables
    assert Tables(tables.items) == tables
    assert tables == Tables(tables.items)
    assert Tables(tables.items).topic_ids == tables.topic_ids
    assert Tables(tables.items).copy() == tables
    assert {kind: Tables(tables.items).count(kind) for kind in KINDS} == {k: tables.count(k) for k in KINDS}


@pytest.mark.parametrize(
    "ask",
    [
        lambda tables: tables.get(TOPICS, ("a",)),
        lambda tables: tables.group(TOPICS),
        lambda tables: tables.groups(TOPICS),
        lambda tables: list(tables.items(TOPICS)),
        lambda tables: tables.count(TOPICS),
        lambda tables: tables.topic_ids["orders"],
        lambda tables: tables.put(Change(TOPICS, ("b",), None)),
    ],
)
def test_a_kind_is_read_once_and_alone(ask: Callable[[Tables], Any]) -> None:
    read = Read(of_topics(Topic("a", "orders")))
    tables = Tables(read)
    assert read.kinds == []
    ask(tables)
    ask(tables)
    assert read.kinds == [TOPICS]
    assert dict(tables.topic_ids) == {"orders": "a"}
    assert list(tables.items(FEATURES)) == []
    assert read.kinds == [TOPICS, FEATURES]


def test_a_change_of_a_kind_that_was_not_read_keeps_its_other_things() -> None:
    tables = Tables(Read(of_topics(Topic("a", "orders"), Topic("b", "orders"))))
    tables.put(Change(TOPICS, ("b",), None))
    assert [key for key, _ in tables.items(TOPICS)] == [("a",)]
    assert dict(tables.topic_ids) == {"orders": "a"}


def test_a_copy_does_not_have_later_changes_of_the_other_whether_read_or_not() -> None:
    tables = Tables(Read(of_topics(Topic("a", "orders"))))
    unread = tables.copy()
    tables.put(Change(TOPICS, ("a",), None))
    changed = tables.copy()
    changed.put(Change(TOPICS, ("c",), Topic("c", "other")))
    assert dict(unread.topic_ids) == {"orders": "a"}
    assert dict(tables.topic_ids) == {}
    assert dict(changed.topic_ids) == {"other": "c"}
    assert unread.get(TOPICS, ("a",)) is not None


def test_what_was_read_in_part_is_not_taken_for_the_whole() -> None:
    fails = [True]

    def read(kind: str) -> Iterable[tuple[Key, Any]]:
        yield ("t", 0), f"{kind} 0"
        if fails:
            fails.pop()
            raise OSError("gone")
        yield ("t", 1), f"{kind} 1"

    tables = Tables(read)
    with pytest.raises(OSError, match="gone"):
        tables.group(PARTITIONS, "t")
    assert dict(tables.group(PARTITIONS, "t")) == {0: "partitions 0", 1: "partitions 1"}


def test_a_kind_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(KeyError):
        Tables().group("nothing")
