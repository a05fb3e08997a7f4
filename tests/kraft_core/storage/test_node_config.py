"""Configurations that Kafka refuses, and what of them is not judged."""

from __future__ import annotations

import pytest

from kraft_core.messages.releases import RELEASES
from kraft_core.storage.node_config import NodeConfig, read_node_config
from kraft_core.storage.tool_error import ToolError
from tests.kraft_core.storage.test_formatter import CONTROLLER

BROKER = CONTROLLER | {"process.roles": "broker", "listeners": "PLAINTEXT://:9092"}


def config(entries: dict[str, str]) -> NodeConfig:
    return read_node_config(entries, RELEASES["4.3"])


@pytest.mark.parametrize(
    ("entries", "text"),
    [
        (
            CONTROLLER | {"process.roles": "x"},
            "Invalid value x for configuration process.roles: String must ",
        ),
        (
            CONTROLLER | {"node.id": "-1"},
            "Invalid value -1 for configuration node.id: Value must be at least 0",
        ),
        (CONTROLLER | {"broker.id": "2"}, "You must set `node.id` to the same value as `broker.id`."),
        (
            CONTROLLER | {"listeners": "X://:1"},
            "Error creating broker listeners from '[X://:1]': No security ",
        ),
        (
            BROKER | {"listeners": "CONTROLLER://:1"},
            "requirement failed: controller.listener.names must not ",
        ),
        (
            CONTROLLER | {"controller.quorum.voters": "2@h:1"},
            "requirement failed: If process.roles contains the ",
        ),
        (
            CONTROLLER | {"controller.quorum.bootstrap.servers": ""},
            "If using process.roles, either controller.",
        ),
        (
            BROKER | {"advertised.listeners": "PLAINTEXT://0.0.0.0:1"},
            "requirement failed: advertised.listeners cannot use the nonroutable meta-address 0.0.0.0.",
        ),
        (
            CONTROLLER | {"listeners": "CONTROLLER://a:1,PLAINTEXT://b:1"},
            "Error creating broker listeners from '[CONTROLLER://a:1, PLAINTEXT://b:1]': Each listener must "
            "have a different port, listeners: [CONTROLLER://a:1, PLAINTEXT://b:1]",
        ),
    ],
)
def test_refused(entries: dict[str, str], text: str) -> None:
    with pytest.raises(ToolError) as refused:
        config(entries)
    assert refused.value.text.startswith(text)


@pytest.mark.parametrize("name", ["process.roles", "node.id", "controller.listener.names"])
def test_what_must_be_given(name: str) -> None:
    with pytest.raises(ToolError, match=f'Missing required configuration "{name}"'):
        config({key: value for key, value in CONTROLLER.items() if key != name})


def test_a_node_is_read() -> None:
    read = config(CONTROLLER | {"log.dirs": "/b, /a", "metadata.log.dir": "/m", "num.io.threads": "8"})
    assert read.log_dirs == ("/a", "/b", "/m")
    assert (read.node_id, read.metadata_log_dir, read.is_controller) == (1, "/m", True)
    assert read.unjudged == ()
    assert config(BROKER).advertised is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num.io.threads", "0"),
        ("num.io.threads", "x"),
        ("num.io.threads", "4294967296"),
        ("auto.create.topics.enable", "yes"),
        ("ssl.client.auth", "x"),
        ("log.cleaner.threads", "2"),
        ("config.providers", "file"),
    ],
)
def test_what_is_not_judged_is_named(name: str, value: str) -> None:
    assert config(CONTROLLER | {name: value}).unjudged == (name,)


def test_listeners_share_a_port_by_ip_version_alone() -> None:
    both = "PLAINTEXT://127.0.0.1:1,CONTROLLER://[::1]:1"
    combined = CONTROLLER | {"process.roles": "broker,controller", "listeners": both}
    assert config(combined).advertised is not None
    with pytest.raises(ToolError, match="one needs to be IPv4 and the other IPv6"):
        config(combined | {"listeners": both.replace("[::1]", "127.0.0.2")})
