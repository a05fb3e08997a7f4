"""The answer to a question about a change: a verdict, its evidence, and what to do.

A plan of the voters has verdicts of its own (kraft_core.plan.verdict); every other question of `plan` is
answered in this form.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from kraft_core.plan.risks import Risk
from kraft_core.plan.steps import PlanStep
from kraft_core.plan.verdict import EXCEPTIONS
from kraft_core.protocol.errors import ErrorCode

AnswerName = Literal["safe", "risky", "refused", "not_known"]


@dataclass(frozen=True, slots=True)
class Answer:
    """safe: Kafka accepts the change. risky: it does, at a price: each of `risks`. refused: its answer is an
    error. not_known: the captures do not decide it.

    question: what was asked, in words. evidence: what the verdict rests on, with offsets. missing: what to
    capture to know a verdict that is not known. error, error_text: Kafka's, where it refuses. partitions: of
    a question about brokers, every partition (TOPIC-N) by what becomes of it. results: of a question about
    topics, the answer about each, with the records.
    """

    question: str
    verdict: AnswerName
    reason: str
    evidence: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    risks: tuple[Risk, ...] = ()
    steps: tuple[PlanStep, ...] = ()
    error: ErrorCode | None = None
    error_text: str | None = None
    partitions: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    results: tuple[Mapping[str, Any], ...] = ()

    @property
    def exception(self) -> str | None:
        """What Kafka's tools print for the error."""
        return EXCEPTIONS.get(self.error) if self.error else None
