"""docs/findings.md names every rule as the code has it."""

from __future__ import annotations

from pathlib import Path

from kraft_core.findings.finding import ORDERED, READABLE
from kraft_core.raft.rules import RULES

PAGE = Path(__file__).parents[3] / "docs/findings.md"


def test_the_page_lists_the_rules() -> None:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and line[2].isdigit()]
    rules = (READABLE, ORDERED, *RULES.values())
    assert lines == [f"| {r.number} | {r.name} | {r.demands} | {r.source} |" for r in rules]
