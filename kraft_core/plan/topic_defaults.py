"""What brokers and controllers apply to a topic that has no config of its own, by a name of a broker config.

The dynamic configs of the cluster and of single brokers are in the log. Below them is a node's own file: of
the controllers' it is known if it was given, and brokers are taken to have the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from kraft_core.image.configs import Config
from kraft_core.image.effective_configs import BROKER_RESOURCE
from kraft_core.image.tables import CONFIGS
from kraft_core.topic_control.controller import ActiveController


def defaults(controller: ActiveController, name: str) -> list[str]:
    """Every value that a broker may apply: those of single brokers, and the cluster's, else the file's."""
    values = [config.value for config in _dynamic(controller, name)]
    if not _is_clusters(controller, name):
        values.append(controller.file.get(name))
    return values


def is_assumed(controller: ActiveController, name: str) -> bool:
    """Whether a default of Kafka stands for that of a file that was not given."""
    return not controller.file.is_given and not _is_clusters(controller, name)


def in_file(name: str) -> str:
    """What is missing where that default decides."""
    return f"{name}: the nodes' files are not in the log (give --controller-config FILE)"


def _is_clusters(controller: ActiveController, name: str) -> bool:
    return controller.image.tables.get(CONFIGS, (BROKER_RESOURCE, "", name)) is not None


def _dynamic(controller: ActiveController, name: str) -> Iterator[Config]:
    for key, config in controller.image.tables.items(CONFIGS):
        if key[0] == BROKER_RESOURCE and key[2] == name:
            yield config
