"""Captures of two histories under one cluster id: what one shows proves nothing of the other."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest

from kraft_core.evidence.collect import collect
from kraft_core.evidence.compared_batches import RangeBatches, contested_epochs
from kraft_core.evidence.conclusions import conclude
from kraft_core.evidence.epochs import epochs
from kraft_core.evidence.facts import ClusterFacts
from kraft_core.evidence.set_history import set_nodes
from kraft_core.evidence.watermarks import high_watermarks
from kraft_core.findings.judge import judge
from kraft_core.findings.recovery import recovery_advice
from kraft_core.findings.truncations import observed_truncations
from kraft_core.format.batch import BatchHeader
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.simulation.directories import write_directory
from tests.kraft_core.evidence.narrated import Story
from tests.soundness.drawing import random_execution
from tests.soundness.execution import BEGAN_AT, Execution, run_script


def stranger(story: Story, crc: int) -> Story:
    """The same quorum as another one wrote it: equal ids and offsets, other timestamps, so other CRCs."""
    records = [replace(record, batch_crc=record.batch_crc + crc) for record in story.control_records]
    return Story(records, first_batches=story.first_batches)


def test_strangers_with_equal_ids_are_found_by_their_batches() -> None:
    """Node 1 led each of them; two thirds of epoch 1 look stored only if both are taken for one."""
    one = Story().leader(1, 0, 1, "1 2 3")
    other = stranger(one, 7)
    one.capture("1", 1000, "1:0-50", 1)
    other.capture("2b", 1000, "1:0-45", 1)
    alone = conclude(one.facts())
    assert alone.lineage.contested_epochs == ()
    both = Story(
        one.control_records + other.control_records,
        one.captures + other.captures,
        first_batches=one.first_batches,
    )
    known = conclude(both.facts())
    assert known.lineage.contested_epochs == (1,)
    assert known.commit.of_batch(1, 0, 1).status == "undecided"
    assert not recovery_advice(known, judge(known)).is_safe


def test_a_batch_of_two_leaders_that_ends_above_what_is_captured_is_undecided() -> None:
    """Two leaders of epoch 1 wrote 10-20 and 10-30; only a log with the shorter batch is captured."""
    story = Story().leader(1, 0, 3, "1 2 3").capture("3", 300, "1:0-20", 1)
    story.capture("1", 1000, "1:0-10", 1).capture("2", 1000, "1:0-10", 1)
    commit = conclude(story.facts()).commit
    assert commit.of_batch(1, 10, 20).status == "uncommitted"
    assert commit.of_batch(1, 10, 30).status == "undecided"


def test_of_a_clone_whose_log_is_lost_nothing_is_committed() -> None:
    """Its epoch 2 begins at 30, below the captured one: only its leader-epoch-checkpoint is left."""
    story = Story().leader(1, 0, 1, "1 2 3").leader(2, 40, 2, "1 2 3")
    for node in "123":
        story.capture(node, 1000, "1:0-40 2:40-60", 2)
    commit = conclude(story.facts()).commit
    assert commit.of_batch(2, 40, 60).status == "committed"
    assert commit.of_batch(2, 30, 40).status == "undecided"


def lost_tail() -> Story:
    """Epoch 2 overwrote the end of epoch 1, which nodes 2 and 3 lack."""
    story = Story().leader(1, 0, 1, "1 2 3", sets="1 2 3").leader(2, 40, 2, "1 2 3").data(2, 41)
    story.capture("1", 500, "1:0-50", 1).capture("1", 1000, "1:0-40 2:40-60", 2)
    return story.capture("2", 1000, "1:0-40 2:40-60", 2).capture("3", 1000, "1:0-40 2:40-60", 2)


def test_where_two_histories_are_captured_nothing_is_truncated_uncommitted_or_bounded() -> None:
    facts = lost_tail().facts()
    known = conclude(facts)
    assert known.commit.of_batch(1, 40, 50).status == "truncated"
    assert observed_truncations(known)
    assert high_watermarks(known, set_nodes(known))
    # Epoch 5 was contested by two captures of which one has been deleted.
    story = lost_tail().leader(5, 60, 3, "1 2 3").capture("3", 2000, "1:0-40 2:40-60 5:60-70", 5)
    contested = conclude(replace(story.facts(), contested_epochs=(5,)))
    verdict = contested.commit.of_batch(1, 40, 50)
    assert (verdict.status, verdict.truncated_by_epoch) == ("undecided", None)
    assert "contradict each other about epoch 5" in verdict.evidence
    assert observed_truncations(contested) == []
    assert high_watermarks(contested, set_nodes(contested)) == []
    assert [f.rule for f in judge(contested) if f.severity == "error"] == [3]


def test_lacking_a_batch_of_another_history_is_no_lack() -> None:
    story = Story().leader(1, 0, 1, "1 2 3", sets="1 2 3").capture("1", 1000, "1:0-50", 1)
    story.capture("2", 1000, "1:0-40", 1).capture("3", 1000, "1:0-40", 1)
    assert conclude(story.facts()).commit.of_batch(1, 40, 50).status == "uncommitted"
    story.leader(2, 50, 2, "1 2 3").capture("2", 2000, "1:0-50 2:50-60", 2)
    contested = conclude(replace(story.facts(), contested_epochs=(2,)))
    assert contested.commit.of_batch(1, 45, 50).status == "undecided"


def test_a_log_that_goes_back_to_a_lower_epoch_proves_nothing_of_either() -> None:
    """The epoch of its first batch is damaged, which no CRC covers: it looked as if 5 had overruled 1."""
    story = Story().leader(1, 0, 1, "1").capture("1?", 1000, "1:0-8", 1)
    assert conclude(story.facts()).commit.of_batch(1, 1, 8).status == "committed"
    story.leader(5, 0, 1, "1").capture("1?", 2000, "5:0-1 1:1-8", 1)
    known = conclude(story.facts())
    assert known.lineage.contested_epochs == (1, 5)
    assert known.commit.of_batch(1, 1, 8).status == "undecided"
    assert known.commit.of_batch(5, 0, 1).status == "undecided"


def test_one_batch_in_two_epochs_proves_nothing_of_either() -> None:
    """The epoch of 3's LEADER_CHANGE is damaged; 3 was in epoch 7, and 1 seemed to have led that."""
    story = Story().leader(1, 0, 2, "1 2 3").leader(5, 40, 1, "1 2 3")
    story.capture("1?", 1000, "1:0-40 5:40-41", 5).capture("2?", 1000, "1:0-40 5:40-41", 5)
    assert conclude(story.facts()).commit.of_batch(5, 40, 41).status == "committed"
    story.first_batches[7] = story.first_batches[5]
    story.control_records.append(replace(story.control_records[-1], leader_epoch=7))
    story.capture("3?", 2000, "1:0-40 7:40-41", 7)
    known = conclude(story.facts())
    assert known.lineage.contested_epochs == (5, 7)
    assert known.commit.of_batch(5, 40, 41).status == "undecided"
    assert {row.leader_epoch: row.start_offset_exact for row in epochs(known)} == {
        1: True,
        5: False,
        7: False,
    }


def test_one_batch_at_two_offsets_proves_nothing() -> None:
    """The offset of 3's copy of a VotersRecord is damaged: it seemed to follow itself, as a committed one."""
    story = Story().leader(1, 0, 2, "1 2 3", sets="1 2 3").voters(1, 10, "1 2")
    story.capture("2", 1000, "1:0-30", 1).capture("3", 1000, "1:0-10 1:20-21", 1)
    assert conclude(story.facts()).commit.of_batch(1, 10, 11).status == "undecided"
    moved = replace(story.control_records[-1], offset=20, batch_base_offset=20, batch_end_offset=21)
    story.control_records.append(moved)
    known = conclude(story.facts())
    assert known.lineage.contested_epochs == (1,)
    assert known.commit.of_batch(1, 10, 11).status == "undecided"


@pytest.mark.parametrize(
    ("log", "entries", "is_contested"),
    [
        ("1:0-30 2:40-60", ((1, 0), (2, 40)), False),
        ("1:0-30 2:40-60", ((1, 0), (2, 30)), True),
        ("1:0-41 2:40-60", ((1, 0), (2, 41)), True),
        ("1:0-41 2:40-60", ((1, 0), (2, 40)), False),  # of two moments
        ("1:0-40 2:40-60", ((1, 0), (2, 41)), False),  # the file is wrong (rule 10)
        ("1:0-30 2:40-60", ((2, 45),), False),  # the log starts at 45, within a segment
        ("1:0-30 2:40-60", ((2, 39),), True),
    ],
)
def test_an_epoch_that_begins_elsewhere_by_leader_epoch_checkpoint(
    log: str, entries: tuple[tuple[int, int], ...], is_contested: bool
) -> None:
    """The offset of its LEADER_CHANGE is damaged, which no CRC covers: it is not where the log below ends."""
    story = Story().leader(1, 0, 2, "1 2 3").leader(2, 40, 1, "1 2 3")
    story.capture("1", 1000, log, 2, leader_epoch_checkpoint=entries)
    assert conclude(story.facts()).lineage.contested_epochs == ((2,) if is_contested else ())


def test_an_epoch_with_batches_below_its_leader_change_proves_nothing() -> None:
    """The epoch of 2's batch at 30 is damaged: epoch 3 seemed to lie where 1 was committed, and truncated."""
    story = Story().leader(1, 0, 2, "1 2 3").leader(3, 40, 2, "1 2 3")
    story.capture("3?", 1000, "1:0-40", 1).capture("2?", 2000, "1:0-40 3:40-60", 3)
    assert conclude(story.facts()).lineage.contested_epochs == ()
    story.captures.pop()
    story.capture("2?", 2000, "1:0-30 3:30-60", 3)
    known = conclude(story.facts())
    assert known.lineage.contested_epochs == (3,)
    assert known.commit.of_batch(3, 40, 60).status == "undecided"


def batches(epoch: int, first: int, ends: str, crc: int = 0) -> RangeBatches:
    """A run of batches that end at some offsets; the last one has another CRC if one is given."""
    run = RangeBatches(epoch)
    for end in map(int, ends.split()):
        other = crc if end == int(ends.split()[-1]) else 0
        run.add(header(epoch, first, end, other))
        first = end
    return run


def header(epoch: int, first: int, end: int, crc: int) -> BatchHeader:
    names = dict.fromkeys(BatchHeader._fields, 0)
    values = {"base_offset": first, "leader_epoch": epoch, "crc": crc, "size_bytes": 80}
    return BatchHeader(**{**names, **values, "last_offset_delta": end - first - 1})


@pytest.mark.parametrize(
    ("others", "contested"),
    [
        (["0 5 10 12"], []),
        (["0 5 10", "0 5 10 12 20"], []),
        (["10 12 20", "5 10"], []),
        (["0 5 10!"], [1]),
        (["0 5 10 12 20", "5 10 12 20 30!", "20 30"], [1]),
        (["0 6 10"], [1]),
        (["7 10"], [1]),
        (["12 15"], []),
    ],
)
def test_batches_are_compared_where_two_logs_reach(others: list[str], contested: list[int]) -> None:
    """Against 0-5, 5-10, 10-12; an exclamation mark: the last batch has another CRC."""
    runs = [batches(1, 0, "5 10 12"), batches(2, 0, "5")]
    for text in others:
        first, ends = text.rstrip("!").split(maxsplit=1)
        runs.append(batches(1, int(first), ends, crc=9 if text.endswith("!") else 0))
    for order in permutations(runs):
        assert list(contested_epochs(order)) == contested


def written(execution: Execution, slot: int, folder: Path) -> Path:
    appended = {place: at - BEGAN_AT for place, at in execution.appended_at.items()}
    snapshotted = {place: at - BEGAN_AT for place, at in execution.snapshotted_at.items()}
    write_directory(execution.moments[-1][slot], appended, snapshotted, folder)
    return folder


def read(*folders: Path) -> ClusterFacts:
    (facts,) = collect(find_controller_dirs(folders).directories, BEGAN_AT)
    return facts


def test_directories_of_two_clones_are_contested_where_their_batches_differ(tmp_path: Path) -> None:
    """As plan --captures reads them: logs of one epoch that part somewhere, of different length."""
    parted = 0
    for seed in range(60):
        source = random.Random(seed)
        begun = random_execution(source)
        lives = [random_execution(source, execution=run_script(begun.script)) for _ in range(2)]
        held = [
            {(b.base_offset, b.leader_epoch): (b.end_offset, life.appended_at[b.base_offset, b.leader_epoch])
             for b in life.moments[-1][1].log.batches}
            for life in lives
        ]  # fmt: skip
        differing = {
            place[1] for place in held[0].keys() & held[1].keys() if held[0][place] != held[1][place]
        }
        folders = [written(life, 1, tmp_path / f"{seed}-{nth}") for nth, life in enumerate(lives)]
        found = list(collect(find_controller_dirs(folders).directories, BEGAN_AT))
        if len(found) > 1:  # they parted at the first captured batch: nothing connects them
            assert not {p for p in held[0].keys() & held[1].keys() if held[0][p] == held[1][p]}
            assert [facts.contested_epochs for facts in found] == [(), ()]
            continue
        (facts,) = found
        assert differing <= set(facts.contested_epochs)
        assert set(conclude(facts).lineage.contested_epochs) >= set(facts.contested_epochs)
        assert read(folders[0]).contested_epochs == ()
        parted += bool(differing)
    assert parted >= 5
