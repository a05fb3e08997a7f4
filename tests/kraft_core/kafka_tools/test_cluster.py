"""The brokers as kafka-cluster list-endpoints prints them: the lines are those of Kafka 4.3.1's tool."""

from __future__ import annotations

from typing import Any

from kraft_core.format.java_text import hash_order_of_ids
from kraft_core.kafka_tools.cluster import describe_cluster
from tests.kraft_core.image.worlds import broker_fields, replay, rows


def lines(*brokers: tuple[int, dict[str, Any]], listener: str | None = None) -> list[str]:
    made = [("REGISTER_BROKER_RECORD", broker_fields(id_, 1, "A" * 22, **how)) for id_, how in brokers]
    return list(describe_cluster(replay(rows(made)), "an-id", listener))


def end(name: str, host: str, port: int) -> dict[str, Any]:
    return {"name": name, "host": host, "port": port, "securityProtocol": 0}


def test_the_widths_of_host_and_rack() -> None:
    one = (1, {"endPoints": [end("A", "h", 2)], "fenced": False, "rack": "r1"})
    two = (2, {"endPoints": [end("A", "hhhh", 3)], "fenced": False})
    assert lines(one, two) == [
        "Cluster ID: an-id",
        "ID         HOST PORT       RACK STATE      ENDPOINT_TYPE  ",
        "1          h    2          r1 unfenced   broker         ",
        "2          hhhh 3          null unfenced   broker         ",
    ]
    two = (2, {"endPoints": [end("A", "127.0.0.1", 29011)]})
    assert lines(two)[1:] == [
        "ID         HOST      PORT       RACK       STATE      ENDPOINT_TYPE  ",
        "2          127.0.0.1 29011      null       fenced     broker         ",
    ]


def test_no_broker() -> None:
    assert lines()[1].startswith("ID         HOST" + 97 * " " + "PORT ")


def test_the_listener_that_is_asked() -> None:
    both = (1, {"endPoints": [end("B", "b", 2), end("A", "a", 1)]})
    other = (2, {"endPoints": [end("A", "other", 1)]})
    assert [line.split()[1] for line in lines(both, other)[2:]] == ["a", "other"]
    assert [line.split()[1] for line in lines(both, other, listener="B")[2:]] == ["b"]


def test_ids_are_in_the_order_of_java() -> None:
    assert hash_order_of_ids([3, 16, 1, 33]) == [16, 1, 33, 3]
    assert hash_order_of_ids(range(20)) == list(range(20))
