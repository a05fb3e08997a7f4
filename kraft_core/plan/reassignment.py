"""Where the replicas of a broker go before it is removed, as input of kafka-reassign-partitions (KIP-455)."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kraft_core.image.brokers import Broker
from kraft_core.image.image import Image
from kraft_core.image.partitions import Partition
from kraft_core.image.tables import BROKERS, PARTITIONS


@dataclass(frozen=True, slots=True)
class Reassignment:
    """moves: partitions with their new replicas, in the order of the old ones. stuck: partitions that need
    more brokers than are left.
    """

    moves: tuple[tuple[Partition, tuple[int, ...]], ...]
    stuck: tuple[Partition, ...]

    @property
    def json(self) -> str:
        """The content of --reassignment-json-file."""
        partitions = [
            {"topic": partition.topic_name, "partition": partition.partition_id, "replicas": list(replicas)}
            for partition, replicas in self.moves
        ]
        return json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"))


def move_off(image: Image, broker_id: int, partitions: Iterable[Partition]) -> Reassignment:
    """Replace a broker in these partitions by the active broker with the fewest replicas, in a rack that the
    partition lacks where there is one.
    """
    active = [b for _, b in image.tables.items(BROKERS) if b.broker_id != broker_id and b.is_active]
    load = Counter(replica for _, each in image.tables.items(PARTITIONS) for replica in each.replicas)
    moves: list[tuple[Partition, tuple[int, ...]]] = []
    stuck: list[Partition] = []
    for partition in partitions:
        # A reassignment that is under way is given up or ended: its removed replicas go now.
        kept = [each for each in partition.replicas if each not in partition.removing_replicas]
        if broker_id not in kept:
            moves.append((partition, tuple(kept)))
            continue
        chosen = _choose(active, load, kept, broker_id)
        if chosen is None:
            stuck.append(partition)
            continue
        load[chosen] += 1
        moves.append((partition, tuple(chosen if each == broker_id else each for each in kept)))
    return Reassignment(tuple(moves), tuple(stuck))


def _choose(
    active: Sequence[Broker], load: Counter[int], replicas: Sequence[int], broker_id: int
) -> int | None:
    racks = {b.rack for b in active if b.broker_id in replicas and b.broker_id != broker_id} - {None}
    # A broker whose directories are all cordoned takes no new replica (KIP-1066).
    free = [b for b in active if b.broker_id not in replicas and not _is_cordoned(b)]
    best = min(free, key=lambda b: (b.rack in racks, load[b.broker_id], b.broker_id), default=None)
    return None if best is None else best.broker_id


def _is_cordoned(broker: Broker) -> bool:
    return bool(broker.cordoned_log_dirs) and set(broker.log_dirs) <= set(broker.cordoned_log_dirs or ())


def execute_option(image: Image) -> str:
    """How kafka-reassign-partitions starts a reassignment: while others are in progress, it refuses a plain
    --execute (KIP-455).
    """
    held: Iterable[tuple[object, Partition]] = image.tables.items(PARTITIONS)
    return "--execute --additional" if any(each.is_reassigned for _, each in held) else "--execute"
