"""The common end of every answer of plan, as text and as JSON: lists, risks and steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kraft_core.plan.risks import Risk
    from kraft_core.plan.steps import PlanStep


def listed(title: str, entries: Sequence[str]) -> Iterator[str]:
    """A title with its entries below it; nothing where there are none."""
    if entries:
        yield f"{title}:"
        yield from (f"  {entry}" for entry in entries)


def risk_words(risks: Iterable[Risk]) -> list[str]:
    return [f"{risk.name}: {risk.sentence}" for risk in risks]


def steps_title(verdict: str, now: str) -> str:
    """verdict: by the captures. now: at the time of the answer, when the captures may no longer tell."""
    return "steps" if verdict == now else "steps, once new captures say SAFE"


def step_lines(steps: Sequence[PlanStep], title: str = "steps") -> Iterator[str]:
    if steps:
        yield f"{title}:"
    for nth, step in enumerate(steps, start=1):
        yield f"  {nth}. {step.what}" + (f" ({step.expect})" if step.expect else "")
        if step.command:
            yield f"     {step.command}"


def risks_and_steps(risks: Iterable[Risk], steps: Iterable[PlanStep]) -> dict[str, Any]:
    """The last fields of the JSON answer."""
    return {
        "risks": [{"name": risk.name, "sentence": risk.sentence} for risk in risks],
        "steps": [{"what": step.what, "command": step.command, "expect": step.expect} for step in steps],
    }
