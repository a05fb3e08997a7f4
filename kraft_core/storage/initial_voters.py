"""--initial-controllers: the voters of a new quorum (Kafka's DynamicVoter and DynamicVoters)."""

from __future__ import annotations

from ipaddress import IPv6Address

from kraft_core.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from kraft_core.storage.java_values import java_integer, java_uuid
from kraft_core.storage.tool_error import ILLEGAL_ARGUMENT, ToolError

_MOST_PORT = 65535
# What the software of 4.3 and 4.4 supports of kraft.version, as it stands in the voters that it writes.
KRAFT_VERSIONS = (0, 1)


def parse_voters(text: str, listener_name: str) -> VoterSet:
    """ID@HOST:PORT:DIRECTORY_ID, separated by commas. Raises ToolError.

    listener_name: of the controllers, which the entries do not name.
    """
    parts = text.split(",")
    found: dict[int, Voter] = {}
    voters = [_voter(part, listener_name) for part in parts if part]
    if not voters:
        raise _refused("No voters given.")
    for voter in voters:
        if voter.key.id in found:
            raise _refused(f"Node id {voter.key.id} was specified more than once.")
        found[voter.key.id] = voter
    return VoterSet.of(found.values())


def _voter(text: str, listener_name: str) -> Voter:
    id_text, at, rest = text.strip().partition("@")
    if not at:
        raise _refused("No @ found in dynamic voter string.")
    if not id_text:
        raise _refused("Invalid @ at beginning of dynamic voter string.")
    node_id = java_integer(id_text)
    if node_id is None:
        raise _refused("Failed to parse node id in dynamic voter string.")
    if node_id < 0:
        raise _refused(f"Invalid negative node id {node_id} in dynamic voter string.")
    if not rest:
        raise _refused("No hostname found after node id.")
    host, rest = _host(rest)
    port_text, colon, directory = rest.partition(":")
    if not colon:
        raise _refused("No colon following port could be found.")
    port = java_integer(port_text)
    if port is None:
        raise _refused("Failed to parse port in dynamic voter string.")
    if not 0 <= port <= _MOST_PORT:
        raise _refused(f"Invalid port {port} in dynamic voter string.")
    try:
        key = ReplicaKey.of(node_id, java_uuid(directory))
    except ValueError:
        raise _refused("Failed to parse directory ID in dynamic voter string.") from None
    return Voter(key, (Endpoint(listener_name.upper(), _written(host), port),), *KRAFT_VERSIONS)


def _written(host: str) -> str:
    """As Java's InetSocketAddress gives it back: an IPv6 address with all its groups."""
    try:
        address = IPv6Address(host)
    except ValueError:
        return host
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))


def _host(text: str) -> tuple[str, str]:
    """The host, and what follows the colon after it."""
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket:
            raise _refused("Hostname began with left bracket, but no right bracket was found.")
    else:
        host, colon, rest = text.partition(":")
        if not colon:
            raise _refused("No colon following hostname could be found.")
        rest = f":{rest}"
    if not rest.startswith(":"):
        raise _refused("Port section must start with a colon.")
    return host, rest[1:]


def _refused(text: str) -> ToolError:
    return ToolError(text, ILLEGAL_ARGUMENT)
