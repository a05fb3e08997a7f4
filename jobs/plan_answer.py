"""How the answer to a question of plan is printed: text, or one line of JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from jobs.arguments import EPOCH
from jobs.plan_text import listed, risk_words, risks_and_steps, step_lines, steps_title
from jobs.runtime.evidence_age import EvidenceAge
from jobs.runtime.outcome import ExitCode
from jobs.runtime.output import print_answer
from jobs.time_travel.moment import iso
from kraft_core.plan.answer import Answer
from kraft_core.plan.captured_quorum import CapturedQuorum


def show_answer(
    answer: Answer,
    quorum: CapturedQuorum,
    age: EvidenceAge,
    unread: Sequence[str],
    form: str,
    refused: ExitCode = ExitCode.FOUND,
) -> int:
    """Print it. Returns the exit code: 0 only for what is safe now; `refused` for what is refused."""
    verdict = age.verdict_now(answer.verdict)
    print_answer(form, lambda: as_json(answer, quorum, age, unread), lines(answer, quorum, age, unread))
    return {"safe": ExitCode.FINE, "refused": refused}.get(verdict, ExitCode.FOUND)


def lines(answer: Answer, quorum: CapturedQuorum, age: EvidenceAge, unread: Sequence[str]) -> Iterator[str]:
    """The answer as text. unread: files that could not be read."""
    verdict = age.verdict_now(answer.verdict)
    moment = f" {iso(_ms(age))}" if verdict == "safe_as_of" else ""
    yield f"{verdict.replace('_', ' ').upper()}{moment}: {age.reason_now(answer.verdict, answer.reason)}"
    yield f"  {age.sentence}"
    if answer.exception and answer.error_text:
        yield f"  Kafka's tool prints {answer.exception}: {answer.error_text}"
    yield f"cluster {quorum.cluster_id}: {answer.question}"
    for title, entries in (
        ("evidence", answer.evidence),
        ("missing", answer.missing),
        ("not read", unread),
        ("risks", risk_words(answer.risks)),
    ):
        yield from listed(title, entries)
    yield from step_lines(answer.steps, steps_title(answer.verdict, verdict))


def _ms(age: EvidenceAge) -> int | None:
    return None if age.as_of is None else (age.as_of - EPOCH) // timedelta(milliseconds=1)


def as_json(
    answer: Answer, quorum: CapturedQuorum, age: EvidenceAge, unread: Sequence[str]
) -> dict[str, Any]:
    """The answer as JSON: stable keys, times in ms."""
    return {
        "cluster_id": quorum.cluster_id,
        "as_of": quorum.as_of,
        "as_of_source": quorum.as_of_source,
        "evidence_from": None if quorum.evidence_from is None else _ms(age),
        "is_evidence_old": age.is_old,
        "evidence_age": age.sentence,
        "question": answer.question,
        "verdict": age.verdict_now(answer.verdict),
        "reason": age.reason_now(answer.verdict, answer.reason),
        "error": answer.error.name if answer.error else None,
        "exception": answer.exception,
        "error_message": answer.error_text,
        "evidence": list(answer.evidence),
        "missing": list(answer.missing),
        "unread": list(unread),
        **({"partitions": dict(answer.partitions)} if answer.partitions else {}),
        **({"results": [dict(each) for each in answer.results]} if answer.results else {}),
        **risks_and_steps(answer.risks, answer.steps),
    }
