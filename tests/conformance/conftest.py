"""The counts of compared steps, shown at the end of a test run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import cast

import pytest

COUNTS = "compared with Kafka's raft classes"


@pytest.fixture
def show_counts(record_property: Callable[[str, object], None]) -> Callable[[Iterable[str]], None]:
    """Takes lines for the summary of the run."""
    return lambda lines: record_property(COUNTS, list(lines))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The lines of all tests, also of those that other processes ran."""
    reports = [r for group in terminalreporter.stats.values() for r in group]
    called = [r for r in reports if isinstance(r, pytest.TestReport) and r.when == "call"]
    kept = [lines for r in called for name, lines in r.user_properties if name == COUNTS]
    if kept:
        terminalreporter.section("conformance with Kafka's raft classes")
    for lines in kept:
        for line in cast(list[str], lines):
            terminalreporter.write_line(line)
