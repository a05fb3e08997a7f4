"""Connections to nodes on loopback."""

from __future__ import annotations

import socket

import pytest

from kraft_core.wire.errors import WireError
from kraft_core.wire.observing import NodeAddress
from transforms.live import connection
from transforms.live.security import ListenerSecurity


def test_a_node_that_hangs_is_not_waited_for_as_long_as_for_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A paused process takes connections, too. Here ANSWER_SECONDS could not be set as a timeout."""
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 0.2)
    monkeypatch.setattr(connection, "ANSWER_SECONDS", -1)
    with socket.create_server(("127.0.0.1", 0)) as hung:
        address = NodeAddress("127.0.0.1", hung.getsockname()[1])
        with pytest.raises(WireError, match="no answer in time"):
            connection.NodeConnection(address, ListenerSecurity())
