"""Why a partition had no leader, a small ISR or no ELR: the records around a moment, and the brokers' events.

A controller appends the changes that a broker's event causes atomically with the event itself
(ReplicationControlManager.handleBrokerFenced and its siblings), so that one batch holds both. Changes without
such an event come from the partition's leader (AlterPartition) or from operators.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from kraft_core.findings.partition_causes import (
    cause_of,
    change_words,
    id_list,
    trouble_words,
    why_leaderless,
)
from kraft_core.image.broker_events import broker_event_words
from kraft_core.image.effective_configs import min_isr
from kraft_core.image.events import Event
from kraft_core.image.image import Image
from kraft_core.image.partitions import Partition
from kraft_core.image.tables import BROKERS, PARTITIONS

# Events of brokers so long before a trouble belong to it, ms.
LOOK_BACK_MS = 60_000


@dataclass(frozen=True, slots=True)
class StoryLine:
    """One change. subject: partition, or broker N. cause: None where the change is a broker's.

    effective_at: ms. is_exact: False where only a checkpoint shows it: it happened at or before.
    """

    offset: int
    effective_at: int
    record_type: str
    is_exact: bool
    subject: str
    change: str
    cause: str | None


@dataclass(frozen=True, slots=True)
class PartitionStory:
    """A partition at an offset (inclusive), and its trouble then: it lacked a leader or replicas in sync.

    min_isr: None where no log shows it. trouble: in words, None where it had none; then first_offset to
    end_offset (exclusive; None: it continues) is that of the last trouble before, if there was one.
    first_at, end_at: ms.
    """

    topic_name: str
    topic_id: str
    partition_id: int
    offset: int
    leader: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    eligible_leader_replicas: tuple[int, ...]
    min_isr: int | None
    trouble: str | None
    first_offset: int | None
    first_at: int | None
    end_offset: int | None
    end_at: int | None
    words: tuple[str, ...]
    lines: tuple[StoryLine, ...]


@dataclass(frozen=True, slots=True)
class _Trouble:
    """Versions of a partition that were not whole: from the first to before `end`."""

    versions: tuple[Event, ...]
    end: Event | None

    @property
    def first(self) -> Event:
        return self.versions[0]


def partition_story(
    image: Image, offset: int, topic_id: str, partition_id: int, found: Iterable[Event]
) -> PartitionStory | None:
    """What happened around an offset (inclusive); None where the image has no such partition.

    image: at that offset; needs the partition, the configs of its topic and of the cluster. found: every
    event of the partition and of the brokers, in the order of the log.
    """
    partition: Partition | None = image.tables.get(PARTITIONS, (topic_id, partition_id))
    if partition is None:
        return None
    every = list(found)
    of_partition = [each for each in every if each.kind == PARTITIONS]
    of_brokers = [each for each in every if each.kind == BROKERS]
    least = min_isr(image, partition.topic_name, partition.leader)
    words = trouble_words(partition, least)
    last = _last_trouble(of_partition, offset)
    lines = tuple(_lines(last, of_brokers)) if last is not None else ()
    unknown = max((e.offset for e in of_partition if not e.is_exact and e.offset <= offset), default=None)
    said = tuple(_sentences(partition, least, words, last, of_brokers, unknown))
    end = None if last is None else last.end
    return PartitionStory(
        partition.topic_name,
        topic_id,
        partition_id,
        offset,
        partition.leader,
        partition.isr,
        partition.replicas,
        partition.eligible_leader_replicas,
        least,
        words,
        None if last is None else last.first.offset,
        None if last is None else last.first.timestamp,
        None if end is None else end.offset,
        None if end is None else end.timestamp,
        said,
        lines,
    )


def _is_whole(partition: Partition | None) -> bool:
    """It has a leader, and all its replicas are in sync. One that was deleted lacks nothing."""
    return partition is None or (partition.leader >= 0 and set(partition.replicas) <= set(partition.isr))


def _last_trouble(events: Sequence[Event], offset: int) -> _Trouble | None:
    """The trouble at the offset, else the last one that began before it."""
    found: _Trouble | None = None
    versions: list[Event] = []
    for event in events:
        if not _is_whole(event.after):
            if not versions and event.offset > offset:
                break
            versions.append(event)
        elif versions:
            found, versions = _Trouble(tuple(versions), event), []
    return _Trouble(tuple(versions), None) if versions else found


def _lines(trouble: _Trouble, of_brokers: Sequence[Event]) -> Iterator[StoryLine]:
    """The changes of the partition, and the events of the brokers that held it, in the order of the log."""
    ended = () if trouble.end is None else (trouble.end,)
    changes = [*trouble.versions, *ended]
    held = {replica for each in changes for replica in _replicas(each)}
    first, last = trouble.first.timestamp - LOOK_BACK_MS, changes[-1].timestamp
    around = [
        each
        for each in of_brokers
        if _broker_id(each) in held and first <= each.timestamp and (not ended or each.timestamp <= last)
    ]
    for event in sorted((*changes, *around), key=lambda each: each.offset):
        if event in changes:
            change, cause = change_words(event.before, event.after), cause_of(event, of_brokers)
            yield _line(event, "partition", change, cause)
        elif words := broker_event_words(event.before, event.after):
            yield _line(event, f"broker {_broker_id(event)}", words, None)


def _line(event: Event, subject: str, change: str, cause: str | None) -> StoryLine:
    return StoryLine(event.offset, event.timestamp, event.record_type, event.is_exact, subject, change, cause)


def _replicas(event: Event) -> set[int]:
    return {replica for each in (event.before, event.after) if each is not None for replica in each.replicas}


def _broker_id(event: Event) -> int:
    return (event.after or event.before).broker_id


def _sentences(
    partition: Partition,
    least: int | None,
    words: str | None,
    trouble: _Trouble | None,
    of_brokers: Sequence[Event],
    unknown: int | None,
) -> Iterator[str]:
    """unknown: the offset of a checkpoint that alone shows what the partition was before."""
    leader = "no leader" if partition.leader < 0 else f"leader {partition.leader}"
    elr = f", ELR {id_list(partition.eligible_leader_replicas)}" if partition.eligible_leader_replicas else ""
    floor = "not in the log" if least is None else str(least)
    if least is not None and least > len(partition.replicas):
        floor += f", in effect {len(partition.replicas)}, the number of replicas"
    yield (
        f"It had {leader}, ISR {id_list(partition.isr)} of replicas {id_list(partition.replicas)}{elr}; "
        f"min.insync.replicas is {floor}."
    )
    if words is not None:
        yield f"So it was {words}."
    elif trouble is None:
        known = "the log shows no earlier problem"
        if unknown is not None:
            known = f"the log shows no problem from offset {unknown} on; of what was before, it shows nothing"
        yield f"It had a leader and all replicas in sync, and {known}."
    else:
        yield "It had a leader and all replicas in sync. The last problem before that:"
    if trouble is None:
        return
    for event in trouble.versions:
        if event.after.leader < 0 and (event.before is None or event.before.leader >= 0):
            yield why_leaderless(event, of_brokers)
    if trouble.end is None:
        yield "The log does not show that it ended."
