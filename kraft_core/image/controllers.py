"""Controller registrations (ClusterDelta, ControllerRegistration)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kraft_core.image.change import Change, Refusal
from kraft_core.image.endpoints import (
    EndPoint,
    SupportedFeature,
    end_point_rows,
    endpoints,
    feature_rows,
    supported_features,
    to_fields,
)
from kraft_core.image.refusals import UNKNOWN_CONTROLLER
from kraft_core.image.tables import CONTROLLERS, Tables


@dataclass(frozen=True, slots=True)
class Controller:
    controller_id: int
    incarnation_id: str
    zk_migration_ready: bool
    endpoints: tuple[EndPoint, ...]
    features: tuple[SupportedFeature, ...]


def register(_: Tables, value: Mapping[str, Any]) -> Iterator[Change]:
    """REGISTER_CONTROLLER_RECORD: replaces the registration of that id."""
    controller = Controller(
        controller_id=value["controllerId"],
        incarnation_id=value["incarnationId"],
        zk_migration_ready=value["zkMigrationReady"],
        endpoints=endpoints(value["endPoints"]),
        features=supported_features(value["features"]),
    )
    yield Change(CONTROLLERS, (controller.controller_id,), controller)


def unregister(_: Tables, value: Mapping[str, Any]) -> Iterator[Change]:
    """UNREGISTER_CONTROLLER_RECORD, from release 4.4 on."""
    yield Change(CONTROLLERS, (value["controllerId"],), None)


def is_registered(tables: Tables, value: Mapping[str, Any]) -> Refusal | None:
    """A controller refuses to unregister a controller that it does not know (ClusterControlManager)."""
    controller_id = value["controllerId"]
    if tables.get(CONTROLLERS, (controller_id,)) is not None:
        return None
    subject = f"controller {controller_id}"
    return Refusal(UNKNOWN_CONTROLLER, subject, f"{subject} is not registered", by_controllers_only=True)


def row(controller: Controller) -> dict[str, Any]:
    return {
        "controller_id": controller.controller_id,
        "incarnation_id": controller.incarnation_id,
        "zk_migration_ready": controller.zk_migration_ready,
        "endpoints": end_point_rows(controller.endpoints),
        "features": feature_rows(controller.features),
    }


def to_record(controller: Controller) -> tuple[str, dict[str, Any]]:
    return "REGISTER_CONTROLLER_RECORD", {
        "controllerId": controller.controller_id,
        "incarnationId": controller.incarnation_id,
        "zkMigrationReady": controller.zk_migration_ready,
        **to_fields(controller.endpoints, controller.features),
    }


RULES = {"REGISTER_CONTROLLER_RECORD": register, "UNREGISTER_CONTROLLER_RECORD": unregister}
CONTROLLER_CHECKS = {"UNREGISTER_CONTROLLER_RECORD": is_registered}
