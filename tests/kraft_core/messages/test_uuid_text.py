import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kraft_core.messages.uuid_text import ZERO_UUID, random_uuid, uuid_bytes, uuid_text

SIXTEEN = st.binary(min_size=16, max_size=16)


@given(SIXTEEN)
def test_text_and_bytes_say_the_same(sixteen):
    text = uuid_text(sixteen)
    assert len(text) == 22
    assert uuid_bytes(text) == uuid_bytes(text + "==") == sixteen


def test_known_uuids():
    assert uuid_text(bytes(16)) == ZERO_UUID
    # The metadata topic's id (Uuid.METADATA_TOPIC_ID).
    assert uuid_text(uuid.UUID(int=1).bytes) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert uuid_text(b"\xff" * 16) == "_____________________w"
    assert uuid_bytes("-----------------------"[:22]) == bytes.fromhex("fbefbe" * 5 + "fb")


@pytest.mark.parametrize("text", ["", "AAAA", "A" * 21, "A" * 24, "+" * 22, "é" * 22, " " * 22])
def test_other_texts_are_refused(text):
    with pytest.raises(ValueError, match="not a uuid"):
        uuid_bytes(text)


@pytest.mark.parametrize("size", [0, 15, 17])
def test_other_sizes_are_refused(size):
    with pytest.raises(ValueError, match="16 bytes"):
        uuid_text(bytes(size))


def test_new_ids_are_as_kafka_makes_them():
    made = [random_uuid() for _ in range(1000)]
    assert len(set(made)) == 1000
    assert not any(text.startswith("-") for text in made)
    assert {uuid.UUID(bytes=uuid_bytes(text)).version for text in made} == {4}
