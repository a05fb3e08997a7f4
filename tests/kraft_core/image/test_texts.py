"""Kafka's texts, patterns for names, and changes in words."""

from __future__ import annotations

import pytest

from kraft_core.image import change_text, kafka_text, tables
from kraft_core.image.configs import Config
from kraft_core.image.glob import compile_glob
from kraft_core.image.names import ZK_MIGRATION_STATES
from kraft_core.image.scram_users import ScramUser
from kraft_core.image.topics import Topic
from kraft_core.image.tree import touches
from tests.kraft_core.image.worlds import change_fields, partition_fields, replay, rows, topic_fields

ID = "AQEBAQEBAQEBAQEBAQEBAQ"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (55.5, "55.5"),
        (1000.0, "1000.0"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (123456789.125, "1.23456789125E8"),
        (0.001, "0.001"),
        (0.0009999, "9.999E-4"),
        (2.5e-5, "2.5E-5"),
        (-1e21, "-1.0E21"),
        (5e-324, "5.0E-324"),
        (float("nan"), "NaN"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_doubles_are_written_as_java_writes_them(number, text):
    assert kafka_text.double(number) == text


@pytest.mark.parametrize(
    ("entity", "text"),
    [
        ((("client-id", "c"), ("user", "u")), "clientId(c)_user(u)"),
        ((("ip", "10.0.0.1"),), "ip(10.0.0.1)"),
        ((("user", "a(b)\\"),), "user(a\\(b\\)\\\\)"),
        ((("user", None),), "user(<default>)"),
        ((("user", "<default>"),), "user(\\<default>)"),
        ((("client-id", None), ("user", "u")), "clientId(<default>)_user(u)"),
    ],
)
def test_names_of_quota_entities(entity, text):
    assert kafka_text.entity(entity) == text


@pytest.mark.parametrize(
    ("ms", "text"),
    [(1000, "1970-01-01T00:00:01"), (1100, "1970-01-01T00:00:01.1"), (-1, "1969-12-31T23:59:59.999")],
)
def test_times_have_as_many_digits_as_they_need(ms, text):
    assert kafka_text.provenance(5, 2, ms) == f"offset 5, epoch 2, time {text}Z[UTC]"


def test_numbers_that_no_release_knew_are_shown_as_such():
    assert kafka_text.metadata_version(99) == "Optional[UNKNOWN(99)]"
    assert kafka_text.config_resource(7, "x") == "UNKNOWN(7):x"


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("t-*", ["t-", "t-x"], ["t", "at-"]),
        ("t?", ["tx", "t/"], ["t", "txx"]),
        ("{a,b}c", ["ac", "bc"], ["c", "{a,b}c"]),
        ("*.log", ["x.log"], ["xlog"]),
        ("a\\*b*", ["a*b", "a*bc"], ["axb"]),
        ("{a,}", ["a", ""], ["b"]),
        ("a,b*", ["a,b"], ["a"]),
    ],
)
def test_patterns(pattern, matching, others):
    expression = compile_glob(pattern)
    assert expression is not None
    assert all(expression.fullmatch(name) for name in matching)
    assert not any(expression.fullmatch(name) for name in others)


@pytest.mark.parametrize("text", ["plain", "clientId(c)", "a\\b", "{a", "{a{b}}", "a}b", "a,b"])
def test_texts_that_name_themselves(text):
    assert compile_glob(text) is None


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        (("image", "topics"), ("image", "topics", "byName", "t"), True),
        (("image", "topics", "byName", "t", "0"), ("image", "topics", "byName", "t"), True),
        (("image", "topics", "byName", "t"), ("image", "topics", "byName", "u"), False),
        (("image", "*", "byName", "t*"), ("image", "topics", "byName", "t1", "3"), True),
    ],
)
def test_which_changes_show_under_a_pattern(pattern, path, expected):
    assert touches(pattern, path) is expected


def test_a_change_names_the_columns_that_changed():
    made = [
        ("TOPIC_RECORD", topic_fields("t", ID)),
        ("PARTITION_RECORD", partition_fields(ID)),
        ("PARTITION_CHANGE_RECORD", change_fields(ID, leader=-1, isr=[])),
    ]
    before, after = (replay(rows(made[:count])).tables.get(tables.PARTITIONS, (ID, 0)) for count in (2, 3))
    assert change_text.thing(tables.PARTITIONS, after) == "partition 0 of t"
    assert change_text.what_changed(tables.PARTITIONS, before, after) == (
        "isr [1, 2] -> [], leader 1 -> -1, leader_epoch 0 -> 1, partition_epoch 0 -> 1"
    )
    assert change_text.what_changed(tables.PARTITIONS, after, None) == "removed"
    assert change_text.what_changed(tables.PARTITIONS, after, after) == change_text.SAME


def test_additions_list_the_values_that_are_set():
    assert (
        change_text.what_changed(tables.TOPICS, None, Topic(ID, "t")) == f"added: topic_id {ID}, topic_name t"
    )


def test_a_new_secret_is_reported_without_its_value():
    before, after = (ScramUser(1, "a", 4096, b"s", key, b"v") for key in (b"k", b"l"))
    assert change_text.what_changed(tables.SCRAM_USERS, before, after) == change_text.UNSEEN
    before, after = (Config(4, "", "ssl.key.password", value) for value in ("hush", "hush hush"))
    assert change_text.what_changed(tables.CONFIGS, before, after) == change_text.UNSEEN
    assert "hush" not in change_text.what_changed(tables.CONFIGS, None, after)


def test_numbers_of_the_move_from_zookeeper_are_not_in_the_order_of_its_stages():
    """ZkMigrationState of kafka-metadata 3.9.2: a pre-migration came to be numbered after the migration."""
    assert [ZK_MIGRATION_STATES[number] for number in (2, 1, 3)] == [
        "PRE_MIGRATION",
        "MIGRATION",
        "POST_MIGRATION",
    ]


def test_a_time_beyond_the_year_9999() -> None:
    assert kafka_text.provenance(1, 2, 2**62) == "offset 1, epoch 2, time 9999-12-31T23:59:59.999Z[UTC]"
