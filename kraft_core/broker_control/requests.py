"""What brokers ask of the active controller, and its answers (KIP-631)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kraft_core.protocol.errors import ErrorCode


@dataclass(frozen=True, slots=True)
class BrokerRegistrationRequest:
    """features: lowest and highest supported level, in the order of the request."""

    broker_id: int
    cluster_id: str
    incarnation_id: str
    features: Mapping[str, tuple[int, int]]
    log_dirs: tuple[str, ...] = ()
    rack: str | None = None
    is_migrating_zk_broker: bool = False


@dataclass(frozen=True, slots=True)
class BrokerHeartbeatRequest:
    """current_metadata_offset: the highest that the broker has replayed."""

    broker_id: int
    broker_epoch: int
    current_metadata_offset: int
    want_fence: bool = False
    want_shut_down: bool = False
    offline_log_dirs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BrokerHeartbeatReply:
    """The fields of BrokerHeartbeatResponse, and in_controlled_shutdown (Kafka's BrokerHeartbeatReply)."""

    is_caught_up: bool
    is_fenced: bool
    in_controlled_shutdown: bool
    should_shut_down: bool


@dataclass(frozen=True, slots=True)
class BrokerRecord:
    """A record that the controller writes: its type, and its fields by Kafka's names."""

    type: str
    value: dict[str, Any] = field(hash=False)


class BrokerRefusedError(Exception):
    """The controller's answer is an error. text: Kafka's."""

    def __init__(self, error: ErrorCode, text: str) -> None:
        super().__init__(text)
        self.error = error
        self.text = text
