"""Brokers: registration, fencing, controlled shutdown, log directories (ClusterDelta, BrokerRegistration)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from kraft_core.image.change import Change, RecordRefusedError, Refusal
from kraft_core.image.endpoints import (
    EndPoint,
    SupportedFeature,
    end_point_rows,
    endpoints,
    feature_rows,
    supported_features,
    to_fields,
)
from kraft_core.image.names import LOST_DIRECTORY, MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY
from kraft_core.image.refusals import OTHER_BROKER_EPOCH, UNKNOWN_BROKER, UNKNOWN_VALUE
from kraft_core.image.tables import BROKERS, Tables

_FENCED = {0: None, 1: True, -1: False}
_IN_CONTROLLED_SHUTDOWN = {0: None, 1: True}


@dataclass(frozen=True, slots=True)
class Broker:
    """log_dirs: uuids sorted as text. cordoned_log_dirs: None before release 4.3."""

    broker_id: int
    broker_epoch: int
    incarnation_id: str
    endpoints: tuple[EndPoint, ...]
    features: tuple[SupportedFeature, ...]
    rack: str | None
    fenced: bool
    in_controlled_shutdown: bool
    is_migrating_zk_broker: bool
    log_dirs: tuple[str, ...]
    cordoned_log_dirs: tuple[str, ...] | None

    @property
    def is_active(self) -> bool:
        """Whether Kafka's controller lets it lead (ClusterControlManager.isActive)."""
        return not self.fenced and not self.in_controlled_shutdown

    @property
    def state_words(self) -> str:
        if self.fenced:
            return "fenced"
        return "in controlled shutdown" if self.in_controlled_shutdown else "active"


def is_online(broker: Broker, directory: str) -> bool:
    """Whether a replica's log directory is online on its broker (DirectoryId.isOnline)."""
    if directory in (MIGRATING_DIRECTORY, UNASSIGNED_DIRECTORY):
        return True
    return directory != LOST_DIRECTORY and (not broker.log_dirs or directory in broker.log_dirs)


def register(_: Tables, value: Mapping[str, Any]) -> Iterator[Change]:
    """REGISTER_BROKER_RECORD: replaces the registration of that id, including its fencing."""
    cordoned = value.get("cordonedLogDirs")
    yield _put(
        Broker(
            broker_id=value["brokerId"],
            broker_epoch=value["brokerEpoch"],
            incarnation_id=value["incarnationId"],
            endpoints=endpoints(value["endPoints"]),
            features=supported_features(value["features"]),
            rack=value["rack"],
            fenced=value["fenced"],
            in_controlled_shutdown=value.get("inControlledShutdown", False),
            is_migrating_zk_broker=value.get("isMigratingZkBroker", False),
            log_dirs=tuple(sorted(value.get("logDirs") or ())),
            cordoned_log_dirs=None if cordoned is None else tuple(cordoned),
        )
    )


def unregister(_: Tables, value: Mapping[str, Any]) -> Iterator[Change]:
    """UNREGISTER_BROKER_RECORD: removes the registration, but not the broker's configs."""
    yield Change(BROKERS, (value["brokerId"],), None)


def fence(tables: Tables, value: Mapping[str, Any]) -> Iterator[Change]:
    """FENCE_BROKER_RECORD, written up to metadata.version 3.3-IV2."""
    yield _put(replace(_current(tables, value["id"], value["epoch"]), fenced=True))


def unfence(tables: Tables, value: Mapping[str, Any]) -> Iterator[Change]:
    """UNFENCE_BROKER_RECORD, written up to metadata.version 3.3-IV2."""
    yield _put(replace(_current(tables, value["id"], value["epoch"]), fenced=False))


def change(tables: Tables, value: Mapping[str, Any]) -> Iterator[Change]:
    """BROKER_REGISTRATION_CHANGE_RECORD: no change if every field is at its default."""
    before = _current(tables, value["brokerId"], value["brokerEpoch"])
    fenced = _flag(_FENCED, value, "fenced")
    in_shutdown = _flag(_IN_CONTROLLED_SHUTDOWN, value, "inControlledShutdown")
    cordoned = value.get("cordonedLogDirs")
    after = replace(
        before,
        fenced=before.fenced if fenced is None else fenced,
        in_controlled_shutdown=before.in_controlled_shutdown if in_shutdown is None else in_shutdown,
        # Null directories: unchanged. Empty cordoned directories: none is cordoned any more.
        log_dirs=tuple(sorted(value.get("logDirs") or ())) or before.log_dirs,
        cordoned_log_dirs=before.cordoned_log_dirs if cordoned is None else tuple(cordoned),
    )
    if after != before:
        yield _put(after)


def _put(broker: Broker) -> Change:
    return Change(BROKERS, (broker.broker_id,), broker)


def _current(tables: Tables, broker_id: int, epoch: int) -> Broker:
    broker: Broker | None = tables.get(BROKERS, (broker_id,))
    if broker is None:
        raise RecordRefusedError(_not_registered(broker_id))
    if broker.broker_epoch != epoch:
        raise RecordRefusedError(_other_epoch(broker, epoch))
    return broker


def _not_registered(broker_id: int) -> Refusal:
    return Refusal(UNKNOWN_BROKER, f"broker {broker_id}", f"broker {broker_id} is not registered")


def _other_epoch(broker: Broker, epoch: int) -> Refusal:
    reason = f"broker {broker.broker_id} has epoch {broker.broker_epoch}, not {epoch}"
    return Refusal(OTHER_BROKER_EPOCH, f"broker {broker.broker_id}", reason)


def _flag(meanings: Mapping[int, bool | None], value: Mapping[str, Any], field: str) -> bool | None:
    number = value.get(field, 0)
    if number not in meanings:
        reason = f"unknown value {number} of {field}"
        raise RecordRefusedError(Refusal(UNKNOWN_VALUE, f"broker {value['brokerId']}", reason))
    return meanings[number]


def is_registered(tables: Tables, value: Mapping[str, Any]) -> Refusal | None:
    """A controller refuses to unregister a broker or broker epoch that it does not know."""
    broker: Broker | None = tables.get(BROKERS, (value["brokerId"],))
    if broker is None:
        return replace(_not_registered(value["brokerId"]), by_controllers_only=True)
    if broker.broker_epoch != value["brokerEpoch"]:
        return replace(_other_epoch(broker, value["brokerEpoch"]), by_controllers_only=True)
    return None


def row(broker: Broker) -> dict[str, Any]:
    cordoned = broker.cordoned_log_dirs
    return {
        "broker_id": broker.broker_id,
        "broker_epoch": broker.broker_epoch,
        "incarnation_id": broker.incarnation_id,
        "endpoints": end_point_rows(broker.endpoints),
        "features": feature_rows(broker.features),
        "rack": broker.rack,
        "fenced": broker.fenced,
        "in_controlled_shutdown": broker.in_controlled_shutdown,
        "is_migrating_zk_broker": broker.is_migrating_zk_broker,
        "log_dirs": list(broker.log_dirs),
        "cordoned_log_dirs": None if cordoned is None else list(cordoned),
    }


def to_record(broker: Broker) -> tuple[str, dict[str, Any]]:
    cordoned = broker.cordoned_log_dirs
    return "REGISTER_BROKER_RECORD", {
        "brokerId": broker.broker_id,
        "isMigratingZkBroker": broker.is_migrating_zk_broker,
        "incarnationId": broker.incarnation_id,
        "brokerEpoch": broker.broker_epoch,
        **to_fields(broker.endpoints, broker.features),
        "rack": broker.rack,
        "fenced": broker.fenced,
        "inControlledShutdown": broker.in_controlled_shutdown,
        "logDirs": list(broker.log_dirs),
        "cordonedLogDirs": None if cordoned is None else list(cordoned),
    }


RULES = {
    "REGISTER_BROKER_RECORD": register,
    "UNREGISTER_BROKER_RECORD": unregister,
    "FENCE_BROKER_RECORD": fence,
    "UNFENCE_BROKER_RECORD": unfence,
    "BROKER_REGISTRATION_CHANGE_RECORD": change,
}
CONTROLLER_CHECKS = {"UNREGISTER_BROKER_RECORD": is_registered}
