"""Configs of topics as brokers and controllers apply them, as far as the log shows them.

Static configs, in a node's own file, are in no log.
"""

from __future__ import annotations

from collections.abc import Iterator

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
    found = _config(image, topic_name, MIN_ISR, leader)
    return int(found) if found is not None and found.strip().isdecimal() else None


def unclean_election(image: Image, topic_name: str, controller_id: int) -> bool | None:
    """Whether the controller may elect a replica that is not in sync; None where only its file says it."""
    found = _config(image, topic_name, UNCLEAN_ELECTION, controller_id)
    return None if found is None else found.strip().lower() == "true"


def _config(image: Image, topic_name: str, name: str, node_id: int) -> str | None:
    """The topic's, else the node's, else the cluster's (KafkaConfigSchema.resolveEffectiveTopicConfig)."""
    for resource in _resources(topic_name, node_id):
        config: Config | None = image.tables.get(CONFIGS, (*resource, name))
        if config is not None:
            return config.value
    return None


def _resources(topic_name: str, node_id: int) -> Iterator[tuple[int, str]]:
    yield TOPIC_RESOURCE, topic_name
    yield BROKER_RESOURCE, str(node_id)
    yield BROKER_RESOURCE, ""
