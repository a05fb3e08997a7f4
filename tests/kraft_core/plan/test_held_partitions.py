"""What the metadata says of a partition in a log directory of a broker, in every state."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_core.image.change import Change
from kraft_core.image.image import Image
from kraft_core.image.tables import BROKERS
from kraft_core.plan.held_partitions import held_state, topic_ids
from kraft_core.restore.broker_dirs import HeldPartition
from tests.kraft_core.plan.test_broker_start import CLICKS, GONE, ORDERS, A, B, changes

UNKNOWN = "u" * 21 + "A"


@pytest.fixture
def image() -> Image:
    """orders-0 on brokers 7 and 8, orders-1 on 7, both in its directory A; clicks-0 on broker 8."""
    found = Image()
    for change in changes():
        found.tables.put(change)
    return found


def state(
    image: Image,
    name: str = "orders",
    topic_id: str = ORDERS,
    partition_id: int = 0,
    directory_id: str | None = A,
    is_future: bool = False,
    broker_id: int = 7,
) -> str:
    held = HeldPartition(broker_id, topic_id, name, partition_id, -1, is_future)
    return held_state(held, directory_id, image, topic_ids(image))


def test_a_replica_in_its_directory(image: Image) -> None:
    assert state(image) == "assigned"
    assert state(image, directory_id=B) == "other_directory"
    assert state(image, directory_id=B, is_future=True) == "assigned"
    assert state(image, directory_id=UNKNOWN) == "unregistered_directory"
    assert state(image, directory_id=None) == "unregistered_directory"


def test_brokers_before_3_7_register_no_directories(image: Image) -> None:
    broker = image.tables.get(BROKERS, (7,))
    image.tables.put(Change(BROKERS, (7,), replace(broker, log_dirs=())))
    assert state(image, directory_id=None) == state(image, directory_id=B) == "assigned"


def test_what_kafka_makes_stray(image: Image) -> None:
    assert state(image, "clicks", CLICKS) == "stray_replica"
    assert state(image, partition_id=9) == "stray_replica"
    assert state(image, topic_id=GONE) == "other_topic_id"
    assert state(image, "gone", GONE) == "unknown_topic"
    # Also in a directory that is not registered, and as a future copy.
    assert state(image, "gone", GONE, directory_id=UNKNOWN, is_future=True) == "unknown_topic"


def test_a_broker_that_is_not_registered(image: Image) -> None:
    image.tables.put(Change(BROKERS, (7,), None))
    assert state(image) == "unregistered_broker"
    assert state(image, "clicks", CLICKS) == "stray_replica"
