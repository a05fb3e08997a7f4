"""What a controller's own file says, which no log holds: defaults, policies, tiered storage."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

CREATE_POLICY = "create.topic.policy.class.name"
ALTER_POLICY = "alter.config.policy.class.name"
DELETE_ENABLED = "delete.topic.enable"
DEFAULT_PARTITIONS = "num.partitions"
DEFAULT_REPLICATION_FACTOR = "default.replication.factor"
TIERED_STORAGE = "remote.log.storage.system.enable"
MIN_COMPACTION_LAG = "log.cleaner.min.compaction.lag.ms"
DELETE_RETENTION = "log.cleaner.delete.retention.ms"
MAX_COMPACTION_LAG = "log.cleaner.max.compaction.lag.ms"
RETENTION_MS = "log.retention.ms"
RETENTION_BYTES = "log.retention.bytes"
LOCAL_RETENTION_MS = "log.local.retention.ms"
LOCAL_RETENTION_BYTES = "log.local.retention.bytes"
CLEANUP_POLICY = "log.cleanup.policy"
MIN_ISR = "min.insync.replicas"
UNCLEAN_ELECTION = "unclean.leader.election.enable"

# Defaults of KafkaConfig; an empty policy is none.
_DEFAULTS: Mapping[str, str] = {
    CREATE_POLICY: "",
    ALTER_POLICY: "",
    DELETE_ENABLED: "true",
    DEFAULT_PARTITIONS: "1",
    DEFAULT_REPLICATION_FACTOR: "1",
    TIERED_STORAGE: "false",
    MIN_COMPACTION_LAG: "0",
    DELETE_RETENTION: "86400000",
    MAX_COMPACTION_LAG: str((1 << 63) - 1),
    RETENTION_MS: "604800000",
    RETENTION_BYTES: "-1",
    LOCAL_RETENTION_MS: "-2",
    LOCAL_RETENTION_BYTES: "-2",
    CLEANUP_POLICY: "delete",
    MIN_ISR: "1",
    UNCLEAN_ELECTION: "false",
}
_RETENTION = ((RETENTION_MS, 1), ("log.retention.minutes", 60_000), ("log.retention.hours", 3_600_000))


_PROVIDED = re.compile(r"\$\{[^}]*:[^}]*\}")


class ControllerFile:
    """The properties of a controller; Kafka's defaults, each noted in `assumed`, where no file was given.

    dynamic: properties that the log sets for the cluster or this controller, which win over its file: of
    those a file is no proof either.
    """

    def __init__(self, properties: Mapping[str, str] | None, dynamic: Iterable[str] = ()) -> None:
        self._properties = properties
        self._dynamic = frozenset(dynamic)
        self.assumed: dict[str, None] = {}

    @property
    def is_given(self) -> bool:
        return self._properties is not None

    def get(self, name: str) -> str:
        """The value of a property."""
        found = self._properties or {}
        if self._properties is None or name in self._dynamic:
            self.assume(name)
        if name == RETENTION_MS:
            return self._retention_ms(found)
        return found.get(name, _DEFAULTS[name]).strip()

    def assume(self, name: str) -> None:
        self.assumed[name] = None

    def pass_policy(self, name: str) -> None:
        """A policy is asked: its class, if there is one, decides what no log shows."""
        if self.get(name):
            self.assume(name)

    def _retention_ms(self, found: Mapping[str, str]) -> str:
        """Of milliseconds, minutes or hours, the first that is there; below 0 it is -1 (KafkaConfig)."""
        for name, unit in _RETENTION:
            if name in found:
                value = int(found[name]) * unit
                return str(value if value >= 0 else -1)
        return _DEFAULTS[RETENTION_MS]

    def integer(self, name: str) -> int:
        return int(self.get(name))

    def is_on(self, name: str) -> bool:
        return self.get(name).lower() == "true"

    def taken(self) -> tuple[str, ...]:
        """What was assumed since this was asked before."""
        found = tuple(self.assumed)
        self.assumed.clear()
        return found


def wrong_number(properties: Mapping[str, str]) -> str | None:
    """A property whose value is not the number that Kafka reads there."""
    numbers = [name for name, default in _DEFAULTS.items() if default.lstrip("-").isdecimal()]
    for name in (*numbers, *(name for name, _ in _RETENTION)):
        if re.fullmatch(r"-?\d+", properties.get(name, "0")) is None:
            return name
    return None


def provided(properties: Mapping[str, str]) -> str | None:
    """A property whose value is not in the file: Kafka gets it from a config provider (KIP-297)."""
    names = (*_DEFAULTS, *(name for name, _ in _RETENTION))
    return next((name for name in names if _PROVIDED.search(properties.get(name, ""))), None)
