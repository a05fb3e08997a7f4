"""Quorums of the bundled captures, as plans see them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from kraft_core.evidence.collect import collect, collect_lives
from kraft_core.evidence.conclusions import conclude
from kraft_core.evidence.facts import ClusterFacts
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.plan.captured_metadata import CapturedMetadata, metadata_of
from kraft_core.plan.captured_quorum import CapturedQuorum, quorum_of
from kraft_core.plan.registrations import Registered, registered

GOLDEN = Path(__file__).parents[2] / "golden"


@cache
def facts_of(*names: str, running: bool = False) -> tuple[ClusterFacts, Registered]:
    """The facts and registrations of the directories below folders of tests/golden.

    running: as if all had been copied when the newest record was appended; some were copied after a stop.
    """
    directories = find_controller_dirs([GOLDEN / name for name in names]).directories
    (facts,) = collect(directories)
    if running:
        at = max(
            epoch_range.last_appended_at for capture in facts.captures for epoch_range in capture.epoch_ranges
        )
        (facts,) = collect(directories, at)
    return facts, registered(directories)


@cache
def captured(*names: str, running: bool = False) -> CapturedQuorum:
    """The quorum of these directories."""
    facts, found = facts_of(*names, running=running)
    quorum = quorum_of(conclude(facts), found)
    assert quorum is not None
    return quorum


def metadata_below(folder: Path) -> CapturedMetadata:
    """The metadata of the directories below a folder, copied when their capture.json says."""
    directories = find_controller_dirs([folder]).directories
    (found,) = collect_lives(directories)
    quorum = quorum_of(conclude(found.facts), registered(found.directories))
    assert quorum is not None
    by_capture = dict(zip((c.capture_id for c in found.facts.captures), found.directories, strict=True))
    return metadata_of(quorum, by_capture)


def metadata(*names: str) -> CapturedMetadata:
    """The metadata of these directories' leader, as if all had been copied at the newest record."""
    directories = find_controller_dirs([GOLDEN / name for name in names]).directories
    quorum = captured(*names, running=True)
    (facts,) = collect(directories)
    at = max(
        epoch_range.last_appended_at for capture in facts.captures for epoch_range in capture.epoch_ranges
    )
    (found,) = collect_lives(directories, at)
    by_capture = dict(zip((c.capture_id for c in found.facts.captures), found.directories, strict=True))
    return metadata_of(quorum, by_capture)
