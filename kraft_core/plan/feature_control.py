"""What Kafka's controller answers a change of feature levels (FeatureControlManager, QuorumFeatures).

The words are those of release 4.3, and of 3.9 where the leader runs a release before 4.0. The level of
kraft.version is checked here as far as the controller does; then the raft layer decides (plan.verdicts).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from kraft_core.format.java_text import hash_order
from kraft_core.image.image import Image
from kraft_core.image.tables import BROKERS, CONTROLLERS, FEATURES, ZK_MIGRATION
from kraft_core.messages.releases import (
    CONTROLLERS_REGISTER,
    KRAFT_VERSION,
    LATEST,
    METADATA_LEVELS,
    METADATA_VERSION,
    Levels,
    Release,
    is_reversible,
    release_by,
)

Supported = Mapping[str, Levels]
_DISABLED = Levels(0, 0)
_IN_MIGRATION = (1, 2)  # MIGRATION, PRE_MIGRATION
_FOR_ALL = "The update failed for all features since the following feature had an error: "


@dataclass(frozen=True, slots=True)
class FeatureState:
    """What the leader's controller decides from.

    local: what the leader's own software supports. must_register: controllers without which nothing is
    finalized (controller.quorum.voters). finalized: without metadata.version and kraft.version.
    """

    leader_id: int
    local: Supported
    brokers: Mapping[int, Supported]
    controllers: Mapping[int, Supported]
    must_register: tuple[int, ...]
    finalized: Mapping[str, int]
    metadata_version: int
    kraft_version: int
    zk_migration_state: int = 0

    @property
    def release(self) -> Release:
        """The leader's; the latest where its features are of no declared release."""
        return release_by(self.local) or LATEST

    def level(self, feature: str) -> int:
        if feature == METADATA_VERSION:
            return self.metadata_version
        return self.kraft_version if feature == KRAFT_VERSION else self.finalized.get(feature, 0)


@dataclass(frozen=True, slots=True)
class Blocker:
    """A node whose registration refuses a level. supported: None if it has not registered."""

    kind: str
    node_id: int
    feature: str
    level: int
    supported: Levels | None


def supported_by(image: Image, kind: str) -> dict[int, Supported]:
    """What each registered broker or controller supports. kind: BROKERS or CONTROLLERS."""
    return {
        key[0]: {
            feature.name: Levels(feature.min_supported_version, feature.max_supported_version)
            for feature in node.features
        }
        for key, node in image.tables.items(kind)
    }


def finalized_in(image: Image) -> dict[str, int]:
    """The finalized levels, with metadata.version, without kraft.version."""
    return {key[0]: feature.level for key, feature in image.tables.items(FEATURES)}


def state_of(
    image: Image, leader_id: int, kraft_version: int, must_register: Iterable[int]
) -> FeatureState | None:
    """The state at an image; None where it does not show metadata.version or the leader's registration."""
    controllers = supported_by(image, CONTROLLERS)
    finalized = finalized_in(image)
    level = finalized.pop(METADATA_VERSION, None)
    if level is None or leader_id not in controllers:
        return None
    migration = next((state.state for _, state in image.tables.items(ZK_MIGRATION)), 0)
    return FeatureState(
        leader_id,
        controllers[leader_id],
        supported_by(image, BROKERS),
        controllers,
        tuple(must_register),
        finalized,
        level,
        kraft_version,
        migration,
    )


def refusal(state: FeatureState, updates: Mapping[str, int], *, downgrade: bool = False) -> str | None:
    """Kafka's text where it refuses, None where it accepts: of the first feature, in the controller's order.

    downgrade: the safe type. From 4.0 on one refusal is that of all features.
    """
    proposed = {**state.finalized, METADATA_VERSION: state.metadata_version, **updates}
    for feature in hash_order(updates):
        text = _refusal_of(state, feature, updates[feature], proposed, downgrade=downgrade)
        if text is not None:
            return text if _words_of_3(state) else _FOR_ALL + text
    return None


def blockers(state: FeatureState, updates: Mapping[str, int]) -> Iterator[Blocker]:
    """Every registration that refuses a level, brokers first."""
    for feature, level in updates.items():
        for kind, nodes in (("broker", state.brokers), ("controller", _asked_controllers(state))):
            for node_id, supported in sorted(nodes.items()):
                levels = supported.get(feature, _DISABLED)
                if level not in levels:
                    yield Blocker(kind, node_id, feature, level, levels)
    for node_id in _unregistered(state):
        for feature, level in updates.items():
            yield Blocker("controller", node_id, feature, level, None)


def _words_of_3(state: FeatureState) -> bool:
    return state.release.name.startswith("3.")


def _refusal_of(
    state: FeatureState, feature: str, level: int, proposed: Mapping[str, int], *, downgrade: bool
) -> str | None:
    current = state.level(feature)
    reason = next(_unsupported(state, feature, level), None)
    if reason is None and level < current and not downgrade:
        reason = (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or "
            "unsafe downgrade."
        )
    if reason is None and level > current and downgrade:
        reason = "Can't downgrade to a newer version."
    if reason is None and feature == METADATA_VERSION:
        return _metadata_refusal(state, level)
    if reason is None and feature == KRAFT_VERSION:
        if downgrade and level != current:
            reason = "Can't downgrade the version of this feature."
    elif reason is None:
        reason = _dependency(state, feature, level, proposed)
    return None if reason is None else f"Invalid update version {level} for feature {feature}. {reason}"


def _unsupported(state: FeatureState, feature: str, level: int) -> Iterator[str]:
    """Why a node does not support it, in the order in which the controller asks."""
    yield from _reason(f"Local controller {state.leader_id}", state.local, feature, level)
    for node_id, supported in sorted(state.brokers.items()):
        yield from _reason(f"Broker {node_id}", supported, feature, level)
    for node_id, supported in sorted(_asked_controllers(state).items()):
        if node_id != state.leader_id:
            yield from _reason(f"Controller {node_id}", supported, feature, level)
    for node_id in _unregistered(state):
        yield f"controller {node_id} has not registered, and may not support this feature"


def _asked_controllers(state: FeatureState) -> Mapping[int, Supported]:
    return state.controllers if state.metadata_version >= CONTROLLERS_REGISTER else {}


def _unregistered(state: FeatureState) -> list[int]:
    if state.metadata_version < CONTROLLERS_REGISTER:
        return []
    return [node_id for node_id in state.must_register if node_id not in state.controllers]


def _reason(who: str, supported: Supported, feature: str, level: int) -> Iterator[str]:
    levels = supported.get(feature, _DISABLED)
    if level not in levels:
        yield (
            f"{who} does not support this feature."
            if levels.high == 0
            else (f"{who} only supports versions {levels}")
        )


def _metadata_refusal(state: FeatureState, level: int) -> str | None:
    current = state.metadata_version
    if _words_of_3(state) and state.zk_migration_state in _IN_MIGRATION:
        reason = "Unable to modify metadata.version while a ZK migration is in progress."
        return f"Invalid metadata.version {level}. {reason}"
    if level >= current or is_reversible(level, current):
        return None
    why = "Refusing to perform the requested downgrade because it might delete metadata information."
    if _words_of_3(state):
        return f"Invalid metadata.version {level}. {why}"
    return f"Unsupported metadata.version downgrade from {current} to {level}. {why}"


def _dependency(state: FeatureState, feature: str, level: int, proposed: Mapping[str, int]) -> str | None:
    if _words_of_3(state):
        return None
    for other, least in state.release.dependencies.get((feature, level), {}).items():
        if proposed.get(other, -1) < least:
            return f"{feature} could not be set to {level} because it depends on {other} level {least}"
    return None


def level_words(feature: str, level: int) -> str:
    """ "metadata.version 30 (4.3-IV0)", "share.version 1"."""
    name = METADATA_LEVELS.get(level) if feature == METADATA_VERSION else None
    return f"{feature} {level}" + (f" ({name})" if name else "")
