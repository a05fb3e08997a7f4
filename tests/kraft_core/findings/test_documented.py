"""docs/findings.md names every rule as the code has it."""

from __future__ import annotations

from pathlib import Path

from kraft_core.findings.advice import ADVICE
from kraft_core.raft.rules import ORDERED, READABLE, RULES

PAGE = Path(__file__).parents[3] / "docs/findings.md"


def test_the_page_lists_the_rules() -> None:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and line[2].isdigit()]
    rules = (READABLE, ORDERED, *RULES.values())
    with_findings = [rule for rule in rules if rule.finding and rule.reported_as is None]
    others = [rule for rule in rules if rule not in with_findings]
    assert lines == [
        *(f"| {r.number} | {r.name} | {r.demands} | {r.source} |" for r in with_findings),
        *(
            f"| {r.number} | {r.name} | {r.demands} | {r.source} | {_where(r.reported_as, r.note)} |"
            for r in others
        ),
    ]


def test_every_finding_says_what_it_means_and_what_to_do() -> None:
    rules = (READABLE, ORDERED, *RULES.values())
    assert list(ADVICE) == [rule.name for rule in rules if rule.finding and rule.reported_as is None]
    section = PAGE.read_text().partition("## What to do\n")[2].partition("\n## ")[0]
    assert [line for line in section.splitlines() if line.startswith("| ")][1:] == [
        f"| {name} | {advice.meaning} | {advice.action} |" for name, advice in ADVICE.items()
    ]


def _where(reported_as: int | None, note: str) -> str:
    return note if reported_as is None else f"reported as rule {reported_as}"
