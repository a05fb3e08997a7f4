"""The next unassigned producer id (ProducerIdsDelta)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from kraft_core.image.change import Change, Refusal
from kraft_core.image.refusals import PRODUCER_IDS_FALL
from kraft_core.image.tables import PRODUCER_IDS, Tables

_THE_ONE = ("nextProducerId",)


@dataclass(frozen=True, slots=True)
class ProducerIds:
    """broker_id, broker_epoch: of the broker that received the last block; -1 in a snapshot."""

    next_producer_id: int
    broker_id: int = field(compare=False)
    broker_epoch: int = field(compare=False)


def hand_out(_: Tables, value: Mapping[str, Any]) -> Iterator[Change]:
    """PRODUCER_IDS_RECORD."""
    ids = ProducerIds(value["nextProducerId"], value["brokerId"], value["brokerEpoch"])
    yield Change(PRODUCER_IDS, _THE_ONE, ids)


def rises(tables: Tables, value: Mapping[str, Any]) -> Refusal | None:
    """A controller refuses a next id that is not above the current one (ProducerIdControlManager)."""
    ids: ProducerIds | None = tables.get(PRODUCER_IDS, _THE_ONE)
    if ids is None or value["nextProducerId"] > ids.next_producer_id:
        return None
    reason = f"next producer id {value['nextProducerId']} is not above {ids.next_producer_id}"
    return Refusal(PRODUCER_IDS_FALL, "producer ids", reason, by_controllers_only=True)


def row(ids: ProducerIds) -> dict[str, Any]:
    return {
        "next_producer_id": ids.next_producer_id,
        "broker_id": ids.broker_id,
        "broker_epoch": ids.broker_epoch,
    }


def to_record(ids: ProducerIds) -> tuple[str, dict[str, Any]]:
    return "PRODUCER_IDS_RECORD", {
        "brokerId": ids.broker_id,
        "brokerEpoch": ids.broker_epoch,
        "nextProducerId": ids.next_producer_id,
    }


RULES = {"PRODUCER_IDS_RECORD": hand_out}
CONTROLLER_CHECKS = {"PRODUCER_IDS_RECORD": rises}
