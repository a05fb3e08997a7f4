"""Values as Kafka's error messages print them: replica keys, and sets in a Java HashSet's order."""

from __future__ import annotations

import base64
from collections.abc import Iterable

from kraft_core.protocol.messages import Endpoints
from kraft_core.raft.voters import ReplicaKey


def replica_key(key: ReplicaKey) -> str:
    return f"ReplicaKey(id={key.id}, directoryId={key.directory_id or '<undefined>'})"


def replica_keys(keys: Iterable[ReplicaKey]) -> str:
    """In the order of the java.util.HashSet of a voter set that was read from its record."""
    return f"[{', '.join(map(replica_key, _in_hash_set_order(keys)))}]"


def endpoints(of: Endpoints) -> str:
    entries = ", ".join(f"ListenerName({end.name})={end.host}/<unresolved>:{end.port}" for end in of)
    return f"Endpoints(endpoints={{{entries}}})"


def _in_hash_set_order(keys: Iterable[ReplicaKey]) -> list[ReplicaKey]:
    """By bucket of the key's hash; within a bucket in the order of the record's map, by bucket of the id."""
    voters = sorted(keys)
    by_id, by_key = _table_size(len(voters), 1), _table_size(len(voters), 16)
    voters.sort(key=lambda key: key.id % by_id)
    return sorted(voters, key=lambda key: (_hash(key) ^ _hash(key) >> 16) % by_key)


def _table_size(count: int, least: int) -> int:
    """A Java hash table made for this many entries: a power of two, doubled if it is over 3/4 full."""
    size = least
    while size < count:
        size *= 2
    return size * 2 if count > size * 3 // 4 else size


def _hash(key: ReplicaKey) -> int:
    """java.util.Objects.hash(id, Optional of Uuid), as an unsigned 32-bit number."""
    directory = 0
    if key.directory_id is not None:
        raw = base64.urlsafe_b64decode(key.directory_id + "==")
        folded = int.from_bytes(raw[:8], "big") ^ int.from_bytes(raw[8:], "big")
        directory = folded >> 32 ^ folded & 0xFFFFFFFF
    return (31 * (31 + key.id) + directory) & 0xFFFFFFFF
