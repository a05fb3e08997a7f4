"""The options of format("kraft") and format("kraft_quorum") on running quorums."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kraft_core.addresses import parse_address
from kraft_core.messages.schema import Message
from kraft_core.wire.observing import NodeAddress
from transforms.live.security import ListenerSecurity, read_properties
from transforms.source.columns import message_of
from transforms.source.errors import SourceError
from transforms.source.options import must_be_known

CONTROLLERS, SERVERS, CLUSTERS = "bootstrap.controllers", "bootstrap.servers", "clusters"
KAFKA = "kafka."
# The name of the only cluster, where none is named.
ONLY = "cluster"
EARLIEST, LATEST = "earliest", "latest"
_OF_QUORUM = (CONTROLLERS, SERVERS, "clusterId", "command.config")
_OF_LOG = (CONTROLLERS, "clusterId", "command.config", "startingOffsets")
# Of format("kraft_quorum") and of format("kraft"), beside kafka.*.
OF_QUORUM_STREAM = (*_OF_QUORUM, CLUSTERS)
OF_STREAM = (*_OF_LOG, CLUSTERS, "maxOffsetsPerTrigger", "failOnDataLoss", "types")
# Of a cluster in kraftlake.toml (docs/kraftlake.toml).
_IN_SETTINGS = {
    "bootstrap_controllers": CONTROLLERS,
    "id": "clusterid",
    "command_config": "command.config",
}
# Bounds the memory of the driver.
MAX_OFFSETS = 200_000


@dataclass(frozen=True, slots=True)
class LiveCluster:
    """A quorum to follow. name: in offsets. start: earliest, latest or an offset."""

    name: str
    addresses: tuple[NodeAddress, ...]
    security: ListenerSecurity
    cluster_id: str | None
    start: str

    def asked_last(self, silent: Collection[NodeAddress]) -> LiveCluster:
        """The same with these addresses after the others: each one that hangs costs seconds."""
        return replace(self, addresses=tuple(sorted(self.addresses, key=lambda each: each in silent)))


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """max_offsets: of all clusters, a trigger."""

    clusters: tuple[LiveCluster, ...]
    max_offsets: int = MAX_OFFSETS
    fail_on_data_loss: bool = True
    types: tuple[Message, ...] = ()


def is_live(given: Iterable[str]) -> bool:
    """Whether options select a running quorum."""
    return not {name.lower() for name in given}.isdisjoint((CONTROLLERS, SERVERS, CLUSTERS))


def live_options(given: Mapping[str, str]) -> LiveOptions:
    """The options from their texts, whose names are in any case. Raises SourceError."""
    options = {name.lower(): text for name, text in given.items()}
    if SERVERS in options:
        raise SourceError(f"brokers do not serve the metadata log: give controllers in option {CONTROLLERS}")
    types = [word.strip() for word in options.get("types", "").split(",") if word.strip()]
    return LiveOptions(
        _all_clusters(given, OF_STREAM, _OF_LOG),
        _positive(options, "maxOffsetsPerTrigger", MAX_OFFSETS),
        _flag(options, "failOnDataLoss"),
        tuple(dict.fromkeys(map(message_of, types))),
    )


def quorum_options(given: Mapping[str, str]) -> tuple[LiveCluster, ...]:
    """The quorums that format("kraft_quorum") asks. Raises SourceError."""
    return _all_clusters(given, OF_QUORUM_STREAM, _OF_QUORUM)


def _all_clusters(
    given: Mapping[str, str], known: Iterable[str], of_cluster: tuple[str, ...]
) -> tuple[LiveCluster, ...]:
    """Each with its own options, and those that are given for all."""
    must_be_known(given, known, KAFKA)
    options = {name.lower(): text for name, text in given.items()}
    shared = {name: text for name, text in options.items() if name.startswith(KAFKA)}
    shared |= {name.lower(): options[name.lower()] for name in of_cluster if name.lower() in options}
    return tuple(_cluster(name, shared | own) for name, own in _clusters(options, of_cluster).items())


def _clusters(options: Mapping[str, str], known: tuple[str, ...]) -> dict[str, dict[str, str]]:
    """Of each cluster its own options, by its name."""
    if CLUSTERS not in options:
        return {ONLY: {}}
    if not options[CLUSTERS].lstrip().startswith("{"):
        return _of_settings(options[CLUSTERS])
    example = '{"prod": {"bootstrap.controllers": "h1:9093,h2:9093"}}'
    try:
        found = json.loads(options[CLUSTERS])
    except ValueError:
        found = None
    if not isinstance(found, dict) or not found or not all(isinstance(own, dict) for own in found.values()):
        raise SourceError(
            "option clusters is the path of a kraftlake.toml, or a JSON object that maps names of clusters "
            f"to their options, as in {example}"
        )
    clusters: dict[str, dict[str, str]] = {}
    for name, own in found.items():
        must_be_known(own, known, KAFKA)
        clusters[name] = {key.lower(): str(text) for key, text in own.items()}
    return clusters


def _of_settings(file: str) -> dict[str, dict[str, str]]:
    """The clusters of a kraftlake.toml that have bootstrap_controllers, as `kraftlake follow` reads them."""
    try:
        content: dict[str, Any] = tomllib.loads(Path(file).read_text())
    except (OSError, ValueError, RecursionError) as error:
        raise SourceError(
            f"option clusters is JSON, or the path of a kraftlake.toml: {file} cannot be read: {error}"
        ) from None
    clusters: dict[str, dict[str, str]] = {}
    sections = content.get("clusters")
    for name, facts in sections.items() if isinstance(sections, dict) else ():
        if isinstance(facts, dict) and "bootstrap_controllers" in facts:
            clusters[name] = {key: str(facts[at]) for at, key in _IN_SETTINGS.items() if at in facts}
    if not clusters:
        raise SourceError(f"{file}: no section [clusters.NAME] has bootstrap_controllers")
    return clusters


def _cluster(name: str, options: Mapping[str, str]) -> LiveCluster:
    properties = read_properties(options["command.config"]) if "command.config" in options else {}
    properties |= {key.removeprefix(KAFKA): text for key, text in options.items() if key.startswith(KAFKA)}
    start = options.get("startingoffsets", EARLIEST).lower()
    if start.startswith("{"):
        start = _start_of(name, start)
    if start not in (EARLIEST, LATEST) and not (start.isascii() and start.isdecimal()):
        raise SourceError(
            f"option startingOffsets is {EARLIEST}, {LATEST}, an offset, or JSON of these by cluster"
        )
    given = options.get(CONTROLLERS) or options.get(SERVERS)
    if not given:
        raise SourceError(f"cluster {name} has no {CONTROLLERS}: give its controllers, as in h1:9093,h2:9093")
    return LiveCluster(
        name,
        addresses(given),
        ListenerSecurity.of(properties),
        options.get("clusterid"),
        start,
    )


def _start_of(name: str, text: str) -> str:
    try:
        found: Any = json.loads(text)
    except ValueError:
        raise SourceError("option startingOffsets is not valid JSON") from None
    return str(found.get(name.lower(), EARLIEST))


def addresses(text: str) -> tuple[NodeAddress, ...]:
    """Of HOST:PORT,HOST:PORT. Raises SourceError."""
    found: list[NodeAddress] = []
    for word in filter(None, (word.strip() for word in text.split(","))):
        place = parse_address(word)
        if place is None:
            raise SourceError(f"{word!r} is not HOST:PORT")
        found.append(NodeAddress(*place))
    if not found:
        raise SourceError("no address is given: give controllers, as in h1:9093,h2:9093")
    return tuple(found)


def _positive(options: Mapping[str, str], name: str, default: int) -> int:
    text = options.get(name.lower(), str(default))
    if not (text.isascii() and text.isdecimal() and int(text)):
        raise SourceError(f"option {name}: {text!r} is not a positive whole number")
    return int(text)


def _flag(options: Mapping[str, str], name: str) -> bool:
    text = options.get(name.lower(), "true").lower()
    if text not in ("true", "false"):
        raise SourceError(f"option {name} must be true or false")
    return text == "true"
