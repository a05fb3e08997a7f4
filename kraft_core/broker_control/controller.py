"""The active controller's side of a broker's life: registration, heartbeats, fencing, removal (KIP-631).

The rules are those of Kafka's ClusterControlManager and of the requests in ReplicationControlManager, from
metadata.version 3.7-IV2 on. What these events do to partitions is kraft_core.plan.broker_loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from kraft_core.broker_control.requests import (
    BrokerHeartbeatReply,
    BrokerHeartbeatRequest,
    BrokerRecord,
    BrokerRefusedError,
    BrokerRegistrationRequest,
)
from kraft_core.broker_control.sessions import ControlState, Sessions
from kraft_core.image import brokers
from kraft_core.image.brokers import Broker
from kraft_core.image.names import LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from kraft_core.image.tables import BROKERS, Tables
from kraft_core.messages.releases import METADATA_VERSION
from kraft_core.protocol.errors import ErrorCode

REGISTER = "REGISTER_BROKER_RECORD"
CHANGE = "BROKER_REGISTRATION_CHANGE_RECORD"
UNREGISTER = "UNREGISTER_BROKER_RECORD"
_FENCE, _UNFENCE, _SHUTS_DOWN = 1, -1, 1
_RESERVED = (MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY, LOST_DIRECTORY)
_DUPLICATE = (
    "Another broker is registered with that broker id. If the broker was recently restarted this should "
    "self-resolve once the heartbeat manager expires the broker's session."
)


@dataclass(frozen=True, slots=True)
class BrokerAnswer:
    """broker_epoch: of a registration. reply: to a heartbeat. records: to append, then to replay."""

    records: tuple[BrokerRecord, ...] = ()
    broker_epoch: int | None = None
    reply: BrokerHeartbeatReply | None = None


class BrokerControl:
    """Owns the registrations and sessions of an active controller. It writes nothing: append an answer's
    records, then `replay` each. Times are in ms.

    finalized: feature levels in force, metadata.version among them.
    """

    def __init__(self, cluster_id: str, finalized: Mapping[str, int], session_timeout_ms: int) -> None:
        self.cluster_id = cluster_id
        self.finalized = finalized
        self.sessions = Sessions(session_timeout_ms)
        self.tables = Tables()
        self._registered_at: dict[int, int] = {}

    def broker(self, broker_id: int) -> Broker | None:
        return self.tables.get(BROKERS, (broker_id,))

    def register(self, request: BrokerRegistrationRequest, next_offset: int, now: int) -> BrokerAnswer:
        """BrokerRegistration; next_offset becomes the epoch of a new process. Raises BrokerRefusedError."""
        if request.cluster_id != self.cluster_id:
            text = f"Expected cluster ID {self.cluster_id}, but got cluster ID {request.cluster_id}"
            raise BrokerRefusedError(ErrorCode.INCONSISTENT_CLUSTER_ID, text)
        known = self.broker(request.broker_id)
        is_same = known is not None and known.incarnation_id == request.incarnation_id
        lives = known is not None and self.sessions.is_valid(known.broker_id, known.broker_epoch, now)
        if lives and not is_same:
            raise BrokerRefusedError(ErrorCode.DUPLICATE_BROKER_REGISTRATION, _DUPLICATE)
        if request.is_migrating_zk_broker:
            text = "Controller does not support registering ZK brokers."
            raise BrokerRefusedError(ErrorCode.BROKER_ID_NOT_REGISTERED, text)
        self._check_directories(request)
        self._check_features(request)
        if not is_same:
            self.sessions.remove(request.broker_id)
        fenced = known.fenced if is_same and known is not None else True
        epoch = known.broker_epoch if is_same and known is not None else next_offset
        self.sessions.register(request.broker_id, fenced=fenced)
        value = {
            "brokerId": request.broker_id,
            "isMigratingZkBroker": False,
            "incarnationId": request.incarnation_id,
            "brokerEpoch": epoch,
            "endPoints": [],
            "features": [
                {"name": name, "minSupportedVersion": low, "maxSupportedVersion": high}
                for name, (low, high) in request.features.items()
            ],
            "rack": request.rack,
            "fenced": fenced,
            "inControlledShutdown": is_same and known is not None and known.in_controlled_shutdown,
            "logDirs": list(request.log_dirs),
        }
        return BrokerAnswer((BrokerRecord(REGISTER, value),), broker_epoch=epoch)

    def _check_directories(self, request: BrokerRegistrationRequest) -> None:
        if not request.log_dirs:
            raise _invalid("No directories specified in request")
        if any(each in _RESERVED for each in request.log_dirs):
            raise _invalid("Reserved directory ID in request")
        if len(set(request.log_dirs)) < len(request.log_dirs):
            raise _invalid("Duplicate directory ID in request")
        owners = {each: b.broker_id for _, b in self.tables.items(BROKERS) for each in b.log_dirs}
        for each in request.log_dirs:
            owner = owners.get(each, request.broker_id)
            if owner != request.broker_id:
                raise _invalid(f"Broker {owner} is already registered with directory {each}")

    def _check_features(self, request: BrokerRegistrationRequest) -> None:
        for name, (low, high) in request.features.items():
            self._check_feature(name, low, high)
        if METADATA_VERSION not in request.features:
            raise _invalid(f"Request features do not contain '{METADATA_VERSION}'")
        for name, level in self.finalized.items():
            if level and name not in request.features:
                self._check_feature(name, 0, 0)

    def _check_feature(self, name: str, low: int, high: int) -> None:
        level = self.finalized.get(name, 0)
        if not low <= level <= high:
            text = (
                f"Unable to register because the broker does not support finalized version {level} of "
                f"{name}. The broker wants a version between {low} and {high}, inclusive."
            )
            raise BrokerRefusedError(ErrorCode.UNSUPPORTED_VERSION, text)

    def heartbeat(
        self, request: BrokerHeartbeatRequest, now: int, has_leaderships: Callable[[], bool]
    ) -> BrokerAnswer:
        """BrokerHeartbeat; has_leaderships: whether it leads a partition. Raises BrokerRefusedError.

        After its records are appended, pass a reply in_controlled_shutdown to `shutting_down`.
        """
        broker_id = request.broker_id
        self.sessions.contact(broker_id, request.broker_epoch, now)
        broker = self.broker(broker_id)
        if broker is None:
            text = f"Receive a heartbeat from broker {broker_id} before registration"
            raise BrokerRefusedError(ErrorCode.STALE_BROKER_EPOCH, text)
        if broker.broker_epoch != request.broker_epoch:
            text = f"Expected broker epoch {broker.broker_epoch}, but got broker epoch {request.broker_epoch}"
            raise BrokerRefusedError(ErrorCode.STALE_BROKER_EPOCH, text)
        registered_at = self._registered_at[broker_id]
        state = self.sessions.heartbeats[broker_id].state
        then = self.sessions.next_state(request, registered_at, has_leaderships)
        records = list(_transition(broker, state, then))
        metadata_offset = request.current_metadata_offset
        self.sessions.touch(broker_id, fenced=then.is_fenced, metadata_offset=metadata_offset)
        left = [each for each in broker.log_dirs if each not in request.offline_log_dirs]
        if len(left) < len(broker.log_dirs):
            records.append(_change(broker, logDirs=left))
        reply = BrokerHeartbeatReply(
            metadata_offset >= registered_at,
            then.is_fenced,
            then is ControlState.CONTROLLED_SHUTDOWN,
            then is ControlState.SHUTDOWN_NOW,
        )
        return BrokerAnswer(tuple(records), reply=reply)

    def shutting_down(self, broker_id: int, last_offset: int) -> None:
        """A heartbeat was answered with in_controlled_shutdown; last_offset: of the log after its records."""
        self.sessions.shut_down_at(broker_id, last_offset)

    def unregister(self, broker_id: int) -> BrokerAnswer:
        """UnregisterBroker. Raises BrokerRefusedError."""
        broker = self.broker(broker_id)
        if broker is None:
            text = f"Broker ID {broker_id} is not currently registered"
            raise BrokerRefusedError(ErrorCode.BROKER_ID_NOT_REGISTERED, text)
        value = {"brokerId": broker_id, "brokerEpoch": broker.broker_epoch}
        return BrokerAnswer((BrokerRecord(UNREGISTER, value),))

    def fence_stale(self, now: int) -> BrokerAnswer | None:
        """Fence one broker whose session has ended; None if none has. The controller repeats it."""
        expired = self.sessions.take_expired(now)
        if expired is None:
            return None
        broker_id, broker_epoch = expired
        broker = self.broker(broker_id)
        if broker is None:
            self.sessions.remove(broker_id)
            return BrokerAnswer()
        if broker.broker_epoch != broker_epoch:
            return BrokerAnswer()
        self.sessions.fence(broker_id)
        return BrokerAnswer((_change(broker, fenced=_FENCE),))

    def replay(self, record: BrokerRecord, offset: int) -> None:
        """A record of an answer, appended at that offset."""
        broker_id = record.value["brokerId"]
        before = self.broker(broker_id)
        for change in brokers.RULES[record.type](self.tables, record.value):
            self.tables.put(change)
        after = self.broker(broker_id)
        if record.type == REGISTER:
            self._registered_at[broker_id] = offset
        if after is None or (record.type == REGISTER and before is not None):
            self.sessions.remove(broker_id)
        if after is not None and (record.type == REGISTER or after != before):
            self.sessions.register(broker_id, fenced=after.fenced)


def _transition(broker: Broker, state: ControlState, then: ControlState) -> Iterable[BrokerRecord]:
    if state is then:
        return
    if then.is_fenced:
        yield _change(broker, fenced=_FENCE)
    elif then is ControlState.UNFENCED:
        yield _change(broker, fenced=_UNFENCE)
    elif not broker.in_controlled_shutdown:
        yield _change(broker, inControlledShutdown=_SHUTS_DOWN)


def _change(broker: Broker, **fields: object) -> BrokerRecord:
    return BrokerRecord(CHANGE, {"brokerId": broker.broker_id, "brokerEpoch": broker.broker_epoch, **fields})


def _invalid(text: str) -> BrokerRefusedError:
    return BrokerRefusedError(ErrorCode.INVALID_REGISTRATION, text)
