"""The topics of a large cluster shared among tasks, and put into buckets, by a digest of their ids."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from transforms.histories.replay_plan import ReplayPlan

# Tasks that share a cluster. Each reads the whole log, which takes a fifth of the time of one that is alone.
MOST_SHARES = 4
_BUCKETS = 1 << 16


@dataclass(frozen=True, slots=True)
class Share:
    """Of some replays, the topics of share `number` of so many; each share reads the whole log.

    events: about how many its topics have.
    """

    plans: Sequence[ReplayPlan]
    events: int
    number: int = 0
    shares: int = 1

    def of(self, events: pa.Table) -> pa.Table:
        """The events of its topics."""
        if self.shares == 1:
            return events
        # By other bits than those that choose a bucket.
        return events.filter(pa.array(_digests(events) // _BUCKETS % self.shares == self.number))


def in_shares(groups: Iterable[Sequence[ReplayPlan]], sizes: Counter[str], cores: int) -> list[Share]:
    """Replays for tasks: a cluster that has much of all rows is shared by several, up to MOST_SHARES.

    groups: a large cluster is one of its own. sizes: the events of each cluster.
    """
    found: list[Share] = []
    total = max(1, sizes.total())
    for plans in groups:
        events = sum(sizes[plan.cluster_id] for plan in plans)
        count = min(MOST_SHARES, max(1, round(events / total * cores))) if len(plans) == 1 else 1
        found += [Share(plans, -(-events // count), number, count) for number in range(count)]
    return found


def bucket_of(events: pa.Table, count: int) -> Any:
    """The bucket of each event, of so many; a topic is in one."""
    return _digests(events) % _BUCKETS % count


def _digests(events: pa.Table) -> Any:
    """A number of 32 bits for the topic of each event."""
    topics = events["topic_id"].combine_chunks().dictionary_encode()
    numbers = np.array(
        [zlib.crc32(topic.encode()) for topic in topics.dictionary.to_pylist()], dtype=np.int64
    )
    return numbers[topics.indices.to_numpy()]
