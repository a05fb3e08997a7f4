"""docs/cli.md is what the parsers say."""

from __future__ import annotations

from tests.cli_reference import PAGE, page


def test_the_reference_is_current() -> None:
    """If not: make docs."""
    assert page() == PAGE.read_text()
