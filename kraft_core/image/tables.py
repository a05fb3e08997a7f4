"""The state of an image: every thing of every kind, by key."""

from collections.abc import Callable, Iterable, Iterator, Mapping
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
_Groups = dict[Key, dict[Any, Any]]
ReadThings = Callable[[str], Iterable[tuple[Key, Any]]]
"""Reads all things of a kind, each with its key; always the same ones."""


class Tables:
    """Things by kind and key; those whose keys share all but the last element form a group.

    Groups are the partitions of a topic, the configs of a resource, the quotas of an entity, the users of a
    SCRAM mechanism. Values are immutable, so a copy shares them.

    read: where the things of a kind come from when the kind is first asked for; by default there are none.
    """

    def __init__(self, read: ReadThings | None = None) -> None:
        self._read = read
        nothing: dict[str, _Groups] = {kind: {} for kind in KINDS}
        self._groups = nothing if read is None else _Unread(self._read_groups)
        self._topic_ids: dict[str, str] = {}
        # The ids of each name that several topics have.
        self._namesakes: dict[str, set[str]] = {}

    @property
    def topic_ids(self) -> Mapping[str, str]:
        """Ids by name; a live view.

        Of several topics with one name, which controllers refuse, it is the greatest id: a history or a
        checkpoint that makes the same topics in another order leads to the same.
        """
        self.groups(TOPICS)
        return self._topic_ids

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
        held = self._topic_ids.get(name)
        return self._namesakes.get(name) or (set() if held is None else {held})

    def _name(self, name: str, ids: set[str]) -> None:
        """State which topics have a name."""
        if ids:
            self._topic_ids[name] = max(ids)
        else:
            self._topic_ids.pop(name, None)
        if len(ids) > 1:
            self._namesakes[name] = ids
        else:
            self._namesakes.pop(name, None)

    def copy(self) -> "Tables":
        twin = Tables(self._read)
        for kind, groups in self._groups.items():
            twin._groups[kind] = {prefix: dict(group) for prefix, group in groups.items()}
        twin._topic_ids = dict(self._topic_ids)
        twin._namesakes = dict(self._namesakes)
        return twin

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tables) and all(self.groups(kind) == other.groups(kind) for kind in KINDS)

    __hash__ = None  # type: ignore[assignment]

    def _read_groups(self, kind: str) -> _Groups:
        """Read a kind that nobody asked for before."""
        assert self._read is not None, f"{kind} is none of {KINDS}"
        groups: _Groups = {}
        for key, value in self._read(kind):
            prefix = key[:-1]
            group = groups.get(prefix)
            if group is None:
                groups[prefix] = {key[-1]: value}
            else:
                group[key[-1]] = value
        self._groups[kind] = groups
        if kind == TOPICS:
            for group in groups.values():
                for topic in group.values():
                    self._index_topic(None, topic)
        return groups


class _Unread(dict[str, _Groups]):
    """The groups of each kind that was asked for. A dict, as a replay asks for its own millions of times."""

    def __init__(self, read: Callable[[str], _Groups]) -> None:
        super().__init__()
        self._read = read

    def __missing__(self, kind: str) -> _Groups:
        return self._read(kind)
