"""What was seen later than what is restored, and what becomes of it: each a loss that has a name.

The newest state seen is the end of the source's log, and the tails that other captures hold beside it. What
Kafka does with each difference was seen with Kafka 4.3.1 (docs/restore.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from kraft_core.image.acls import Acl
from kraft_core.image.brokers import Broker
from kraft_core.image.change import Key
from kraft_core.image.change_text import changed_columns, thing
from kraft_core.image.differences import Difference, differences
from kraft_core.image.image import Image
from kraft_core.image.names import ACL_PERMISSION_TYPES, word
from kraft_core.image.partitions import Partition
from kraft_core.image.tables import (
    ACLS,
    BROKERS,
    CLIENT_QUOTAS,
    CONFIGS,
    CONTROLLERS,
    DELEGATION_TOKENS,
    FEATURES,
    PARTITIONS,
    PRODUCER_IDS,
    SCRAM_USERS,
    TOPICS,
    ZK_MIGRATION,
)

TOPICS_UNKNOWN, TOPICS_RETURN = "topics-unknown", "topics-return"
RIGHTS_RETURN, RIGHTS_MISSING = "rights-return", "rights-missing"
PLACEMENT_RETURNS, SETTINGS_RETURN = "placement-returns", "settings-return"
BROKERS_RETURN = "brokers-return"

BECOMES_STRAY = "unknown again; its messages become stray"

# What the sentence of each loss says of the things that it names.
MEANING = {
    TOPICS_UNKNOWN: "created later; they are unknown again (a stopped broker keeps the messages in "
    "directories "
    "*-stray when it starts, a running one deletes them for good)",
    TOPICS_RETURN: "deleted later; they return without messages",
    RIGHTS_RETURN: "security-relevant: revoked or changed later; they are in force again",
    RIGHTS_MISSING: "granted later; they are missing again",
    PLACEMENT_RETURNS: "replicas or ISRs changed later; the earlier ones return: messages stored elsewhere "
    "are missing, and a broker that lacks acknowledged messages may lead",
    SETTINGS_RETURN: "changed later; the earlier values return",
    BROKERS_RETURN: "registered differently later; the earlier registrations return",
}

# The metadata at the end of a log, and a state from which on it is compared; None: all of it.
Seen = tuple[Image, Image | None]

# New controllers register themselves; producer ids lie above all that were given out.
_WITHOUT_LOSS = frozenset({CONTROLLERS, PRODUCER_IDS})


@dataclass(frozen=True, slots=True)
class Consequence:
    """A thing that is restored otherwise than it was last seen.

    loss: the name under which it must be accepted; change: what becomes of it, in words without secrets.
    """

    loss: str
    kind: str
    thing: str
    change: str


def consequences(restored: Image, seen: Image, since: Image | None) -> Iterator[Consequence]:
    """What differs between what is restored and what was seen.

    since: what is compared is only what has changed between it and `seen`; None for all.
    """
    changed = None if since is None else {(d.kind, d.key) for d in differences(since, seen)}
    whole = {
        d.key[0]
        for d in differences(seen, restored)
        if d.kind == TOPICS and (d.before is None or d.after is None)
    }
    for found in differences(seen, restored):
        is_later = changed is None or (found.kind, found.key) in changed
        if is_later and found.kind not in _WITHOUT_LOSS and not _is_of(found, whole):
            yield from _consequence(found)


def stray(restored: Image, seen: Iterable[Seen]) -> dict[int, set[str]]:
    """By broker the partitions whose directories become `-stray`, or are deleted if the broker runs."""
    found: defaultdict[int, set[str]] = defaultdict(set)
    for image, since in seen:
        partitions: Iterator[tuple[Key, Partition]] = image.tables.items(PARTITIONS)
        for key, partition in partitions:
            if since is not None and since.tables.get(PARTITIONS, key) == partition:
                continue
            kept: Partition | None = restored.tables.get(PARTITIONS, key)
            for broker in partition.replicas:
                if kept is None or broker not in kept.replicas:
                    found[broker].add(f"{partition.topic_name}-{partition.partition_id}")
    return dict(found)


def _is_of(found: Difference, topics: set[str]) -> bool:
    """A partition that comes or goes with its topic."""
    return found.kind == PARTITIONS and found.key[0] in topics


def _consequence(found: Difference) -> Iterator[Consequence]:
    """before: as it was seen last; after: as it is restored."""
    kind, seen, restored = found.kind, found.before, found.after
    named = thing(kind, seen if restored is None else restored)
    if kind == TOPICS:
        named = f"{named} (id {found.key[0]})"
    if kind in (TOPICS, PARTITIONS) and restored is None:
        yield Consequence(TOPICS_UNKNOWN, kind, named, BECOMES_STRAY)
    elif kind in (TOPICS, PARTITIONS) and seen is None:
        yield Consequence(TOPICS_RETURN, kind, named, "returns without messages")
    elif kind == PARTITIONS and seen is not None and restored is not None:
        yield from _of_partition(named, seen, restored)
    elif kind == BROKERS:
        yield from _of_broker(named, seen, restored)
    elif kind in (ACLS, SCRAM_USERS, DELEGATION_TOKENS):
        yield _of_right(named, found)
    elif kind in (CONFIGS, CLIENT_QUOTAS, FEATURES, ZK_MIGRATION, TOPICS):
        yield Consequence(SETTINGS_RETURN, kind, named, _fate(found))
    else:
        raise AssertionError(kind)


def _fate(found: Difference) -> str:
    if found.after is None:
        return "missing again"
    return "there again" if found.before is None else "the earlier value returns"


def _of_right(named: str, found: Difference) -> Consequence:
    """A right that is restored and was not there last, or a DENY that was: access that was taken away."""
    if found.kind == ACLS:
        acl: Acl | None = found.after or found.before
        assert acl is not None
        permission = word(ACL_PERMISSION_TYPES, acl.permission_type)
        named = f"{named} ({permission} {acl.principal})"
        denies = permission == "DENY"
        # A DENY that is missing gives back what it took.
        returns = (found.after is None) == denies or (found.before is not None and found.after is not None)
    else:
        returns = found.after is not None
    change = "the old credential is valid again" if _is_replaced(found) else _fate(found)
    return Consequence(RIGHTS_RETURN if returns else RIGHTS_MISSING, found.kind, named, change)


def _is_replaced(found: Difference) -> bool:
    return found.kind == SCRAM_USERS and found.before is not None and found.after is not None


def _of_partition(named: str, seen: Partition, restored: Partition) -> Iterator[Consequence]:
    """Replicas elsewhere, or an ISR of which a member is not sure to have all acknowledged messages."""
    if set(seen.replicas) != set(restored.replicas):
        change = f"on brokers {list(restored.replicas)} again, not on {list(seen.replicas)}"
        yield Consequence(PLACEMENT_RETURNS, PARTITIONS, named, change)
        return
    sure = seen.isr or seen.eligible_leader_replicas
    if not set(restored.isr or restored.eligible_leader_replicas) <= set(sure):
        change = f"in sync {list(restored.isr)} again, though {list(sure)} was"
        yield Consequence(PLACEMENT_RETURNS, PARTITIONS, named, change)


def _of_broker(named: str, seen: Broker | None, restored: Broker | None) -> Iterator[Consequence]:
    """Fencing does not count: all are fenced. A broker that is not known registers itself."""
    if restored is None:
        return
    if seen is None:
        yield Consequence(BROKERS_RETURN, BROKERS, named, "registered again, though it was removed")
        return
    seen = replace(seen, fenced=restored.fenced, in_controlled_shutdown=restored.in_controlled_shutdown)
    if seen != restored:
        columns = ", ".join(changed_columns(BROKERS, seen, restored))
        yield Consequence(BROKERS_RETURN, BROKERS, named, f"an older registration: {columns}")
