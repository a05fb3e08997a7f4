"""Which replay each checkpoint is held against, by who held what of the log."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from kraft_core.evidence.facts import distinct
from kraft_core.evidence.lineage import Lineage, lineage_of
from kraft_core.findings.facts import Holder
from kraft_core.findings.snapshot_replays import (
    CheckpointKey,
    Comparison,
    LogsBelow,
    Part,
    comparisons,
    goes_on_from,
    replays,
)
from tests.kraft_core.evidence.narrated import Story, directory


def lineage(*logs: str) -> Lineage:
    """Of captures of one replica each, of logs like "1:0-100 3:100-120"."""
    story = Story()
    elected = {first: epoch for log in logs for epoch, first in _elections(log)}
    for first, epoch in elected.items():
        story.leader(epoch, first, 1, "1 2 3")
    for nth, log in enumerate(logs):
        story.capture(str(nth + 1), 5000, log)
    return lineage_of(distinct(story.facts()))


def _elections(log: str) -> Iterator[tuple[int, int]]:
    """Epoch and first offset of each range of a log that follows another one."""
    ranges = [tuple(map(int, text.replace(":", "-").split("-"))) for text in log.split()]
    for (_, _, end), (epoch, first, _) in pairwise(ranges):
        if first == end:
            yield epoch, first


def checkpoint(text: str) -> CheckpointKey:
    """By its end and epoch: "100/3"."""
    end, epoch = map(int, text.split("/"))
    return CheckpointKey(end, epoch, f"digest of {text}")


def held(**checkpoints: str) -> dict[Holder, list[CheckpointKey]]:
    return {
        directory(name.removeprefix("node")): [checkpoint(c) for c in some.split()]
        for name, some in checkpoints.items()
    }


def shown(found: list[Comparison]) -> list[str]:
    """Comparisons as "100/3 from 50: 1:50-90 3:90-100"."""
    return sorted(
        f"{c.checkpoint.end_offset}/{c.checkpoint.leader_epoch} from {c.base.end_offset if c.base else 0}: "
        + " ".join(f"{p.leader_epoch}:{p.first_offset}-{p.end_offset}" for p in c.log)
        for c in found
    )


def test_a_log_goes_on_in_other_replicas_captures() -> None:
    tree = lineage("1:0-100 3:100-120", "3:110-200 4:200-220", "1:0-150")
    below = LogsBelow(tree)
    assert below.log(4, 210) == (Part(1, 0, 100), Part(3, 100, 200), Part(4, 200, 210))
    assert below.log(1, 140) == (Part(1, 0, 140),)
    assert below.log(3, 105) == (Part(1, 0, 100), Part(3, 100, 105))
    assert below.log(4, 215) == (Part(1, 0, 100), Part(3, 100, 200), Part(4, 200, 215))
    assert below.log(4, 230) == below.log(5, 10) == ()


def test_below_a_gap_nothing_is_known() -> None:
    assert LogsBelow(lineage("1:0-100", "3:110-200")).log(3, 150) == (Part(3, 110, 150),)
    assert LogsBelow(lineage("1:0-100 3:110-200")).log(3, 150) == (Part(3, 110, 150),)


def test_offsets_that_a_log_holds_twice_are_as_a_gap() -> None:
    """A damaged base offset puts a batch onto others; nothing is compared within them, or across them."""
    tree, checkpoints = lineage("1:0-300"), held(node1="50/1 100/1 150/1 200/1 300/1")
    whole = comparisons(tree, checkpoints)
    assert [c.base for c in whole] == [None] * 5
    assert shown(comparisons(tree, checkpoints, {(110, 160)})) == [
        "100/1 from 0: 1:0-100",
        "300/1 from 200: 1:200-300",
        "50/1 from 0: 1:0-50",
    ]
    assert shown(comparisons(tree, checkpoints, {(10, 20), (110, 300)})) == ["100/1 from 50: 1:50-100"]
    assert comparisons(tree, checkpoints, {(300, 400)}) == whole


def test_a_contested_epoch_has_no_log() -> None:
    story = Story().capture("1", 5000, "1:0-100", digests="a").capture("2", 5000, "1:0-100", digests="b")
    assert LogsBelow(lineage_of(distinct(story.facts()))).log(1, 50) == ()


def test_from_offset_0_on_all_replicas_are_held_against_one_replay() -> None:
    tree = lineage("1:0-100 3:100-200")
    found = comparisons(tree, held(node1="50/1 150/3", node2="150/3 160/3"))
    assert shown(found) == [
        "150/3 from 0: 1:0-100 3:100-150",
        "160/3 from 0: 1:0-100 3:100-160",
        "50/1 from 0: 1:0-50",
    ]
    (replay,) = replays(found, [])
    assert (replay.start, replay.log) == (None, (Part(1, 0, 100), Part(3, 100, 160)))
    assert len(replay.comparisons) == 3


def test_without_the_beginning_each_replica_is_held_against_its_oldest() -> None:
    tree = lineage("1:40-100 3:100-200")
    found = comparisons(tree, held(node1="40/1 150/3", node2="60/1 90/1 120/3", node3="130/3"))
    assert shown(found) == [
        "120/3 from 60: 1:60-100 3:100-120",
        "150/3 from 40: 1:40-100 3:100-150",
        "90/1 from 60: 1:60-90",
    ]
    assert {r.start for r in replays(found, [])} == {checkpoint("40/1"), checkpoint("60/1")}


def test_a_checkpoint_beside_the_log_is_held_against_the_log_it_ends() -> None:
    tree = lineage("1:0-100 3:100-200", "1:0-150")
    found = comparisons(tree, held(node1="150/3", node2="50/1 150/1"))
    assert "150/1 from 0: 1:0-150" in shown(found)
    logs = {replay.log: len(replay.comparisons) for replay in replays(found, [])}
    assert logs == {(Part(1, 0, 100), Part(3, 100, 150)): 2, (Part(1, 0, 150),): 1}


def test_a_later_replay_starts_from_the_newest_equal_checkpoint_below_all_it_is_for() -> None:
    tree = lineage("1:0-100 3:100-200")
    found = comparisons(tree, held(node1="50/1 90/1 120/3 150/3 180/3"))
    of = {c.checkpoint.end_offset: c for c in found}
    (replay,) = replays([of[180], of[150]], [of[90], of[50], of[120]])
    assert replay.start == checkpoint("120/3")
    assert replay.log == (Part(3, 120, 180),)
    (replay,) = replays([of[180], of[90]], [of[50], of[120]])
    assert (replay.start, replay.log) == (checkpoint("50/1"), (Part(1, 50, 100), Part(3, 100, 180)))


def test_what_was_equal_on_another_line_is_no_start() -> None:
    tree = lineage("1:0-100 3:100-200", "1:0-150")
    of = {
        (c.checkpoint.end_offset, c.checkpoint.leader_epoch): c
        for c in comparisons(tree, held(node1="150/3", node2="130/1"))
    }
    (replay,) = replays([of[150, 3]], [of[130, 1]])
    assert replay.start is None
    assert not goes_on_from(of[150, 3], of[130, 1])


def test_another_log_is_another_comparison() -> None:
    """An older capture that brings the beginning, or an older checkpoint, makes what was compared stale."""
    late = held(node1="60/1 90/1")
    (short,) = comparisons(lineage("1:40-100"), late)
    longer = comparisons(lineage("1:40-100", "1:0-50"), late)
    older = comparisons(lineage("1:40-100"), held(node1="50/1 60/1 90/1"))
    assert short.base == checkpoint("60/1")
    assert {c.base for c in longer} == {None}
    assert {c.base for c in older} == {checkpoint("50/1")}
    assert short.log_digest not in {c.log_digest for c in (*longer, *older)}
