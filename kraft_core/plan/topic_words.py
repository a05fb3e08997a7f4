"""What Kafka answers about a topic, and what the log shows of the brokers, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from shlex import quote

from kraft_core.image.brokers import Broker
from kraft_core.image.tables import BROKERS
from kraft_core.topic_control.controller import ActiveController, is_cordoned
from kraft_core.topic_control.requests import TopicResult
from kraft_core.wording import count, first_named

TOPICS_TOOL = "bin/kafka-topics.sh"
MOST_SHOWN = 10
ALL_PARTITIONS = "all partitions"
_MOST_NAMES = 5


def names_words(names: Sequence[str]) -> str:
    """The first names as a part of a sentence, also an empty one."""
    return first_named([name or "''" for name in names], _MOST_NAMES)


def named(name: str) -> str:
    """A topic as kafka-topics takes it where it changes or shows one: as a regular expression."""
    return quote(name.replace(".", "\\."))


def result_words(result: TopicResult) -> Iterator[str]:
    """The answer about one topic or partition, and its records."""
    if result.is_refused and not result.records:
        text = f": {result.text}" if result.text else ""
        yield f"{result.name}: {result.error.name}{text}"
        return
    said = f"{result.error.name}, and yet" if result.is_refused else "accepted,"
    types = Counter(record.type for record in result.records)
    words = ", ".join(type_ if n == 1 else f"{n:,} {type_}" for type_, n in types.items())
    yield f"{result.name}: {said} {words or 'no record'}"


def placement_words(result: TopicResult, most: int) -> Iterator[str]:
    """Where each partition of a topic goes; at most this many."""
    placed = [record for record in result.records if record.type == "PARTITION_RECORD"]
    for record in placed[:most]:
        value = record.value
        yield (
            f"{result.name}-{value['partitionId']}: replicas {_joined(value['replicas'])}, ISR "
            f"{_joined(value['isr'])}, leader {value['leader']}"
        )
    if len(placed) > most:
        yield f"{result.name}: and {len(placed) - most} more partitions; --format json lists all"


def cluster_words(controller: ActiveController, log_end: int) -> Iterator[str]:
    """The brokers by state and rack, and as of when."""
    brokers: list[Broker] = sorted(
        (broker for _, broker in controller.image.tables.items(BROKERS)), key=lambda b: b.broker_id
    )
    active = [b for b in brokers if b.is_active]
    racks = {b.rack for b in brokers}
    in_racks = "" if racks <= {None} else f" in {count(len(racks), 'rack')}"
    down = [b.broker_id for b in brokers if not b.is_active]
    yield (
        f"active brokers: {_joined(b.broker_id for b in active)}{in_racks}; fenced or shutting down: "
        f"{_joined(down)}"
    )
    cordoned = [b.broker_id for b in brokers if is_cordoned(b)]
    if cordoned:
        yield f"no new replica goes to brokers whose directories are all cordoned: {_joined(cordoned)}"
    yield (
        f"metadata.version {controller.metadata_version}, eligible leader replicas (KIP-966) "
        f"{'on' if controller.elr_enabled else 'off'}, as of offset {log_end}; the user is assumed to "
        "be authorized"
    )


def _joined(ids: Iterable[int]) -> str:
    return ", ".join(map(str, ids)) or "none"
