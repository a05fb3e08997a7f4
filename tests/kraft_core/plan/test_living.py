"""What a plan of a running quorum lacks, and what it says to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kraft_core.messages.uuid_text import ZERO_UUID
from kraft_core.plan.actions import Action, Add, Lose, UpgradeKRaftVersion
from kraft_core.plan.captured_quorum import CapturedQuorum
from kraft_core.plan.living import living_quorum
from kraft_core.plan.plan import Plan, plan
from kraft_core.plan.standings import Standing
from kraft_core.wire.quorum import DescribedQuorum, DescribedReplica
from tests.kraft_core.plan.captured import captured

STATIC, DYNAMIC = "static-upgrade/at-4.3.1-static", "uncommitted-truncation/after"


def _description(copied: CapturedQuorum, *silent: int) -> DescribedQuorum:
    """What the leader answers: every voter is in sync, but for those that never fetched."""
    assert copied.leader is not None
    assert copied.voters is not None
    now = copied.as_of + 1
    replicas = [
        DescribedReplica(
            voter.key.id,
            voter.key.directory_id or ZERO_UUID,
            True,
            None if voter.key.id in silent else copied.log_end,
            None if voter.key.id in silent else now,
            None if voter.key.id in silent else now,
        )
        for voter in copied.voters.voters
    ]
    return DescribedQuorum(copied.leader.id, copied.epoch, copied.log_end, tuple(replicas), {})


def _described(copied: CapturedQuorum, *silent: int) -> CapturedQuorum:
    """The quorum as its leader describes it."""
    return living_quorum(copied, _description(copied, *silent), ())


def _standings(lacks: int, caught_up: int, appended: Sequence[tuple[int, int]]) -> tuple[set[Standing], str]:
    """Of the followers, and what is said of them. lacks: how many records. The times are in ms from now."""
    copied = captured(DYNAMIC, running=True)
    described = _description(copied)
    now = copied.as_of + 1
    replicas = [
        each
        if each.node_id == described.leader_id
        else replace(each, log_end_offset=copied.log_end - lacks, last_caught_up_at=now + caught_up)
        for each in described.replicas
    ]
    ends = [(copied.log_end + end, now + at) for end, at in appended]
    quorum = living_quorum(copied, replace(described, replicas=tuple(replicas)), ends)
    followers = [m for m in quorum.members if m.is_voter and m.standing is not Standing.LEADER]
    return {m.standing for m in followers}, followers[0].words


@pytest.mark.parametrize(
    ("lacks", "caught_up", "appended", "standing", "words"),
    [
        (0, -10, [(0, -500)], Standing.IN_SYNC, "the leader saw it caught up 0.0 s ago"),
        (1, -600, [(-1, -1000), (0, -500)], Standing.IN_SYNC, "the leader saw it caught up 0.6 s ago"),
        # The raft client takes the time before it handles a request.
        (0, 20, [(0, 10)], Standing.IN_SYNC, "the leader saw it caught up 0.0 s ago"),
        (0, 60_000, [(0, -500)], Standing.NOT_KNOWN, "the leader's clock was set back"),
        (
            3,
            -500,
            [(-2, -400), (-1, 58_000), (0, -100)],
            Standing.NOT_KNOWN,
            "the leader's clock was set back",
        ),
        (3, -500, [(-2, -9000), (-1, -8000), (0, -100)], Standing.NOT_KNOWN, "lacks what was appended 9.0 s"),
        (3, -2_500, [(-2, -2400), (-1, -900), (0, -100)], Standing.BEHIND, "last saw it caught up 2.5 s ago"),
    ],
)
def test_a_follower_is_in_sync_only_by_a_clock_that_goes_forward(
    lacks: int, caught_up: int, appended: list[tuple[int, int]], standing: Standing, words: str
) -> None:
    """Kafka never lowers the time when a follower was caught up: SAFE, though another voter was down."""
    found, said = _standings(lacks, caught_up, appended)
    assert found == {standing}
    assert words in said


def _planned(scenario: str, action: Action, *silent: int) -> Plan:
    made = plan(_described(captured(scenario, running=True), *silent), action)
    assert made.judged.verdict.name == "not_known"
    return made


def _commands(made: Plan) -> list[str]:
    return [step.command for step in made.steps if step.command is not None]


def test_the_upgrade_of_a_static_quorum_lacks_directory_ids() -> None:
    """No question to the leader tells them; the voters' log directories have them."""
    made = _planned(STATIC, UpgradeKRaftVersion(1))
    leader = made.quorum.leader
    assert leader is not None
    assert made.quorum.voters is not None
    others = ", ".join(str(id_) for id_ in made.quorum.voters.voters.ids if id_ != leader.id)
    words = f"the directory ids of voters {others}, which the leader of a static quorum does not report"
    assert made.judged.missing == (words,)
    assert f"it depends on {words}: Kafka may answer" in made.judged.verdict.reason
    assert _commands(made) == ["kraftlake capture METADATA_LOG_DIR --to FOLDER"]
    assert made.steps[-1].expect == "plan again with --captures FOLDER, and continue only if it is SAFE"


def test_captures_without_directory_ids_lack_them_too() -> None:
    quorum = captured(STATIC, running=True)
    members = tuple(
        replace(member, key=replace(member.key, directory_id=None)) if member.key != quorum.leader else member
        for member in _described(quorum).members
    )
    made = plan(replace(quorum, members=members), UpgradeKRaftVersion(1))
    assert made.judged.verdict.name == "not_known"
    (missing,) = made.judged.missing
    assert missing.startswith("the directory ids of voters ")
    assert missing.endswith(", which no capture has")


def test_a_node_that_the_leader_does_not_report_is_started_and_the_leader_asked_again() -> None:
    made = _planned(DYNAMIC, Add(9))
    assert made.judged.missing == (
        "9: the leader does not report it",
        "no registration shows the listeners of 9",
    )
    assert not any("kraftlake capture" in command for command in _commands(made))
    assert _commands(made)[-1].startswith("kraftlake plan --live 127.0.0.1:")


def test_a_voter_that_did_not_fetch_is_waited_for() -> None:
    quorum = captured(DYNAMIC, running=True)
    assert quorum.leader is not None
    assert quorum.voters is not None
    silent, lost = (node_id for node_id in quorum.voters.voters.ids if node_id != quorum.leader.id)
    made = _planned(DYNAMIC, Lose((lost,)), silent)
    assert made.judged.missing == (
        f"voter {silent}: has not fetched from leader {quorum.leader.id} in epoch {quorum.epoch}",
    )
    assert [command.split()[:3] for command in _commands(made)] == [["kraftlake", "plan", "--live"]]
