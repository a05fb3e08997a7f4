"""What is a breach and what is not, by facts written by hand where no golden capture shows the difference."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_core.evidence.conclusions import conclude
from kraft_core.findings.byte_rules import MOST_APART
from kraft_core.findings.facts import (
    BatchConflict,
    BatchCopy,
    LogOrderFault,
    Observation,
    RuleFacts,
    UnreadableBytes,
)
from kraft_core.findings.finding import Finding
from kraft_core.findings.judge import judge
from kraft_core.format.segment import OrderFaultKind
from tests.kraft_core.evidence.narrated import Story, directory
from tests.kraft_core.evidence.test_followed import with_followed


def found(story: Story, facts: RuleFacts | None = None) -> list[Finding]:
    return judge(conclude(story.facts()), facts or RuleFacts())


def broken(story: Story, facts: RuleFacts | None = None) -> list[tuple[int, str, int | None]]:
    return [(f.rule, f.severity, f.first_offset) for f in found(story, facts)]


def three() -> Story:
    return Story().leader(1, 0, 1, "1 2 3", sets="1 2 3")


def five() -> Story:
    return Story().leader(1, 0, 1, "1 2 3 4 5", sets="1 2 3 4 5")


# --- rule 0: bytes --------------------------------------------------------------------------------


def lost(story: Story, reason: str, first: int | None, end: int | None, nth: int = 0) -> RuleFacts:
    name = story.captures[nth].capture_id
    return RuleFacts(unreadable=(UnreadableBytes(name, "x.log", 100, 7, reason, first, end),))


def test_a_torn_tail_warns_and_other_damage_is_an_error() -> None:
    story = three().capture("1", 1000, "1:0-50", 1)
    assert broken(story, lost(story, "torn_tail", 50, None)) == [(0, "warning", 50)]
    assert broken(story, lost(story, "garbage_tail", 50, None)) == [(0, "error", 50)]
    assert broken(story, lost(story, "torn_tail", 20, None)) == [(0, "error", 20)]
    assert broken(story, lost(story, "bad_crc", None, None)) == [(0, "error", None)]


def test_damage_of_a_capture_that_is_not_known_is_nobodys() -> None:
    story = three().capture("1", 1000, "1:0-50", 1)
    unknown = RuleFacts(unreadable=(UnreadableBytes("gone", "x.log", 0, 1, "bad_crc", None, None),))
    assert broken(story, unknown) == []


def test_what_another_capture_supplies_is_resolved_and_says_by_which() -> None:
    story = three().capture("1", 1000, "1:0-20 1:30-50", 1).capture("1", 900, "1:0-35", 1)
    (damage,) = lost(story, "bad_crc", 20, 30).unreadable
    supplied = replace(damage, supplied_by=(story.captures[1].capture_id,))
    assert [f.resolution for f in found(story, RuleFacts(unreadable=(damage,)))] == [None]
    (over,) = found(story, RuleFacts(unreadable=(supplied,)))
    assert (over.severity, over.first_offset, over.end_offset) == ("error", 20, 30)
    assert over.resolution == f"supplied by the capture of 1@{'1':D>22} of 1970-01-01 00:00:00Z"
    further = replace(damage, position=300, lost_from_offset=40, lost_to_offset=None)
    (still,) = found(story, RuleFacts(unreadable=(supplied, further)))
    assert (still.resolution, still.first_offset, still.finding_id) == (None, 40, over.finding_id)
    unknown = replace(damage, supplied_by=("gone",))
    assert [f.resolution for f in found(story, RuleFacts(unreadable=(unknown,)))] == [None]


def test_a_hole_is_an_error_unless_damage_or_another_copy_explains_it() -> None:
    story = three().capture("1", 1000, "1:0-20 1:30-50", 1)
    assert broken(story) == [(0, "error", 20)]
    assert "has a gap: offsets 20 to 29 missing." in found(story)[0].sentence
    assert broken(story, lost(story, "bad_crc", 20, 30)) == [(0, "error", 20)]
    assert [f.name for f in found(story, lost(story, "bad_crc", 20, 30))] == ["bytes_are_readable"]
    story.capture("1", 900, "1:0-35", 1)
    assert broken(story) == []


def test_a_copy_of_one_replica_explains_no_hole_of_another() -> None:
    story = three().capture("1", 900, "1:0-35", 1).capture("1", 1000, "1:0-20 1:30-50", 1)
    assert broken(story) == []
    (hole,) = found(story.capture("2", 1100, "1:0-20 1:30-50", 1))
    assert (hole.rule, hole.first_offset, hole.replicas) == (0, 20, (f"2@{'2':D>22}",))


def test_what_the_scan_saw_of_the_order_is_reported_once() -> None:
    story = three().capture("1", 1000, "1:0-20 1:30-50", 1)
    gap = LogOrderFault(story.captures[0].capture_id, 30, 1, "gap", 20)
    assert [(f.name, f.first_offset) for f in found(story, RuleFacts(order_faults=(gap,)))] == [
        ("batches_follow_each_other", 20)
    ]
    back = replace(gap, kind="epoch_regression", offset=40, leader_epoch=0, expected=1)
    assert (2, "error", 40) in broken(story, RuleFacts(order_faults=(back,)))


def test_what_lies_in_another_place_of_the_log_is_not_missing() -> None:
    """Two batches in each other's place: 126 before 125."""
    story = three().capture("1", 1000, "1:0-125 1:125-126 1:126-127 1:127-150", 1)
    id_ = story.captures[0].capture_id
    places = ((126, "gap", 125), (125, "overlap", 127), (127, "gap", 126))
    faults = tuple(LogOrderFault(id_, offset, 1, kind, expected) for offset, kind, expected in places)
    sentences = [f.sentence for f in found(story, RuleFacts(order_faults=faults))]
    who = f"1@{'1':D>22}"
    assert sorted(sentences) == [
        f"The log of {who} has offset {offset} where {expected} is expected."
        for offset, _, expected in sorted(places)
    ]


@pytest.mark.parametrize(("kind", "rule"), [("overlap", 0), ("epoch_regression", 2)])
def test_many_places_out_of_order_are_one_finding(kind: OrderFaultKind, rule: int) -> None:
    story = three().capture("1", 1000, "1:0-2000", 1)
    name = story.captures[0].capture_id
    faults = [LogOrderFault(name, n, 0, kind, n + 1) for n in range(1500, 500, -1)]
    several = found(story, RuleFacts(order_faults=tuple(faults[:MOST_APART])))
    assert len([f for f in several if f.rule == rule]) == MOST_APART
    (one,) = (f for f in found(story, RuleFacts(order_faults=tuple(faults))) if f.rule == rule)
    assert one.first_offset == 501
    assert "at 1000 places or more" in one.sentence


# --- one log --------------------------------------------------------------------------------------


def test_small_files_that_were_copied_before_the_log_warn() -> None:
    story = three().leader(2, 40, 2, "1 2 3")
    entries = {"leader_epoch_checkpoint": ((1, 0),)}
    live = (
        three().leader(2, 40, 2, "1 2 3").capture("1", 1000, "1:0-40 2:40-50", 1, consistent=False, **entries)
    )
    assert broken(live) == [(10, "warning", 40), (21, "warning", None)]
    stopped = story.capture("1", 1000, "1:0-40 2:40-50", 2, **entries)
    assert broken(stopped) == [(10, "error", 40)]


def test_a_truncation_between_the_copies_of_log_and_cache_warns() -> None:
    story = three().capture("1", 1000, "1:0-50", 2, leader_epoch_checkpoint=((1, 0), (2, 40)))
    assert broken(story) == [(10, "warning", 40)]


@pytest.mark.parametrize("entries", [(), ((1, 30), (2, 40)), ((2, 40),), ((2, 45),)], ids=str)
def test_a_prefix_deleted_between_the_copies_of_log_and_cache_warns(
    entries: tuple[tuple[int, int], ...],
) -> None:
    story = three().leader(2, 40, 2, "1 2 3")
    story.capture("1", 1000, "1:0-40 2:40-50", 2, leader_epoch_checkpoint=entries)
    assert {(rule, severity) for rule, severity, _ in broken(story)} == {(10, "warning")}


def test_a_log_that_a_higher_epoch_changed_below_its_end_before_the_cache_was_copied_warns() -> None:
    story = three().leader(2, 0, 2, "1 2 3").leader(3, 40, 1, "1 2 3")
    story.capture("2", 1000, "2:0-50", 3, leader_epoch_checkpoint=((1, 0), (3, 40)))
    assert {(rule, severity) for rule, severity, _ in broken(story)} == {(10, "warning")}


def test_an_epoch_missing_between_two_others_is_an_error() -> None:
    story = three().leader(2, 40, 2, "1 2 3").leader(3, 45, 2, "1 2 3")
    entries = ((1, 0), (3, 45))
    story.capture("1", 1000, "1:0-40 2:40-45 3:45-50", 3, leader_epoch_checkpoint=entries)
    assert broken(story) == [(10, "error", 40)]


def test_an_epoch_cache_out_of_order_is_an_error() -> None:
    story = three().leader(2, 40, 2, "1 2 3")
    entries = ((2, 40), (1, 0))
    story.capture("1", 1000, "1:0-40 2:40-50", 2, leader_epoch_checkpoint=entries)
    assert broken(story) == [(10, "error", 0)]


def test_a_log_that_begins_at_a_snapshot_keeps_every_rule() -> None:
    story = three().leader(2, 40, 2, "1 2 3").snapshot(30, 1, "1", sets="1 2 3")
    story.capture("1", 1000, "1:30-40 2:40-50", 2, leader_epoch_checkpoint=((1, 30), (2, 40)))
    assert broken(story) == []
    bare = three().leader(2, 40, 2, "1 2 3").capture("1", 1000, "1:30-40 2:40-50", 2)
    assert broken(bare) == [(19, "error", 30)]


def test_batches_under_a_raised_start_need_no_entry_in_the_cache() -> None:
    """Only whole segments are deleted: the log still holds what lies below its oldest checkpoint."""
    story = three().leader(2, 40, 2, "1 2 3").snapshot(45, 2, "1", sets="1 2 3")
    story.capture("1", 1000, "1:0-40 2:40-50", 2, leader_epoch_checkpoint=((2, 45),))
    assert broken(story) == []


def test_two_checkpoints_of_one_id_name_the_same_voters() -> None:
    """A quorum that was restored twice; where a log shows what is right, the wrong one alone is named."""
    restored = Story().snapshot(100, 7, "1", sets="1 2 3")
    assert broken(restored) == []
    restored.snapshot(100, 7, "2", sets="1 2 3", content_digest="other")
    assert broken(restored) == []
    restored.snapshot(100, 7, "3", sets="1 2 4").snapshot(90, 7, "3", sets="1 2 5")
    (twice,) = found(restored)
    assert (twice.rule, twice.severity, twice.first_offset) == (17, "error", 99)
    one, other = (", ".join(f"{n}@{n!s:D>22}" for n in nodes) for nodes in ((1, 2, 3), (1, 2, 4)))
    for part in (f"{one} in Checkpoint 100-7 of", f"{other} in Checkpoint 100-7 of 3@"):
        assert part in twice.sentence
    logged = three().capture("1", 1000, "1:0-50", 1).snapshot(30, 1, "1", sets="1 2 3")
    (wrong,) = found(logged.snapshot(30, 1, "2", sets="1 2 4"))
    assert "name different voters" not in wrong.sentence


def test_records_that_cannot_be_read_break_no_rule() -> None:
    """Neither the LEADER_CHANGE nor the VotersRecord, nor what would follow from them."""
    story = three().leader(2, 40, 2, "1 2 3").voters(2, 45, "1 2 3 4").leader(3, 50, 3, "1 2 3 4")
    story.capture("1", 1000, "1:0-40 2:40-50 3:50-60", 3)
    assert broken(story) == []
    story.control_records = [
        replace(record, value=None) if record.offset in (40, 45) else record
        for record in story.control_records
    ]
    assert broken(story) == []


# --- between replicas -----------------------------------------------------------------------------


def test_lawful_tails_are_no_breach() -> None:
    """Two replicas that differ above what is proven, alone and then as one of them wins."""
    story = three().leader(2, 40, 2, "1 2 3", "2 3").data(2, 41)
    story.capture("1", 1000, "1:0-50", 1).capture("2", 1000, "1:0-40 2:40-60", 2)
    story.capture("3", 1000, "1:0-40 2:40-60", 2)
    assert broken(story) == []
    assert broken(story.capture("1", 2000, "1:0-40 2:40-70", 2)) == []


def brought_back() -> Story:
    """Figure 8: what leader 1 of epoch 2 wrote, leader 3 lacked, and leader 1 committed in epoch 4."""
    story = five().leader(2, 40, 1, "1 2 3 4 5", "1 4 5").leader(3, 40, 3, "1 2 3 4 5", "3 4 5")
    return story.leader(4, 50, 1, "1 2 3 4 5", "1 4 5").data(4, 51)


def test_what_was_brought_back_and_committed_later_was_no_loss() -> None:
    """Node 2 lost its tail lawfully, before a leader that had it committed it."""
    story = brought_back()
    story.capture("2", 420, "1:0-40 2:40-50", 2).capture("2", 450, "1:0-40 3:40-45", 3)
    story.capture("1", 3000, "1:0-40 2:40-50 4:50-60", 4).capture("3", 3000, "1:0-40 2:40-50 4:50-60", 4)
    assert [f for f in found(story) if f.severity == "error"] == []
    unlawful = story.capture("2", 520, "1:0-40 2:40-50 4:50-52", 4).capture("2", 3000, "1:0-40 3:40-45", 3)
    assert [f.first_offset for f in found(unlawful) if f.rule == 5] == [40, 50]


def test_what_a_majority_stored_in_its_own_epoch_was_lost_however_early_a_later_proof_is() -> None:
    """Nodes 1 and 2 of three had it in epoch 2: neither could vote for node 3, which had it not.

    Leader 3 and node 2 then committed another batch in its place.
    """
    story = three().leader(2, 40, 1, "1 2 3", "1 2").leader(3, 40, 3, "1 2 3", "2 3")
    story.leader(4, 50, 1, "1 2 3", "1 2").data(4, 51)
    story.capture("2", 399, "1:0-40 2:40-50", 2)
    held = story.captures[-1]  # appended before leader 3 was elected
    appended = replace(held.epoch_ranges[-1], last_appended_at=399)
    story.captures[-1] = replace(held, epoch_ranges=(held.epoch_ranges[0], appended))
    story.capture("2", 450, "1:0-40 3:40-45", 3)
    story.capture("1", 3000, "1:0-40 2:40-50 4:50-60", 4)
    assert {(f.rule, f.first_offset) for f in found(story) if f.severity == "error"} == {
        (4, 40),
        (5, 40),
        (7, 40),
    }


def test_a_replica_that_follows_an_overruled_leader_may_lose_what_is_committed_by_then() -> None:
    """Leader 3 of epoch 3 does not know of epoch 4 yet, nor does node 2, which has what epoch 4 committed."""
    story = brought_back().capture("2", 2000, "1:0-40 2:40-50", 2)
    story.capture("2", 2500, "1:0-40 3:40-45", 3).capture("1", 3000, "1:0-40 2:40-50 4:50-60", 4)
    assert "2: 40-50 committed" in story.ranges()
    assert [f for f in found(story) if f.severity == "error"] == []


@pytest.mark.parametrize(
    ("first", "expected", "found"), [(23, 24, [(18, "error", 19)]), (22, 23, []), (15, 30, [])]
)
def test_a_batch_at_wrong_offsets_does_not_show_where_a_snapshot_may_end(
    first: int, expected: int, found: list[tuple[int, str, int]]
) -> None:
    """Its last record is in a batch that ends at 23; from `first` to `expected` two batches lie."""
    story = three().capture("1", 1000, "1:0-50", 1).snapshot(20, 1, "1", sets="1 2 3", batch_end=23)
    fault = LogOrderFault(story.captures[0].capture_id, first, 1, "overlap", expected)
    facts = RuleFacts(order_faults=(fault,))
    assert [each for each in broken(story, facts) if each[0] == 18] == found


def test_a_snapshot_does_not_tell_the_epoch_in_which_its_last_record_was_committed() -> None:
    """Leader 3 of epoch 3 lawfully lacked what bears epoch 2: a later leader brought it back."""
    story = brought_back().snapshot(50, 2, "1", at=505, sets="1 2 3 4 5")
    story.capture("3", 450, "1:0-40 3:40-45", 3).capture("1", 3000, "1:0-40 2:40-50 4:50-60", 4)
    assert "2: 40-50 committed" in story.ranges()
    assert [f for f in found(story) if f.severity == "error"] == []


def test_a_snapshot_of_a_replica_still_in_an_epoch_binds_the_leaders_of_later_ones() -> None:
    story = five().leader(3, 40, 3, "1 2 3 4 5", "3 4 5").snapshot(50, 1, "1", sets="1 2 3 4 5")
    story.capture("3", 1000, "1:0-40 3:40-45", 3)
    later = replace(story, captures=list(story.captures))
    assert [f.rule for f in found(story.capture("1", 400, "1:0-60", 2)) if f.severity == "error"] == [7]
    assert [f for f in found(later.capture("1", 400, "1:0-60", 3)) if f.rule == 7] == []
    live = replace(later, captures=later.captures[:1]).capture("1", 400, "1:0-60", 2, consistent=False)
    assert [f for f in found(live) if f.rule == 7] == []


def test_a_committed_batch_that_an_observer_lost_warns() -> None:
    story = three().capture("1", 1000, "1:0-50", 1).capture("2", 1000, "1:0-50", 1)
    story.capture("4", 1000, "1:0-50", 1).capture("4", 2000, "1:0-30", 1)
    assert broken(story) == [(5, "warning", 30)]
    voter = three().capture("1", 1000, "1:0-50", 1).capture("2", 1000, "1:0-50", 1)
    voter.capture("2", 2000, "1:0-30", 1)
    assert broken(voter) == [(5, "error", 30), (44, "error", 30)]
    assert not found(voter)[0].resolved
    voter.capture("2", 3000, "1:0-30", 1)
    assert not found(voter)[0].resolved
    assert len(found(voter)[0].capture_ids) == 2
    voter.capture("2", 4000, "1:0-50", 1)
    assert found(voter)[0].resolved


def half_of_four() -> tuple[Story, RuleFacts]:
    """Leader 1 reported 50 while, of the voters 1 to 4, nodes 3 and 4 had 20 only, as they had later on."""
    story = Story().leader(1, 0, 1, "1 2 3 4", sets="1 2 3 4")
    story.capture("3", 1100, "1:0-20", 1).capture("4", 1100, "1:0-20", 1)
    return story, leader_reported(50)


def leader_reported(high_watermark: int) -> RuleFacts:
    fields = {"leader_epoch": 1, "high_watermark": high_watermark}
    return RuleFacts(
        observations=(Observation("story", "a", 990, 1000, "status", *directory("1"), "Leader", **fields),)
    )


def test_a_leader_counts_by_a_set_that_it_appended_above_its_high_watermark() -> None:
    """The removal of voter 4, at 60, made nodes 1 and 2 a majority: of {1,2,3}."""
    story, facts = half_of_four()
    story.voters(1, 60, "1 2 3").capture("5", 1100, "1:0-70", 1)
    assert broken(story, facts) == []
    other, _ = half_of_four()
    other.voters(1, 60, "2 3 4").capture("5", 1100, "1:0-70", 1)
    assert broken(other, facts) == [(8, "error", 49)]


def test_an_overruled_leader_tells_less_than_a_later_one_reached() -> None:
    """The snapshot bears epoch 1, but its holder was in epoch 2 and may have learnt there how far it went."""
    story = three().leader(2, 60, 2, "1 2 3", "2 3").snapshot(55, 1, "2", at=900, sets="1 2 3")
    later = replace(story, captures=list(story.captures)).capture("2", 1100, "1:0-60 2:60-70", 2)
    assert broken(later, leader_reported(50)) == []
    assert broken(story.capture("2", 950, "1:0-60", 1), leader_reported(50)) == [(6, "warning", 50)]


def test_half_of_an_even_set_is_no_breach_while_a_change_may_be_out_of_sight() -> None:
    story, facts = half_of_four()
    assert broken(story.capture("2", 1100, "1:0-55", 1), facts) == []
    # The leader itself, in its epoch after it reported that, had appended no change.
    assert broken(story.capture("1", 1100, "1:0-60", 1), facts) == [(8, "error", 49)]


def test_a_change_above_a_hole_is_not_known_to_be_the_next() -> None:
    """The record at 60 may have followed another one between 50 and 55, by which nodes 1 and 2 counted."""
    story, facts = half_of_four()
    story.voters(1, 60, "2 3 4").snapshot(55, 1, "5", at=1050)
    story.capture("2", 900, "1:0-50", 1).capture("5", 1100, "1:55-70", 1)
    assert broken(story, facts) == []


def test_less_than_half_is_a_breach_whatever_changes_are_out_of_sight() -> None:
    story = three().capture("2", 1100, "1:0-20", 1).capture("3", 1100, "1:0-20", 1)
    story.capture("5", 1100, "1:0-50", 1)
    assert broken(story, leader_reported(50)) == [(8, "error", 49)]


def test_what_was_reported_of_an_epoch_that_only_a_followed_log_has() -> None:
    """The controllers had deleted it before they were captured."""
    story = three().leader(2, 50, 2, "1 2 3", "2 3").snapshot(60, 2, "1 2 3", at=900, sets="1 2 3")
    for name in ("1", "2", "3"):
        story.capture(name, 1100, "2:60-80", 2)
    known = conclude(with_followed(story, "1:0-50 2:50-80"))
    assert 1 not in known.holdings.by_epoch
    assert judge(known, leader_reported(50)) == []


def test_another_disk_lost_nothing() -> None:
    story = three().capture("1", 1000, "1:0-50", 1).capture("2", 1000, "1:0-50", 1)
    assert broken(story.capture("2b", 2000, "1:0-10", 1)) == []


@pytest.mark.parametrize("alone", ["1", "2"])
def test_of_differing_batches_the_lonely_one_is_named(alone: str) -> None:
    story = three()
    for name in ("1", "2", "3"):
        story.capture(name, 1000, "1:0-50", 1, digests="x" if name == alone else "")
    others = tuple(directory(name) for name in ("1", "2", "3") if name != alone)
    copies = (BatchCopy(21, 7, 70, (directory(alone),)), BatchCopy(21, 8, 70, others))
    (finding,) = found(story, RuleFacts(batch_conflicts=(BatchConflict(1, 20, copies),)))
    assert (finding.rule, finding.first_offset, finding.end_offset) == (3, 20, 21)
    assert [replica.split("@")[0] for replica in finding.replicas] == [alone]
    (unplaced,) = found(story)
    assert (unplaced.rule, unplaced.finding_id) == (3, finding.finding_id)
    assert len(unplaced.replicas) == 3


@pytest.mark.parametrize(
    ("conflicts", "words"),
    [(1, "(the only such offset)"), (15, "(15 such offsets)"), (16, "(16 such offsets or more)")],
)
def test_of_many_differing_batches_there_may_be_more(conflicts: int, words: str) -> None:
    story = three().capture("1", 1000, "1:0-50", 1).capture("2", 1000, "1:0-50", 1, digests="x")
    copies = (BatchCopy(21, 7, 70, (directory("1"),)), BatchCopy(21, 8, 70, (directory("2"),)))
    differing = tuple(BatchConflict(1, base, copies) for base in range(conflicts))
    (finding,) = found(story, RuleFacts(batch_conflicts=differing))
    assert words in finding.sentence


def test_quorum_states_alone_may_show_two_leaders() -> None:
    story = three().capture("1", 1000, "1:0-50", 1, quorum_state_leader_id=1)
    story.capture("2", 1000, "1:0-50", 1, quorum_state_leader_id=2)
    (finding,) = found(story)
    assert (finding.rule, finding.sentence) == (1, "Epoch 1 has 2 leaders: 1, 2.")


def test_kafkas_own_check_is_named_where_two_voters_change_at_once() -> None:
    swapped = three().voters(1, 20, "1 2 4").capture("1", 1000, "1:0-50", 1)
    (finding,) = found(swapped)
    assert (finding.rule, finding.severity) == (13, "warning")
    assert "it passes Kafka's own check" in finding.sentence
    doubled = three().voters(1, 20, "1 2 3 4 5").capture("1", 1000, "1:0-50", 1)
    assert "it fails Kafka's own check" in found(doubled)[0].sentence


def test_a_stale_replica_that_led_lawfully_since_is_no_longer_warned_of() -> None:
    story = three().leader(2, 40, 2, "1 2 3", "2 3").voters(2, 45, "1 2 3 4")
    story.capture("1", 510, "1:0-50", 1).capture("1", 590, "1:0-40 2:40-60", 2)
    (finding,) = found(story)
    assert (finding.rule, finding.severity, finding.resolved) == (16, "warning", False)
    story.leader(3, 60, 1, "1 2 3 4").capture("1", 3000, "1:0-40 2:40-60 3:60-70", 3)
    (finding,) = found(story)
    assert (finding.rule, finding.resolved) == (16, True)


def test_a_leader_may_lack_a_whole_epoch() -> None:
    """Epoch 2 is committed by nodes 1 and 2; the leaders of epochs 3 and 4 begin where it began."""
    story = (
        three()
        .leader(2, 40, 1, "1 2 3", "1 2")
        .leader(3, 40, 3, "1 2 3", "2 3")
        .leader(4, 45, 3, "1 2 3", "2 3")
    )
    story.capture("1", 1000, "1:0-40 2:40-50", 2).capture("2", 399, "1:0-40 2:40-50", 2)
    story.capture("3", 1000, "1:0-40 3:40-45 4:45-60", 4)
    places = sorted((f.rule, f.first_offset, f.end_offset, f.leader_epochs) for f in found(story))
    assert places == [(7, 40, 50, (2, 3)), (7, 40, 50, (2, 4))]


def test_a_leader_that_holds_it_all_under_later_epochs_is_complete() -> None:
    story = (
        three().leader(2, 40, 1, "1 2 3", "1 2").leader(4, 50, 3, "1 2 3", "2 3").leader(5, 60, 1, "1 2 3")
    )
    for name in ("1", "2", "3"):
        story.capture(name, 1000, "1:0-40 2:40-50 4:50-60 5:60-70", 5)
    assert found(story) == []
