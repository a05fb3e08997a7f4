"""Requests and responses as bytes, and that no request can carry an id."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_core.format.codec import read_message, write_message
from kraft_core.messages.schema import Field
from kraft_core.messages.uuid_text import ZERO_UUID
from kraft_core.raft.epochs import EpochEnd
from kraft_core.wire.apis import FETCH, FETCH_SNAPSHOT, SASL_HANDSHAKE
from kraft_core.wire.errors import RefusedError, WireError
from kraft_core.wire.frames import Request, frame_length, request_frame, response_body
from kraft_core.wire.observing import FetchAsk, SnapshotAsk, fetch_answer, snapshot_answer
from tests.kraft_core.strategies import values
from tests.kraft_core.wire.simulated import APIS

VERSIONS = [(api, version) for api in APIS for version in api.versions]
offsets = st.integers(0, (1 << 63) - 1)
epochs = st.integers(0, (1 << 31) - 1)
cluster_ids = st.none() | st.text("abcXYZ019_-", min_size=1, max_size=22)
fetches = st.builds(FetchAsk, epochs, offsets, epochs, st.integers(-1, 1 << 40), st.integers(0, 500))
snapshots = st.builds(SnapshotAsk, epochs, st.builds(EpochEnd, offsets, epochs), offsets)


def assert_comes_back(api: Any, version: int, data: st.DataObject) -> None:
    for message in (api.request, api.response):
        value = data.draw(values(message, version))
        content = write_message(message, version, value)
        assert read_message(message, version, content) == (value, len(content))


every_version = pytest.mark.parametrize(
    ("api", "version"), VERSIONS, ids=lambda each: getattr(each, "name", each)
)


@every_version
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_every_message_comes_back_from_its_bytes(api: Any, version: int, data: st.DataObject) -> None:
    assert_comes_back(api, version, data)


@pytest.mark.long
@every_version
@given(data=st.data())
def test_many_messages_come_back(api: Any, version: int, data: st.DataObject) -> None:
    assert_comes_back(api, version, data)


def ids(fields: tuple[Field, ...], body: dict[str, Any]) -> list[Any]:
    """The values of every field of a request that could name its sender."""
    found: list[Any] = []
    for field in fields:
        inner = body.get(field.name)
        if field.type == "struct":
            for each in inner if isinstance(inner, list) else [inner]:
                found += ids(field.fields, each or {})
        elif field.name in ("replicaId", "replicaEpoch", "replicaDirectoryId"):
            found.append(inner)
    return found


@given(ask=fetches, version=st.sampled_from(list(FETCH.versions)), cluster_id=cluster_ids)
def test_no_fetch_names_its_sender(ask: FetchAsk, version: int, cluster_id: str | None) -> None:
    content = write_message(FETCH.request, version, ask.body(version, cluster_id))
    body, _ = read_message(FETCH.request, version, content)
    assert ids(FETCH.request.fields, body) == [-1, -1, ZERO_UUID]
    assert body["topics"][0]["partitions"][0]["fetchOffset"] == ask.fetch_offset


@given(ask=snapshots, cluster_id=cluster_ids)
def test_no_fetch_of_a_snapshot_names_its_sender(ask: SnapshotAsk, cluster_id: str | None) -> None:
    content = write_message(FETCH_SNAPSHOT.request, 1, ask.body(cluster_id))
    body, _ = read_message(FETCH_SNAPSHOT.request, 1, content)
    assert ids(FETCH_SNAPSHOT.request.fields, body) == [-1, ZERO_UUID]


def test_only_these_requests_could_name_a_sender() -> None:
    """The other requests have no field for an id."""
    named = {api.name: ids(api.request.fields, api.request.default(api.versions.low)) for api in APIS}
    assert {name for name, found in named.items() if found} == {"Fetch", "FetchSnapshot"}


def test_a_frame_as_kafka_reads_it() -> None:
    """SaslHandshake 1: length, key, version, correlation id, client id, mechanism."""
    frame = request_frame(Request(SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"}), 7, "me")
    assert frame.hex() == "00000013001100010000000700026d650005504c41494e"
    answer = bytes.fromhex("000000070021000000020003414243000144")
    assert response_body(Request(SASL_HANDSHAKE, 1, {}), 7, answer) == {
        "errorCode": 33,
        "mechanisms": ["ABC", "D"],
    }


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("00000008000000000000", "another request"),
        ("000000070000", "cannot be read"),
        ("0000000700000000000000", "1 bytes too many"),
        ("000000070000ffffffff", "cannot be read"),
        ("000000", "another request"),
    ],
)
def test_an_answer_that_does_not_fit(answer: str, said: str) -> None:
    with pytest.raises(WireError, match=said):
        response_body(Request(SASL_HANDSHAKE, 1, {}), 7, bytes.fromhex(answer))


@pytest.mark.parametrize(
    ("prefix", "said"),
    [(b"HTTP", "does not look like"), (b"\x15\x03\x03\x00", "TLS"), (b"\0\0\0\0", "look like")],
)
def test_what_is_no_frame(prefix: bytes, said: str) -> None:
    with pytest.raises(WireError, match=said):
        frame_length(prefix)


@pytest.mark.parametrize(
    ("code", "error", "said"),
    [
        (31, RefusedError, "ClusterAction"),
        (104, RefusedError, "another cluster"),
        (7, WireError, "REQUEST_TIMED_OUT"),
        (999, WireError, "error 999"),
    ],
)
def test_errors_of_whole_answers(code: int, error: type[WireError], said: str) -> None:
    for read in (fetch_answer, snapshot_answer):
        with pytest.raises(error, match=said) as raised:
            read({"errorCode": code, "responses": [], "topics": [], "nodeEndpoints": []})
        assert type(raised.value) is error


def test_a_snapshot_error_says_nothing() -> None:
    assert snapshot_answer({"errorCode": -1, "topics": []}).error == -1
