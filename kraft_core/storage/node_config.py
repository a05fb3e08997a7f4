"""A node's configuration, as far as kafka-storage needs it (KafkaConfig, AbstractKafkaConfig, QuorumConfig).

Judged are the entries that say who the node is: its roles, id, directories, listeners and quorum. Numbers and
truth values that Kafka takes in any case are passed over. Everything else is named as not judged: Kafka may
refuse its value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kraft_core.messages.configs import CONFIG_TYPES
from kraft_core.messages.node_configs import ACCEPTED_FROM, FREE_TEXTS
from kraft_core.messages.releases import Release
from kraft_core.storage.java_values import java_integer
from kraft_core.storage.listeners import Listener, Listeners, read_listeners, security_protocol
from kraft_core.storage.tool_error import config_error, invalid_value, unmet_requirement

BROKER, CONTROLLER = "broker", "controller"
_ROLES = (BROKER, CONTROLLER)
_UNSTABLE = "unstable.feature.versions.enable"
_VOTERS = "controller.quorum.voters"
_BOOTSTRAP = "controller.quorum.bootstrap.servers"
_AUTO_JOIN = "controller.quorum.auto.join.enable"
_MECHANISMS = "sasl.enabled.mechanisms"
_MECHANISM = "sasl.mechanism.inter.broker.protocol"
_DEFAULT_MECHANISM = "GSSAPI"
_JUDGED = frozenset(
    {
        *("process.roles", "node.id", "broker.id", "controller.listener.names", "listeners"),
        *("advertised.listeners", "listener.security.protocol.map", "inter.broker.listener.name"),
        *("security.inter.broker.protocol", "log.dir", "log.dirs", "metadata.log.dir"),
        *(_UNSTABLE, _VOTERS, _BOOTSTRAP, _AUTO_JOIN, _MECHANISMS, _MECHANISM),
    }
)
_HOST_PORT = re.compile(r"(?:[0-9a-zA-Z\-%._]*://)?\[?([0-9a-zA-Z\-%._:]*)]?:([0-9]+)", re.ASCII)
_OTHER_BROKER_ID = {
    "4.3": "You must set `node.id` to the same value as `broker.id`.",
    "4.4": (
        "`node.id` and `broker.id` must be set to the same value. `broker.id` is deprecated, please use "
        "`node.id` instead."
    ),
}
# The directory kafka-logs for temporary files.
_DEFAULT_LOG_DIR = "/".join(("", "tmp", "kafka-logs"))
_BITS = {"short": 16, "int": 32, "long": 64}


@dataclass(frozen=True, slots=True)
class NodeConfig:
    """log_dirs: those that kafka-storage formats, sorted, with the metadata log directory.

    controller_listener: the first of controller.listener.names. advertised: where the node's controller
    listens by its configuration, None on a broker. static_voters: the ids in controller.quorum.voters.
    unjudged: names of entries of which it is not known whether Kafka takes their values.
    """

    node_id: int
    roles: frozenset[str]
    log_dirs: tuple[str, ...]
    metadata_log_dir: str
    controller_listener: str
    advertised: Listener | None
    static_voters: frozenset[int]
    unstable_features: bool
    unjudged: tuple[str, ...]

    @property
    def is_controller(self) -> bool:
        return CONTROLLER in self.roles


def read_node_config(entries: Mapping[str, str], release: Release) -> NodeConfig:
    """The entries of a server.properties. Raises ToolError where that release (4.3, 4.4) refuses them."""
    given = {name: value.strip() for name, value in entries.items()}
    given = _with_synonyms(given)
    # In the order in which Kafka parses them.
    broker_id = _number(given, "broker.id")
    unstable = _truth(given, _UNSTABLE)
    roles = _list(given, "process.roles", required=True, allowed=_ROLES)
    node_id = _number(given, "node.id", required=True)
    if node_id < 0:
        raise invalid_value("node.id", node_id, "Value must be at least 0")
    controller_names = _list(given, "controller.listener.names", required=True)
    addresses = _list(given, "listeners", default=("PLAINTEXT://:9092",))
    advertised = _list(given, "advertised.listeners") if "advertised.listeners" in given else None
    security_protocol(given)
    one_dir = _list(given, "log.dir", default=(_DEFAULT_LOG_DIR,))
    log_dirs = _list(given, "log.dirs") if "log.dirs" in given else one_dir
    voters = _static_voters(_plain_list(given, _VOTERS))
    servers = _plain_list(given, _BOOTSTRAP)
    _check_servers(servers)
    _mechanisms(given, _MECHANISMS)
    auto_join = _truth(given, _AUTO_JOIN)
    listeners = read_listeners(
        given,
        node_id,
        voters,
        controller_names=controller_names,
        listeners=addresses,
        advertised=advertised,
    )
    if node_id != broker_id:
        raise config_error(_OTHER_BROKER_ID.get(release.name, _OTHER_BROKER_ID["4.3"]))
    _check_roles(
        _Quorum(node_id, frozenset(roles), frozenset(voters), has_servers=bool(servers), auto_join=auto_join),
        listeners,
    )
    _check_sasl(given, listeners)
    metadata_log_dir = given.get("metadata.log.dir") or log_dirs[0]
    return NodeConfig(
        node_id,
        frozenset(roles),
        tuple(sorted({*log_dirs, metadata_log_dir})),
        metadata_log_dir,
        listeners.controller_names[0],
        next(iter(listeners.advertised_controllers), None),
        frozenset(voters),
        unstable,
        tuple(sorted(name for name, value in given.items() if not _is_taken(name, value))),
    )


def _is_taken(name: str, value: str) -> bool:
    """Whether Kafka takes the entry in any case."""
    type_ = CONFIG_TYPES.get(name)
    if name in _JUDGED | FREE_TEXTS or (type_ is None and not name.startswith("config.providers")):
        return True
    if type_ == "boolean":
        return value.lower() in ("true", "false")
    least = ACCEPTED_FROM.get(name)
    number = java_integer(value, _BITS.get(type_ or "", 32))
    return least is not None and number is not None and number >= least


def _with_synonyms(given: dict[str, str]) -> dict[str, str]:
    """broker.id and node.id stand for each other where only one is given."""
    for name, other in (("broker.id", "node.id"), ("node.id", "broker.id")):
        if name in given and other not in given:
            return {**given, other: given[name]}
    return given


def _number(given: Mapping[str, str], name: str, *, required: bool = False) -> int:
    if name not in given:
        if required:
            raise _missing(name)
        return -1
    value = java_integer(given[name])
    if value is None:
        raise invalid_value(name, given[name], "Not a number of type INT")
    return value


def _truth(given: Mapping[str, str], name: str) -> bool:
    value = given.get(name, "false")
    if value.lower() not in ("true", "false"):
        raise invalid_value(name, value, "Expected value to be either true or false")
    return value.lower() == "true"


def _plain_list(given: Mapping[str, str], name: str) -> list[str]:
    text = given.get(name, "")
    return re.split(r"\s*,\s*", text) if text else []


def _list(
    given: Mapping[str, str],
    name: str,
    *,
    required: bool = False,
    default: tuple[str, ...] = (),
    allowed: tuple[str, ...] = (),
) -> list[str]:
    """Kafka's ValidList, of which none may be empty; duplicates are dropped."""
    if name not in given:
        if required:
            raise _missing(name)
        return list(default)
    values = list(dict.fromkeys(_plain_list(given, name)))
    if not values:
        words = f"[{', '.join(allowed)}]" if allowed else "any non-empty value"
        raise config_error(f"Configuration '{name}' must not be empty. Valid values include: {words}")
    for value in values:
        if not value:
            raise config_error(f"Configuration '{name}' values must not be empty.")
        if allowed and value not in allowed:
            raise invalid_value(name, value, f"String must be one of: {', '.join(allowed)}")
    return values


def _missing(name: str) -> Exception:
    return config_error(f'Missing required configuration "{name}" which has no default value.')


def _static_voters(entries: list[str]) -> dict[int, Listener]:
    """controller.quorum.voters: where each voter listens, by its id."""
    shape = "Each entry should be in the form `{id}@{host}:{port}`."
    found: dict[int, Listener] = {}
    for entry in entries:
        parts = entry.split("@")
        while parts and not parts[-1]:
            parts.pop()
        if len(parts) != 2:
            raise config_error(f"Invalid configuration value for {_VOTERS}. {shape}")
        voter_id = java_integer(parts[0])
        if voter_id is None:
            raise config_error(f"Failed to parse voter ID as an integer from {parts[0]}")
        match = _HOST_PORT.fullmatch(parts[1])
        if match is None:
            raise config_error(
                f"Failed to parse host name from entry {entry} for the configuration {_VOTERS}. {shape}"
            )
        found[voter_id] = Listener("", match[1], int(match[2]))
    return found


def _check_servers(entries: list[str]) -> None:
    for entry in entries:
        if _HOST_PORT.fullmatch(entry) is None:
            raise config_error(
                f"Failed to parse host name from {entry} for the configuration {_BOOTSTRAP}. Each entry "
                'should be in the form "{host}:{port}"'
            )


@dataclass(frozen=True, slots=True)
class _Quorum:
    node_id: int
    roles: frozenset[str]
    voters: frozenset[int]
    has_servers: bool
    auto_join: bool


def _check_roles(quorum: _Quorum, listeners: Listeners) -> None:
    """KafkaConfig.validateValues, in its order. Raises ToolError."""
    if not quorum.voters and not quorum.has_servers:
        raise config_error(
            "If using process.roles, either controller.quorum.bootstrap.servers must contain the set of "
            "bootstrap controllers or controller.quorum.voters must contain a parseable set of controllers."
        )
    ids = _scala_set(quorum.voters)
    if quorum.roles == frozenset({BROKER}):
        if quorum.node_id in quorum.voters:
            raise unmet_requirement(
                f"If process.roles contains just the 'broker' role, the node id {quorum.node_id} must not be "
                f"included in the set of voters {_VOTERS}={ids}"
            )
        listeners.check_broker_alone()
        if quorum.auto_join:
            raise unmet_requirement(
                f"{_AUTO_JOIN} is only supported when process.roles contains the 'controller' role."
            )
    else:
        if quorum.roles == frozenset({CONTROLLER}):
            listeners.check_controller_alone()
        if quorum.voters and quorum.node_id not in quorum.voters:
            raise unmet_requirement(
                f"If process.roles contains the 'controller' role, the node id {quorum.node_id} must be "
                f"included in the set of voters {_VOTERS}={ids}"
            )
        listeners.check_controllers()
    listeners.check_advertised(is_broker=BROKER in quorum.roles)


def _mechanisms(given: Mapping[str, str], name: str) -> list[str]:
    """A list of SASL mechanisms, which may be empty. Raises ToolError."""
    values = _plain_list(given, name) if name in given else [_DEFAULT_MECHANISM]
    if not all(values):
        raise config_error(f"Configuration '{name}' values must not be empty.")
    return values


def _check_sasl(given: Mapping[str, str], listeners: Listeners) -> None:
    """Raises ToolError."""
    if not listeners.inter_broker_protocol.startswith("SASL_"):
        return
    own = f"listener.name.{listeners.inter_broker.lower()}.{_MECHANISMS}"
    mechanisms = _mechanisms(given, own if own in given else _MECHANISMS)
    if given.get(_MECHANISM, _DEFAULT_MECHANISM) not in mechanisms:
        raise unmet_requirement(
            f"{_MECHANISM} must be included in {_MECHANISMS} when SASL is used for inter-broker communication"
        )


def _scala_set(ids: frozenset[int]) -> str:
    return f"Set({', '.join(map(str, sorted(ids)))})"
