"""Side files as no Kafka writes them: each is a fault of its own, never another error."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_core.format.side_files import (
    InvalidSideFileError,
    MetaProperties,
    read_capture_json,
    read_leader_epoch_checkpoint,
    read_meta_properties,
    read_partition_metadata,
    read_properties,
    read_quorum_state,
)

READERS = (
    read_capture_json,
    read_leader_epoch_checkpoint,
    read_meta_properties,
    read_partition_metadata,
    read_quorum_state,
)
STATE = {"data_version": 1, "leaderId": 1, "leaderEpoch": 2, "votedId": -1, "votedDirectoryId": "A" * 22}
LONG = 100_000


@pytest.mark.parametrize("read", READERS)
@pytest.mark.parametrize(
    "text",
    [
        "x" * LONG,
        f"0\n1\n{'x' * LONG}\n",
        f"0\n1\n1 {'x' * LONG}\n",
        f"version=1\ndirectory.id={'x' * LONG}\ntopic_id={'x' * LONG}\n",
        f"version={'x' * LONG}\n",
        json.dumps({"captured_at": "x" * LONG}),
        json.dumps(STATE | {"votedDirectoryId": "x" * LONG}),
    ],
)
def test_a_fault_does_not_quote_a_whole_file(read: Callable[[str], object], text: str) -> None:
    with pytest.raises(InvalidSideFileError) as raised:
        read(text)
    assert len(str(raised.value)) < 400


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("a=1\nb: 2\nc 3\nd\t=\t4\n", {"a": "1", "b": "2", "c": "3", "d": "4"}),
        ("a\\:b=1\\\n  2\n", {"a:b": "12"}),
        ("# c\\\na=1", {"a": "1"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\ \nb=\x85\rc=3", {"a": "1 ", "b": "\x85", "c": "3"}),
        ("\\\n#a=1\n", {}),
    ],
)
def test_properties_are_read_as_java_reads_them(text: str, entries: dict[str, str]) -> None:
    """java.util.Properties answers so, and for 20,000 drawn texts."""
    assert read_properties(text) == entries


def test_a_character_of_two_escaped_units_is_one() -> None:
    assert read_meta_properties("version=1\ncluster.id=\\ud83d\\udca5\n").cluster_id == "\U0001f4a5"


@pytest.mark.parametrize("half", ["\\ud800", "\\udca5", "a\\ud83d", "\\udca5\\ud83d"])
def test_half_of_a_surrogate_pair_is_a_fault(half: str) -> None:
    with pytest.raises(InvalidSideFileError, match="half of a surrogate pair"):
        read_meta_properties(f"version=1\ncluster.id={half}\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the file is empty"),
        ("\n", "the file is empty"),
        ("x\n1\n1 0\n", "its version is 'x', not 0"),
        ("1\n1\n1 0\n", "its version is '1', not 0"),
        ("0\n", "it ends before the number of entries: the file is incomplete"),
        ("0\nx\n1 0\n", "the number of entries is 'x'"),
        ("0\n-1\n", "the number of entries is '-1'"),
        ("0\n1\n", "the header states 1 entry, the file has none"),
        ("0\n3\n1 0\n", "the header states 3 entries, the file has 1"),
        ("0\n1\n1 0\n2 5\n", "the header states 1 entry, the file has 2"),
        ("0\n2\n1 0\n2 5", "the last entry '2 5' has no line end: it may be cut"),
        ("0\n2\n1 0\n2", "entry 2 of 2 is '2', not an epoch and an offset: the file is incomplete"),
        ("0\n1\n1 -4\n", "entry 1 of 1 is '1 -4': neither is negative"),
        ("0\n1\n-1 4\n", "entry 1 of 1 is '-1 4': neither is negative"),
    ],
)
def test_what_is_wrong_with_a_leader_epoch_checkpoint(text: str, words: str) -> None:
    with pytest.raises(InvalidSideFileError) as raised:
        read_leader_epoch_checkpoint(text)
    assert str(raised.value) == words


@pytest.mark.parametrize("number", [1 << 31, -(1 << 31) - 1, 1 << 63, 10**18])
def test_a_number_that_kafka_cannot_hold_is_a_fault(number: int) -> None:
    with pytest.raises(InvalidSideFileError):
        read_meta_properties(f"version=1\ncluster.id=c\nnode.id={number}\n")
    for name in ("leaderId", "leaderEpoch", "votedId"):
        with pytest.raises(InvalidSideFileError, match=f"{name} .* does not fit in 32 bits"):
            read_quorum_state(json.dumps(STATE | {name: number}))
    with pytest.raises(InvalidSideFileError, match=r"epoch .* does not fit in 32 bits"):
        read_leader_epoch_checkpoint(f"0\n1\n{number} 0\n")


def test_an_offset_beyond_64_bits_is_a_fault() -> None:
    assert read_leader_epoch_checkpoint(f"0\n1\n1 {(1 << 63) - 1}\n") == ((1, (1 << 63) - 1),)
    with pytest.raises(InvalidSideFileError, match=r"offset .* does not fit in 64 bits"):
        read_leader_epoch_checkpoint(f"0\n1\n1 {1 << 63}\n")


@given(st.text() | st.from_regex(r"(version=[01]\n)?((cluster|node|broker)\.id=\S*\n?)*"))
def test_any_text_is_read_or_a_fault(text: str) -> None:
    """Whatever is read can be written as UTF-8, as tables are."""
    for read in READERS:
        try:
            held = read(text)
        except InvalidSideFileError:
            continue
        if isinstance(held, MetaProperties):
            (held.cluster_id or "").encode()


NAMES = st.sampled_from([*STATE, "voterId", "currentVoters", "appliedOffset", "captured_at"])
SCALARS = st.none() | st.booleans() | st.integers() | st.text()


@given(st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(NAMES, inner)))
def test_any_json_is_read_or_a_fault(value: object) -> None:
    for read in (read_quorum_state, read_capture_json):
        for given_value in (value, STATE | value if isinstance(value, dict) else [value]):
            with suppress(InvalidSideFileError):
                read(json.dumps(given_value))
