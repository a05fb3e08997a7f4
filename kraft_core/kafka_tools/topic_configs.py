"""The configs that kafka-topics --describe shows of a topic: their order, and values as brokers answer them.

A broker shows every config that is not Kafka's default: of the topic, or of the brokers under the synonym
there (ConfigHelper.createTopicConfigEntry, ServerTopicConfigSynonyms, LogConfig).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from kraft_core.format.java_text import hash_bucket, java_double
from kraft_core.image.configs import TOPIC_RESOURCE, Config
from kraft_core.image.effective_configs import BROKER_RESOURCE
from kraft_core.image.image import Image
from kraft_core.image.tables import CONFIGS
from kraft_core.messages.configs import CONFIG_TYPES

# The tool collects all configs of a topic, 33 to 37 by release, in a HashMap of this many buckets.
_BUCKETS = 64
_COMMAS = re.compile(r"\s*,\s*")


class TopicConfig(NamedTuple):
    """synonym: the config of brokers that is the default of all topics, None if there is none."""

    name: str
    synonym: str | None


# Of releases 3.9 to 4.4; in the order in which brokers answer, which decides between configs of one bucket.
TOPIC_CONFIGS = (
    TopicConfig("compression.type", "compression.type"),
    TopicConfig("errors.deadletterqueue.group.enable", None),
    TopicConfig("remote.copy.lag.bytes", "log.remote.copy.lag.bytes"),
    TopicConfig("remote.log.delete.on.disable", None),
    TopicConfig("leader.replication.throttled.replicas", None),
    TopicConfig("remote.storage.enable", None),
    TopicConfig("min.insync.replicas", "min.insync.replicas"),
    TopicConfig("message.downconversion.enable", "log.message.downconversion.enable"),
    TopicConfig("segment.jitter.ms", "log.roll.jitter.ms"),
    TopicConfig("remote.log.copy.disable", None),
    TopicConfig("local.retention.ms", "log.local.retention.ms"),
    TopicConfig("cleanup.policy", "log.cleanup.policy"),
    TopicConfig("flush.ms", "log.flush.interval.ms"),
    TopicConfig("follower.replication.throttled.replicas", None),
    TopicConfig("compression.lz4.level", "compression.lz4.level"),
    TopicConfig("segment.bytes", "log.segment.bytes"),
    TopicConfig("retention.ms", "log.retention.ms"),
    TopicConfig("compression.gzip.level", "compression.gzip.level"),
    TopicConfig("remote.copy.lag.ms", "log.remote.copy.lag.ms"),
    TopicConfig("flush.messages", "log.flush.interval.messages"),
    TopicConfig("compression.zstd.level", "compression.zstd.level"),
    TopicConfig("message.format.version", "log.message.format.version"),
    TopicConfig("max.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"),
    TopicConfig("file.delete.delay.ms", "log.segment.delete.delay.ms"),
    TopicConfig("max.message.bytes", "message.max.bytes"),
    TopicConfig("min.compaction.lag.ms", "log.cleaner.min.compaction.lag.ms"),
    TopicConfig("message.timestamp.type", "log.message.timestamp.type"),
    TopicConfig("local.retention.bytes", "log.local.retention.bytes"),
    TopicConfig("preallocate", "log.preallocate"),
    TopicConfig("index.interval.bytes", "log.index.interval.bytes"),
    TopicConfig("min.cleanable.dirty.ratio", "log.cleaner.min.cleanable.ratio"),
    TopicConfig("unclean.leader.election.enable", "unclean.leader.election.enable"),
    TopicConfig("retention.bytes", "log.retention.bytes"),
    TopicConfig("delete.retention.ms", "log.cleaner.delete.retention.ms"),
    TopicConfig("message.timestamp.after.max.ms", "log.message.timestamp.after.max.ms"),
    TopicConfig("max.decompressed.message.bytes", "max.decompressed.message.bytes"),
    TopicConfig("message.timestamp.before.max.ms", "log.message.timestamp.before.max.ms"),
    TopicConfig("segment.ms", "log.roll.ms"),
    TopicConfig("message.timestamp.difference.max.ms", "log.message.timestamp.difference.max.ms"),
    TopicConfig("segment.index.bytes", "log.index.size.max.bytes"),
)
_SYNONYMS = {config.name: config.synonym for config in TOPIC_CONFIGS}
_PLACES = {config.name: place for place, config in enumerate(TOPIC_CONFIGS)}


def shown_configs(image: Image, topic_name: str, broker_id: int | None) -> list[tuple[str, str]]:
    """The names and values that a broker shows of a topic, in the tool's order, as far as the log shows them.

    broker_id: who answers, None: one without configs of its own. A config that no release defines is null.
    """
    own: Mapping[str, Config] = image.tables.group(CONFIGS, TOPIC_RESOURCE, topic_name)
    found = {config.name: value for config in TOPIC_CONFIGS if (value := _value(image, config, broker_id))}
    found |= {name: config.value for name, config in own.items()}
    names = sorted(found, key=lambda name: (hash_bucket(name, _BUCKETS), _PLACES.get(name, -1)))
    return [(name, _text(name, found[name]) if name in _SYNONYMS else "null") for name in names]


def brokers_with_own_configs(image: Image) -> list[int]:
    """The brokers whose own configs, in the log, are defaults of topics: each shows topics its own way."""
    synonyms = set(_SYNONYMS.values())
    return sorted(
        int(name)
        for (kind, name), configs in image.tables.groups(CONFIGS).items()
        if kind == BROKER_RESOURCE and name.isdecimal() and synonyms & set(configs)
    )


def _value(image: Image, config: TopicConfig, broker_id: int | None) -> str | None:
    """The brokers' value: of the one that answers, else of all."""
    if config.synonym is None:
        return None
    resources = [""] if broker_id is None else [str(broker_id), ""]
    for resource in resources:
        held: Config | None = image.tables.get(CONFIGS, (BROKER_RESOURCE, resource, config.synonym))
        if held is not None:
            return held.value
    return None


def _text(name: str, value: str) -> str:
    """The value parsed and printed again (ConfigDef.parseType, convertToString)."""
    text, type_ = value.strip(), CONFIG_TYPES.get(name)
    if type_ == "list":
        return ",".join(_COMMAS.split(text)) if text else ""
    if type_ == "boolean":
        return text.lower()
    try:
        if type_ in ("int", "long", "short"):
            return str(int(text))
        return java_double(float(text)) if type_ == "double" else text
    except ValueError:
        return text
