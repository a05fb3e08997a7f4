"""The counts of compared steps, shown at the end of a test run."""

from __future__ import annotations

import pytest

COUNTS = pytest.StashKey[list[str]]()


@pytest.fixture
def show_counts(request: pytest.FixtureRequest):
    """Takes lines for the summary of the run."""
    return request.config.stash.setdefault(COUNTS, []).extend


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    lines = config.stash.get(COUNTS, [])
    if lines:
        terminalreporter.section("conformance with Kafka's raft classes")
        for line in lines:
            terminalreporter.write_line(line)
