"""What a restored log must lie above, so that nothing from before the loss is taken for newer than it.

Old controllers that come back fetch the new snapshot and drop their logs only if both its end and its epoch
lie above theirs; brokers keep their data only if partition epochs do not go back; a producer id given out
twice makes brokers answer a new record with an old offset. All this was seen with Kafka 4.3.1. What was not
captured may have gone on meanwhile: the margins are for that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kraft_core.evidence.facts import Capture, SnapshotFacts
from kraft_core.image.producer_ids import ProducerIds
from kraft_core.image.tables import PRODUCER_IDS
from kraft_core.restore.broker_dirs import HeldPartition
from kraft_core.restore.replay import PartitionEpochs, PartitionKey, ReplayedLog

OFFSET_MARGIN = 10_000_000
EPOCH_MARGIN = 1_000_000
PARTITION_EPOCH_MARGIN = 100_000
PRODUCER_ID_MARGIN = 1_000_000_000
_MAX_INT = (1 << 31) - 1
_MAX_LONG = (1 << 63) - 1


class ExhaustedError(ValueError):
    """There is no number left above the horizon; the message says of what."""


@dataclass(frozen=True, slots=True)
class Horizon:
    """The highest seen anywhere: leader epoch, log end offset (exclusive), next producer id.

    written_at (ms): when the newest batch or checkpoint was written, by the writer's clock. partitions: by
    topic id and partition the highest leader epoch and partition epoch.
    """

    leader_epoch: int
    end_offset: int
    next_producer_id: int
    written_at: int
    partitions: dict[PartitionKey, PartitionEpochs]

    @property
    def new_epoch(self) -> int:
        return _above(self.leader_epoch, EPOCH_MARGIN, _MAX_INT, "leader epoch")

    @property
    def new_end(self) -> int:
        return _above(self.end_offset, OFFSET_MARGIN, _MAX_LONG, "log end offset")

    @property
    def new_producer_id(self) -> int:
        return _above(self.next_producer_id, PRODUCER_ID_MARGIN, _MAX_LONG, "producer id")

    def new_time(self, made_at: int) -> int:
        """made_at (ms), unless a clock of the captured quorum was ahead of it."""
        return max(made_at, self.written_at)

    def new_partition_epochs(self, key: PartitionKey) -> tuple[int, int]:
        """A leader epoch and a partition epoch above all that were seen of the partition."""
        leader_epoch, partition_epoch = self.partitions[key]
        return (
            _above(leader_epoch, PARTITION_EPOCH_MARGIN, _MAX_INT, "leader epoch of a partition"),
            _above(partition_epoch, PARTITION_EPOCH_MARGIN, _MAX_INT, "partition epoch"),
        )


def horizon_of(
    captures: Iterable[Capture],
    snapshots: Iterable[SnapshotFacts],
    logs: Iterable[ReplayedLog],
    held: Iterable[HeldPartition] = (),
) -> Horizon:
    """The horizon of all captured files. logs: all that were captured; held: partitions of brokers."""
    captures, snapshots = list(captures), list(snapshots)
    epochs = [epoch for c in captures for epoch in _epochs(c)] + [s.leader_epoch for s in snapshots]
    ends = [end for c in captures for end in _ends(c)] + [s.end_offset for s in snapshots]
    partitions: dict[PartitionKey, PartitionEpochs] = {}
    producer_ids = [0]
    for log in logs:
        for key, found in log.partitions_seen.items():
            known = partitions.get(key, found)
            partitions[key] = max(known[0], found[0]), max(known[1], found[1])
        given: Iterator[ProducerIds] = (ids for _, ids in log.image.tables.items(PRODUCER_IDS))
        producer_ids += [ids.next_producer_id for ids in given]
    for each in held:
        leader_epoch, partition_epoch = partitions.get(each.key, (-1, -1))
        partitions[each.key] = max(leader_epoch, each.leader_epoch), partition_epoch
    times = [epoch_range.last_appended_at for c in captures for epoch_range in c.epoch_ranges]
    times += [s.header_timestamp for s in snapshots if s.header_timestamp is not None]
    return Horizon(
        leader_epoch=max(epochs, default=0),
        end_offset=max(ends, default=0),
        next_producer_id=max(producer_ids),
        written_at=max(times, default=0),
        partitions=partitions,
    )


def _epochs(capture: Capture) -> Iterator[int]:
    yield from (epoch_range.leader_epoch for epoch_range in capture.epoch_ranges)
    yield from (epoch for epoch, _ in capture.leader_epoch_checkpoint or ())
    if capture.quorum_state_epoch is not None:
        yield capture.quorum_state_epoch


def _ends(capture: Capture) -> Iterator[int]:
    yield from (epoch_range.end_offset for epoch_range in capture.epoch_ranges)
    yield from (start for _, start in capture.leader_epoch_checkpoint or ())
    if capture.log_end_offset is not None:
        yield capture.log_end_offset


def _above(seen: int, margin: int, most: int, what: str) -> int:
    if seen + margin > most:
        raise ExhaustedError(f"the {what} {seen} leaves no room for a margin of {margin}")
    return seen + margin
