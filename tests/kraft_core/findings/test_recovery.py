"""Recovery advice for the golden captures, and for a few written by hand."""

from __future__ import annotations

import pytest

from kraft_core.evidence.conclusions import conclude
from kraft_core.findings.judge import judge
from kraft_core.findings.recovery import RecoveryAdvice, RecoveryCandidate, recovery_advice
from tests.kraft_core.evidence.narrated import Story
from tests.kraft_core.findings.golden import EVERY, findings, known

# Safe or not, and the ids with the best claim, (voters, observers) with their last epoch and log end.
EXPECTED: dict[str, tuple[bool, tuple[int, ...], tuple[int, ...], tuple[int, int] | None]] = {
    "uncommitted-truncation/before": (True, (1,), (4,), (1, 369)),
    "uncommitted-truncation/after": (True, (2, 1, 3), (4,), (3, 507)),
    "uncommitted-removal/before": (True, (3,), (4,), (6, 803)),
    "uncommitted-then-committed/before": (True, (3,), (4,), (10, 1264)),
    "uncommitted-then-committed/after": (True, (3, 1, 2, 4), (), (10, 1288)),
    "disk-failure/before-wipe": (True, (3, 1, 2), (), (1, 54)),
    "disk-failure/reformatted-not-added": (False, (), (), None),
    "disk-failure": (True, (3, 2), (), (1, 140)),
    "all of disk-failure": (True, (3, 2), (), (1, 140)),
    "static-upgrade/at-3.9.2": (True, (1,), (), (8, 529)),
    "static-upgrade/at-4.3.1-static": (False, (1,), (), (10, 651)),
    "stale-split/before": (False, (1,), (), (1, 1741)),
    "stale-split/two-of-five": (False, (1, 3), (), (4, 5230)),
    "stale-split/three-of-five": (True, (4, 2, 5), (), (5, 5311)),
    "stale-split/healed": (True, (4, 2, 5), (), (5, 5368)),
}


def advised(name: str) -> RecoveryAdvice:
    """Of a moment, by its captures alone."""
    return recovery_advice(known(name), judge(known(name)))


def logs(candidates: tuple[RecoveryCandidate, ...]) -> set[tuple[int, int]]:
    return {(c.last_leader_epoch, c.log_end_offset) for c in candidates}


@pytest.mark.parametrize("name", EXPECTED)
def test_best_claim(name: str) -> None:
    advice = advised(name)
    is_safe, voters, observers, log = EXPECTED[name]
    assert advice.is_safe is is_safe
    assert tuple(c.node_id for c in advice.best if not c.is_observer) == voters
    assert tuple(c.node_id for c in advice.best if c.is_observer) == observers
    assert logs(advice.best) == ({log} if log else set())


def chosen(advice: RecoveryAdvice, node_id: int) -> RecoveryCandidate:
    (found,) = (c for c in (*advice.best, *advice.others) if c.node_id == node_id)
    return found


def test_what_each_choice_would_do_to_an_uncommitted_change() -> None:
    advice = advised("uncommitted-truncation/before")
    leader, follower = chosen(advice, 1), chosen(advice, 2)
    assert leader.led_last_epoch
    assert leader.voters_in_force == "{1,2,3,4} (VotersRecord 355/e1)"
    assert (leader.voters_offset, leader.voters_status) == (355, "uncommitted")
    assert (leader.loses, leader.keeps) == ("", "352 to 368 of epoch 1 (uncommitted)")
    assert (follower.voters_in_force, follower.voters_status) == (
        "{1,2,3} (VotersRecord 28/e1)",
        "committed",
    )
    assert (follower.loses, follower.keeps) == ("352 to 368 of epoch 1 (uncommitted)", "")
    assert advice.why == (
        "of voters {1,2,3} (VotersRecord 28/e1), 1, 2, 3 count, and 2 are needed; of voters {1,2,3,4} "
        "(VotersRecord 355/e1), 1, 2, 3, 4 count, and 3 are needed: the best claim has every "
        "committed record, as of the captures"
    )
    assert advice.as_of == min(c.captured_at for c in (*advice.best, *advice.others))


def test_what_the_stale_side_of_the_split_would_lose() -> None:
    advice = advised("stale-split/healed")
    for number in (1, 3):
        assert chosen(advice, number).loses == "5006 to 5367 of epoch 5 (committed)"
        assert chosen(advice, number).keeps == "5006 to 5229 of epoch 4 (truncated)"
    assert advice.highest_epoch == 5


def test_two_of_five_are_too_few() -> None:
    """Three of five may have committed what these two never saw, and did."""
    advice = advised("stale-split/two-of-five")
    counts = "of voters {1,2,3,4,5} (VotersRecord 150/e3), 1, 3 count, and 3 are needed"
    assert f"{counts}: committed records may be missing." in advice.why
    for name in ("2@", "4@", "5@"):
        assert f"Node {name}" in advice.why
    assert "Rule 23 is broken: Leader 1 of epoch 4 was elected unlawfully" in advice.why
    assert advice.best[0].voters_status == "undecided"
    assert advice.highest_epoch == 4


def test_a_reported_high_watermark_that_the_best_claim_lacks_forbids_it() -> None:
    """Leader 1 of epoch 4 reported 5225. Its captures show that it was elected unlawfully; the other three
    alone do not, and lack what it reported from 5096 on.
    """
    three, healed = "stale-split/three-of-five", "stale-split/healed"
    advice = recovery_advice(known(three), findings(three))
    assert not advice.is_safe
    assert "Rule 6 is broken: The high watermark fell from 5225 (leader 1, epoch 4) to 5096" in advice.why
    assert recovery_advice(known(healed), findings(healed)).is_safe


def test_a_new_directory_is_another_replica() -> None:
    advice = advised("disk-failure/reformatted-not-added")
    assert (advice.best, [c.is_observer for c in advice.others]) == ((), [True])
    assert "none count" in advice.why


@pytest.mark.parametrize("name", EVERY)
def test_every_replica_is_named_once(name: str) -> None:
    advice = advised(name)
    named = [(c.node_id, c.directory_id) for c in (*advice.best, *advice.others)]
    assert len(set(named)) == len(named) == len(known(name).holdings.captures)
    claims = [(-c.last_leader_epoch, -c.log_end_offset) for c in advice.others]
    assert claims == sorted(claims)


def story() -> Story:
    story = Story().leader(1, 0, 1, "1 2 3", sets="1 2 3")
    return story.capture("1", 1000, "1:0-50", 1).capture("2", 1000, "1:0-50", 1)


def test_a_log_whose_end_cannot_be_read_does_not_count() -> None:
    assert recovery_advice(conclude(story().facts()), []).is_safe
    damaged = story().capture("2", 2000, "1:0-40", 1, tail_damaged=True)
    advice = recovery_advice(conclude(damaged.facts()), [])
    assert not advice.is_safe
    assert "1 counts, and 2 are needed" in advice.why


def test_a_time_that_is_not_stated_is_bounded_by_the_log_alone() -> None:
    """The newest of two timestamps in the copies would be no bound of what both hold; file times are none."""

    def advised_when(first: bool, second: bool) -> RecoveryAdvice:
        story = Story().leader(1, 0, 1, "1 2 3", sets="1 2 3")
        story.capture("1", 1000, "1:0-50", 1, stated=first).capture("2", 2000, "1:0-45", 1, stated=second)
        return recovery_advice(conclude(story.facts()), [])

    newest = "newest timestamp in the log"
    stated = advised_when(True, True)
    assert (stated.is_safe, stated.as_of, stated.as_of_source) == (True, 1000, "capture.json")
    assert [c.captured_at for c in (*stated.best, *stated.others)] == [1000, 2000]
    # 10 ms an offset: the last batch of node 2's log was appended at 440, of node 1's at 490.
    late = advised_when(True, False)
    assert (late.is_safe, late.as_of, late.as_of_source) == (True, 440, newest)
    assert [(c.captured_at, c.captured_from) for c in late.others] == [(None, 440)]
    neither = advised_when(False, False)
    assert (neither.is_safe, neither.as_of, neither.as_of_source) == (True, 440, newest)
    assert [(c.captured_at, c.time_source) for c in neither.best] == [(None, newest)]


def test_a_stated_time_decides_among_equal_ones() -> None:
    story = Story().leader(1, 0, 1, "1 2 3", sets="1 2 3")
    story.capture("1", 490, "1:0-50", 1).capture("2", 99, "1:0-50", 1, stated=False)
    advice = recovery_advice(conclude(story.facts()), [])
    assert (advice.is_safe, advice.as_of, advice.as_of_source) == (True, 490, "capture.json")


def test_nothing_captured_gives_no_advice() -> None:
    advice = recovery_advice(conclude(Story().facts()), [])
    assert (advice.is_safe, advice.best, advice.others, advice.as_of) == (False, (), (), None)
    assert advice.why == (
        "committed records may be missing. No voter set is known: capture a controller whose log or "
        "checkpoint names the voters. No captured log of a voter could be read: capture the voters."
    )


def test_an_epoch_that_is_only_reported_is_the_highest_too() -> None:
    """A recovered quorum must go on above it, whether or not a captured file has it."""
    known = conclude(story().facts())
    assert recovery_advice(known, []).highest_epoch == 1
    assert recovery_advice(known, [], reported_epoch=7).highest_epoch == 7
    assert recovery_advice(known, [], reported_epoch=0).highest_epoch == 1


def test_one_offset_is_named_once() -> None:
    known = conclude(story().capture("3", 1000, "1:0-49", 1).facts())
    assert chosen(recovery_advice(known, []), 3).loses == "49 of epoch 1 (committed)"
