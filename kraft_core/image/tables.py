"""The state of an image: every thing of every kind, by key."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from kraft_core.image.change import Change, Key

TOPICS = "topics"
PARTITIONS = "partitions"
BROKERS = "brokers"
CONTROLLERS = "controllers"
CONFIGS = "configs"
ACLS = "acls"
CLIENT_QUOTAS = "client_quotas"
SCRAM_USERS = "scram_users"
DELEGATION_TOKENS = "delegation_tokens"
FEATURES = "features"
PRODUCER_IDS = "producer_ids"
ZK_MIGRATION = "zk_migration"

KINDS = (
    FEATURES,
    ZK_MIGRATION,
    CONTROLLERS,
    BROKERS,
    TOPICS,
    PARTITIONS,
    CONFIGS,
    CLIENT_QUOTAS,
    PRODUCER_IDS,
    ACLS,
    SCRAM_USERS,
    DELEGATION_TOKENS,
)

_EMPTY: Mapping[Any, Any] = MappingProxyType({})


class Tables:
    """Things by kind and key; those whose keys share all but the last element form a group.

    Groups are the partitions of a topic, the configs of a resource, the quotas of an entity, the users of a
    SCRAM mechanism. Values are immutable, so a copy shares them.

    topic_ids: ids by name. Of several topics with one name, which controllers refuse, it is the greatest id:
    a history or a checkpoint that makes the same topics in another order leads to the same.
    """

    def __init__(self) -> None:
        self._groups: dict[str, dict[Key, dict[Any, Any]]] = {kind: {} for kind in KINDS}
        self.topic_ids: dict[str, str] = {}
        # The ids of each name that several topics have.
        self._namesakes: dict[str, set[str]] = {}

    def get(self, kind: str, key: Key) -> Any | None:
        return self._groups[kind].get(key[:-1], _EMPTY).get(key[-1])

    def group(self, kind: str, *prefix: Any) -> Mapping[Any, Any]:
        """The things whose keys begin with `prefix`, by the last element of their keys; a live view."""
        return self._groups[kind].get(prefix, _EMPTY)

    def groups(self, kind: str) -> Mapping[Key, Mapping[Any, Any]]:
        """Every group of a kind by its prefix; none is empty."""
        return self._groups[kind]

    def items(self, kind: str) -> Iterator[tuple[Key, Any]]:
        for prefix, group in self._groups[kind].items():
            for last, value in group.items():
                yield (*prefix, last), value

    def count(self, kind: str) -> int:
        return sum(len(group) for group in self._groups[kind].values())

    def put(self, change: Change) -> None:
        prefix, last = change.key[:-1], change.key[-1]
        groups = self._groups[change.kind]
        group = groups.get(prefix)
        before = None if group is None else group.get(last)
        if change.value is not None:
            if group is None:
                groups[prefix] = {last: change.value}
            else:
                group[last] = change.value
        elif group is not None and before is not None:
            del group[last]
            if not group:
                del groups[prefix]
        if change.kind == TOPICS:
            self._index_topic(before, change.value)

    def _index_topic(self, before: Any | None, after: Any | None) -> None:
        if before is not None:
            self._name(before.name, self._with_name(before.name) - {before.topic_id})
        if after is not None:
            self._name(after.name, self._with_name(after.name) | {after.topic_id})

    def _with_name(self, name: str) -> set[str]:
        held = self.topic_ids.get(name)
        return self._namesakes.get(name) or (set() if held is None else {held})

    def _name(self, name: str, ids: set[str]) -> None:
        """State which topics have a name."""
        if ids:
            self.topic_ids[name] = max(ids)
        else:
            self.topic_ids.pop(name, None)
        if len(ids) > 1:
            self._namesakes[name] = ids
        else:
            self._namesakes.pop(name, None)

    def copy(self) -> "Tables":
        twin = Tables()
        twin._groups = {
            kind: {prefix: dict(group) for prefix, group in groups.items()}
            for kind, groups in self._groups.items()
        }
        twin.topic_ids = dict(self.topic_ids)
        twin._namesakes = dict(self._namesakes)
        return twin

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tables) and self._groups == other._groups

    __hash__ = None  # type: ignore[assignment]
