"""The feature levels of a new cluster, as the Formatter computes and checks them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kraft_core.messages.releases import (
    KRAFT_VERSION,
    METADATA_LEVELS,
    METADATA_VERSION,
    OTHER_FEATURES,
    Release,
)
from kraft_core.storage.java_values import java_integer
from kraft_core.storage.tool_error import ILLEGAL_ARGUMENT, RUNTIME_EXCEPTION, ToolError

SCRAM_SINCE = 11
"""metadata.version 3.5-IV2: from here on the log holds SCRAM credentials."""

_DYNAMIC_FLAGS = "--standalone, --initial-controllers, or --no-initial-controllers"


def named_level(release: Release, text: str, *, unstable: bool) -> int:
    """The metadata.version of --release-version (MetadataVersion.fromVersionString). Raises ToolError."""
    known = range(release.metadata_versions.low, _highest(release, unstable=unstable) + 1)
    levels = {METADATA_LEVELS[level]: level for level in known}
    # A release stands for its newest metadata.version that is not for tests.
    levels |= {
        METADATA_LEVELS[level].split("-")[0]: level
        for level in known
        if level <= release.metadata_versions.high
    }
    # Java's split drops empty parts at the end, and a text of at most two parts stands for itself.
    parts = text.rstrip(".").split(".")
    level = levels.get(text if len(parts) <= 2 else ".".join(parts[:2]))
    if level is None:
        names = ", ".join(METADATA_LEVELS[each] for each in known)
        raise ToolError(f"Unknown metadata.version '{text}'. Supported metadata.version are: {names}")
    return level


def parse_features(texts: Sequence[str]) -> dict[str, int]:
    """--feature NAME=LEVEL, repeated; the last of a name counts. Raises ToolError."""
    found: dict[str, int] = {}
    for text in texts:
        name, equals, level_text = text.partition("=")
        if not equals:
            raise ToolError(
                f"Can't parse feature=level string {text}: equals sign not found.", RUNTIME_EXCEPTION
            )
        level = java_integer(level_text.strip(), bits=16)
        if level is None:
            words = (
                f"Can't parse feature=level string {text}: unable to parse {level_text.strip()} as a short."
            )
            raise ToolError(words, RUNTIME_EXCEPTION)
        found[name.strip()] = level
    return found


def metadata_version(
    release: Release, features: Mapping[str, int], named: int | None, *, unstable: bool
) -> int:
    """The level of metadata.version. named: by --release-version. Raises ToolError."""
    highest = _highest(release, unstable=unstable)
    level = features.get(METADATA_VERSION)
    if level is None:
        return highest if named is None else named
    if named is not None:
        raise ToolError("Use --release-version instead of --feature metadata.version=X to avoid ambiguity.")
    low, known = release.metadata_versions.low, release.testing
    if not low <= level <= known:
        raise ToolError(
            f"No MetadataVersion with feature level {level}. Valid feature levels are from {low} to {known}.",
            ILLEGAL_ARGUMENT,
        )
    if level > highest:
        raise ToolError(f"metadata.version {METADATA_LEVELS[level]} is not yet stable.")
    return level


def effective_levels(
    release: Release, given: Mapping[str, int], metadata_level: int, *, is_dynamic: bool, unstable: bool
) -> dict[str, int]:
    """Every feature's level, by name. is_dynamic: controller.quorum.voters is empty. Raises ToolError."""
    supported = [name for name in OTHER_FEATURES if release.known_high(name) is not None]
    for name in sorted(given):
        if name != METADATA_VERSION and name not in supported:
            names = ", ".join(sorted(supported))
            raise ToolError(f"Unsupported feature: {name}. Supported features are: {names}")
    levels = {**given, METADATA_VERSION: metadata_level}
    for name in supported:
        if name == KRAFT_VERSION:
            levels[name] = _kraft_version(given.get(name), is_dynamic=is_dynamic)
        elif name not in levels:
            levels[name] = release.default_level(name, metadata_level)
    for name in sorted(levels):
        if name != METADATA_VERSION:
            _check_level(release, name, levels, unstable=unstable)
    return levels


def _kraft_version(given: int | None, *, is_dynamic: bool) -> int:
    if given is None:
        return 1 if is_dynamic else 0
    if given == 0 and is_dynamic:
        raise ToolError(
            f"Cannot set kraft.version to 0 if controller.quorum.voters is empty and one of the flags "
            f"{_DYNAMIC_FLAGS} is used. For dynamic controllers support, try removing the --feature flag for "
            "kraft.version."
        )
    if given and not is_dynamic:
        raise ToolError(
            f"Cannot set kraft.version to {given} unless controller.quorum.voters is empty and one of the "
            f"flags {_DYNAMIC_FLAGS} is used. For dynamic controllers support, try using one of "
            f"{_DYNAMIC_FLAGS} and removing controller.quorum.voters."
        )
    return given


def _check_level(release: Release, name: str, levels: Mapping[str, int], *, unstable: bool) -> None:
    level = levels[name]
    highest = release.known_high(name) if unstable else release.features[name].high
    if not 0 <= level <= (highest or 0):
        raise ToolError(f"No feature:{name} with feature level {level}", ILLEGAL_ARGUMENT)
    for other, least in release.dependencies.get((name, level), {}).items():
        if levels.get(other, 0) < least:
            raise ToolError(
                f"{name} could not be set to {level} because it depends on {other} level {least}",
                ILLEGAL_ARGUMENT,
            )


def _highest(release: Release, *, unstable: bool) -> int:
    return release.testing if unstable else release.metadata_versions.high
