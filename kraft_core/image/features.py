"""Finalized feature levels (FeaturesDelta)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kraft_core.image.change import Change
from kraft_core.image.tables import FEATURES, Tables

METADATA_VERSION = "metadata.version"
# Decided by the control record KRaftVersion only, though some logs have a feature record of that name.
_KRAFT_VERSION = "kraft.version"


@dataclass(frozen=True, slots=True)
class Feature:
    name: str
    level: int


def set_level(_: Tables, value: Mapping[str, Any]) -> Iterator[Change]:
    """FEATURE_LEVEL_RECORD; level 0 removes a feature, except metadata.version, which always has a level.

    Up to release 3.2 the record held a range of levels, of which the upper end was in force.
    """
    name = value["name"]
    level = value["featureLevel"] if "featureLevel" in value else value["maxFeatureLevel"]
    if name != _KRAFT_VERSION:
        withdrawn = level == 0 and name != METADATA_VERSION
        yield Change(FEATURES, (name,), None if withdrawn else Feature(name, level))


def remove(_: Tables, value: Mapping[str, Any]) -> Iterator[Change]:
    """REMOVE_FEATURE_LEVEL_RECORD, written up to release 3.2."""
    yield Change(FEATURES, (value["name"],), None)


def row(feature: Feature) -> dict[str, Any]:
    return {"name": feature.name, "level": feature.level}


def to_record(feature: Feature) -> tuple[str, dict[str, Any]]:
    return "FEATURE_LEVEL_RECORD", {"name": feature.name, "featureLevel": feature.level}


RULES = {"FEATURE_LEVEL_RECORD": set_level, "REMOVE_FEATURE_LEVEL_RECORD": remove}
