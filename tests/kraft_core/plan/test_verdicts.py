"""Verdicts on real captures: what Kafka answered there, and what the quorum could bear."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from kraft_core.plan.actions import Action, Add, Lose, Remove, Replace, Update, UpgradeKRaftVersion
from kraft_core.plan.engine import lose, worlds
from kraft_core.plan.plan import plan
from kraft_core.plan.standings import Standing
from kraft_core.plan.verdicts import Judged, judge
from kraft_core.protocol.errors import ErrorCode
from kraft_core.raft.voters import Endpoint, ReplicaKey
from tests.kraft_core.plan.captured import GOLDEN, captured

BEFORE = "uncommitted-truncation/before"
HEALTHY = "disk-failure/before-wipe"
REFORMATTED = (HEALTHY, "disk-failure/reformatted-not-added")
ELSEWHERE = (Endpoint("CONTROLLER", "host-2", 9093),)


def ids(side_voters: tuple) -> list[int]:
    return [key.id for key in side_voters]


def test_no_voter_is_removed_while_a_change_is_uncommitted() -> None:
    """Voter 4's record at 355 is on the leader and on 4; 2 and 3 are paused (Kafka's own words)."""
    quorum = captured(BEFORE)
    made = plan(quorum, Remove(3))
    verdict = made.judged.verdict
    assert (verdict.name, verdict.error) == ("refused", ErrorCode.REQUEST_TIMED_OUT)
    assert verdict.exception == "TimeoutException"
    expected = (
        "Request timed out waiting for voters to commit the latest voter change at Optional[355] with HWM"
    )
    assert verdict.error_text == f"{expected} 352"
    assert made.judged.high_watermarks == (352, 352)
    before = made.judged.before
    assert before is not None
    assert (ids(before.voters), before.majority, before.tolerated_failures) == ([1, 2, 3, 4], 3, 1)
    assert (before.keeping_up, before.spare, before.hangs_on) == (2, -1, ())
    standings = {member.key.id: (member.standing, member.lag_records) for member in quorum.members}
    assert standings == {
        1: (Standing.LEADER, 0),
        2: (Standing.BEHIND, 17),
        3: (Standing.BEHIND, 17),
        4: (Standing.IN_SYNC, 0),
    }
    assert {"uncommitted_change", "voter_not_keeping_up", "auto_join"} <= {r.name for r in made.risks}
    assert "bring back 2, 3" in made.steps[0].what


@pytest.mark.parametrize("action", [Add(4), Remove(1), Remove(4), Update(2, ELSEWHERE)])
def test_nothing_changes_while_a_change_is_uncommitted(action: Action) -> None:
    """An update is behind the restart of its voter, which too few are left for."""
    verdict = judge(captured(BEFORE), action).verdict
    assert verdict.name in ("refused", "unsafe")
    if not isinstance(action, Update):
        assert verdict.error is ErrorCode.REQUEST_TIMED_OUT


def test_a_replaced_disk_is_a_duplicate_until_the_old_one_is_removed() -> None:
    """The tool's answer stands in the scenario's timeline."""
    timeline = (GOLDEN / "disk-failure/timeline.md").read_text()
    answered = re.search(r"DuplicateVoterException: (The voter id .*?\]\.)", timeline)
    verdict = judge(captured(*REFORMATTED), Add(2)).verdict
    assert (verdict.name, verdict.error) == ("refused", ErrorCode.DUPLICATE_VOTER)
    assert answered is not None
    assert verdict.error_text == answered[1]


def test_a_disk_failure_is_mended_as_the_timeline_did() -> None:
    """What worked there, in order: format and start as an observer, remove the old one, add the new one."""
    timeline = (GOLDEN / "disk-failure/timeline.md").read_text()
    after_wipe = timeline.partition("wiped dir of node 2")[2]
    done = re.findall(
        r"\d{13} (?:(format c2 --no-initial-controllers) rc=0|(start c2)|(remove-controller) (2@\S+) rc=0"
        r"|(add-controller) 2 rc=0)",
        after_wipe,
    )
    took = [" ".join(filter(None, step)) for step in done]
    planned = plan(captured(HEALTHY), Replace(2))
    assert planned.judged.verdict.name == "safe"
    commands = [step.command for step in planned.steps if step.command and "describe" not in step.command]
    assert len(commands) == len(took) == 4
    format_, start, remove, add = commands
    assert format_.endswith("--config controller-2.properties --no-initial-controllers")
    assert "--cluster-id cdUcB7OYQSW2BEWmIRzmkg" in format_
    assert "kafka-server-start.sh" in start
    directory = took[2].partition("@")[2]
    assert f"remove-controller --controller-id 2 --controller-directory-id {directory}" in remove
    assert "--command-config controller-2.properties" in add
    assert add.endswith("add-controller")
    assert "127.0.0.1:29202" not in remove  # not by the node that is gone


def test_what_was_done_already_is_no_step() -> None:
    planned = plan(captured(*REFORMATTED), Replace(2))
    commands = [step.command for step in planned.steps if step.command and "describe" not in step.command]
    assert [command.split()[-1] for command in commands] == ["hhGPlVHKRveBalUKpbBWVA", "add-controller"]
    assert [stage.what for stage in planned.judged.stages] == [
        "lose 2",
        "remove 2@hhGPlVHKRveBalUKpbBWVA",
        "add 2@wfavhryGu77Wkav-fwENNQ",
    ]
    names = {risk.name for risk in planned.risks}
    assert {"stale_directory_id", "fewer_voters_meanwhile"} <= names


HEALTHY_VERDICTS: list[tuple[Action, str, ErrorCode | None]] = [
    (Remove(2), "safe", None),
    (Remove(3), "safe", None),  # the leader itself
    (Lose((2,)), "safe", None),
    (Lose((3,)), "safe", None),  # the leader: 1 or 2 is elected
    (Lose((1, 2)), "unsafe", None),
    (Lose((1, 3)), "unsafe", None),
    (Update(2, ELSEWHERE), "safe", None),
    (Update(3, ELSEWHERE), "safe", None),
    (Replace(2, 4), "not_known", None),  # with 4, three of four are needed, and nothing shows 4
    (Replace(3), "safe", None),
    (Add(4), "not_known", None),  # nothing shows whether 4 has fetched
    (Remove(9), "refused", ErrorCode.VOTER_NOT_FOUND),
    (Remove(2, "AAAAAAAAAAAAAAAAAAAAAg"), "refused", ErrorCode.VOTER_NOT_FOUND),
    (Update(9, ELSEWHERE), "refused", ErrorCode.VOTER_NOT_FOUND),
    (UpgradeKRaftVersion(1), "safe", None),
    (UpgradeKRaftVersion(0), "refused", ErrorCode.INVALID_UPDATE_VERSION),
]


@pytest.mark.parametrize(("action", "name", "error"), HEALTHY_VERDICTS, ids=str)
def test_three_voters_that_keep_up(action: Action, name: str, error: ErrorCode | None) -> None:
    verdict = judge(captured(HEALTHY), action).verdict
    assert (verdict.name, verdict.error) == (name, error), verdict.reason


def sides(judged: Judged) -> tuple:
    before, after = judged.before, judged.after
    assert before is not None
    assert after is not None
    return (
        (len(before.voters), before.tolerated_failures, ids(before.hangs_on)),
        (len(after.voters), after.tolerated_failures, ids(after.hangs_on)),
    )


def test_on_whom_commits_hang() -> None:
    healthy = captured(HEALTHY)
    assert sides(judge(healthy, Remove(2))) == ((3, 1, []), (2, 0, [1, 3]))
    assert sides(judge(healthy, Lose((3,)))) == ((3, 1, []), (3, 1, [1, 2]))
    followed = captured("uncommitted-truncation/after")
    assert sides(judge(followed, Replace(3, 4))) == ((3, 1, []), (3, 1, []))


def test_static_voters_do_not_change() -> None:
    quorum = captured("static-upgrade/at-4.3.1-static")
    verdict = judge(quorum, Remove(1)).verdict
    assert verdict.error is ErrorCode.UNSUPPORTED_VERSION
    assert verdict.error_text == (
        "Cluster doesn't support removing voter because the kraft.version feature is 0"
    )


def test_one_voter_of_three_does_not_tell_whether_the_upgrade_passes() -> None:
    judged = judge(captured("static-upgrade/at-4.3.1-static"), UpgradeKRaftVersion(1))
    assert judged.verdict.name == "not_known"
    assert "it depends on 2 (not captured), 3 (not captured): Kafka may answer " in judged.verdict.reason


@pytest.mark.parametrize("scenario", ["static-upgrade", "old-mv-3.3-IV0-fatal-on-4.3.1"])
def test_kafka_3_9_only_says_that_it_upgraded(scenario: str) -> None:
    """Its timeline: `feature kraft.version 1` -> OK, and the next describe has no directory ids."""
    judged = judge(captured(f"{scenario}/at-3.9.2"), UpgradeKRaftVersion(1))
    assert judged.verdict.name == "not_known"
    assert "leaves it at 0" in judged.verdict.reason


def test_what_is_gone_and_stalls_the_quorum_is_not_replaced() -> None:
    """Voters 1 and 3 keep a diverged tail: without 2 there is no majority for anything."""
    judged = judge(captured("stale-split/healed"), Replace(2))
    assert [stage.what for stage in judged.stages] == ["lose 2"]
    assert judged.verdict.name == "unsafe"


def test_a_leader_that_was_not_captured_decides_alone() -> None:
    judged = judge(captured(f"{HEALTHY}/node-1", f"{HEALTHY}/node-2"), Remove(2))
    assert judged.verdict.name == "not_known"
    assert "leader 3 was not captured" in judged.verdict.reason
    assert judged.missing == ("leader 3 was not captured",)


def test_no_advice_under_a_stale_voter_set() -> None:
    made = plan(captured("stale-split/two-of-five"), Remove(1))
    assert made.judged.verdict.name == "unsafe"
    assert "stale_voter_set" in {risk.name for risk in made.risks}


def test_a_voter_that_came_back_may_come_back_again() -> None:
    made = plan(captured("dynamic-membership", running=True), Remove(3))
    assert {"came_back_before", "leader_goes", "even_voters", "no_spare_voter"} <= {
        r.name for r in made.risks
    }


def test_the_endpoint_of_another_voter_is_told() -> None:
    quorum = captured(HEALTHY)
    (other,) = quorum.endpoints_of(3)
    found = {risk.name: risk.sentence for risk in plan(quorum, Update(2, (other,))).risks}
    assert found["address_of_another"] == f"{other} is the endpoint of voter 3"
    own = plan(quorum, Update(3, (other, *ELSEWHERE))).risks
    assert "address_of_another" not in {risk.name for risk in own}


def test_a_moved_voter_is_told() -> None:
    """Node 1 was restarted with another port: the log has its registration and its update."""
    quorum = captured("dynamic-membership")
    assert quorum.voters is not None
    moved = quorum.registrations.controllers[1]
    elsewhere = replace(
        moved, offset=1 << 40, endpoints=tuple(replace(end, host="new-host") for end in moved.endpoints)
    )
    registrations = replace(
        quorum.registrations, controllers={**quorum.registrations.controllers, 1: elsewhere}
    )
    made = plan(replace(quorum, registrations=registrations), Lose((2,)))
    sentence = next(risk.sentence for risk in made.risks if risk.name == "moved_voter")
    assert sentence.startswith("the host of voter 1 changed")
    assert "moved_voter" not in {risk.name for risk in plan(quorum, Lose((2,))).risks}


def test_a_listener_of_another_name_comes_first_everywhere_before_the_old_one_goes() -> None:
    new = Endpoint("SSL", "host-1", 9094)
    alone = plan(captured(HEALTHY), Update(1, (new,)))
    assert alone.judged.verdict.error is ErrorCode.INVALID_REQUEST
    assert alone.judged.verdict.reason.endswith(": INVALID_REQUEST")  # Kafka gives no text
    assert "keep listener CONTROLLER" in alone.steps[0].what
    made = plan(captured(HEALTHY), Update(1, (*captured(HEALTHY).endpoints_of(1), new)))
    assert made.judged.verdict.name == "safe"
    whats = [step.what for step in made.steps]
    added = max(nth for nth, what in enumerate(whats) if "add SSL" in what)
    first = [nth for nth, what in enumerate(whats) if "put it first" in what]
    removed = min(nth for nth, what in enumerate(whats) if "remove CONTROLLER" in what)
    brokers = next(nth for nth, what in enumerate(whats) if "each broker" in what)
    assert added < first[0]
    assert first[-1] < brokers < removed


def test_of_two_directories_of_a_node_the_voter_s_is_assumed_to_run() -> None:
    """That of the voter was not captured. Which one counted depended on hashes, so on the run of Python."""
    both = worlds(captured("disk-failure/reformatted-not-added"))
    assert both is not None
    most = both[1]
    voters = frozenset(voter.key for voter in most.leader.voters)
    for nth in range(20):
        beside = ReplicaKey(2, f"directory-{nth}")
        assert lose(replace(most, fetching=voters | {beside}), [3]) is not None
        assert lose(replace(most, fetching=frozenset({beside})), [3]) is None
