"""The effect of one metadata record on the image: a list of changes, or a refusal."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

Key = tuple[Any, ...]
"""Identifies a thing of a kind; at least one element, none of them a list."""


class MetadataRecord(Protocol):
    """A decoded record of the log or of a checkpoint.

    timestamp: ms since the epoch; type: as kafka-dump-log names it
    ("TOPIC_RECORD", "LeaderChange"); value: its fields by Kafka's JSON names, None where unreadable.
    """

    @property
    def offset(self) -> int: ...
    @property
    def leader_epoch(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def type(self) -> str: ...
    @property
    def value(self) -> Mapping[str, Any] | None: ...


@dataclass(frozen=True, slots=True)
class Change:
    """The thing `key` of `kind` becomes `value`; None: it is removed."""

    kind: str
    key: Key
    value: Any | None


class RecordRefusedError(ValueError):
    """A record that Kafka's replay rejects with an exception; it changes nothing."""


@dataclass(frozen=True, slots=True)
class RefusedRecord:
    """A record that was not applied, and why."""

    offset: int
    type: str
    reason: str
