"""Whole restorations from simulated directories: what is SAFE has every config that was committed.

The seed differs from run to run and is in every failure; the long run draws thousands.
"""

from __future__ import annotations

import random
import shutil
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from kraft_core.simulation.directories import LOG_DIR
from tests.kraft_core.restore.planned import planned, request
from tests.kraft_core.restore.simulated import lacked, write_copies
from tests.soundness.captures import Copy
from tests.soundness.drawing import random_copies, random_execution
from tests.soundness.execution import Execution
from tests.soundness.missing import NOTHING

RUNS, LONG_RUNS = 120, 6_000
NODES = frozenset(range(1, 10))


def _copies(source: random.Random, execution: Execution, at_the_end: bool) -> tuple[Copy, ...]:
    """at_the_end: of the last moment, so that what is stated of the controllers is true; half are whole."""
    copies = random_copies(source, execution)
    if not at_the_end:
        return copies
    last, whole = len(execution.moments) - 1, source.random() < 0.5
    return tuple(
        replace(
            copy,
            log_at=last,
            files_at=last,
            stated=None if copy.stated is None else execution.at[last],
            missing=NOTHING if whole else copy.missing,
        )
        for copy in copies
    )


def _damage(source: random.Random, folder: Path) -> None:
    """A file is removed, emptied, cut, or one bit of it is another one."""
    files = sorted(p for p in folder.rglob("*") if p.is_file() and p.parent.name == LOG_DIR)
    if not files:
        return
    file, way = source.choice(files), source.choice(("unlink", "empty", "flip", "cut"))
    content = file.read_bytes()
    if way == "unlink":
        file.unlink()
    elif way == "flip" and content:
        place = source.randrange(len(content))
        changed = content[place] ^ 1 << source.randrange(8)
        file.write_bytes(content[:place] + bytes([changed]) + content[place + 1 :])
    else:
        file.write_bytes(content[: source.randrange(len(content) + 1)] if way == "cut" else b"")


def _verdicts(first: int, runs: int, at_the_end: bool, folder: Path) -> Counter[str]:
    """Each set of copies planned with every statement made. Fails where SAFE lacks what was committed."""
    verdicts: Counter[str] = Counter()
    for seed in range(first, first + runs):
        source = random.Random(seed)
        execution = random_execution(source)
        copies = _copies(source, execution, at_the_end)
        write_copies(execution, copies, folder)
        if source.random() < 0.3:
            _damage(source, folder)
        captured = {execution.moments[copy.log_at][copy.slot].key.id for copy in copies}
        stated = request(gone=NODES - captured, are_stopped=True, brokers_stopped=True, listener="CONTROLLER")
        plan = planned(folder, stated)
        verdicts[plan.verdict] += 1
        if plan.made is not None and plan.verdict == "SAFE":
            by = execution.at[-1] if at_the_end or plan.as_of is None else plan.as_of
            assert lacked(execution, plan.made.image, by) == [], f"seed {seed}"
        shutil.rmtree(folder)
    return verdicts


@pytest.mark.parametrize("at_the_end", [True, False])
def test_what_is_safe_holds_all_that_was_committed(tmp_path: Path, at_the_end: bool) -> None:
    verdicts = _verdicts(time.time_ns() % 1_000_000_000, RUNS, at_the_end, tmp_path / "captures")
    assert verdicts["SAFE"] > RUNS // 40
    assert verdicts["REFUSED"] > RUNS // 10


@pytest.mark.long
@pytest.mark.parametrize("at_the_end", [True, False])
def test_of_thousands_none_is_wrongly_safe(tmp_path: Path, at_the_end: bool) -> None:
    verdicts = _verdicts(time.time_ns() % 1_000_000_000, LONG_RUNS, at_the_end, tmp_path / "captures")
    assert verdicts["SAFE"] > LONG_RUNS // 20
