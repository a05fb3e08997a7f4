"""How captured logs are read for a replay: each file a few times, whatever they hold."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from kraft_core.evidence.collect import collect_lives
from kraft_core.evidence.conclusions import conclude
from kraft_core.findings import log_records
from kraft_core.findings.captured_replays import replay_facts
from kraft_core.findings.facts import UnreadableBytes
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.format.mapped_file import mapped
from tests.long.load_mutations import LOG, MutableLog

NODES = (1, 2, 3)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Counter[Path]:
    """How often a file was opened for its records."""
    found: Counter[Path] = Counter()

    def counted(path: Path) -> Any:
        found[path] += 1
        return mapped(path)

    monkeypatch.setattr(log_records, "mapped", counted)
    return found


def without_values(folder: Path, first: int, *nodes: int) -> None:
    """Empty every record from an offset on, each of which is a batch."""
    for node in nodes:
        log = MutableLog.of(folder / f"node-{node}" / LOG / f"{0:020}.log")
        for batch, nth in log.data():
            if batch.records[nth].offset >= first:
                batch.set_value(nth, b"")
        log.write()


def lost_in(folder: Path) -> tuple[UnreadableBytes, ...]:
    directories = find_controller_dirs([folder]).directories
    (found,) = collect_lives(directories)
    ids = (capture.capture_id for capture in found.facts.captures)
    return replay_facts(conclude(found.facts), dict(zip(ids, found.directories, strict=True))).unreadable


@pytest.mark.parametrize("nodes", [NODES, (3,)], ids=["all logs", "one of logs that differ"])
def test_however_many_values_are_lost(
    nodes: tuple[int, ...], golden: Path, tmp_path: Path, opened: Counter[Path]
) -> None:
    """Each batch was looked up from the beginning of its file: 2,000 lost values took 18 s of CPU time."""
    shutil.copytree(golden / "disk-failure/before-wipe", tmp_path / "copy")
    without_values(tmp_path / "copy", 30, *nodes)
    lost = lost_in(tmp_path / "copy")
    assert len(lost) > 20 * len(nodes)
    assert len({(each.capture_id, each.position) for each in lost}) == len(lost)
    assert max(opened.values()) <= 3
