"""kafka-cluster cluster-id and list-endpoints --include-fenced-brokers (ClusterTool), by an image."""

from __future__ import annotations

from collections.abc import Iterator

from kraft_core.image.brokers import Broker
from kraft_core.image.image import Image
from kraft_core.image.tables import BROKERS


def describe_cluster(image: Image, cluster_id: str, listener: str | None = None) -> Iterator[str]:
    """The id, and each broker with its endpoint.

    listener: that of the brokers which the tool would have asked; None: the first by name. A broker without
    it is not shown.
    """
    yield f"Cluster ID: {cluster_id}"
    brokers: list[Broker] = sorted((b for _, b in image.tables.items(BROKERS)), key=lambda b: b.broker_id)
    rows = [row for broker in brokers if (row := _row(broker, listener)) is not None]
    host = max((len(row[1]) for row in rows), default=100)
    rack = max((len(row[3]) if row[3] != _NONE else _RACK for row in rows), default=_RACK)
    for row in [("ID", "HOST", "PORT", "RACK", "STATE", "ENDPOINT_TYPE"), *rows]:
        yield f"{row[0]:<10} {row[1]:<{host}} {row[2]:<10} {row[3]:<{rack}} {row[4]:<10} {row[5]:<15}"


_NONE = "null"
_RACK = 10


def _row(broker: Broker, listener: str | None) -> tuple[str, ...] | None:
    ends = [end for end in broker.endpoints if listener in (None, end.name)]
    if not ends:
        return None
    state = "fenced" if broker.fenced else "unfenced"
    return str(broker.broker_id), ends[0].host, str(ends[0].port), broker.rack or _NONE, state, "broker"
