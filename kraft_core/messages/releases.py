"""Kafka's releases from 3.3 to 4.4: the feature levels and the metadata records that each of them knows.

Sources: MetadataVersion, Feature and its FeatureVersions (kafka-server-common), QuorumFeatures and
MetadataRecordType (kafka-metadata) of the newest patch release of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

METADATA_VERSION = "metadata.version"
KRAFT_VERSION = "kraft.version"
TRANSACTION_VERSION = "transaction.version"
GROUP_VERSION = "group.version"
ELR_VERSION = "eligible.leader.replicas.version"
SHARE_VERSION = "share.version"
STREAMS_VERSION = "streams.version"
# In the order of Kafka's tools.
OTHER_FEATURES = (
    KRAFT_VERSION,
    TRANSACTION_VERSION,
    GROUP_VERSION,
    ELR_VERSION,
    SHARE_VERSION,
    STREAMS_VERSION,
)

_NAMES = (
    "3.0-IV1 3.1-IV0 3.2-IV0 3.3-IV0 3.3-IV1 3.3-IV2 3.3-IV3 3.4-IV0 3.5-IV0 3.5-IV1 3.5-IV2 3.6-IV0 3.6-IV1 "
    "3.6-IV2 3.7-IV0 3.7-IV1 3.7-IV2 3.7-IV3 3.7-IV4 3.8-IV0 3.9-IV0 4.0-IV0 4.0-IV1 4.0-IV2 4.0-IV3 4.1-IV0 "
    "4.1-IV1 4.2-IV0 4.2-IV1 4.3-IV0 4.4-IV0 4.4-IV1 4.4-IV2 4.5-IV0"
)
METADATA_LEVELS: Mapping[int, str] = dict(enumerate(_NAMES.split(), start=1))
"""The level of metadata.version, and its name."""

CHANGES_METADATA = frozenset({1, 3, 5, 6, 7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33})
"""The levels that bring records which no lower level knows: Kafka never goes below them again."""

LOWEST_SINCE_4_0 = 7
"""metadata.version 3.3-IV3: releases from 4.0 on know no lower one."""

TRANSACTIONS = 13
"""metadata.version 3.6-IV1: from here on there are metadata transactions (KIP-868)."""

CONTROLLERS_REGISTER = 15
"""metadata.version 3.7-IV0: from here on controllers register (KIP-919)."""

CONTROLLERS_UNREGISTER = 33
"""metadata.version 4.4-IV2: from here on a controller's registration can be removed."""

METADATA_IN_LOG_AFTER = 30
"""Releases whose highest metadata.version is above 4.3-IV0 write no bootstrap.checkpoint any more."""

DEFAULT_SINCE: Mapping[str, tuple[int, ...]] = {
    KRAFT_VERSION: (21,),
    TRANSACTION_VERSION: (24, 24),
    GROUP_VERSION: (22,),
    ELR_VERSION: (26,),
    SHARE_VERSION: (28, 31),
    STREAMS_VERSION: (29,),
}
"""For each level from 1 on: the metadata.version with which a new cluster has it."""

RECORD_LEVELS: Mapping[tuple[int, int], int] = {
    (0, 2): 8,
    (0, 3): 17,
    (0, 4): 30,
    (3, 1): 17,
    (3, 2): 23,
    (5, 1): 17,
    (5, 2): 23,
    (10, 0): 14,
    (11, 0): 11,
    (17, 2): 17,
    (17, 3): 30,
    (21, 0): 8,
    (22, 0): 11,
    (23, 0): 13,
    (24, 0): 13,
    (25, 0): 13,
    (26, 0): 14,
    (27, 0): 15,
    (28, 0): 23,
    (29, 0): 33,
}
"""(record id, version): the metadata.version from which on Kafka writes it, where that is above 3.3-IV3."""


@dataclass(frozen=True, slots=True)
class Levels:
    """The levels of a feature that software supports, both inclusive."""

    low: int
    high: int

    def __contains__(self, level: int) -> bool:
        return self.low <= level <= self.high

    def __str__(self) -> str:
        """As Kafka's VersionRange prints it."""
        if self.low == self.high:
            return str(self.low)
        return f"{self.low}+" if self.high == 0x7FFF else f"{self.low}-{self.high}"


@dataclass(frozen=True, slots=True)
class Release:
    """A minor release.

    metadata_versions: those it supports; the highest is its default. testing: the highest that it knows, for
    tests of what is not released yet (unstable.feature.versions.enable). features: the other features it
    supports. preview: levels of features that it knows beyond these. records: the highest version of each
    record that it knows, by id. dependencies: (feature, level) to the levels that it requires.
    most_elements, most_tags: the longest list and the most tagged fields of a struct that it reads, None:
    any.
    """

    name: str
    metadata_versions: Levels
    testing: int
    features: Mapping[str, Levels]
    preview: Mapping[str, int]
    records: Mapping[int, int]
    dependencies: Mapping[tuple[str, int], Mapping[str, int]]
    most_elements: int | None = None
    most_tags: int | None = None

    @property
    def knows_zookeeper(self) -> bool:
        """Whether a cluster may be migrated from ZooKeeper to it: until 3.9."""
        return self.metadata_versions.low < LOWEST_SINCE_4_0

    @property
    def writes_metadata_in_first_checkpoint(self) -> bool:
        """Whether a formatted log begins with its first metadata (KIP-1170): from 4.4 on."""
        return self.metadata_versions.high > METADATA_IN_LOG_AFTER

    @property
    def supported(self) -> Mapping[str, Levels]:
        """Every feature, with metadata.version: what its brokers and controllers register."""
        return {METADATA_VERSION: self.metadata_versions, **self.features}

    def known_high(self, feature: str) -> int | None:
        """The highest level that its tools know, None for a feature that it does not know."""
        if feature == METADATA_VERSION:
            return self.testing
        if feature in self.preview:
            return self.preview[feature]
        return self.features[feature].high if feature in self.features else None

    def default_level(self, feature: str, metadata_version: int) -> int:
        """What a new cluster of that metadata.version has (Feature.defaultLevel)."""
        if feature == METADATA_VERSION:
            return metadata_version
        since = DEFAULT_SINCE[feature][: self.known_high(feature) or 0]
        return sum(1 for level in since if level <= metadata_version)


_FIRST_RECORDS = {0: 1, 17: 1} | dict.fromkeys((*range(1, 13), 14, 15, 18, 19, 20), 0)
_ELR = {(ELR_VERSION, 1): {METADATA_VERSION: 23}}


def _releases() -> Mapping[str, Release]:
    """Each release by what it adds to the one before."""
    found: dict[str, Release] = {}
    records: dict[int, int] = dict(_FIRST_RECORDS)
    features: dict[str, Levels] = {}

    def add(
        name: str,
        levels: tuple[int, int],
        testing: int | None = None,
        *,
        adds: Mapping[str, int] | None = None,
        preview: Mapping[str, int] | None = None,
        reads: Mapping[int, int] | None = None,
        requires: Mapping[tuple[str, int], Mapping[str, int]] | None = None,
        most: tuple[int, int] | tuple[None, None] = (None, None),
    ) -> None:
        records.update(reads or {})
        features.update({feature: Levels(0, high) for feature, high in (adds or {}).items()})
        made = Release(
            name,
            Levels(*levels),
            testing or levels[1],
            dict(features),
            preview or {},
            dict(records),
            requires or {},
            *most,
        )
        found[name] = made

    add("3.3", (1, 7))
    add("3.4", (1, 8), reads={0: 2, 21: 0})
    del records[6]
    add("3.5", (1, 11), reads={22: 0})
    add("3.6", (1, 14), reads={23: 0, 24: 0, 25: 0, 26: 0})
    add("3.7", (1, 19), 20, reads={0: 3, 3: 2, 5: 2, 17: 2, 27: 0})
    add("3.8", (1, 20), 21)
    add("3.9", (1, 21), 23, adds={KRAFT_VERSION: 1}, preview={TRANSACTION_VERSION: 2})
    kraft = {(KRAFT_VERSION, 1): {METADATA_VERSION: 21}}
    of_4_0 = {TRANSACTION_VERSION: 2, GROUP_VERSION: 1, ELR_VERSION: 1}
    add("4.0", (7, 25), 26, adds=of_4_0, reads={28: 0}, requires={**kraft, **_ELR})
    add("4.1", (7, 27), 29, adds={SHARE_VERSION: 1}, preview={STREAMS_VERSION: 1}, requires=_ELR)
    add("4.2", (7, 29), 30, adds={STREAMS_VERSION: 1}, requires=_ELR)
    add("4.3", (7, 30), 31, reads={0: 4, 17: 3}, requires=_ELR)
    limits = (1_000_000, 10_000)
    add("4.4", (7, 33), 34, adds={SHARE_VERSION: 2}, reads={29: 0}, requires=_ELR, most=limits)
    return found


RELEASES: Mapping[str, Release] = _releases()
LATEST = list(RELEASES.values())[-1]


def release_of(text: str) -> Release | None:
    """The release of "4.3" or "4.3.1"; None for one that is not declared here."""
    return RELEASES.get(".".join(text.split(".")[:2]))


def release_by(supported: Mapping[str, Levels]) -> Release | None:
    """The release whose software registers these features; None where none registers exactly these."""
    for release in RELEASES.values():
        if release.supported == supported:
            return release
    # With unstable.feature.versions.enable it registers more, of metadata.version all that it knows.
    high = supported[METADATA_VERSION].high if METADATA_VERSION in supported else None
    of_tests = [release for release in RELEASES.values() if release.testing == high]
    return of_tests[0] if len(of_tests) == 1 and of_tests[0].features.keys() <= supported.keys() else None


def metadata_level(text: str, release: Release = LATEST) -> int | None:
    """The level of "30", "4.3-IV0" or of a release such as "4.3" or "4.3.1" (fromVersionString)."""
    if text.isdecimal():
        return int(text)
    by_name = {name: level for level, name in METADATA_LEVELS.items() if level <= release.testing}
    of_release = [
        level
        for name, level in by_name.items()
        if name.split("-")[0] == ".".join(text.split(".")[:2]) and level <= release.metadata_versions.high
    ]
    return by_name.get(text, max(of_release, default=None) if "-" not in text else None)


def is_reversible(low: int, high: int) -> bool:
    """Whether Kafka goes back from one metadata.version to a lower one (checkIfMetadataChanged)."""
    return not changes_between(low, high)


def changes_between(low: int, high: int) -> list[int]:
    """The levels of CHANGES_METADATA above one metadata.version, up to another."""
    return sorted(level for level in CHANGES_METADATA if low < level <= high)
