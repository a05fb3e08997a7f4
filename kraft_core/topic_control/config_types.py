"""The configs of topics: their types, and the values that Kafka accepts (LogConfig, ConfigDef)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from kraft_core.topic_control.java import double_text, parse_double, parse_integer, trimmed

_COMMA = re.compile(r"[ \t\n\x0b\f\r]*,[ \t\n\x0b\f\r]*")
_REPLICAS = re.compile(r"([0-9]+:[0-9]+)?")
_CODECS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")


class ConfigRefusedError(ValueError):
    """Kafka's ConfigException or InvalidConfigurationException, both INVALID_CONFIG, with its text."""


@dataclass(frozen=True, slots=True)
class TopicConfigType:
    """kind: ConfigDef.Type. check: refuses a parsed value in words, None accepts it."""

    kind: str
    default: Any
    check: Callable[[str, Any], str | None] | None = None

    @property
    def is_list(self) -> bool:
        return self.kind == "LIST"


def _between(low: int, high: int | None = None) -> Callable[[str, Any], str | None]:
    def check(_: str, value: Any) -> str | None:
        if value < low:
            return f"Value must be at least {low}"
        return f"Value must be no more than {high}" if high is not None and value > high else None

    return check


def _one_of(*words: str) -> Callable[[str, Any], str | None]:
    text = f"String must be one of: {', '.join(words)}"
    return lambda _, value: None if value in words else text


def _gzip_level(_: str, value: Any) -> str | None:
    return None if value == -1 or 1 <= value <= 9 else "Value must be between 1 and 9 or equal to -1"


def _throttled(name: str, values: Any) -> str | None:
    stripped = [trimmed(each) for each in values]
    if all(_REPLICAS.fullmatch(each) for each in stripped) or "".join(stripped) == "*":
        return None
    return (
        f"{name} must be the literal '*' or a list of replicas in the following format: "
        "[partitionId]:[brokerId],[partitionId]:[brokerId],..."
    )


def _cleanup(name: str, values: Any) -> str | None:
    for each in values:
        if not each:
            raise ConfigRefusedError(f"Configuration '{name}' values must not be empty.")
        if each not in ("compact", "delete"):
            words = "String must be one of: compact, delete"
            raise ConfigRefusedError(f"Invalid value {each} for configuration {name}: {words}")
    return None


_MAX_LONG = (1 << 63) - 1
_WEEK = 604_800_000
_from_0, _from_1 = _between(0), _between(1)

# In the order in which Kafka validates them.
TOPIC_CONFIGS: Mapping[str, TopicConfigType] = {
    "segment.bytes": TopicConfigType("INT", 1 << 30, _between(1 << 20)),
    "segment.ms": TopicConfigType("LONG", _WEEK, _from_1),
    "segment.jitter.ms": TopicConfigType("LONG", 0, _from_0),
    "segment.index.bytes": TopicConfigType("INT", 10 << 20, _between(4)),
    "flush.messages": TopicConfigType("LONG", _MAX_LONG, _from_1),
    "flush.ms": TopicConfigType("LONG", _MAX_LONG, _from_0),
    "retention.bytes": TopicConfigType("LONG", -1),
    "retention.ms": TopicConfigType("LONG", _WEEK, _between(-1)),
    "max.message.bytes": TopicConfigType("INT", 1_048_588, _from_0),
    "index.interval.bytes": TopicConfigType("INT", 4096, _from_0),
    "delete.retention.ms": TopicConfigType("LONG", 86_400_000, _from_0),
    "min.compaction.lag.ms": TopicConfigType("LONG", 0, _from_0),
    "max.compaction.lag.ms": TopicConfigType("LONG", _MAX_LONG, _from_1),
    "file.delete.delay.ms": TopicConfigType("LONG", 60_000, _from_0),
    "min.cleanable.dirty.ratio": TopicConfigType("DOUBLE", 0.5, _between(0, 1)),
    "cleanup.policy": TopicConfigType("LIST", ("delete",), _cleanup),
    "unclean.leader.election.enable": TopicConfigType("BOOLEAN", False),
    "min.insync.replicas": TopicConfigType("INT", 1, _from_1),
    "compression.type": TopicConfigType("STRING", "producer", _one_of(*_CODECS)),
    "compression.gzip.level": TopicConfigType("INT", -1, _gzip_level),
    "compression.lz4.level": TopicConfigType("INT", 9, _between(1, 17)),
    "compression.zstd.level": TopicConfigType("INT", 3, _between(-131_072, 22)),
    "preallocate": TopicConfigType("BOOLEAN", False),
    "message.timestamp.type": TopicConfigType("STRING", "CreateTime", _one_of("CreateTime", "LogAppendTime")),
    "message.timestamp.before.max.ms": TopicConfigType("LONG", _MAX_LONG, _from_0),
    "message.timestamp.after.max.ms": TopicConfigType("LONG", 3_600_000, _from_0),
    "leader.replication.throttled.replicas": TopicConfigType("LIST", (), _throttled),
    "follower.replication.throttled.replicas": TopicConfigType("LIST", (), _throttled),
    "remote.storage.enable": TopicConfigType("BOOLEAN", False),
    "local.retention.ms": TopicConfigType("LONG", -2, _between(-2)),
    "local.retention.bytes": TopicConfigType("LONG", -2, _between(-2)),
    "remote.log.copy.disable": TopicConfigType("BOOLEAN", False),
    "remote.log.delete.on.disable": TopicConfigType("BOOLEAN", False),
    "internal.segment.bytes": TopicConfigType("INT", None),
}


def parsed(name: str, text: str) -> Any:
    """The value of a topic's config. Raises ConfigRefusedError."""
    config = TOPIC_CONFIGS[name]
    value = _value(name, config.kind, text)
    if name == "cleanup.policy":
        value = tuple(dict.fromkeys(value))
    objection = None if config.check is None else config.check(name, value)
    if objection is not None:
        raise ConfigRefusedError(f"Invalid value {_shown(value)} for configuration {name}: {objection}")
    return value


def _value(name: str, kind: str, text: str) -> Any:
    bare = trimmed(text)
    match kind:
        case "BOOLEAN":
            if bare.upper() not in ("TRUE", "FALSE"):
                words = "Expected value to be either true or false"
                raise ConfigRefusedError(f"Invalid value {text} for configuration {name}: {words}")
            return bare.upper() == "TRUE"
        case "LIST":
            return tuple(_COMMA.split(bare)) if bare else ()
        case "STRING":
            return bare
        case "DOUBLE":
            number: float | int | None = parse_double(bare)
        case _:
            number = parse_integer(bare, 32 if kind == "INT" else 64)
    if number is None:
        raise ConfigRefusedError(
            f"Invalid value {text} for configuration {name}: Not a number of type {kind}"
        )
    return number


def _shown(value: Any) -> str:
    """String.valueOf."""
    if isinstance(value, float):
        return double_text(value)
    return f"[{', '.join(cast(tuple[str, ...], value))}]" if isinstance(value, tuple) else str(value)


def unknown_name(names: Iterable[str]) -> str | None:
    """The first name that no config of a topic has."""
    return next((name for name in names if name not in TOPIC_CONFIGS), None)
