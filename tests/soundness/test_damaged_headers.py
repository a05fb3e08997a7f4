"""A bit flipped where no CRC covers it, in one copy of a quorum whose truth is known: no verdict is false.

The seed differs from run to run and is in every failure.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kraft_core.evidence.collect import collect_lives
from kraft_core.format.controller_dir import ControllerDir, find_controller_dirs
from kraft_core.format.segment import Damage, scan
from kraft_core.raft.batches import Batch
from kraft_core.simulation.directories import LOG_DIR, START_TIME, batch_bytes, write_directory
from tests.kraft_core.findings.collect_rule_facts import collect_rule_facts
from tests.soundness.captures import Copy
from tests.soundness.claims import ClaimCheck, answers_to
from tests.soundness.drawing import random_execution
from tests.soundness.execution import BEGAN_AT, Execution

RUNS = 150
# Where a batch's header holds its base offset, and its epoch: the first byte, and the one after the last.
FIELDS = {"offset": (0, 8), "epoch": (12, 16)}
_LOW_BITS = 4  # values near the true one are the likeliest to be believed


@pytest.mark.parametrize("field", FIELDS)
def test_no_verdict_is_false(field: str, tmp_path: Path) -> None:
    first, definite = time.time_ns() % 1_000_000_000, 0
    for seed in range(first, first + RUNS):
        source = random.Random(seed)
        execution = random_execution(source)
        copies = _copies(source, execution)
        folder = tmp_path / str(seed)
        written = _written(execution, copies, folder)
        _flip_a_bit(source, folder, *FIELDS[field])
        for life in collect_lives(find_controller_dirs([folder]).directories):
            answers = answers_to(life.facts, collect_rule_facts(life.directories)[life.kafka_cluster_id])
            check = ClaimCheck(execution, copies, answers)
            for batch in _whole_batches(written, life.directories):
                definite += check.verdict_on(batch).status != "undecided"
                assert list(check.unsound_verdict(batch)) == [], f"seed {seed}"
    assert definite > RUNS // 5


def _copies(source: random.Random, execution: Execution) -> tuple[Copy, ...]:
    """Each directory, most of them at the last moment."""
    last = len(execution.moments) - 1
    moments = {slot: max(0, last - source.choice((0, 0, 0, 1, 3))) for slot in execution.moments[0]}
    return tuple(Copy(slot, at, at, execution.at[at], 0) for slot, at in moments.items())


def _written(execution: Execution, copies: tuple[Copy, ...], folder: Path) -> dict[bytes, Batch]:
    """Write the copies; every batch of the execution by its bytes."""
    appended = {place: at - BEGAN_AT for place, at in execution.appended_at.items()}
    snapshotted = {place: at - BEGAN_AT for place, at in execution.snapshotted_at.items()}
    for copy in copies:
        home = folder / f"node-{copy.slot}"
        write_directory(execution.moments[copy.log_at][copy.slot], appended, snapshotted, home)
        at = datetime.fromtimestamp(execution.at[copy.log_at] / 1000, UTC).isoformat()
        (home / "capture.json").write_text(json.dumps({"captured_at": at}))
    return {
        batch_bytes(batch, START_TIME + appended[place]): batch for place, batch in execution.batches.items()
    }


def _flip_a_bit(source: random.Random, folder: Path, first: int, end: int) -> None:
    """In the header of one batch, if there is any."""
    segments = [path for path in sorted(folder.glob(f"*/{LOG_DIR}/*.log")) if path.stat().st_size]
    if not segments:
        return
    segment = source.choice(segments)
    content = bytearray(segment.read_bytes())
    places = [item.position for item in scan(bytes(content)) if not isinstance(item, Damage)]
    batch = source.choice(places)
    field = slice(batch + first, batch + end)
    value = int.from_bytes(content[field], "big") ^ 1 << source.randrange(_LOW_BITS)
    content[field] = value.to_bytes(end - first, "big")
    segment.write_bytes(content)


def _whole_batches(written: dict[bytes, Batch], directories: tuple[ControllerDir, ...]) -> Iterator[Batch]:
    """The batches in these directories that are as they were written."""
    found: dict[Batch, None] = {}
    for directory in directories:
        for segment in directory.segments:
            content = segment.path.read_bytes()
            for item in scan(content):
                batch = None if isinstance(item, Damage) else written.get(content[item.position : item.end])
                if batch is not None:
                    found[batch] = None
    yield from found
