"""SAFE needs evidence: captures and their files are taken away piece by piece, and SAFE goes with them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product
from typing import Any

import pytest

from kraft_core.evidence.conclusions import conclude
from kraft_core.evidence.facts import Capture, ClusterFacts
from kraft_core.messages.uuid_text import ZERO_UUID
from kraft_core.plan.actions import Action, Add, Lose, Remove, Replace, Update, UpgradeKRaftVersion
from kraft_core.plan.captured_quorum import CapturedQuorum, quorum_of
from kraft_core.plan.plan import plan
from kraft_core.plan.registrations import Registered
from kraft_core.plan.risks import risks
from kraft_core.plan.standings import Standing
from kraft_core.plan.verdicts import Judged, judge
from kraft_core.raft.voters import Endpoint
from kraft_core.simulation.setup import Setup
from tests.kraft_core.evidence.narrated import Story
from tests.kraft_core.plan.captured import captured, facts_of
from tests.soundness.captures import Copy
from tests.soundness.captures import facts_of as facts_of_copies
from tests.soundness.execution import Script, run_script
from tests.soundness.moves import (
    Append,
    ChangeVoters,
    Elect,
    LawfulMove,
    Pull,
    Reboot,
    WriteCheckpoint,
)

HEALTHY = "disk-failure/before-wipe"  # voters 1, 2 and the leader 3
FOLLOWED = "uncommitted-truncation/after"  # voters 1, 3 and the leader 2; 4 observes
UPGRADED = "static-upgrade"  # voters 1, 2, 4
LOG = "__cluster_metadata-0"
ELSEWHERE = (Endpoint("CONTROLLER", "host", 9093),)

# Each with the voters that it takes away before it commits, and the voters by which it commits.
SAFE: dict[str, list[tuple[Action, frozenset[int], frozenset[int]]]] = {
    HEALTHY: [
        (Remove(2), frozenset(), frozenset({1, 3})),
        (Remove(3), frozenset(), frozenset({1, 2})),
        (Lose((2,)), frozenset({2}), frozenset({1, 2, 3})),
        (Lose((3,)), frozenset({3}), frozenset({1, 2, 3})),
        (Update(2, ELSEWHERE), frozenset({2}), frozenset({1, 2, 3})),
        (Update(3, ELSEWHERE), frozenset({3}), frozenset({1, 2, 3})),
        (Replace(2), frozenset({2}), frozenset({1, 3})),
        (Replace(3), frozenset({3}), frozenset({1, 2})),
        (UpgradeKRaftVersion(1), frozenset(), frozenset({1, 2, 3})),
    ],
    FOLLOWED: [
        (Add(4), frozenset(), frozenset({1, 2, 3, 4})),
        (Replace(3, 4), frozenset({3}), frozenset({1, 2, 3, 4})),
        (Replace(2, 4), frozenset({2}), frozenset({1, 2, 3, 4})),
        (Lose((1, 4)), frozenset({1, 4}), frozenset({1, 2, 3})),
    ],
}
LEADERS = {HEALTHY: 3, FOLLOWED: 2}
EVERY_SAFE = [(name, *case) for name, cases in SAFE.items() for case in cases]


@pytest.mark.parametrize(("name", "action"), [case[:2] for case in EVERY_SAFE], ids=str)
def test_all_evidence_is_safe(name: str, action: Action) -> None:
    judged = judge(captured(name), action)
    assert judged.verdict.name == "safe", judged.verdict.reason
    assert judged.missing == ()


# --- side files


@cache
def without_files(capture: Capture) -> tuple[Capture, ...]:
    """The capture with each subset of the files beside its log, first with all; and without its time."""
    kept = product((True, False), repeat=2)
    left = tuple(
        replace(
            capture,
            quorum_state_epoch=capture.quorum_state_epoch if state else None,
            quorum_state_leader_id=capture.quorum_state_leader_id if state else None,
            leader_epoch_checkpoint=capture.leader_epoch_checkpoint if epochs else None,
        )
        for state, epochs in kept
    )
    return (*left, replace(capture, captured_from=None, captured_until=None))


def subsets(facts: ClusterFacts) -> Iterator[tuple[ClusterFacts, frozenset[int]]]:
    """Every subset of captures with every subset of their side files; and which nodes are whole in it."""
    choices = [(*without_files(capture), None) for capture in facts.captures]
    for chosen in product(*choices):
        left = tuple(capture for capture in chosen if capture is not None)
        whole = frozenset(capture.node_id for capture in left if capture in facts.captures)
        yield replace(facts, captures=left), whole


@cache
def quorums(name: str) -> list[tuple[CapturedQuorum, frozenset[int]]]:
    """The quorums of those subsets that hold a batch; of many nodes two at most are harmed."""
    facts, found = facts_of(name)
    cases = (
        case for case in subsets(facts) if len(facts.captures) <= 3 or len(case[1]) >= len(facts.captures) - 2
    )
    made = [(quorum_of(conclude(left), found), whole) for left, whole in cases]
    return [(quorum, whole) for quorum, whole in made if quorum is not None]


def proves(name: str, gone: frozenset[int], voters: frozenset[int], whole: frozenset[int]) -> bool:
    """Whether the whole captures show the leader and a majority of the voters that stay."""
    return LEADERS[name] in whole and len((whole & voters) - gone) > len(voters) // 2


@pytest.mark.parametrize(("name", "action", "gone", "voters"), EVERY_SAFE, ids=str)
def test_each_subset_of_captures_and_files_is_safe_only_if_it_proves_it(
    name: str, action: Action, gone: frozenset[int], voters: frozenset[int]
) -> None:
    safe = 0
    for quorum, whole in quorums(name):
        judged = judge(quorum, action)
        if judged.verdict.name == "safe":
            safe += 1
            assert proves(name, gone, voters, whole), (sorted(whole), judged.verdict.reason)
        elif judged.verdict.name == "not_known":
            assert judged.missing, judged.verdict.reason
    assert safe >= 1


def test_an_election_is_under_way_only_where_a_quorum_state_says_so() -> None:
    facts, found = facts_of(HEALTHY)
    electing = tuple(replace(c, quorum_state_epoch=2, quorum_state_leader_id=None) for c in facts.captures)
    known = [r for r in facts.control_records if r.type != "LeaderChange"]
    silent = tuple(replace(c, quorum_state_epoch=None, quorum_state_leader_id=None) for c in facts.captures)
    nobody = replace(facts, captures=silent, control_records=tuple(known))
    two = tuple(replace(c, quorum_state_leader_id=nth) for nth, c in enumerate(electing, start=1))
    cases = [
        (replace(facts, captures=electing), "leader of epoch 2 is known: an election was in progress"),
        (
            replace(facts, captures=two),
            "leader of epoch 2 is known: the captures contradict each other about who leads it",
        ),
        (
            nobody,
            "leader of epoch 1 is known: no captured log contains its LEADER_CHANGE, and no "
            "quorum-state of it was",
        ),
    ]
    for left, words in cases:
        quorum = quorum_of(conclude(left), found)
        assert quorum is not None
        judged = judge(quorum, Remove(2))
        assert judged.verdict.name == "not_known"
        assert words in judged.verdict.reason
        (risk,) = [risk for risk in risks(quorum, Remove(2), judged) if risk.name == "no_leader"]
        assert words in risk.sentence


def test_an_earlier_capture_names_the_leader_of_an_epoch_too() -> None:
    """The newest copy of that node lost its quorum-state; a leader of an epoch stays its leader."""
    facts, found = facts_of(HEALTHY)
    first, *others = facts.captures
    named = replace(first, quorum_state_epoch=2, quorum_state_leader_id=2)
    later = replace(named, capture_id="later", quorum_state_epoch=None, quorum_state_leader_id=None)
    later = replace(later, **dict.fromkeys(("captured_at", "captured_from", "captured_until"), 1 << 42))
    quorum = quorum_of(conclude(replace(facts, captures=(named, later, *others))), found)
    assert quorum is not None
    assert quorum.leader is not None
    assert (quorum.epoch, quorum.leader.id) == (2, 2)


# --- times


def with_another(change: dict[str, object], node: int) -> bool:
    """Whether losing another follower is safe with a changed copy of a counted node's capture."""
    facts, found = facts_of(HEALTHY)
    capture = next(capture for capture in facts.captures if capture.node_id == node)
    other = replace(capture, capture_id="other", **change)
    lost = 1 if node != 1 else 2
    quorum = quorum_of(conclude(replace(facts, captures=(*facts.captures, other))), found)
    return quorum is not None and judge(quorum, Lose((lost,))).verdict.name == "safe"


UNSTATED: dict[str, object] = {"captured_from": None, "captured_until": None, "captured_at": 0}
BEFORE: dict[str, object] = dict.fromkeys(UNSTATED, 1_763_600_000_000)


@pytest.mark.parametrize("node", [1, 2, 3])
@pytest.mark.parametrize("directory", [{}, {"directory_id": "another-directory-of-"}], ids=["same", "other"])
def test_a_capture_that_may_be_newer_takes_safe_away(node: int, directory: dict[str, object]) -> None:
    """File times prove nothing about which of two copies is the newer one."""
    assert with_another(BEFORE | directory, node)
    assert not with_another(UNSTATED | directory, node)
    assert not with_another(dict.fromkeys(UNSTATED, 1 << 42) | directory, node)
    assert not with_another(directory, node)  # at the same time


# --- what a log lacks


def scripted(apart: int, *moves: LawfulMove, voters: int = 3) -> CapturedQuorum:
    """So many voters after moves so many ms apart, all captured at once."""
    execution = run_script(Script(Setup(1, voters, 0), tuple((apart, move) for move in moves)))
    last = len(moves)
    copies = tuple(Copy(slot, last, last, execution.at[last], 0) for slot in range(1, voters + 1))
    quorum = quorum_of(conclude(facts_of_copies((execution,), copies)), Registered(()))
    assert quorum is not None
    return quorum


def test_a_voter_that_never_fetched_does_not_keep_up() -> None:
    """It is in the epoch of the new leader, which has appended but one record of that epoch yet."""
    quorum = scripted(3_000, Elect(3, (1, 2)), Pull(2, 3, rounds=2), Elect(2, (1, 3)))
    assert [member.standing for member in quorum.members] == [
        Standing.BEHIND,
        Standing.LEADER,
        Standing.IN_SYNC,
    ]
    assert judge(quorum, Lose((1,))).verdict.name == "safe"
    assert judge(quorum, Lose((3,))).verdict.name == "unsafe"


def test_a_leader_that_has_removed_itself_does_not_go_on() -> None:
    """Without 1 the removal commits, the leader resigns, and of the voters 1 and 3 one is left."""
    pulls = (Pull(1, 2, rounds=3), Pull(3, 2, rounds=3))
    removal = (Append(2, 1), ChangeVoters(2, 2, add=False), Pull(1, 2))
    quorum = scripted(10, Elect(2, (1, 3)), *pulls, *removal)
    assert quorum.voters is not None
    assert quorum.voters.voters.ids == (1, 3)
    assert judge(quorum, Lose((1,))).verdict.name == "unsafe"
    assert judge(quorum, Lose((2,))).verdict.name == "safe"


def test_survivors_that_lack_the_latest_set_may_elect_nobody() -> None:
    """2 was removed and added again: 1 alone is left of the set that it holds, and 2 is behind 1."""
    removal = (Elect(3, (1,)), Pull(2, 3), Pull(2, 3, one=True), ChangeVoters(3, 2, add=False))
    addition = (Pull(1, 3), Pull(1, 3), ChangeVoters(3, 2, add=True))
    quorum = scripted(10, *removal, *addition)
    assert quorum.voters is not None
    assert quorum.voters.voters.ids == (1, 2, 3)
    lost = judge(quorum, Lose((3,))).verdict
    assert (lost.name, "had fetched the VotersRecord at 4" in lost.reason) == ("not_known", True)
    again = scripted(10, *removal, *addition, Pull(1, 3))
    assert judge(again, Lose((3,))).verdict.name == "safe"


def test_a_leader_that_has_removed_itself_may_leave_voters_that_elect_nobody() -> None:
    """Were 1 to stop now, 4 would count by {1,2,3,4}, of which 2 alone votes for it."""
    begun = (Elect(1, (2, 3, 4)), Pull(3, 1), Pull(4, 1, rounds=3))
    removal = ChangeVoters(1, 1, add=False)
    lost = judge(scripted(10, *begun, removal, voters=4), Lose((3,))).verdict
    assert (lost.name, "had fetched the VotersRecord at 3" in lost.reason) == ("not_known", True)
    again = scripted(10, *begun, removal, Pull(4, 1), voters=4)
    assert judge(again, Lose((3,))).verdict.name == "safe"


@pytest.mark.parametrize(("apart", "verdict"), [(10, "not_known"), (3_000, "unsafe")])
def test_a_voter_that_has_to_fetch_a_snapshot_does_not_keep_up(apart: int, verdict: str) -> None:
    """Leader 3 has deleted what voter 2 lacks: its log begins with the first record of its own epoch."""
    deleted = (Elect(1, (2, 3)), Pull(3, 1, rounds=3), WriteCheckpoint(3, delete_older=True), Reboot(3))
    quorum = scripted(apart, *deleted, Elect(3, (2,)))
    judged = judge(quorum, Lose((1,)))
    assert judged.verdict.name == verdict
    if verdict == "not_known":
        (missing,) = judged.missing
        assert missing == (
            "voter 2: its log ends at 0, below the leader's, which begins at 3: it has to fetch a snapshot"
        )
        fetched = scripted(apart, *deleted, Elect(3, (2,)), Pull(2, 3, rounds=3))
        assert judge(fetched, Lose((1,))).verdict.name == "safe"


def unidentified(earlier: str) -> CapturedQuorum:
    """Before Kafka 3.7 no directory has an id: leader 1 held `earlier` before."""
    story = Story().leader(1, 0, 1, "1 2 3").capture("1?", 1200, earlier, 1)
    for name in ("1?", "2?", "3?"):
        story.capture(name, 2000, "1:0-100", 1, leader_epoch_checkpoint=((1, 0),))
    quorum = quorum_of(conclude(story.facts()), Registered(()))
    assert quorum is not None
    return quorum


def test_a_log_that_was_longer_before_supports_nothing() -> None:
    assert judge(unidentified("1:0-50"), Lose((2,))).verdict.name == "safe"
    judged = judge(unidentified("1:0-120"), Lose((2,)))
    assert judged.verdict.name == "not_known"
    assert "an earlier capture of it held more" in judged.missing[0]


def lagging(stated: int, end: int = 100, leader_stated: int | None = None) -> CapturedQuorum:
    """Voters 2 and 3 have the leader's log up to an offset, of 10,000, each 10 ms after the one before; the
    captures' times are stated as so many ms.
    """
    story = Story().leader(1, 0, 1, "1 2 3", sets="1 2 3")
    for name, log in (("1", "1:0-10000"), ("2", f"1:0-{end}"), ("3", f"1:0-{end}")):
        at = leader_stated if name == "1" and leader_stated is not None else stated
        story.capture(name, at, log, 1, leader_epoch_checkpoint=((1, 0),))
    quorum = quorum_of(conclude(story.facts()), Registered(()))
    assert quorum is not None
    return quorum


@pytest.mark.parametrize(("stated", "verdict"), [(100_000, "unsafe"), (60_000, "unsafe"), (500, "not_known")])
def test_a_stated_time_before_the_newest_record_hides_no_lag(stated: int, verdict: str) -> None:
    """As of a clock that is slow, or of local time stated as UTC."""
    judged = judge(lagging(stated), Remove(3))
    assert judged.verdict.name == verdict
    if verdict == "not_known":
        assert "is 99 s before its newest record" in judged.missing[0]


@pytest.mark.parametrize(
    ("stated", "leader_stated", "end", "verdict"),
    [
        (100_000, 100_000, 9_950, "safe"),
        (98_500, 98_500, 9_950, "safe"),
        (95_000, 95_000, 10_000, "not_known"),
        (70_000, 70_000, 7_000, "not_known"),
        (50_000, 50_000, 7_000, "not_known"),
        (60_000, 100_000, 7_000, "not_known"),
    ],
)
def test_a_clock_that_is_behind_hides_no_lag(stated: int, leader_stated: int, end: int, verdict: str) -> None:
    """By the time that it states, nothing was lacking yet: SAFE, though the voters had lagged for 30 s."""
    judged = judge(lagging(stated, end, leader_stated), Remove(3))
    assert judged.verdict.name == verdict
    if verdict == "not_known":
        assert "before its newest record, so it may have lagged, or been down" in judged.missing[0]


def story_of(*logs: tuple[str, str]) -> CapturedQuorum:
    """Voters 1, 2 and the leader 3, captured at one moment with these logs."""
    story = Story().leader(1, 0, 3, "1 2 3", sets="1 2 3").data(1, 3)
    for name, log in logs:
        story.capture(name, 1000, log, 1, leader_epoch_checkpoint=((1, 0),))
    quorum = quorum_of(conclude(story.facts()), Registered(()))
    assert quorum is not None
    return quorum


@pytest.mark.parametrize(
    ("logs", "bounds"),
    [
        ((("1", "1:0-100"), ("2", "1:0-100"), ("3", "1:0-100")), (100, 100)),
        ((("2", "1:0-100"), ("3", "1:0-100")), (100, 100)),
        ((("3", "1:0-100"),), (3, 100)),
        # Voters 1 and 3 may hold more; and 3 may have removed itself: then 2 alone makes no majority.
        ((("2", "1:0-100"),), (3, None)),
        ((("1", "1:0-100"), ("2", "1:0-100")), (3, None)),
    ],
)
def test_without_the_leaders_log_nothing_bounds_the_high_watermark_from_above(
    logs: tuple[tuple[str, str], ...], bounds: tuple[int | None, int | None]
) -> None:
    assert judge(story_of(*logs), Lose((1,))).high_watermarks == bounds


def test_captures_of_two_histories_bound_no_high_watermark() -> None:
    story = Story().leader(1, 0, 3, "1 2 3", sets="1 2 3").data(1, 3)
    for name, digests in (("1", ""), ("2", "other"), ("3", "")):
        story.capture(name, 1000, "1:0-100", 1, digests=digests, leader_epoch_checkpoint=((1, 0),))
    quorum = quorum_of(conclude(story.facts()), Registered(()))
    assert quorum is not None
    assert quorum.contested
    assert judge(quorum, Lose((1,))).high_watermarks == (None, None)


@pytest.mark.parametrize("action", [Lose((1,)), Replace(1)], ids=str)
def test_what_is_missing_names_no_node_that_is_gone(action: Action) -> None:
    """Nobody can capture it again."""
    made = plan(story_of(("3", "1:0-100")), action)
    assert made.judged.verdict.name == "not_known"
    assert made.judged.missing == ("voter 2: not captured",)
    assert [r.sentence for r in made.risks if r.name == "voter_not_keeping_up"] == ["voter 2: not captured"]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ({"readable": False}, "files of its log could not be read"),
        ({"tail_damaged": True}, "its log is damaged at the end"),
        ({"ends_inside_batch": True}, "its log ends inside a batch: the copy may have been cut off"),
        (
            {"epoch_ranges": (), "log_start_offset": None, "log_end_offset": None},
            "no file of its log was captured",
        ),
        (
            {"epoch_ranges": (), "log_start_offset": None, "log_end_offset": 0},
            "no segment of it was captured, and a checkpoint ends at 0",
        ),
        ({"leader_epoch_checkpoint": ((2, 200),)}, "leader-epoch-checkpoint has epoch 2 from 200"),
        ({"leader_epoch_checkpoint": ()}, "its leader-epoch-checkpoint lacks epoch 1 of its log"),
    ],
    ids=str,
)
def test_a_log_end_that_is_not_known_has_its_reason(fault: dict[str, Any], words: str) -> None:
    story = Story().leader(1, 0, 3, "1 2 3", sets="1 2 3").data(1, 3)
    for name in ("1", "2", "3"):
        story.capture(name, 1000, "1:0-100", 1, leader_epoch_checkpoint=((1, 0),))
    facts = story.facts()
    captures = tuple(replace(c, **fault) if c.node_id == 2 else c for c in facts.captures)
    quorum = quorum_of(conclude(replace(facts, captures=captures)), Registered(()))
    assert quorum is not None
    judged = judge(quorum, Lose((1,)))
    assert judged.verdict.name == "not_known"
    assert "voters not known to be in sync" in judged.verdict.reason
    (missing,) = judged.missing
    assert missing.startswith("voter 2: ")
    assert words in missing


def test_what_is_known_beyond_the_captures_takes_safe_away() -> None:
    quorum = story_of(("1", "1:0-100"), ("2", "1:0-100"), ("3", "1:0-100"))
    assert judge(quorum, Lose((1,))).verdict.name == "safe"
    words = "a describe output shows leader 1 of epoch 2"
    for action in (Lose((1,)), Lose((1, 2)), Remove(2), Remove(9), Replace(2), UpgradeKRaftVersion(1)):
        judged = judge(replace(quorum, superseded_by=words), action)
        assert judged.verdict.name == "not_known", action
        assert words in judged.missing


def judged_by_copies(story: Story, at: int, end: int) -> list[Judged]:
    """Of leader 1 of epoch 1, captured at a time (ms) with its log up to an end; 2 and 3 hold it up to 60."""
    story.capture("1", at, f"1:0-{end}", 1, leader_epoch_checkpoint=((1, 0),))
    for name in ("2", "3"):
        story.capture(name, 1500, "1:0-60", 1, leader_epoch_checkpoint=((1, 0),))
    quorum = quorum_of(conclude(story.facts()), Registered(()))
    assert quorum is not None
    return [judge(quorum, action) for action in (Lose((2,)), Remove(2))]


def test_a_leader_that_was_captured_before_it_changed_the_voters_may_have_changed_them_again() -> None:
    """Leader 1 adds 3 with the record at 45. It was captured when its log ended; the others hold all."""
    for end in range(60, 9, -5):
        story = Story().leader(1, 0, 1, "1 2", sets="1 2").data(1, 3).voters(1, 45, "1 2 3")
        for judged in judged_by_copies(story, 10 * end, end):
            if end > 45:
                assert judged.verdict.name == "safe", (end, judged.verdict.reason)
                continue
            assert judged.verdict.name == "not_known", (end, judged.verdict.reason)
            (missing, *_) = judged.missing
            assert missing == (
                "leader 1 was captured before its log had {1,2,3} (VotersRecord 45/e1): capture it again"
            )


def test_a_leader_whose_log_lacks_what_it_had_written_shows_nothing() -> None:
    """Others hold what it wrote before it was captured: its log was copied in part; it was SAFE."""
    for end, verdict in ((60, "safe"), (55, "not_known")):
        story = Story().leader(1, 0, 1, "1 2 3", sets="1 2 3").data(1, 3)
        for judged in judged_by_copies(story, 1000, end):
            assert judged.verdict.name == verdict, (end, judged.verdict.reason)
            assert ("leader 1: its log lacks" in judged.verdict.reason) == (end == 55)


def test_directories_of_one_node_captured_at_one_time_one_of_them_unknown() -> None:
    facts, found = facts_of(HEALTHY)
    (node,) = (capture for capture in facts.captures if capture.node_id == 2)
    unknown = replace(node, capture_id="unknown", directory_id=ZERO_UUID)
    quorum = quorum_of(conclude(replace(facts, captures=(*facts.captures, unknown))), found)
    assert quorum is not None
    for action in (Add(2), Lose((1,))):
        assert plan(quorum, action).judged.verdict.name != "safe"
