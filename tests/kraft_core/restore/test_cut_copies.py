"""Copies that end too early: what they show of their own cut is never taken for the end of a log."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kraft_core.restore.choice import UNSEEN_RECORDS
from tests.kraft_core.restore.planned import all_stated, copied, losses, planned

WHOLE = "uncommitted-truncation/after"
LOG = "__cluster_metadata-0"


def _last(captures: Path, node: int) -> Path:
    return max((captures / f"node-{node}" / LOG).glob("*.log"))


def _cut(captures: Path, node: int, by: int) -> None:
    file = _last(captures, node)
    file.write_bytes(file.read_bytes()[:-by])


def _inside_a_batch(captures: Path, node: int) -> None:
    _cut(captures, node, 1)


def _far_inside(captures: Path, node: int) -> None:
    _cut(captures, node, 1000)


def _to_nothing(captures: Path, node: int) -> None:
    _last(captures, node).write_bytes(b"")


def _beside_what_followed(captures: Path, node: int) -> None:
    """The last segment was not copied, but the state of producers that Kafka kept when the log was closed."""
    file = _last(captures, node)
    file.unlink()
    file.with_name("00000000000000000507.snapshot").write_bytes(b"")


def _beside_its_index(captures: Path, node: int) -> None:
    file = _last(captures, node)
    file.rename(file.with_suffix(".index"))


WAYS = (_inside_a_batch, _far_inside, _to_nothing, _beside_what_followed, _beside_its_index)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("nodes", [(1, 2, 3, 4), (1, 2, 3), (1, 2)])
def test_a_cut_majority_is_never_safe(
    tmp_path: Path, way: Callable[[Path, int], None], nodes: tuple[int, ...]
) -> None:
    captures = copied(WHOLE, tmp_path, *nodes)
    for node in nodes:
        way(captures, node)
    plan = planned(captures, all_stated(captures))
    assert plan.verdict != "SAFE"
    assert plan.refusals or UNSEEN_RECORDS in losses(plan)


def test_the_sentence_says_what_to_compare(tmp_path: Path) -> None:
    captures = copied(WHOLE, tmp_path)
    for node in (1, 2, 3, 4):
        _inside_a_batch(captures, node)
    (loss,) = planned(captures, all_stated(captures)).losses
    assert (
        "ends inside a batch: the node was killed during a write, or the copy was cut off: compare the size "
        "of the last segment's file"
    ) in loss.sentence


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("node", [1, 2, 3, 4])
def test_a_whole_majority_is_safe_beside_one_that_is_cut(
    tmp_path: Path, way: Callable[[Path, int], None], node: int
) -> None:
    captures = copied(WHOLE, tmp_path)
    way(captures, node)
    plan = planned(captures, all_stated(captures))
    assert plan.made is None or plan.made.source_end == 507
    if plan.verdict == "REFUSED":  # a checkpoint or an epoch tells, too
        return
    assert (plan.verdict, losses(plan)) == ("SAFE", [])


def test_a_lagging_voter_that_is_cut_does_not_count(tmp_path: Path) -> None:
    """1 is whole, 2 ends where it was cut, 3 is gone: {2,3} may have committed what 1 does not hold."""
    captures = copied(WHOLE, tmp_path, 1, 2)
    _cut(captures, 2, 1000)
    assert losses(planned(captures, all_stated(captures))) == [UNSEEN_RECORDS]
    shutil.rmtree(captures / "node-2")
    copied(WHOLE, captures, 2)
    assert planned(captures, all_stated(captures)).verdict == "SAFE"
