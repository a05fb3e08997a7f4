"""Voter sets by source, their place in history, and the changes between them."""

from __future__ import annotations

from dataclasses import replace

from tests.kraft_core.evidence.narrated import Story

THREE = "1 2 3"


def changes(story: Story) -> list[tuple[int, str, int]]:
    return [(c.offset, c.kind, c.voter_id) for c in story.evidence().voter_changes]


def spans(story: Story) -> list[tuple[str, int, int | None, int | None, int | None]]:
    return [
        (s.source, s.in_force_from_offset, s.in_force_to_offset, s.in_force_from, s.in_force_to)
        for s in story.evidence().voter_sets
    ]


def exact(story: Story) -> list[tuple[str, bool, bool | None]]:
    return [(s.source, s.in_force_from_exact, s.in_force_to_exact) for s in story.evidence().voter_sets]


def test_static_sets_change_by_configuration() -> None:
    story = Story().leader(1, 0, 1, THREE).leader(3, 20, 2, THREE).leader(5, 40, 2, "1 2 4")
    story.capture("1", 1000, "1:0-20 3:20-40 5:40-50", 5)
    assert story.sets() == ["static 0/1: 1 2 3 None", "static 40/5: 1 2 4 None"]
    assert changes(story) == []
    assert spans(story) == [("static", 0, 40, 0, 400), ("static", 40, None, 400, None)]
    # The configuration changed before the election that shows it.
    assert exact(story) == [("static", True, False), ("static", False, None)]
    (first, _) = story.evidence().voter_sets
    assert (first.majority, first.as_of, first.voters[0].min_kraft_version) == (2, None, None)
    assert first.voters[0].directory_id == "A" * 22


def test_records_before_the_first_leader_change_have_its_voters() -> None:
    """Before release 3.6 the leader of an empty log may write them (KAFKA-15345): they prove no commit."""
    story = Story().leader(1, 4, 1, THREE).data(1, 0)
    story.capture("1", 1000, "1:0-50", 1).capture("2", 1000, "1:0-40", 1)
    assert story.sets() == ["static 4/1: 1 2 3 None"]
    assert story.ranges() == ["1: 0-40 committed", "1: 40-50 undecided"]
    del story.captures[1]
    assert story.ranges() == ["1: 0-50 undecided"]


def test_the_upgrade_bootstraps_the_voters() -> None:
    story = Story().leader(1, 0, 1, THREE).upgrade(1, 20, THREE).voters(1, 30, "1 2")
    story.capture("1", 1000, "1:0-50", 1)
    assert changes(story) == [
        (21, "bootstrapped", 1),
        (21, "bootstrapped", 2),
        (21, "bootstrapped", 3),
        (30, "removed", 3),
    ]
    assert spans(story) == [
        ("static", 0, 21, 0, 210),
        ("record", 21, 30, 210, 300),
        ("record", 30, None, 300, None),
    ]


def test_the_bootstrap_checkpoint() -> None:
    story = Story().snapshot(0, 0, "1 2", sets=THREE).leader(1, 0, 1, THREE, sets=THREE)
    story.capture("1", 1000, "1:0-50", 1)
    assert story.sets()[0] == "bootstrap -1/0: 1 2 3 None"
    assert spans(story)[0] == ("bootstrap", -1, 2, None, 20)
    assert changes(story) == [(2, "bootstrapped", 1), (2, "bootstrapped", 2), (2, "bootstrapped", 3)]


def test_of_bootstrap_sets_that_differ_the_one_most_directories_have() -> None:
    story = Story().snapshot(0, 0, "1", sets="1").snapshot(0, 0, "2 3", sets=THREE)
    assert story.sets() == ["bootstrap -1/0: 1 2 3 None"]
    assert "1 others differ" in story.evidence().voter_sets[0].evidence


def test_a_snapshot_whose_record_was_captured_makes_no_row() -> None:
    story = Story().leader(1, 0, 1, THREE, sets=THREE).capture("1", 1000, "1:0-50", 1)
    story.snapshot(30, 1, "1", at=400, sets=THREE)
    assert story.sets() == ["record 2/1: 1 2 3 committed"]


def test_nor_does_one_whose_record_is_known_from_an_older_log() -> None:
    """The old capture has the record; by the time of the new one the log begins at 100."""
    story = Story().leader(1, 0, 1, THREE, sets=THREE).capture("1", 300, "1:0-50", 1)
    story.capture("1", 5000, "1:100-200", 1).snapshot(120, 1, "1", at=2000, sets=THREE)
    assert story.sets() == ["record 2/1: 1 2 3 committed"]


def test_sets_known_only_from_snapshots_stand_at_their_lowest_end() -> None:
    story = Story().capture("1", 5000, "1:100-200", 1)
    story.snapshot(150, 1, "2", at=2000, sets=THREE).snapshot(120, 1, "1", at=1500, sets=THREE)
    story.snapshot(180, 1, "1", at=3000, sets="1 2 3 4")
    assert story.sets() == ["snapshot 119/1: 1 2 3 committed", "snapshot 179/1: 1 2 3 4 committed"]
    assert spans(story) == [("snapshot", 119, 179, 1500, 3000), ("snapshot", 179, None, 3000, None)]
    assert changes(story) == [(179, "added", 4)]
    assert exact(story) == [("snapshot", False, False), ("snapshot", False, None)]
    assert [change.changed_exact for change in story.evidence().voter_changes] == [False]
    assert story.evidence().voter_sets[0].as_of == 1500


def test_a_set_that_came_back_gets_a_row_of_its_own() -> None:
    story = Story().leader(1, 0, 1, THREE, sets=THREE).capture("1", 300, "1:0-50", 1)
    story.snapshot(120, 1, "1", at=2000, sets="1 2").snapshot(180, 1, "1", at=3000, sets=THREE)
    assert story.sets() == [
        "record 2/1: 1 2 3 committed",
        "snapshot 119/1: 1 2 committed",
        "snapshot 179/1: 1 2 3 committed",
    ]
    assert exact(story) == [("record", True, False), ("snapshot", False, False), ("snapshot", False, None)]


def test_the_log_counts_before_a_stale_snapshot() -> None:
    """A replica that missed a VotersRecord writes the old set into its checkpoints."""
    story = Story().leader(1, 0, 1, THREE, sets=THREE).voters(1, 20, "1 2 3 4")
    story.capture("1", 1000, "1:0-50", 1).snapshot(40, 1, "1", at=600, sets=THREE)
    assert story.sets() == ["record 2/1: 1 2 3 committed", "record 20/1: 1 2 3 4 committed"]


def test_after_a_snapshot_a_record_is_compared_with_it() -> None:
    story = Story().snapshot(100, 1, "1", at=1200, sets=THREE).voters(1, 120, "1 2")
    story.capture("1", 5000, "1:100-200", 1)
    assert changes(story) == [(120, "removed", 3)]


def test_without_a_predecessor_in_sight_there_is_no_change() -> None:
    story = Story().voters(1, 120, "1 2").capture("1", 5000, "1:100-200", 1)
    assert changes(story) == []
    assert story.sets() == ["record 120/1: 1 2 undecided"]


def test_a_replaced_disk_is_removed_and_added() -> None:
    story = Story().leader(1, 0, 1, THREE, sets=THREE).voters(1, 20, "1 3").voters(1, 30, "1 2b 3")
    story.capture("1", 1000, "1:0-50", 1)
    assert changes(story)[3:] == [(20, "removed", 2), (30, "added", 2)]
    assert {c.directory_id[-2:] for c in story.evidence().voter_changes if c.offset >= 20} == {"D2", "2b"}


def test_an_updated_endpoint() -> None:
    story = Story().leader(1, 0, 1, THREE, sets=THREE).voters(1, 20, THREE)
    story.control_records[-1].value["voters"][0]["endpoints"][0]["port"] = 9999
    story.control_records[-1].value["voters"][1]["kRaftVersionFeature"]["maxSupportedVersion"] = 2
    story.capture("1", 1000, "1:0-50", 1)
    assert [(c.voter_id, c.detail) for c in story.evidence().voter_changes if c.kind == "updated"] == [
        (1, "endpoints CONTROLLER://host1:9093 -> CONTROLLER://host1:9999"),
        (2, "kraft.version 0-1 -> 0-2"),
    ]


def test_after_a_voters_record_that_cannot_be_read_the_set_is_not_known() -> None:
    story = Story().leader(1, 0, 1, THREE, sets=THREE).voters(1, 20, "1 2 3 4")
    story.capture("1", 1000, "1:0-50", 1).capture("2", 1000, "1:0-50", 1)
    story.control_records[-1] = replace(story.control_records[-1], value=None)
    assert story.sets() == ["record 2/1: 1 2 3 committed"]
    assert story.ranges() == ["1: 0-20 committed", "1: 20-50 undecided"]
    # Nor after one that names nobody.
    story.control_records[-1] = replace(story.control_records[-1], value={"voters": []})
    assert story.ranges() == ["1: 0-20 committed", "1: 20-50 undecided"]


def test_both_sets_of_two_first_leaders_are_told() -> None:
    """Leader 1 of epoch 1 never got through; leader 2 wrote the bootstrap set anew."""
    story = Story().leader(1, 0, 1, THREE, sets=THREE).leader(2, 0, 2, THREE, sets=THREE).data(2, 3)
    story.capture("1", 500, "1:0-3", 1).capture("2", 1000, "2:0-50", 2)
    assert story.sets() == ["record 2/1: 1 2 3 truncated", "record 2/2: 1 2 3 committed"]
