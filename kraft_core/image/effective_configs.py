"""Configs of topics as brokers and controllers apply them, as far as the log shows them.

Static configs, in a node's own file, are in no log.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from kraft_core.image.configs import TOPIC_RESOURCE, Config
from kraft_core.image.features import Feature
from kraft_core.image.image import Image
from kraft_core.image.tables import CONFIGS, FEATURES
from kraft_core.messages.releases import ELR_VERSION

MIN_ISR = "min.insync.replicas"
UNCLEAN_ELECTION = "unclean.leader.election.enable"
BROKER_RESOURCE = 4  # ConfigResource.Type.BROKER


def elr_enabled(image: Image) -> bool:
    feature: Feature | None = image.tables.get(FEATURES, (ELR_VERSION,))
    return feature is not None and feature.level > 0


def min_isr(image: Image, topic_name: str, leader: int) -> int | None:
    """min.insync.replicas of a topic as its leader knows it; None where only that broker's file says it."""
    return _number(_config(image, MIN_ISR, _resources(topic_name, leader)))


def min_isr_default(image: Image, leader: int) -> int | None:
    """The same of a topic without a config of its own."""
    return _number(_config(image, MIN_ISR, _broker_resources(leader)))


def unclean_election(image: Image, topic_name: str, controller_id: int) -> bool | None:
    """Whether the controller may elect a replica that is not in sync; None where only its file says it."""
    return _is_on(_config(image, UNCLEAN_ELECTION, _resources(topic_name, controller_id)))


def unclean_election_default(image: Image, controller_id: int) -> bool | None:
    """The same of a topic without a config of its own."""
    return _is_on(_config(image, UNCLEAN_ELECTION, _broker_resources(controller_id)))


def _number(value: str | None) -> int | None:
    return int(value) if value is not None and value.strip().isdecimal() else None


def _is_on(value: str | None) -> bool | None:
    return None if value is None else value.strip().lower() == "true"


def _config(image: Image, name: str, resources: Iterable[tuple[int, str]]) -> str | None:
    """Of the first resource that has it (KafkaConfigSchema.resolveEffectiveTopicConfig)."""
    for resource in resources:
        config: Config | None = image.tables.get(CONFIGS, (*resource, name))
        if config is not None:
            return config.value
    return None


def _resources(topic_name: str, node_id: int) -> Iterator[tuple[int, str]]:
    """The topic, the node, the cluster."""
    yield TOPIC_RESOURCE, topic_name
    yield from _broker_resources(node_id)


def _broker_resources(node_id: int) -> Iterator[tuple[int, str]]:
    yield BROKER_RESOURCE, str(node_id)
    yield BROKER_RESOURCE, ""
