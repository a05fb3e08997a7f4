"""kafka-cluster cluster-id and list-endpoints --include-fenced-brokers (ClusterTool), by an image."""

from __future__ import annotations

from collections.abc import Iterator

from kraft_core.format.java_text import hash_order_of_ids
from kraft_core.image.brokers import Broker
from kraft_core.image.endpoints import EndPoint
from kraft_core.image.image import Image
from kraft_core.image.tables import BROKERS


def describe_cluster(image: Image, cluster_id: str, listener: str | None = None) -> Iterator[str]:
    """The id, and each broker with its endpoint, as the client's HashMap orders them by id.

    listener: that of the brokers which the tool would have asked; None: the first by name. A broker without
    it is not shown.
    """
    yield f"Cluster ID: {cluster_id}"
    brokers: dict[int, Broker] = {key[0]: broker for key, broker in image.tables.items(BROKERS)}
    shown = {id_: end for id_, broker in brokers.items() if (end := _end(broker, listener)) is not None}
    rows = [_row(brokers[id_], shown[id_]) for id_ in hash_order_of_ids(shown)]
    host = max((len(end.host) for end in shown.values()), default=100)
    rack = max((len(brokers[id_].rack or "") for id_ in shown if brokers[id_].rack), default=10)
    for row in [("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE"), *rows]:
        yield f"{row[0]:<10} {row[1]:<{host}} {row[2]:<10} {row[3]:<{rack}} {row[4]:<10} {row[5]:<15}"


def _end(broker: Broker, listener: str | None) -> EndPoint | None:
    return next((end for end in broker.endpoints if listener in (None, end.name)), None)


def _row(broker: Broker, end: EndPoint) -> tuple[str, ...]:
    state = "fenced" if broker.fenced else "unfenced"
    return str(broker.broker_id), end.host, str(end.port), broker.rack or "null", state, "broker"
