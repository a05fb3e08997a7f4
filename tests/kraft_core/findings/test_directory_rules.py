"""Rules 44 to 46, 51: a directory that went back, a second one of a static id, a log older than other files,
a directory under two node ids.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from math import inf

import pytest

from kraft_core.evidence.conclusions import conclude
from kraft_core.evidence.consistency import COPY_MS
from kraft_core.evidence.derive import derive
from kraft_core.evidence.facts import CLOCK_SKEW_MS, label
from kraft_core.evidence.log_ends import LogEnds
from kraft_core.findings.finding import Finding
from kraft_core.findings.judge import judge
from kraft_core.findings.recovery import RecoveryAdvice, recovery_advice
from tests.kraft_core.evidence.narrated import Story


def found(story: Story, rule: int) -> list[Finding]:
    return [finding for finding in judge(conclude(story.facts())) if finding.rule == rule]


def errors(story: Story) -> set[int]:
    return {finding.rule for finding in judge(conclude(story.facts())) if finding.severity == "error"}


def advised(story: Story) -> RecoveryAdvice:
    known = conclude(story.facts())
    return recovery_advice(known, judge(known))


# --- rule 44: what is stored stays ----------------------------------------------------------------


def shrunk(**later: object) -> Story:
    """Leader 3 was not captured; node 2 held 10 to 29 and then ended at 10, in the same epoch."""
    story = Story().leader(1, 0, 3, "1 2 3", sets="1 2 3").capture("1", 2000, "1:0-10", 1)
    story.capture("2", 1000, "1:0-30", 1).capture("2", 2000, "1:0-10", 1)
    story.captures[-1] = replace(story.captures[-1], **later)
    return story


def test_records_lost_within_an_epoch_are_an_error_and_nothing_is_safe() -> None:
    (finding,) = found(shrunk(), 44)
    assert (finding.severity, finding.first_offset, finding.end_offset) == ("error", 10, 30)
    assert "had stored offsets 10 to 29 of epoch 1 and lost them" in finding.sentence
    advice = advised(shrunk())
    assert not advice.is_safe
    assert "Rule 44 is broken: 2@" in advice.why


@pytest.mark.parametrize(
    "later",
    [
        {"quorum_state_epoch": 2},  # an epoch that may have truncated it
        {"readable": False},
        {"tail_damaged": True},
        {"ends_inside_batch": True},
        {"captured_from": 1000, "captured_until": 1000},  # taken at the same time
        {"captured_from": 90, "captured_until": None},  # by file times
        {"directory_id": f"{'2b':D>22}"},
    ],
    ids=lambda later: next(iter(later)),
)
def test_without_any_part_of_the_evidence_it_is_no_error(later: dict[str, object]) -> None:
    assert 44 in errors(shrunk())
    assert 44 not in errors(shrunk(**later))


def unnamed(**earlier: object) -> Story:
    """Node 2 held 10 to 29 and then ended at 10; no log or checkpoint names the voters."""
    story = Story().capture("2", 1000, "1:5-30", 1).capture("2", 2000, "1:5-10", 1)
    story.captures[0] = replace(story.captures[0], **earlier)
    return story


def test_its_own_quorum_state_shows_that_a_replica_was_a_voter() -> None:
    assert 44 in errors(unnamed(current_voters=(1, 2, 3)))


@pytest.mark.parametrize(
    "earlier",
    [{"current_voters": None}, {"current_voters": (1, 3)}, {"current_voters": (2,), "consistent": False}],
    ids=["no voters", "other voters", "an older quorum-state"],
)
def test_an_observer_may_lose_what_it_fetched(earlier: dict[str, object]) -> None:
    assert 44 not in errors(unnamed(**earlier))


@pytest.mark.parametrize(
    "later",
    [{"quorum_state_epoch": None}, {"consistent": False}, {"leader_epoch_checkpoint": ((1, 0), (2, 20))}],
    ids=lambda later: next(iter(later)),
)
def test_where_the_files_do_not_fit_the_log_it_is_a_warning_and_not_safe(later: dict[str, object]) -> None:
    (finding,) = found(shrunk(**later), 44)
    assert finding.severity == "warning"
    assert not advised(shrunk(**later)).is_safe


@pytest.mark.parametrize("between", [{"readable": False}, {"consistent": False}], ids=str)
def test_a_capture_in_between_that_does_not_show_it_hides_no_loss(between: dict[str, bool]) -> None:
    assert 44 in errors(shrunk().capture("2", 1500, "1:0-10", 1, **between))


def unidentified() -> Story:
    """Before Kafka 3.7 no directory has an id. Leader 2 held 10 to 19 of epoch 1, and then ends at 10."""
    story = Story().leader(1, 0, 2, "1 2 3").capture("2?", 1000, "1:0-20", 1)
    return story.capture("2?", 2000, "1:0-10", 1).capture("3?", 2000, "1:0-10", 1)


def test_a_directory_without_an_id_that_lost_records_is_a_warning_and_not_safe() -> None:
    """It may be another disk; what the first one had acknowledged may be committed, with node 1."""
    (finding,) = found(unidentified(), 44)
    assert (finding.severity, finding.first_offset, finding.end_offset) == ("warning", 10, 20)
    assert "as after a restored backup or a new disk" in finding.sentence
    assert unidentified().ranges() == ["1: 0-10 committed", "1: 10-20 undecided"]
    assert not advised(unidentified()).is_safe


def test_a_directory_without_an_id_may_truncate_in_a_higher_epoch() -> None:
    story = Story().leader(1, 0, 2, "1 2 3").leader(2, 10, 3, "1 2 3").capture("2?", 1000, "1:0-20", 1)
    story.capture("2?", 2000, "1:0-10 2:10-30", 2).capture("3?", 2000, "1:0-10 2:10-30", 2)
    assert not found(story, 44)
    assert advised(story).is_safe


@pytest.mark.parametrize("partial", [{"readable": False, "log_end_offset": None}, {"log_start_offset": None}])
def test_a_copy_without_the_segments_lost_nothing(partial: dict[str, object]) -> None:
    """The captures before and after it show a log that grew."""
    story = Story().leader(1, 0, 1, "1 2 3", sets="1 2 3").capture("1", 3000, "1:0-40", 1)
    story.capture("2", 1000, "1:0-20", 1).capture("2", 2000, "", 1, end=10)
    story.captures[-1] = replace(story.captures[-1], **partial)
    story.capture("2", 3000, "1:0-30", 1).capture("3", 3000, "1:0-30", 1)
    assert not found(story, 44)
    assert story.ranges() == ["1: 0-30 committed", "1: 30-40 uncommitted"]


def test_an_observer_may_lose_what_it_did_not_flush() -> None:
    story = Story().leader(1, 0, 1, "1", sets="1").capture("1", 2000, "1:0-30", 1)
    story.capture("2", 1000, "1:0-30", 1).capture("2", 2000, "1:0-10", 1)
    assert not found(story, 44)
    assert advised(story).is_safe


# Of leader_of_epoch_2: LEADER_CHANGE was written at 300 ms, and clocks differ by no more than a minute.
LONG_AFTER = 300 + CLOCK_SKEW_MS + 1


def leader_of_epoch_2(
    log: str, in_epoch: int | None, sets: str = "1 2 3", *, at: int = LONG_AFTER, stated: bool = True
) -> Story:
    """Leader 1 of epoch 2, elected at 30, was captured with a log; node 2 holds all, node 3 is lost."""
    story = Story().leader(1, 0, 2, "1 2 3", sets=sets).metadata_version(1, 5, 20)
    story.leader(2, 30, 1, "1 2 3").data(2, 31)
    return story.capture("1", at, log, in_epoch, stated=stated).capture("2", at, "1:0-30 2:30-40", 3)


def committed_to_40_in_epoch_2(at: int) -> Story:
    """As node 3 shows, and leader 1 was copied when its log ended at 35, with its quorum-state of epoch 3."""
    story = leader_of_epoch_2("1:0-30 2:30-35", 3, at=at).capture("3", at, "1:0-30 2:30-40", 2)
    return story.snapshot(38, 2, "3")


def leader_of_epoch_4() -> Story:
    """Nothing of it is known to be committed, and the leader of another epoch may have truncated it."""
    story = Story().leader(1, 0, 2, "1 2 3", sets="1 2 3").leader(4, 30, 1, "1 2 3")
    return story.capture("1", 1000, "1:0-20", 5).capture("2", 1000, "1:0-30 4:30-40", 5)


def leader_whose_epoch_was_committed_later() -> Story:
    """The leader of epoch 5 truncated the batch of epoch 3, which the leader of epoch 6 committed."""
    story = Story().leader(1, 0, 2, "1 2 3", sets="1 2 3").metadata_version(1, 5, 20)
    story.leader(3, 30, 1, "1 2 3").leader(6, 31, 3, "1 2 3", "2 3").data(6, 32)
    return story.capture("1", 1000, "1:0-30", 5).capture("3", 1000, "1:0-30 3:30-31 6:31-40", 6)


@pytest.mark.parametrize(("in_epoch", "end"), [(2, 30), (3, 31)])
@pytest.mark.parametrize(("sets", "severity"), [("1 2 3", "error"), ("", "warning")])
def test_a_leader_that_lacks_what_it_had_committed_forgot_it(
    in_epoch: int, end: int, sets: str, severity: str
) -> None:
    """By directory id its disk was put back, by id alone it may be new. In epoch 2 it may just begin."""
    story = leader_of_epoch_2("1:0-20", in_epoch, sets)
    (finding,) = found(story, 44)
    assert (finding.severity, finding.first_offset, finding.end_offset) == (severity, 20, end)
    assert "had stored the committed offsets 20 to" in finding.sentence
    advice = advised(story)
    assert not advice.is_safe
    assert "Rule 44 is broken: 1@" in advice.why


@pytest.mark.parametrize(
    "story",
    [
        leader_of_epoch_2("1:0-20", 3, at=LONG_AFTER - 1),
        leader_of_epoch_2("1:0-20", 2, at=LONG_AFTER - 1),
        leader_of_epoch_2("1:0-20", 3, stated=False),  # of unknown time
        committed_to_40_in_epoch_2(at=390),
    ],
    ids=["follower", "candidate", "unknown", "leader"],
)
def test_what_a_leader_may_have_written_after_its_log_was_copied_is_no_error(story: Story) -> None:
    """quorum-state is copied last: its epoch says nothing about what the log had held. Nothing is safe."""
    (finding,) = found(story, 44)
    assert finding.severity == "warning"
    assert "or its quorum-state was copied later than its log: capture it again" in finding.sentence
    assert not advised(story).is_safe


def test_what_a_leader_had_written_long_before_its_log_was_copied_it_forgot() -> None:
    """From when another log shows the end of the epoch, 390 ms."""
    for at, severity in ((390 + CLOCK_SKEW_MS, "warning"), (391 + CLOCK_SKEW_MS, "error")):
        story = committed_to_40_in_epoch_2(at=at)
        (finding,) = found(story, 44)
        assert (finding.severity, finding.first_offset, finding.end_offset) == (severity, 35, 40)
        assert not advised(story).is_safe


@pytest.mark.parametrize(
    "story",
    [
        leader_of_epoch_2("1:0-30", 2),  # elected, with LEADER_CHANGE still to be written
        leader_of_epoch_2("1:0-30 2:30-31", 3),  # the rest of epoch 2 was truncated
        leader_of_epoch_2("1:0-20", 1),  # copied before it led
        leader_of_epoch_2("1:0-20", None),
        leader_of_epoch_4(),
        leader_whose_epoch_was_committed_later(),
    ],
)
def test_a_leader_lacks_lawfully_what_was_not_committed_when_it_was_captured(story: Story) -> None:
    assert found(story, 44) == []


def test_a_truncation_by_a_higher_epoch_is_lawful() -> None:
    story = Story().leader(1, 0, 3, "1 2 3", sets="1 2 3").leader(2, 10, 1, "1 2 3", "1 2")
    story.capture("2", 1000, "1:0-30", 1).capture("2", 2000, "1:0-10 2:10-20", 2)
    assert not found(story, 44)


def test_what_was_lost_stays_a_ground() -> None:
    """Whatever the best log holds: node 2 may have stored more after its first capture, and lost that."""
    story = shrunk().leader(2, 10, 1, "1 2 3", "1 2")
    story.capture("1", 3000, "1:0-10 2:10-40", 2).capture("2", 3000, "1:0-10 2:10-40", 2)
    (finding,) = found(story, 44)
    assert finding.resolved
    assert not advised(story).is_safe
    again = shrunk().capture("1", 3000, "1:0-40", 1).capture("2", 3000, "1:0-40", 1)
    assert not advised(again).is_safe
    assert "Rule 44 is broken: 2@" in advised(again).why


def test_an_epoch_that_fell_is_an_error() -> None:
    """Nothing of the log is lost, but a vote is forgotten."""
    later = 1000 + COPY_MS + 1
    story = Story().leader(1, 0, 3, "1 2 3", sets="1 2 3").capture("1", later, "1:0-30", 1)
    story.capture("2", 1000, "1:0-30", 3).capture("2", later, "1:0-30", 2)
    (finding,) = found(story, 44)
    assert finding.severity == "error"
    assert "went back from epoch 3 to epoch 2" in finding.sentence
    assert not advised(story).is_safe
    story.captures[-1] = replace(story.captures[-1], consistent=False)
    assert not found(story, 44)
    observer = Story().leader(1, 0, 1, "1", sets="1").capture("2", 1000, "1:0-30", 3)
    assert 44 in errors(observer.capture("2", later, "1:0-30", 2))


@pytest.mark.parametrize("at", [1001, 2000, 1000 + COPY_MS])
def test_an_epoch_that_a_quorum_state_alone_shows_may_be_newer_than_the_next_copy(at: int) -> None:
    """It is copied last, at an unknown time: a warning, and no recovery is safe. A log shows when it was."""
    story = Story().leader(1, 0, 3, "1 2 3", sets="1 2 3").leader(3, 20, 3, "1 2 3", "1 3")
    story.capture("1", at, "1:0-20", 1).capture("2", 1000, "1:0-20", 3).capture("2", at, "1:0-20", 2)
    (finding,) = found(story, 44)
    assert finding.severity == "warning"
    assert not advised(story).is_safe
    first = replace(story, captures=[story.captures[0], story.captures[2]])
    assert 44 in errors(first.capture("2", 1000, "1:0-20 3:20-30", 3))


def test_of_two_copies_made_at_once_the_one_that_was_begun_first_may_be_the_newer() -> None:
    """Copying took until the last of what it holds was appended: one begun meanwhile lacks it lawfully."""
    appended = Story().capture("2", 100, "1:0-30", 1).captures[0].epoch_ranges[-1].last_appended_at
    for begun in range(101, appended + 100, 9):
        story = Story().leader(1, 0, 3, "1 2 3", sets="1 2 3").capture("1", 2000, "1:0-10", 1)
        story.capture("2", 100, "1:0-30", 1).capture("2", begun, "1:0-10", 1)
        is_later = begun > appended
        assert (44 in errors(story)) == is_later, begun
        assert bool(conclude(story.facts()).holdings.went_back) == is_later, begun
        assert not advised(story).is_safe, begun


# --- rule 45: one directory of a static id ----------------------------------------------------------


def doubled(*, at: int = 500) -> Story:
    """Node 3 of a static quorum has two directories, both followed and captured."""
    story = Story().leader(1, 0, 1, "1 2 3").capture("1", 900, "1:0-50", 1).capture("2", 900, "1:0-50", 1)
    story.capture("3", 200, "1:0-20", 1).capture("3", 900, "1:0-60", 1)
    return story.capture("3b", at, "1:0-40", 1)


def test_two_live_directories_of_a_static_id_are_an_error() -> None:
    (finding,) = found(doubled(), 45)
    assert (finding.severity, len(finding.replicas)) == ("error", 2)
    assert not advised(doubled()).is_safe


def test_a_new_disk_is_a_warning_and_not_safe() -> None:
    story = doubled()
    del story.captures[3]  # nothing that the older directory wrote after the newer one had a log
    (finding,) = found(story, 45)
    assert finding.severity == "warning"
    assert "the newer one may lack what the older one acknowledged" in finding.sentence
    advice = advised(story)
    assert not advice.is_safe
    assert "Rule 45" in advice.why


@pytest.mark.parametrize(
    "change",
    [
        lambda s: Story(s.control_records, [c for c in s.captures if not c.directory_id.endswith("b")]),
        lambda s: replace(s, captures=[*s.captures[:-1], replace(s.captures[-1], epoch_ranges=())]),
    ],
)
def test_without_a_second_log_there_is_no_finding(change: Callable[[Story], Story]) -> None:
    assert not found(change(doubled()), 45)


def test_directories_that_the_voter_set_names_are_voters_of_their_own() -> None:
    story = Story().leader(1, 0, 1, "1 2", sets="1 2").capture("2", 900, "1:0-50", 1)
    assert not found(story.capture("2b", 900, "1:0-50", 1), 45)


@pytest.mark.parametrize(("log", "severity"), [("1:0-60", None), ("1:50-60", None), ("1:0-15", "warning")])
def test_a_new_disk_after_the_upgrade_of_kraft_version_is_another_voter(
    log: str, severity: str | None
) -> None:
    """Since then node 3 is not identified by its id alone. Recovery and restore were never safe again."""
    story = Story().leader(1, 0, 1, "1 2 3").upgrade(1, 20, "1 2 3").capture("3", 300, "1:0-30", 1)
    story.capture("3b", 900, log, 1)
    assert [finding.severity for finding in found(story, 45)] == ([severity] if severity else [])


def heard(
    later: int, epoch: int = 2, leader: int = 3, end: str = "1:0-50", in_epoch: int | None = 1
) -> Story:
    """Node 1 had heard by 1000 that node 3 led epoch 2; node 3 was captured later."""
    story = Story().leader(1, 0, 1, "1 2 3", sets="1 2 3")
    story.capture("1", 1000, "1:0-50", epoch, quorum_state_leader_id=leader)
    story.capture("2", later, "1:0-50", 1, quorum_state_leader_id=1)
    return story.capture("3", later, end, in_epoch, quorum_state_leader_id=1)


HOUR = 3_600_000


def assert_older(story: Story, words: str) -> None:
    (finding,) = found(story, 46)
    assert (finding.severity, finding.evidence) == ("warning", words)
    advice = advised(story)
    assert not advice.is_safe
    assert f"has a log that is older than other captured files ({words})" in advice.why


def test_a_log_without_the_epoch_that_its_node_had_led_is_older() -> None:
    words = "another node's quorum-state, captured before, says that it led epoch 2"
    assert_older(heard(HOUR), words)


@pytest.mark.parametrize(
    "story",
    [
        heard(600_000),  # its quorum-state may have been copied later than is stated
        heard(660_999),
        heard(500),
        heard(HOUR, leader=2),  # which was captured without it, too, but is another one
        heard(HOUR, in_epoch=3),  # a later leader may have truncated its LEADER_CHANGE
        heard(HOUR, in_epoch=None),
        heard(HOUR, end="1:0-40 2:40-50", in_epoch=2),
        heard(HOUR, epoch=1, leader=1),
    ],
    ids=["copying", "clocks", "before", "other", "truncated", "unknown", "has it", "led"],
)
def test_a_log_may_lack_an_epoch_that_its_node_is_not_known_to_have_led_before(story: Story) -> None:
    assert not [f for f in found(story, 46) if f.replicas == (label(story.captures[2].replica),)]


def led(later: int, end: str = "1:0-40", in_epoch: int | None = 1, leader: int = 3) -> Story:
    """Node 1 has what leader 3 wrote of epoch 1 up to 50, at 500; node 3 was captured later with less."""
    story = Story().leader(1, 0, leader, "1 2 3", sets="1 2 3").capture("1", later, "1:0-50", 1)
    return story.capture("3", later, end, in_epoch)


def test_a_leader_whose_log_lacks_what_it_wrote_has_an_older_log() -> None:
    """A backup of it that is stated to be of the time when it was unpacked."""
    assert_older(led(HOUR), "another log contains what it wrote in epoch 1 before, up to 50")


@pytest.mark.parametrize(
    "story",
    [
        led(60_000),  # within what clocks differ by
        led(HOUR, end="1:0-50"),
        led(HOUR, end="1:0-60"),
        led(HOUR, in_epoch=2),  # a later leader may have truncated it
        led(HOUR, in_epoch=None),
        led(HOUR, leader=1),
    ],
    ids=["clocks", "has it", "has more", "truncated", "unknown", "follows"],
)
def test_a_log_may_lack_what_its_node_is_not_known_to_have_written_before(story: Story) -> None:
    assert not found(story, 46)


# --- rule 51: one directory under several node ids ---------------------------------------------------


def copied(*nodes: str, sets: str = "") -> Story:
    """Voters 1, 2 and 3, of which node 1 leads; some are captured with the directory id of node 1."""
    story = Story().leader(1, 0, 1, "1 2 3", sets=sets)
    for node in ("1", *nodes):
        story.capture(node, 1000, "1:0-50", 1)
        story.captures[-1] = replace(story.captures[-1], directory_id=story.captures[0].directory_id)
    return story


def test_copies_of_one_directory_count_for_no_static_voter() -> None:
    """Without directory ids, three nodes with one log are a majority; here they are one node, three times."""
    story = copied("2", "3")
    (finding,) = found(story, 51)
    assert (finding.severity, [name.partition("@")[0] for name in finding.replicas]) == (
        "error",
        ["1", "2", "3"],
    )
    known = conclude(story.facts())
    assert not advised(story).is_safe
    assert "one is a copy of the other, and neither counts" in advised(story).why
    assert {row.commit_status for row in derive(story.facts()).log_ranges} == {"undecided"}
    assert LogEnds.of(known).bounds(known.in_force.voters_at(1, 49), [0]) == [inf]


def test_a_copy_beside_the_voters_of_a_record_is_a_warning() -> None:
    """Voters with directory ids are told from their copies, such as a staging copy with other node ids."""
    story = copied("101", sets="1 2 3").capture("2", 1000, "1:0-50", 1)
    (finding,) = found(story, 51)
    assert finding.severity == "warning"
    assert advised(story).is_safe


# --- rule 46: a log older than its files ------------------------------------------------------------


def test_a_log_older_than_its_files_is_a_warning_and_does_not_count() -> None:
    story = Story().leader(1, 0, 1, "1 2 3", sets="1 2 3").capture("1", 1000, "1:0-50", 1)
    story.capture("2", 1000, "1:0-50", 2, leader_epoch_checkpoint=((1, 0), (2, 90)))
    (finding,) = found(story, 46)
    assert finding.severity == "warning"
    assert "leader-epoch-checkpoint has epoch 2 from 90" in finding.sentence
    assert not errors(story)
    advice = advised(story)
    assert not advice.is_safe
    assert "has a log that is older than other captured files" in advice.why
