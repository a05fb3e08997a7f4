"""What kafka-features prints of features, as a release's tool does (FeatureCommand)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kraft_core.messages.releases import (
    METADATA_LEVELS,
    METADATA_VERSION,
    OTHER_FEATURES,
    Levels,
    Release,
    metadata_level,
)


class UnknownFeatureError(ValueError):
    """A release, feature or level that the tool does not know; the message is the tool's."""


def version_mapping(release: Release, text: str | None = None) -> Iterator[str]:
    """version-mapping --release-version TEXT: the levels of a new cluster of that release.

    text: a release or the name of a metadata.version; None: the release's own. Raises UnknownFeatureError.
    """
    words = text if text is not None else METADATA_LEVELS[release.metadata_versions.high]
    level = None if words.isdecimal() else metadata_level(words, release)
    if level is None or level not in _known(release):
        names = ", ".join(METADATA_LEVELS[each] for each in _known(release))
        raise UnknownFeatureError(
            f"Unknown metadata.version '{words}'. Supported metadata.version are: {names}"
        )
    yield f"{METADATA_VERSION}={level} ({words})"
    for feature in OTHER_FEATURES:
        if release.known_high(feature) is not None:
            yield f"{feature}={release.default_level(feature, level)}"


def feature_dependencies(release: Release, features: Iterable[tuple[str, int]]) -> Iterator[str]:
    """feature-dependencies --feature NAME=LEVEL, for each. Raises UnknownFeatureError."""
    for feature, level in features:
        named = f"{feature}={level}"
        if feature == METADATA_VERSION:
            if level not in _known(release):
                raise UnknownFeatureError(f"Unknown metadata.version {level}")
            yield f"{named} ({METADATA_LEVELS[level]}) has no dependencies."
            continue
        high = release.known_high(feature)
        if high is None:
            raise UnknownFeatureError(f"Unknown feature: {feature}")
        if not 0 <= level <= high:
            raise UnknownFeatureError(f"No feature:{feature} with feature level {level}")
        required = release.dependencies.get((feature, level), {})
        yield f"{named} requires:" if required else f"{named} has no dependencies."
        for other, least in required.items():
            name = f" ({METADATA_LEVELS[least]})" if other == METADATA_VERSION else ""
            yield f"    {other}={least}{name}"


def describe(
    supported: Mapping[str, Levels], finalized: Mapping[str, int], epoch: int | None
) -> Iterator[str]:
    """describe: what a node supports, and the finalized levels of the cluster.

    epoch: that of the finalized levels. A broker shows the offset to which it had applied the log
    (KRaftMetadataCache.features). None: not known, as of a controller, which shows the offset at which it
    read the levels: of their last change, or to which it had caught up when it started (FeaturesPublisher).
    """
    shown = "not known" if epoch is None else epoch
    for feature in sorted(supported):
        levels = supported[feature]
        low, high, level = (
            _level_words(feature, each) for each in (levels.low, levels.high, finalized.get(feature, 0))
        )
        yield (
            f"Feature: {feature:<40}  SupportedMinVersion: {low:<15}  SupportedMaxVersion: {high:<15}  "
            f"FinalizedVersionLevel: {level:<15}  Epoch: {shown}"
        )


def _known(release: Release) -> range:
    return range(release.metadata_versions.low, release.testing + 1)


def _level_words(feature: str, level: int) -> str:
    if feature != METADATA_VERSION:
        return str(level)
    return METADATA_LEVELS.get(level, f"UNKNOWN {level}")
