"""A node that lost its disk: a copy of the former one counts only if it was made after that of the new."""

from __future__ import annotations

import pytest

from kraft_core.evidence.conclusions import conclude
from kraft_core.findings.judge import judge
from kraft_core.restore.choice import UNSEEN_RECORDS, choose
from kraft_core.simulation.setup import Setup
from tests.soundness.captures import Copy, facts_of
from tests.soundness.execution import Execution, begin, go_on
from tests.soundness.moves import Append, Elect, EmptyDisk, Pull

MINUTE_MS = 60_000


def disk_lost() -> Execution:
    """Voters 1 and 3 commit what 2 lacks; then 1 loses its disk, and 3 as well."""
    execution = begin(Setup(1, 3, 0))
    moves = Elect(3, (1, 2)), Pull(2, 3, 2), Pull(1, 3, 2), Append(3, 2), Pull(1, 3, 2), EmptyDisk(1)
    assert all(go_on(execution, 3_000, move) for move in moves)
    return execution


@pytest.mark.parametrize(
    ("former_at", "captured_after_ms", "loses"),
    [(3, 0, True), (3, 2 * MINUTE_MS, False), (5, MINUTE_MS // 2, True), (5, 2 * MINUTE_MS, False)],
    ids=["a backup", "an older disk that is there", "clocks may differ", "the newest, captured last"],
)
def test_a_copy_of_the_former_disk(former_at: int, captured_after_ms: int, loses: bool) -> None:
    """Of the second nobody could know better: it is stated that all had stopped before it was captured."""
    execution = disk_lost()
    last = len(execution.moments) - 1
    stated = execution.at[last] + captured_after_ms if captured_after_ms else execution.at[former_at]
    former = Copy(1, former_at, former_at, stated, 0)
    others = (Copy(slot, last, last, execution.at[last], 0) for slot in (1, 2))
    known = conclude(facts_of((execution,), (former, *others)))
    choice = choose(known, judge(known), frozenset({3}), are_stopped=True)
    assert choice.refusals == ()
    assert [loss.name for loss in choice.losses] == [UNSEEN_RECORDS] * loses
    if loses:
        assert "capture it again, after the other one, if its disk is there" in choice.losses[0].sentence
