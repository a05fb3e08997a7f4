"""Addresses as Kafka's properties and tools write them: HOST:PORT, an IPv6 host in brackets."""

from __future__ import annotations

import re

_ADDRESS = re.compile(r"(?:\[(?P<v6>[^\[\]]*:[^\[\]]*)\]|(?P<name>[^\[\]:]+)):(?P<port>[0-9]+)")


def address_text(host: str, port: int) -> str:
    """host:port or [host]:port (RaftVoterEndpoint.toString)."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_address(text: str) -> tuple[str, int] | None:
    """The host, without brackets, and the port, 1 to 65535; None if the text is no address."""
    match = _ADDRESS.fullmatch(text)
    if match is None or not 0 < int(match["port"]) < 1 << 16:
        return None
    return match["v6"] or match["name"], int(match["port"])
