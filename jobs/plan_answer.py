"""How the answer to a question of plan is printed: text, or one line of JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from jobs.runtime.evidence_age import EvidenceAge
from jobs.runtime.outcome import ExitCode
from jobs.runtime.output import json_line, print_line, print_lines
from jobs.time_travel.moment import iso
from kraft_core.plan.answer import Answer
from kraft_core.plan.captured_quorum import CapturedQuorum


def print_answer(
    answer: Answer, quorum: CapturedQuorum, age: EvidenceAge, unread: Sequence[str], form: str
) -> int:
    """Print it. Returns the exit code: 0 only for what is safe now."""
    verdict = verdict_now(answer, age)
    if form == "json":
        print_line(json_line(as_json(answer, quorum, age, unread)))
    else:
        print_lines(lines(answer, quorum, age, unread))
    return ExitCode.FINE if verdict == "safe" else ExitCode.FOUND


def verdict_now(answer: Answer, age: EvidenceAge) -> str:
    """The verdict at the reference time: what was safe a day ago is safe as of then only."""
    if answer.verdict != "safe" or not age.is_old:
        return answer.verdict
    return "safe_as_of" if age.as_of is not None and age.as_of <= age.now else "not_known"


def lines(answer: Answer, quorum: CapturedQuorum, age: EvidenceAge, unread: Sequence[str]) -> Iterator[str]:
    """The answer as text. unread: files that could not be read."""
    verdict = verdict_now(answer, age)
    moment = f" {iso(quorum.evidence_from or quorum.as_of)}" if verdict == "safe_as_of" else ""
    yield f"{verdict.replace('_', ' ').upper()}{moment}: {answer.reason}"
    yield f"  {age.sentence}"
    if answer.exception and answer.error_text:
        yield f"  Kafka's tool prints {answer.exception}: {answer.error_text}"
    yield f"asked of cluster {quorum.cluster_id}: {answer.question}"
    for title, entries in (
        ("evidence", answer.evidence),
        ("missing", answer.missing),
        ("not read", unread),
        ("risks", [f"{risk.name}: {risk.sentence}" for risk in answer.risks]),
    ):
        if entries:
            yield f"{title}:"
            yield from (f"  {entry}" for entry in entries)
    if answer.steps:
        yield "steps:"
    for nth, step in enumerate(answer.steps, start=1):
        yield f"  {nth}. {step.what}" + (f" ({step.expect})" if step.expect else "")
        if step.command:
            yield f"     {step.command}"


def as_json(
    answer: Answer, quorum: CapturedQuorum, age: EvidenceAge, unread: Sequence[str]
) -> dict[str, Any]:
    """The answer as JSON: stable keys, times in ms."""
    return {
        "cluster_id": quorum.cluster_id,
        "as_of": quorum.as_of,
        "as_of_source": quorum.as_of_source,
        "evidence_from": quorum.evidence_from,
        "is_evidence_old": age.is_old,
        "evidence_age": age.sentence,
        "question": answer.question,
        "verdict": verdict_now(answer, age),
        "reason": answer.reason,
        "error": answer.error.name if answer.error else None,
        "exception": answer.exception,
        "error_message": answer.error_text,
        "evidence": list(answer.evidence),
        "missing": list(answer.missing),
        "unread": list(unread),
        "risks": [{"name": risk.name, "sentence": risk.sentence} for risk in answer.risks],
        "steps": [
            {"what": step.what, "command": step.command, "expect": step.expect} for step in answer.steps
        ],
    }
