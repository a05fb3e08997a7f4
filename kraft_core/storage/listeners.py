"""A node's listeners, and what Kafka demands of them (AbstractKafkaConfig, SocketServerConfigs)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address

from kraft_core.storage.java_values import java_integer
from kraft_core.storage.tool_error import (
    ILLEGAL_ARGUMENT,
    ToolError,
    config_error,
    invalid_value,
    unmet_requirement,
)

_ADDRESS = re.compile(r"(.*)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)", re.ASCII)
_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_SECURED = ("SSL", "SASL_SSL", "SASL_PLAINTEXT")
_NOT_ROUTABLE = "0.0.0.0"
_MAP = "listener.security.protocol.map"
_INTER_BROKER = "inter.broker.listener.name"
_PROTOCOL = "security.inter.broker.protocol"


@dataclass(frozen=True, slots=True)
class Listener:
    """host: "" where the node is to take its own."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class Listeners:
    """advertised: advertised.listeners, None where it is not given. inter_broker: the listener between
    brokers; is_named: by inter.broker.listener.name. voters: controller.quorum.voters, by id.
    """

    node_id: int
    voters: Mapping[int, Listener]
    controller_names: tuple[str, ...]
    protocols: Mapping[str, str]
    listeners: tuple[Listener, ...]
    advertised: tuple[Listener, ...] | None
    inter_broker: str
    is_named: bool

    @property
    def inter_broker_protocol(self) -> str:
        """The security protocol between brokers."""
        return self.protocols.get(self.inter_broker, "") if self.is_named else self.inter_broker

    @property
    def controllers(self) -> tuple[Listener, ...]:
        return tuple(each for each in self.listeners if each.name in self.controller_names)

    @property
    def advertised_brokers(self) -> tuple[Listener, ...]:
        every = self.listeners if self.advertised is None else self.advertised
        return tuple(each for each in every if each.name not in self.controller_names)

    @property
    def advertised_controllers(self) -> list[Listener]:
        """Of each of controller.listener.names its address, where there is one. Raises ToolError."""
        found = [self._advertised(nth, name.upper()) for nth, name in enumerate(self.controller_names)]
        return [each for each in found if each is not None]

    def _advertised(self, nth: int, name: str) -> Listener | None:
        given = [each for each in self.advertised or () if each.name in self.controller_names]
        own = next((each for each in (*given, *self.controllers) if each.name == name), None)
        if own is None or own in given or own.host not in ("", _NOT_ROUTABLE):
            return own
        if nth == 0 and any(voter.host == _NOT_ROUTABLE for voter in self.voters.values()):
            raise config_error(f"Host string ({_NOT_ROUTABLE}) is not routeable")
        voter = self.voters.get(self.node_id) if nth == 0 else None
        return replace(own, host="") if voter is None else replace(voter, name=own.name)

    def check_broker_alone(self) -> None:
        if self.controllers:
            raise unmet_requirement(
                "controller.listener.names must not contain a value appearing in the 'listeners' "
                "configuration when running KRaft with just the broker role"
            )
        for name in self.controller_names:
            if name.upper() not in self.protocols:
                raise config_error(
                    f"Controller listener with name {name.upper()} defined in controller.listener.names not "
                    f"found in {_MAP}  (an explicit security mapping for each controller listener is "
                    f"required if {_MAP} is non-empty, or if there are security protocols other than "
                    "PLAINTEXT in use)"
                )

    def check_controller_alone(self) -> None:
        if len(self.advertised_controllers) != len(self.listeners):
            raise unmet_requirement(
                "The listeners config must only contain KRaft controller listeners from "
                "controller.listener.names when process.roles=controller"
            )
        if self.is_named and self.inter_broker in self.controller_names:
            raise unmet_requirement(
                "controller.listener.names must not contain an explicitly set inter.broker.listener.name "
                "configuration value when process.roles=controller'"
            )

    def check_controllers(self) -> None:
        where = "appearing in the 'listeners' configuration when running the KRaft controller role"
        if not self.advertised_controllers:
            raise unmet_requirement(f"controller.listener.names must contain at least one value {where}")
        names = {each.name for each in self.listeners}
        if not names.issuperset(self.controller_names):
            raise unmet_requirement(f"controller.listener.names must only contain values {where}")

    def check_advertised(self, *, is_broker: bool) -> None:
        brokers = [each.name for each in self.advertised_brokers]
        if is_broker:
            if not brokers:
                raise unmet_requirement(
                    "There must be at least one broker advertised listener. Perhaps all listeners appear in "
                    "controller.listener.names?"
                )
            if self.inter_broker not in brokers:
                raise unmet_requirement(
                    f"{_INTER_BROKER} must be a listener name defined in advertised.listeners. The valid "
                    f"options based on currently configured listeners are {','.join(brokers)}"
                )
            names = [each.name for each in self.listeners]
            if not set(brokers) <= set(names):
                raise unmet_requirement(
                    "advertised.listeners listener names must be equal to or a subset of the ones defined in "
                    f"listeners. Found {','.join(brokers)}. The valid options based on the current "
                    f"configuration are {','.join(names)}"
                )
        of_controllers = self.advertised_controllers
        if any(each.host == _NOT_ROUTABLE for each in (*self.advertised_brokers, *of_controllers)):
            raise unmet_requirement(
                f"advertised.listeners cannot use the nonroutable meta-address {_NOT_ROUTABLE}. Use a "
                "routable IP address."
            )


def read_listeners(
    given: Mapping[str, str],
    node_id: int,
    voters: Mapping[int, Listener],
    *,
    controller_names: Sequence[str],
    listeners: Sequence[str],
    advertised: Sequence[str] | None,
) -> Listeners:
    """given: the entries of the configuration. Raises ToolError."""
    protocol = security_protocol(given)
    protocols = _protocols(given.get(_MAP), controller_names, listeners)
    own = _parsed(listeners, protocols, distinct_ports=True)
    others = None if advertised is None else _parsed(advertised, protocols, distinct_ports=False)
    # Kafka asks for the listener between brokers when it has read all listeners.
    named = given.get(_INTER_BROKER)
    if named is not None:
        if _PROTOCOL in given:
            raise config_error(f"Only one of {_INTER_BROKER} and {_PROTOCOL} should be set.")
        if named.upper() not in protocols:
            raise config_error(
                f"Listener with name {named.upper()} defined in {_INTER_BROKER} not found in {_MAP}."
            )
    return Listeners(
        node_id,
        voters,
        tuple(controller_names),
        protocols,
        own,
        others,
        protocol if named is None else named.upper(),
        named is not None,
    )


def security_protocol(given: Mapping[str, str]) -> str:
    """security.inter.broker.protocol. Raises ToolError."""
    protocol = given.get(_PROTOCOL, _PROTOCOLS[0])
    if protocol not in _PROTOCOLS:
        raise invalid_value(_PROTOCOL, protocol, f"String must be one of: {', '.join(_PROTOCOLS)}")
    return protocol


def _protocols(text: str | None, controllers: Sequence[str], listeners: Sequence[str]) -> dict[str, str]:
    """The security protocol of each listener name."""
    if text is not None:
        found: dict[str, str] = {}
        for entry in re.split(r"\s*,\s*", text) if text else ():
            name, colon, protocol = entry.rpartition(":")
            if not colon:
                raise ToolError(
                    f"Error parsing configuration property '{_MAP}': begin 0, end -1, length {len(entry)}",
                    ILLEGAL_ARGUMENT,
                )
            if protocol.strip().upper() not in _PROTOCOLS:
                raise config_error(f"Invalid security protocol `{protocol.strip()}` defined in {_MAP}")
            found[name.strip().upper()] = protocol.strip().upper()
        return found
    known = {name: name for name in _PROTOCOLS}
    in_use = [*controllers, *(address.partition(":")[0].upper() for address in listeners)]
    if any(name in _SECURED for name in in_use):
        return known
    return known | {name: "PLAINTEXT" for name in controllers if name != "PLAINTEXT"}


def _parsed(
    addresses: Sequence[str], protocols: Mapping[str, str], *, distinct_ports: bool
) -> tuple[Listener, ...]:
    found: list[Listener] = []
    whole = f"[{', '.join(addresses)}]"
    for address in addresses:
        match = _ADDRESS.fullmatch(address)
        port = None if match is None else java_integer(match[3])
        if match is None or port is None:
            raise _unusable(whole, f"Unable to parse {address} to a broker endpoint")
        name = match[1].upper()
        if name not in protocols:
            raise _unusable(whole, f"No security protocol defined for listener {name}")
        found.append(Listener(name, match[2], port))
    if len({each.name for each in found}) != len(found):
        raise _unusable(whole, f"Each listener must have a different name, listeners: {whole}")
    if distinct_ports:
        for port in dict.fromkeys(each.port for each in found if each.port):
            _check_port(whole, port, [each.host for each in found if each.port == port])
    return tuple(found)


def _check_port(whole: str, port: int, hosts: Sequence[str]) -> None:
    """Listeners share a port only where one has an IPv4 address and the other an IPv6 address."""
    versions = [_ip_version(host) for host in hosts]
    with_ip = [version for version in versions if version is not None]
    if len(hosts) == 1 or sorted(versions, key=str) == [4, 6]:
        return
    if len(hosts) - len(with_ip) > 1:
        raise _unusable(whole, f"Each listener must have a different port, listeners: {whole}")
    if len(with_ip) == 2:
        raise _unusable(
            whole,
            "If you have two listeners on the same port then one needs to be IPv4 and the other IPv6, "
            f"listeners: {whole}, port: {port}",
        )
    raise _unusable(
        whole,
        "Each listener must have a different port unless exactly one listener has an IPv4 address and the "
        f"other IPv6 address, listeners: {whole}, port: {port}",
    )


def _ip_version(host: str) -> int | None:
    try:
        return ip_address(host).version
    except ValueError:
        return None


def _unusable(whole: str, text: str) -> ToolError:
    return ToolError(f"Error creating broker listeners from '{whole}': {text}", ILLEGAL_ARGUMENT)
