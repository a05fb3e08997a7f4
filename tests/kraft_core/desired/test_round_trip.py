"""A state is written as YAML and read back, whatever the metadata and the names are."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_core.desired.drift import NOT_KNOWN, drift, not_named
from kraft_core.desired.of_image import left_out, state_in
from kraft_core.desired.read_state import read_state
from kraft_core.desired.state import AclBinding, ConfigValue, DesiredState, TopicState
from kraft_core.desired.write_yaml import secrets_of, yaml_lines
from kraft_core.image.from_rows import change_of
from kraft_core.image.image import Image
from kraft_core.image.kinds import BY_NAME
from kraft_core.image.tables import KINDS
from tests.kraft_core.image.worlds import Row, lives, partition_fields, replay, rows, topic_fields

unhurried = settings(deadline=None)
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAg"


def read(text: str) -> DesiredState:
    state = DesiredState()
    read_state(state, text)
    return state


def written(state: DesiredState, *, placement: bool = False) -> str:
    return "".join(f"{line}\n" for line in yaml_lines(state, placement=placement))


@unhurried
@given(lives)
def test_any_metadata_is_as_its_own_yaml_desires(records: list[Row]) -> None:
    actual = state_in(replay(records))
    text = written(actual, placement=True)
    assert text.isascii()
    desired = read(text)
    assert list(drift(actual, desired)) == []
    assert not_named(actual, desired) == {}
    assert desired.authority == actual.authority


@unhurried
@given(lives, lives)
def test_what_differs_from_other_metadata_is_found(some: list[Row], others: list[Row]) -> None:
    """Both ways, and nothing where the states are equal."""
    one, other = state_in(replay(some)), state_in(replay(others))
    there, back = list(drift(one, other)), list(drift(other, one))
    assert {each.subject for each in there} == {each.subject for each in back}
    assert (there == []) == (list(drift(one, read(written(other, placement=True)))) == [])


@unhurried
@given(st.text(), st.text(), st.text())
def test_no_name_or_value_is_changed(name: str, other: str, value: str) -> None:
    state = DesiredState(
        topics={name: TopicState(name, 3, 2, {"retention.ms": ConfigValue(value), "x": ConfigValue(other)})},
        configs={("GROUP", other): {"consumer.session.timeout.ms": ConfigValue(value)}},
        acls={AclBinding("TOPIC", name, "LITERAL", other, value, "DENY", "READ")},
        users={(name, "SCRAM-SHA-512"): 4096},
        quotas={(("client-id", other), ("user", name)): {"producer_byte_rate": 0.1}},
    )
    again = read(written(state))
    assert (again.topics[name].name, set(again.topics[name].configs)) == (name, {"retention.ms", "x"})
    assert again.topics[name].configs["retention.ms"].text == value
    assert (again.acls, again.users, again.quotas) == (state.acls, state.users, state.quotas)
    assert set(again.configs) == {("GROUP", other)}


@pytest.mark.parametrize(
    "text",
    [
        "1e5",
        "1E5",
        "12e03",
        "089",
        "-0",
        "+.5e1",
        ".5",
        "1.",
        "0o17",
        "0x1F",
        "0b1",
        "1_0",
        "-.inf",
        ".NaN",
        "y",
        "N",
    ],
)
def test_what_a_reader_of_yaml_may_take_for_a_number_is_quoted(text: str) -> None:
    """By YAML 1.1 or 1.2, or by go-yaml: as a value, as a name, and as a key."""
    state = DesiredState(
        topics={text: TopicState(text, 1, 1, {"retention.ms": ConfigValue(text)})},
        quotas={(("user", text),): {text: 1e16}},
    )
    lines = [line.strip() for line in written(state).splitlines()]
    assert {f"- name: '{text}'", f"retention.ms: '{text}'", f"user: '{text}'"} <= {
        line.removeprefix("- entity:").strip() for line in lines
    }
    assert f"'{text}': 1.0e+16" in lines


@pytest.mark.parametrize("text", ["1e", "10.0.0.1", "e5", "0xg", "1h", "inf", "nan", "yes1", "User:1", "1-2"])
def test_what_is_text_to_every_reader_is_plain(text: str) -> None:
    state = DesiredState(topics={"t": TopicState("t", 1, 1, {"retention.ms": ConfigValue(text)})})
    assert f"    retention.ms: {text}" in written(state).splitlines()


@unhurried
@given(lives)
def test_a_lake_gives_the_same_yaml(records: list[Row]) -> None:
    """Its rows hold no secrets, and values that were judged when they were read."""
    image, of_rows = replay(records), Image()
    for kind in KINDS:
        for _, value in image.tables.items(kind):
            of_rows.tables.put(change_of(kind, BY_NAME[kind].row(value)))
    assert written(state_in(of_rows)) == written(state_in(image))


def image_of_one_topic(*factors: int) -> Image:
    made = [("TOPIC_RECORD", topic_fields("t", TOPIC_ID))]
    for nth, factor in enumerate(factors):
        brokers = list(range(1, factor + 1))
        fields = partition_fields(TOPIC_ID, nth, replicas=brokers, isr=brokers, directories=[])
        made.append(("PARTITION_RECORD", fields))
    return replay(rows(made))


def test_a_reassignment_counts_with_its_target() -> None:
    image = image_of_one_topic(3)
    (partition,) = image.tables.group("partitions", TOPIC_ID).values()
    image.tables._groups["partitions"][TOPIC_ID,][0] = replace(partition, removing_replicas=(1,))
    (topic,) = state_in(image).topics.values()
    assert (topic.replication_factor, topic.assignment) == (2, ((2, 3),))


def test_a_topic_of_several_replication_factors_is_written_with_its_replicas() -> None:
    text = written(state_in(image_of_one_topic(1, 2)))
    assert "  assignment:\n  - [1]\n  - [1, 2]\n" in text
    assert "replication_factor" not in text
    (found,) = drift(state_in(image_of_one_topic(2, 2)), read(text))
    assert found.words == "topic t: replicas of partition 0 [1, 2], desired [1]"
    (found,) = drift(state_in(image_of_one_topic(1, 2)), read(written(state_in(image_of_one_topic(2, 2)))))
    assert found.words == "topic t: replication factor 1 to 2, desired 2"


@pytest.mark.parametrize("name", ["ssl.key.password", "my.plugin.key"])
def test_a_secret_is_written_as_set_and_never_shown(name: str) -> None:
    value = "hunter2-never-shown"
    config = {"resourceType": 4, "resourceName": "1", "name": name, "value": value}
    state = state_in(replay(rows([("CONFIG_RECORD", config)])))
    text = written(state)
    assert value not in text
    assert list(secrets_of(state)) == [f"BROKER 1: config {name}: its value may be a secret"]
    assert list(drift(state, read(text))) == []
    stated = read(text.replace(f"{name}: null", f"{name}: other-{value}"))
    (found,) = drift(state, stated)
    assert found.words == f"BROKER 1: config {name} [redacted], desired [redacted]"
    assert value not in repr(found)


def test_what_a_lake_does_not_hold_is_not_known() -> None:
    """A lake has [redacted] in the place of a secret."""
    config = {"resourceType": 4, "resourceName": "1", "name": "ssl.key.password", "value": "[redacted]"}
    state = state_in(replay(rows([("CONFIG_RECORD", config)])))
    desired = read(
        "configs:\n- resource_type: BROKER\n  resource_name: 1\n  configs: {ssl.key.password: a-secret}\n"
    )
    (found,) = drift(state, desired)
    assert found.change == NOT_KNOWN
    assert "a-secret" not in repr(found)


def test_tokens_are_left_out() -> None:
    token = {
        "tokenId": "secret-id",
        "owner": "User:a",
        "requester": "User:a",
        "renewers": [],
        "issueTimestamp": 1,
        "maxTimestamp": 2,
        "expirationTimestamp": 2,
    }
    image = replay(rows([("DELEGATION_TOKEN_RECORD", token)]))
    assert list(left_out(image)) == ["1 delegation token: the log does not contain their secrets"]


def test_the_level_of_kraft_version_is_not_in_the_metadata() -> None:
    """It is in control records alone; of a cluster that has level 1, level 0 was said."""
    (found,) = drift(state_in(Image()), DesiredState(features={"kraft.version": 1}))
    assert (found.change, found.actual) == (NOT_KNOWN, None)
