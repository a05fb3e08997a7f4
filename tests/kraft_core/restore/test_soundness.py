"""No restoration without a named loss lacks what was committed: random quorums whose truth is known.

The seed differs from run to run and is in every failure.
"""

from __future__ import annotations

import random
import time
from dataclasses import replace

import pytest

from kraft_core.evidence.conclusions import conclude
from kraft_core.findings.judge import judge
from kraft_core.restore.choice import Choice, choose, line_ends
from tests.soundness.captures import Copy, facts_of, held_by
from tests.soundness.drawing import random_copies, random_execution
from tests.soundness.execution import Execution

RUNS = 400
EVERYONE = frozenset(range(1, 10))


def _choices(execution: Execution, copies: tuple[Copy, ...]) -> list[Choice]:
    """By the best claim, also with a node gone, and by the end of each log as somebody may name it."""
    known = conclude(facts_of((execution,), copies))
    findings = judge(known)
    lines = [None, *sorted(line_ends(known))]
    captured = {capture.node_id for capture in known.facts.captures}
    gone = EVERYONE - captured
    backups = [choose(known, findings, gone | {node}, are_stopped=True) for node in sorted(captured)[:1]]
    return [*backups, *(choose(known, findings, gone, are_stopped=True, line=line) for line in lines)]


def _lacked(execution: Execution, copies: tuple[Copy, ...], choice: Choice, by: int) -> list[object]:
    """What was committed by a time and the source does not hold."""
    captures = facts_of((execution,), copies).captures
    assert choice.capture is not None
    place = [capture.capture_id for capture in captures].index(choice.capture.capture_id)
    log = held_by(execution, copies[place])
    committed = execution.committed_by(by)
    return [batch for batch in committed if not log.covers(batch, execution.committed_at)]


@pytest.mark.parametrize("all_at_the_end", [True, False])
def test_what_is_called_safe_has_all_that_was_committed(all_at_the_end: bool) -> None:
    """Copies of the last moment, so that the statement is true; else what was committed by their as_of."""
    first, safe = time.time_ns() % 1_000_000_000, 0
    for seed in range(first, first + RUNS):
        source = random.Random(seed)
        execution = random_execution(source)
        copies = random_copies(source, execution)
        last = len(execution.moments) - 1
        if all_at_the_end:
            stated = (None if copy.stated is None else execution.at[last] for copy in copies)
            copies = tuple(
                replace(copy, log_at=last, files_at=last, stated=at)
                for copy, at in zip(copies, stated, strict=True)
            )
        for choice in _choices(execution, copies):
            if choice.refusals or choice.losses:
                continue
            safe += 1
            as_of = choice.advice.as_of
            by = execution.at[last] if all_at_the_end or as_of is None else as_of
            assert _lacked(execution, copies, choice, by) == [], f"seed {seed}"
    assert safe > RUNS // 50
