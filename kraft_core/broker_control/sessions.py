"""What the active controller remembers of brokers that no record holds: heartbeats and sessions.

The rules are those of Kafka's BrokerHeartbeatManager and BrokerHeartbeatTracker.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from kraft_core.broker_control.requests import BrokerHeartbeatRequest

NO_OFFSET = -1


class ControlState(Enum):
    """BrokerControlState."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    SHUTDOWN_NOW = "shutdown now"

    @property
    def is_fenced(self) -> bool:
        return self in (ControlState.FENCED, ControlState.SHUTDOWN_NOW)


@dataclass(slots=True)
class Heartbeat:
    """Of one broker. metadata_offset: from its last heartbeat. controlled_shutdown_offset: end of what
    others must have replayed before it goes, NO_OFFSET where it does not shut down.
    """

    fenced: bool
    metadata_offset: int = NO_OFFSET
    controlled_shutdown_offset: int = NO_OFFSET

    @property
    def is_shutting_down(self) -> bool:
        return self.controlled_shutdown_offset >= 0

    @property
    def state(self) -> ControlState:
        if self.is_shutting_down:
            return ControlState.CONTROLLED_SHUTDOWN
        return ControlState.FENCED if self.fenced else ControlState.UNFENCED


class Sessions:
    """Owns the heartbeats by broker id, and when each broker epoch was last heard of, in ms."""

    def __init__(self, timeout_ms: int) -> None:
        self.timeout_ms = timeout_ms
        self.heartbeats: dict[int, Heartbeat] = {}
        self.contacts: dict[tuple[int, int], int] = {}
        self._active: set[int] = set()

    def contact(self, broker_id: int, broker_epoch: int, now: int) -> None:
        self.contacts[broker_id, broker_epoch] = now

    def is_valid(self, broker_id: int, broker_epoch: int, now: int) -> bool:
        at = self.contacts.get((broker_id, broker_epoch))
        return at is not None and not self._is_expired(at, now)

    def take_expired(self, now: int) -> tuple[int, int] | None:
        """A broker id and epoch whose session has ended, which is forgotten; None if none has."""
        for key, at in self.contacts.items():
            if self._is_expired(at, now):
                del self.contacts[key]
                return key
        return None

    def _is_expired(self, at: int, now: int) -> bool:
        return now > at + self.timeout_ms

    def register(self, broker_id: int, *, fenced: bool) -> None:
        """A record says whether it is fenced."""
        known = self.heartbeats.get(broker_id)
        offset = NO_OFFSET
        if known is None:
            self.heartbeats[broker_id] = Heartbeat(fenced)
        elif known.fenced != fenced:
            offset = known.metadata_offset
        self.touch(broker_id, fenced=fenced, metadata_offset=offset)

    def touch(self, broker_id: int, *, fenced: bool, metadata_offset: int) -> None:
        held = self.heartbeats[broker_id]
        held.fenced, held.metadata_offset = fenced, metadata_offset
        if fenced:
            held.controlled_shutdown_offset = NO_OFFSET
        self._put(broker_id, is_active=not fenced and not held.is_shutting_down)

    def fence(self, broker_id: int) -> None:
        held = self.heartbeats.get(broker_id)
        if held is not None:
            held.fenced = True
            self._active.discard(broker_id)

    def shut_down_at(self, broker_id: int, offset: int) -> None:
        """The first record of its controlled shutdown ended at that offset; later ones do not count."""
        held = self.heartbeats[broker_id]
        self._active.discard(broker_id)
        if not held.is_shutting_down:
            held.controlled_shutdown_offset = offset

    def remove(self, broker_id: int) -> None:
        self.heartbeats.pop(broker_id, None)
        self._active.discard(broker_id)

    def _put(self, broker_id: int, *, is_active: bool) -> None:
        (self._active.add if is_active else self._active.discard)(broker_id)

    def next_state(
        self, request: BrokerHeartbeatRequest, registered_at: int, has_leaderships: Callable[[], bool]
    ) -> ControlState:
        """calculateNextBrokerState; registered_at: offset of its registration."""
        held = self.heartbeats[request.broker_id]
        match held.state:
            case ControlState.FENCED:
                if request.want_shut_down:
                    return ControlState.SHUTDOWN_NOW
                caught_up = request.current_metadata_offset >= registered_at
                return ControlState.UNFENCED if caught_up and not request.want_fence else ControlState.FENCED
            case ControlState.UNFENCED:
                if request.want_fence:
                    return ControlState.SHUTDOWN_NOW if request.want_shut_down else ControlState.FENCED
                if not request.want_shut_down:
                    return ControlState.UNFENCED
                return ControlState.CONTROLLED_SHUTDOWN if has_leaderships() else ControlState.SHUTDOWN_NOW
            case _:
                if has_leaderships() or held.controlled_shutdown_offset > self._lowest_active_offset():
                    return ControlState.CONTROLLED_SHUTDOWN
                return ControlState.SHUTDOWN_NOW

    def _lowest_active_offset(self) -> int:
        offsets = (self.heartbeats[broker_id].metadata_offset for broker_id in self._active)
        return min(offsets, default=(1 << 63) - 1)
