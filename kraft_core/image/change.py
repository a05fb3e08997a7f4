"""The effect of one metadata record on the image: a list of changes, or a refusal."""

from __future__ import annotations

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


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why Kafka's replay throws. cause: a constant of refusals; subject: what the record names, as text.

    cause None: not Kafka refuses the record but this image, which does not know or cannot read it.
    by_controllers_only: brokers apply the record all the same (MetadataDelta does not check it).
    """

    cause: str | None
    subject: str
    reason: str
    by_controllers_only: bool = False


class RecordRefusedError(ValueError):
    """A record that Kafka's replay rejects with an exception; it changes nothing."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.reason)
        self.refusal = refusal


@dataclass(frozen=True, slots=True, order=True)
class RefusedRecord:
    """A refused record, and the fields of its Refusal. An image applies it if by_controllers_only."""

    offset: int
    leader_epoch: int
    type: str
    cause: str | None
    subject: str
    reason: str
    by_controllers_only: bool = False

    @classmethod
    def of(cls, offset: int, leader_epoch: int, type: str, why: Refusal) -> RefusedRecord:
        """The record of that place and type, refused for that."""
        return cls(offset, leader_epoch, type, why.cause, why.subject, why.reason, why.by_controllers_only)
