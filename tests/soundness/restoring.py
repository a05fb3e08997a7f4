"""Restorations said to lose nothing, compared with the execution: whether the chosen log holds all of it.

What somebody states is drawn truly: of a node that is gone any copy may be a backup, and where all had
stopped, every other copy is of the last moment.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.facts import Capture
from kraft_core.findings.finding import Finding
from kraft_core.findings.recovery import RecoveryAdvice
from kraft_core.restore.choice import AFTER_CAPTURES, choose, line_ends
from tests.soundness.captures import Copy
from tests.soundness.execution import Execution
from tests.soundness.missing import NOTHING, random_missing


@dataclass(frozen=True, slots=True)
class Stated:
    """What somebody states of a lost quorum, as kraft_core.restore.request has it."""

    gone: frozenset[int] = frozenset()
    are_stopped: bool = False


NOTHING_STATED = Stated()


def copies_of_stopped(
    source: random.Random, execution: Execution, fast: int = 0
) -> tuple[tuple[Copy, ...], Stated]:
    """Directories after all controllers have stopped; of those that are gone no copy, or an earlier one.

    fast: how much (ms) the clock is that states their times.
    """
    last = len(execution.moments) - 1
    copies: list[Copy] = []
    gone: set[int] = set()
    for slot, replica in sorted(execution.moments[last].items()):
        at = last
        if source.random() < 0.35:
            gone.add(replica.key.id)
            at = source.randint(0, last)
            if source.random() < 0.5 or slot not in execution.moments[at]:
                continue
        is_stated, stated = source.random() < 0.8, execution.at[at] + fast
        if at == last:
            stated += source.choice((0, 0, 1_000, 100_000))  # whatever has stopped may be copied later
        copy = Copy(slot, at, at, stated if is_stated else None, execution.at[at])
        if source.random() < 0.15:
            missing = random_missing(source, execution.moments[at][slot], has_id=True)
            # What cannot be read is refused (restoration.restoration_of), and nothing is chosen.
            copy = replace(copy, missing=missing if missing.how == "absent" else NOTHING)
        copies.append(copy)
        if source.random() < 0.3:
            earlier = source.randint(0, at)
            if slot in execution.moments[earlier]:
                copies.append(Copy(slot, earlier, earlier, execution.at[earlier] + fast, 0))
    return tuple(dict.fromkeys(copies)), Stated(frozenset(gone), are_stopped=True)


def random_stated(source: random.Random, execution: Execution) -> Stated:
    """Of running controllers: some are gone, whatever was copied."""
    ids = sorted({replica.key.id for replica in execution.moments[-1].values()})
    return Stated(frozenset(id_ for id_ in ids if source.random() < 0.3))


def choices_that_lose_nothing(
    known: Conclusions, findings: list[Finding], stated: Stated
) -> Iterator[tuple[Capture, RecoveryAdvice]]:
    """The logs of which no record is said to be lost but those committed after captures of a running quorum.

    That with the best claim, and those that somebody may choose by their ends.
    """
    may_be_named = set[str]() if stated.are_stopped else {AFTER_CAPTURES}
    for line in (None, *sorted(line_ends(known))):
        choice = choose(known, findings, stated.gone, stated.are_stopped, line)
        loses = choice.refusals or {loss.name for loss in choice.losses} - may_be_named
        if choice.capture is not None and not loses:
            yield choice.capture, choice.advice
