"""What a capture says of itself: when it was copied, whether all of it was read, where its log ended."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from kraft_core.evidence.collect import collect
from kraft_core.evidence.facts import CLOCK_SKEW_MS, Capture
from kraft_core.format.controller_dir import find_controller_dirs
from tests.kraft_core.evidence.golden import GOLDEN
from tests.kraft_core.evidence.narrated import Story

LOG = "__cluster_metadata-0"
SEGMENT = "00000000000000000000.log"


def collected(path: Path, captured_at_ms: int | None = None) -> Capture:
    (facts,) = collect(find_controller_dirs([path]).directories, captured_at_ms)
    (capture,) = facts.captures
    return capture


@pytest.fixture
def node(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / "uncommitted-truncation/after/node-1", tmp_path / "node-1"))


def test_a_stated_time_bounds_the_copy_on_both_sides(node: Path) -> None:
    later = collected(node).captured_at + 7
    for capture, source in ((collected(node), "capture.json"), (collected(node, later), "flag")):
        assert capture.captured_from == capture.captured_until == capture.captured_at
        assert capture.time_source == source


def test_without_one_only_the_newest_timestamp_in_the_log_bounds_it(node: Path) -> None:
    (node / "capture.json").unlink()
    capture = collected(node)
    assert capture.captured_from == capture.epoch_ranges[-1].last_appended_at < capture.captured_at
    assert capture.captured_until is None
    assert capture.time_source == "newest timestamp in the log"


def test_a_stated_time_that_the_copy_contradicts_bounds_nothing(node: Path) -> None:
    """By more than clocks differ: then it counts as a copy without a stated time."""
    newest = collected(node).epoch_ranges[-1].last_appended_at
    possible = collected(node, newest - CLOCK_SKEW_MS)
    assert possible.captured_until == possible.captured_at == newest - CLOCK_SKEW_MS
    assert not possible.has_wrong_time
    wrong = collected(node, newest - CLOCK_SKEW_MS - 1)
    assert (wrong.captured_from, wrong.captured_until) == (newest, None)
    assert wrong.time_source == "newest timestamp in the log"
    assert wrong.has_wrong_time


def test_a_checkpoint_contradicts_a_stated_time_too(node: Path) -> None:
    for segment in (node / LOG).glob("*.log"):
        segment.unlink()
    assert collected(node, 1 << 42).captured_until == 1 << 42
    assert collected(node, 7).has_wrong_time


def test_a_checkpoints_header_bounds_it_too(node: Path) -> None:
    (node / "capture.json").unlink()
    for segment in (node / LOG).glob("*.log"):
        segment.unlink()
    capture = collected(node)
    assert capture.epoch_ranges == ()
    assert capture.captured_from is not None


def test_nothing_bounds_an_empty_directory() -> None:
    capture = Story().capture("1", 1000, "", end=0, stated=False).captures[0]
    assert (capture.captured_from, capture.captured_until) == (None, None)


@pytest.mark.parametrize("unreadable", [SEGMENT, "00000000000000000321-0000000001.checkpoint"])
def test_a_file_of_the_log_that_cannot_be_opened_leaves_the_end_unknown(node: Path, unreadable: str) -> None:
    assert collected(node).known_end == 507
    (node / LOG / unreadable).unlink()
    (node / LOG / unreadable).mkdir()
    capture = collected(node)
    assert not capture.readable
    assert capture.known_end is None


def test_a_log_that_cannot_be_listed_is_not_empty(node: Path) -> None:
    (directory,) = find_controller_dirs([node]).directories
    shutil.rmtree(node / LOG)
    (facts,) = collect([directory])
    (capture,) = facts.captures
    assert not capture.readable
    assert capture.known_end is None


def test_a_file_that_shrinks_after_it_was_listed_leaves_the_end_unknown(node: Path) -> None:
    (directory,) = find_controller_dirs([node]).directories
    last = max((node / LOG).glob("*.log"))
    last.write_bytes(last.read_bytes()[:-200])
    (facts,) = collect([directory])
    assert not facts.captures[0].readable
    assert facts.captures[0].known_end is None


# --- a log older than the files beside it

OLDER: list[tuple[dict[str, Any], str | None]] = [
    ({}, None),
    ({"leader_epoch_checkpoint": ((1, 0), (2, 20))}, None),
    ({"leader_epoch_checkpoint": ((1, 0), (2, 30))}, None),
    ({"leader_epoch_checkpoint": ((1, 0), (2, 31))}, "leader-epoch-checkpoint has epoch 2 from 31"),
    ({"leader_epoch_checkpoint": ((1, 40), (2, 31))}, "leader-epoch-checkpoint has epoch 1 from 40"),
    ({"in_epoch": 9}, None),
    ({"in_epoch": 9, "quorum_state_leader_id": 2}, None),
    ({"in_epoch": 1, "quorum_state_leader_id": 1}, None),
    ({"in_epoch": 9, "quorum_state_leader_id": 1}, "quorum-state says that it led epoch 9"),
    ({"end": 31}, "a checkpoint or a later segment reaches 31"),
]


@pytest.mark.parametrize(("beside", "expected"), OLDER, ids=repr)
def test_a_log_that_ends_below_what_the_files_beside_it_say_has_no_end(
    beside: dict[str, Any], expected: str | None
) -> None:
    capture = Story().capture("1", 1000, "1:0-30", **beside).captures[0]
    assert capture.older_log == expected
    assert capture.known_end == (30 if expected is None else None)
