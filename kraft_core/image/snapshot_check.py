"""Compares a checkpoint with the replay of the log below it; explains what Kafka omits by design."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kraft_core.image.differences import Difference, differences
from kraft_core.image.image import Image
from kraft_core.image.tables import CONFIGS, SCRAM_USERS, ZK_MIGRATION


@dataclass(frozen=True, slots=True)
class Deviation:
    """A difference of a checkpoint (after) from the replay (before).

    by_design: Kafka omits it by design. explanation: the likely cause, "" if unknown.
    """

    difference: Difference
    by_design: bool
    explanation: str


# The configs known to 4.3.1 and later releases: LogConfig, ClientMetricsConfigs, GroupConfig. Broker configs
# are kept, known or not.
_TOPIC, _CLIENT_METRICS, _GROUP = 2, 16, 32
_KNOWN_CONFIGS: dict[int, frozenset[str]] = {
    _TOPIC: frozenset(
        {
            "cleanup.policy",
            "compression.gzip.level",
            "compression.lz4.level",
            "compression.type",
            "compression.zstd.level",
            "delete.retention.ms",
            "file.delete.delay.ms",
            "flush.messages",
            "flush.ms",
            "follower.replication.throttled.replicas",
            "index.interval.bytes",
            "internal.segment.bytes",
            "leader.replication.throttled.replicas",
            "local.retention.bytes",
            "local.retention.ms",
            "max.compaction.lag.ms",
            "max.message.bytes",
            "message.timestamp.after.max.ms",
            "message.timestamp.before.max.ms",
            "message.timestamp.type",
            "min.cleanable.dirty.ratio",
            "min.compaction.lag.ms",
            "min.insync.replicas",
            "preallocate",
            "remote.log.copy.disable",
            "remote.log.delete.on.disable",
            "remote.storage.enable",
            "retention.bytes",
            "retention.ms",
            "segment.bytes",
            "segment.index.bytes",
            "segment.jitter.ms",
            "segment.ms",
            "unclean.leader.election.enable",
        }
    ),
    _CLIENT_METRICS: frozenset({"interval.ms", "match", "metrics"}),
    _GROUP: frozenset(
        {
            "consumer.assignment.interval.ms",
            "consumer.heartbeat.interval.ms",
            "consumer.session.timeout.ms",
            "share.assignment.interval.ms",
            "share.auto.offset.reset",
            "share.delivery.count.limit",
            "share.heartbeat.interval.ms",
            "share.isolation.level",
            "share.partition.max.record.locks",
            "share.record.lock.duration.ms",
            "share.renew.acknowledge.enable",
            "share.session.timeout.ms",
            "streams.assignment.interval.ms",
            "streams.heartbeat.interval.ms",
            "streams.initial.rebalance.delay.ms",
            "streams.num.standby.replicas",
            "streams.session.timeout.ms",
        }
    ),
}


def deviations(replayed: Image, checkpoint: Image) -> Iterator[Deviation]:
    """The differences between a checkpoint and the replay of the log up to its end offset."""
    for difference in differences(replayed, checkpoint):
        by_design, explanation = _judge(difference)
        yield Deviation(difference, by_design, explanation)


def _judge(difference: Difference) -> tuple[bool, str]:
    if difference.before is None and difference.kind == CONFIGS and difference.key[0] == _TOPIC:
        return False, (
            "Kafka keeps the configs of a topic that was configured and removed within one MetadataDelta"
            " (ConfigurationsDelta.replay); a new topic of that name inherits them"
        )
    if difference.after is not None:
        return False, ""
    if difference.kind == ZK_MIGRATION:
        return True, "from release 4.0 on, checkpoints contain no state of the migration from ZooKeeper"
    if difference.kind == CONFIGS:
        resource_type, _, name = difference.key
        if name not in _KNOWN_CONFIGS.get(resource_type, {name}):
            return True, "from release 4.3 on, checkpoints omit configs whose names Kafka does not know"
    if difference.kind == SCRAM_USERS:
        return False, (
            "Kafka loses credentials if one MetadataDelta removes the only other user of their mechanism "
            "(ScramDelta.apply); a replica that restarts reads many records into one delta"
        )
    return False, ""
