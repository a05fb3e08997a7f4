"""Addresses of listeners, written and read."""

from __future__ import annotations

import pytest

from kraft_core.addresses import address_text, parse_address


@pytest.mark.parametrize(("host", "port"), [("host-1.example", 9093), ("10.0.0.1", 1), ("::1", 65535)])
def test_written_and_read(host: str, port: int) -> None:
    assert parse_address(address_text(host, port)) == (host, port)


def test_brackets_only_around_ipv6() -> None:
    assert address_text("fe80::1%eth0", 9093) == "[fe80::1%eth0]:9093"
    assert address_text("h", 9093) == "h:9093"


@pytest.mark.parametrize(
    "text",
    [
        *("", "h", "h:", ":9093", "h:0", "h:65536", "h:-1", "h:9a", "h:٣", "h:1:2"),
        *("[::1:9093", "::1]:9093", "::1:9093", "[]:9093", "[h]:9093", "[[::1]]:9093"),
    ],
)
def test_what_is_no_address(text: str) -> None:
    assert parse_address(text) is None
