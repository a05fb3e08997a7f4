"""What is asked of the active controller about topics, and its answers (KIP-4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kraft_core.protocol.errors import ErrorCode

UNSET = -1
"""A number of partitions or replicas that the controller chooses by its own file."""


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic of CreateTopics. assignments: partition ids with their replicas, as the request lists them."""

    name: str
    partitions: int = UNSET
    replication_factor: int = UNSET
    assignments: tuple[tuple[int, tuple[int, ...]], ...] = ()
    configs: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """A topic of CreatePartitions. count: of all partitions. assignments: the replicas of each new one."""

    name: str
    count: int
    assignments: tuple[tuple[int, ...], ...] | None = None


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """A record that the controller writes: its type and version, and its fields by Kafka's names.

    The id of a new topic is NEW_TOPIC_ID: Kafka draws it.
    """

    type: str
    version: int
    value: Mapping[str, Any] = field(hash=False)


NEW_TOPIC_ID = "<random>"


@dataclass(frozen=True, slots=True)
class TopicResult:
    """The answer about one topic or partition. text: Kafka's, None where it sends none. records: those
    written for it; of a topic whose partitions were refused halfway, too.

    assumed: properties of the controllers' files on which the answer rests, where no file was given.
    """

    name: str
    error: ErrorCode = ErrorCode.NONE
    text: str | None = None
    records: tuple[TopicRecord, ...] = ()
    assumed: tuple[str, ...] = ()

    @property
    def is_refused(self) -> bool:
        return self.error is not ErrorCode.NONE


class TopicRefusedError(Exception):
    """The controller's answer about one topic is an error. text: Kafka's."""

    def __init__(self, error: ErrorCode, text: str | None) -> None:
        super().__init__(text)
        self.error = error
        self.text = text


class RequestRefusedError(Exception):
    """The controller refuses the whole request: no topic of it changes. text: Kafka's, None for none."""

    def __init__(self, error: ErrorCode, text: str | None) -> None:
        super().__init__(text)
        self.error = error
        self.text = text


def within_limit(count: int) -> None:
    """One request writes 10,000 records at most (QuorumController.MAX_RECORDS_PER_USER_OP).

    Raises RequestRefusedError.
    """
    if count > MOST_RECORDS:
        text = "Unable to perform excessively large batch operation."
        raise RequestRefusedError(ErrorCode.POLICY_VIOLATION, text)


MOST_RECORDS = 10_000
