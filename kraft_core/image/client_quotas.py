"""Client quotas (ClientQuotasDelta, ClientQuotaDelta)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kraft_core.image.change import Change
from kraft_core.image.tables import CLIENT_QUOTAS, Tables

Entity = tuple[tuple[str, str | None], ...]
"""(type, name) sorted by type: "client-id", "ip", "user"; name None: the default entity of that type."""


@dataclass(frozen=True, slots=True)
class ClientQuota:
    entity: Entity
    key: str
    value: float


def set_or_remove(_: Tables, value: Mapping[str, Any]) -> Iterator[Change]:
    """CLIENT_QUOTA_RECORD."""
    named = entity(value["entity"])
    quota = ClientQuota(named, value["key"], value["value"])
    yield Change(CLIENT_QUOTAS, (named, quota.key), None if value["remove"] else quota)


def entity(parts: Sequence[Mapping[str, Any]]) -> Entity:
    """Sorted by type: Kafka keeps the parts in a map, so their order in a record is arbitrary."""
    return tuple(sorted({part["entityType"]: part["entityName"] for part in parts}.items()))


def row(quota: ClientQuota) -> dict[str, Any]:
    parts = [{"entity_type": kind, "entity_name": name} for kind, name in quota.entity]
    return {"entity": parts, "key": quota.key, "value": quota.value}


def to_record(quota: ClientQuota) -> tuple[str, dict[str, Any]]:
    return "CLIENT_QUOTA_RECORD", {
        "entity": [{"entityType": kind, "entityName": name} for kind, name in quota.entity],
        "key": quota.key,
        "value": quota.value,
        "remove": False,
    }


RULES = {"CLIENT_QUOTA_RECORD": set_or_remove}
