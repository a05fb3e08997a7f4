"""Quorums of the bundled captures, as plans see them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from kraft_core.evidence.collect import collect
from kraft_core.evidence.conclusions import conclude
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.plan.captured_quorum import CapturedQuorum, quorum_of
from kraft_core.plan.registrations import registrations

GOLDEN = Path(__file__).parents[2] / "golden"


@cache
def captured(*names: str) -> CapturedQuorum:
    """The quorum of the directories below folders of tests/golden."""
    directories = find_controller_dirs([GOLDEN / name for name in names]).directories
    (facts,) = collect(directories)
    quorum = quorum_of(conclude(facts), registrations(directories))
    assert quorum is not None
    return quorum
