"""The cause of one change of a partition, as far as the log proves it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kraft_core.image.broker_events import broker_event_words
from kraft_core.image.brokers import Broker, is_online
from kraft_core.image.events import Event
from kraft_core.image.names import MIGRATING_DIRECTORY
from kraft_core.image.partitions import NO_LEADER, Partition


def trouble_words(partition: Partition, least: int | None) -> str | None:
    """What a partition lacked, None where it lacked nothing. least: its min.insync.replicas, if known."""
    if partition.leader == NO_LEADER:
        return "without a leader"
    if least is not None and len(partition.isr) < min(least, len(partition.replicas)):
        return "under min.insync.replicas: acks=all failed"
    lacking = [replica for replica in partition.replicas if replica not in partition.isr]
    return f"without {id_list(lacking)} in its ISR" if lacking else None


def change_words(before: Partition | None, after: Partition | None) -> str:
    """What changed: "leader 11 to none, ISR [11, 12] to [12]"."""
    if after is None:
        return "deleted"
    if before is None:
        return f"leader {_leader(after)}, ISR {id_list(after.isr)}, replicas {id_list(after.replicas)}"
    found = [
        f"{name} {id_list(old)} to {id_list(new)}"
        for name, old, new in (
            ("ISR", before.isr, after.isr),
            ("ELR", before.eligible_leader_replicas, after.eligible_leader_replicas),
            ("last known ELR", before.last_known_elr, after.last_known_elr),
            ("replicas", before.replicas, after.replicas),
            ("adding", before.adding_replicas, after.adding_replicas),
            ("removing", before.removing_replicas, after.removing_replicas),
        )
        if old != new
    ]
    if after.leader != before.leader:
        found.insert(0, f"leader {_leader(before)} to {_leader(after)}")
    if after.directories != before.directories and after.replicas == before.replicas:
        found.append("log directories")
    if after.leader_recovery_state != before.leader_recovery_state:
        found.append("leader recovering" if after.leader_recovery_state else "leader recovered")
    return ", ".join(found) or "leader epoch only"


def cause_of(event: Event, of_brokers: Sequence[Event]) -> str | None:
    """Why a partition changed, in words; None for its creation, and where the log does not say it."""
    before, after = event.before, event.after
    if before is None or after is None or not event.is_exact:
        return None
    if event.record_type == "CLEAR_ELR_RECORD":
        return "min.insync.replicas was set: Kafka clears the ELR then"
    together = _together(event, before, after, of_brokers)
    if together:
        return f"appended together with: {'; '.join(together)}"
    if (before.replicas, before.adding_replicas, before.removing_replicas) != (
        after.replicas,
        after.adding_replicas,
        after.removing_replicas,
    ):
        return "a reassignment"
    if not _touched(before, after) <= _known_by(event, of_brokers):
        return None  # it may have been appended with a change of a broker that the log does not show
    offline = _with_offline_directory(event, before, after, of_brokers)
    if offline:
        return f"the log directory of {_named(offline)} was offline"
    if after.leader != before.leader:
        in_sync = {NO_LEADER, *before.in_sync}
        if after.leader not in in_sync:
            return f"an unclean election: {after.leader} was in neither the ISR nor the ELR"
        return "an election without a change of a broker: by an operator, or to the preferred leader"
    left, joined = _without(before.isr, after.isr), _without(after.isr, before.isr)
    if left or joined:
        parts = [f"{_named(left)} fell behind"] if left else []
        parts += [f"{_named(joined)} caught up"] if joined else []
        return f"reported by leader {_leader(after)} (AlterPartition): {', '.join(parts)}"
    return None


def _together(event: Event, before: Partition, after: Partition, of_brokers: Iterable[Event]) -> list[str]:
    """The events, appended at once, of brokers that left or joined the ISR or ELR, or the lead."""
    touched = _touched(before, after)
    return [
        f"broker {(each.after or each.before).broker_id} {words} (offset {each.offset})"
        for each in of_brokers
        if each.is_together_with(event)
        and (each.after or each.before).broker_id in touched
        and (words := broker_event_words(each.before, each.after))
    ]


def _touched(before: Partition, after: Partition) -> set[int]:
    """The brokers that left or joined the ISR or ELR, or the lead."""
    touched = set(before.isr) ^ set(after.isr)
    touched |= set(before.eligible_leader_replicas) ^ set(after.eligible_leader_replicas)
    if after.leader != before.leader:
        touched |= {before.leader, after.leader}
    return touched - {NO_LEADER}


def _with_offline_directory(
    event: Event, before: Partition, after: Partition, of_brokers: Sequence[Event]
) -> list[int]:
    """The replicas that left the ISR or the lead, and whose directory their broker had not online.

    The controller takes them out when the broker assigns a replica to such a directory
    (ReplicationControlManager.handleAssignReplicasToDirs), which no change of the broker accompanies.
    """
    left = set(_without(before.isr, after.isr))
    left |= {before.leader} - {after.leader}
    registered: dict[int, Broker | None] = {
        (each.after or each.before).broker_id: each.after for each in of_brokers if each.offset < event.offset
    }
    found: list[int] = []
    for replica, directory in zip(before.replicas, before.directories, strict=False):
        broker = registered.get(replica)
        if replica in left and broker is not None and not is_online(broker, directory):
            found.append(replica)
    return found


def _known_by(event: Event, of_brokers: Iterable[Event]) -> set[int]:
    """The brokers whose registration before a change is in the log. of_brokers: in the order of the log."""
    first: dict[int, Event] = {}
    for each in of_brokers:
        first.setdefault((each.after or each.before).broker_id, each)
    return {
        broker_id
        for broker_id, each in first.items()
        if each.offset <= event.offset or each.before is not None
    }


def why_leaderless(event: Event, of_brokers: Sequence[Event]) -> str:
    """Of a change that left a partition without a leader: why each replica could not lead."""
    after: Partition = event.after
    if not event.is_exact:
        return f"No leader from offset {event.offset} or before: only a checkpoint shows it, and not why."
    reasons = [f"{replica} {_cannot_lead(replica, after, event, of_brokers)}" for replica in after.replicas]
    before: Partition | None = event.before
    led = "" if before is None else f" leader {before.leader} left, and"
    return f"No leader from offset {event.offset}:{led} no replica could take over: {'; '.join(reasons)}."


def _cannot_lead(replica: int, after: Partition, event: Event, of_brokers: Sequence[Event]) -> str:
    """of_brokers: in the order of the log. What the append of the change itself did to the broker counts."""
    sync = "not in sync"
    if replica in after.isr or replica in after.eligible_leader_replicas:
        sync = "in the ISR" if replica in after.isr else "in the ELR"
    known = [
        each
        for each in of_brokers
        if (each.after or each.before).broker_id == replica
        and (each.offset <= event.offset or each.is_together_with(event))
    ]
    if not known:
        return f"was {sync}, and the log shows no registration of it"
    nth = after.replicas.index(replica)
    directory = after.directories[nth] if nth < len(after.directories) else MIGRATING_DIRECTORY
    state = _state(known[-1].after, directory)
    since = known[-1].offset
    for each in reversed(known):
        if _state(each.after, directory) != state:
            break
        since = each.offset
    return f"was {sync} and {state} (since offset {since})"


def _state(broker: Broker | None, directory: str) -> str:
    """directory: of the replica; the controller elects none whose directory is offline."""
    if broker is None:
        return "unregistered"
    is_without = broker.is_active and not is_online(broker, directory)
    return "active, but its log directory was offline" if is_without else broker.state_words


def _without(these: Iterable[int], those: Iterable[int]) -> list[int]:
    held = set(those)
    return [each for each in these if each not in held]


def _leader(partition: Partition) -> str:
    return "none" if partition.leader == NO_LEADER else str(partition.leader)


def id_list(node_ids: Iterable[int]) -> str:
    """Node ids in brackets, in their order."""
    return f"[{', '.join(map(str, node_ids))}]"


def _named(node_ids: Iterable[int]) -> str:
    return ", ".join(map(str, node_ids))
