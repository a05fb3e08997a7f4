"""The part that broker and controller registrations share: listeners and supported features."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from kraft_core.image.names import SECURITY_PROTOCOLS, word


@dataclass(frozen=True, slots=True)
class EndPoint:
    name: str
    host: str
    port: int
    security_protocol: int


@dataclass(frozen=True, slots=True)
class SupportedFeature:
    name: str
    min_supported_version: int
    max_supported_version: int


def endpoints(given: Sequence[Mapping[str, Any]]) -> tuple[EndPoint, ...]:
    """Sorted by name: Kafka keeps them in a map, so their order in a record is arbitrary."""
    by_name = {
        point["name"]: EndPoint(point["name"], point["host"], point["port"], point["securityProtocol"])
        for point in given
    }
    return tuple(by_name[name] for name in sorted(by_name))


def supported_features(given: Sequence[Mapping[str, Any]]) -> tuple[SupportedFeature, ...]:
    """Sorted by name, like the endpoints."""
    by_name = {
        feature["name"]: SupportedFeature(
            feature["name"], feature["minSupportedVersion"], feature["maxSupportedVersion"]
        )
        for feature in given
    }
    return tuple(by_name[name] for name in sorted(by_name))


def end_point_rows(points: tuple[EndPoint, ...]) -> list[dict[str, Any]]:
    return [
        asdict(point) | {"security_protocol": word(SECURITY_PROTOCOLS, point.security_protocol)}
        for point in points
    ]


def feature_rows(features: tuple[SupportedFeature, ...]) -> list[dict[str, Any]]:
    return list(map(asdict, features))


def to_fields(points: tuple[EndPoint, ...], features: tuple[SupportedFeature, ...]) -> dict[str, Any]:
    """The fields endPoints and features of a registration record."""
    return {
        "endPoints": [
            {
                "name": point.name,
                "host": point.host,
                "port": point.port,
                "securityProtocol": point.security_protocol,
            }
            for point in points
        ],
        "features": [
            {
                "name": feature.name,
                "minSupportedVersion": feature.min_supported_version,
                "maxSupportedVersion": feature.max_supported_version,
            }
            for feature in features
        ],
    }
