"""What the steps name and what they do not: no node that is gone, no change before it is known to be safe."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace

import pytest

from kraft_core.plan.actions import Action, Add, Lose, Remove, Replace, UpgradeKRaftVersion
from kraft_core.plan.plan import plan
from kraft_core.plan.standings import Standing
from kraft_core.plan.steps import steps
from kraft_core.plan.verdicts import judge
from kraft_core.protocol.errors import ErrorCode
from kraft_core.raft.voters import Endpoint, VoterSet
from tests.kraft_core.plan.captured import captured

HEALTHY = "disk-failure/before-wipe"
FOLLOWED = "uncommitted-truncation/after"
GONE: list[tuple[str, Action, int]] = [
    (HEALTHY, Lose((2,)), 2),
    (HEALTHY, Lose((3,)), 3),
    (HEALTHY, Lose((1, 2)), 1),
    (HEALTHY, Remove(2), 2),
    (HEALTHY, Replace(2), 2),
    (HEALTHY, Replace(3), 3),
    (HEALTHY, Replace(2, 4), 2),
    (FOLLOWED, Replace(3, 4), 3),
    (FOLLOWED, Replace(2, 4), 2),
]


@pytest.mark.parametrize(("name", "action", "gone"), GONE, ids=str)
def test_no_command_goes_to_a_node_that_is_gone(name: str, action: Action, gone: int) -> None:
    made = plan(captured(name), action)
    address = captured(name).endpoints_of(gone)[0]
    servers = [
        server
        for step in made.steps
        for listed in re.findall(r"--bootstrap-controller (\S+)", step.command or "")
        for server in listed.split(",")
    ]
    assert servers
    assert f"{address.host}:{address.port}" not in servers


HOSTILE = "$(touch x)`touch x`;touch x\n'\""


@pytest.mark.parametrize("action", [Remove(2), Replace(2), Add(4), UpgradeKRaftVersion(1)], ids=str)
def test_names_from_captures_are_one_word_of_a_command(action: Action) -> None:
    """A shell into which a step is copied runs none of them."""
    quorum = captured(HEALTHY)
    in_force = quorum.voters
    assert in_force is not None
    voters = [replace(v, endpoints=(Endpoint("C", HOSTILE, 9093),)) for v in in_force.voters]
    facts = replace(quorum.known.facts, cluster_id=HOSTILE)
    known = replace(quorum.known, facts=facts)
    hostile = replace(quorum, known=known, voters=replace(in_force, voters=VoterSet.of(voters)))
    commands = [step.command for step in steps(hostile, action, judge(quorum, action)) if step.command]
    # As a shell splits them, where ; and the like are words of their own.
    words = [list(shlex.shlex(command, posix=True, punctuation_chars=True)) for command in commands]
    assert any(HOSTILE in word for line in words for word in line)
    assert not [word for line in words for word in line if HOSTILE not in word and "touch" in word]


def test_a_lost_voter_does_not_keep_up() -> None:
    made = plan(captured(FOLLOWED), Lose((1, 4)))
    standings = {member.key.id: member.standing for member in made.quorum.members}
    assert standings == {1: Standing.LOST, 2: Standing.LEADER, 3: Standing.IN_SYNC, 4: Standing.LOST}
    assert "(2, 3)" in made.judged.verdict.reason


def test_what_is_no_voter_is_named() -> None:
    judged = judge(captured(HEALTHY), Replace(999))
    assert (judged.verdict.name, judged.verdict.error) == ("refused", ErrorCode.VOTER_NOT_FOUND)
    assert judged.verdict.reason.startswith("999 is not a voter of {1,2,3}")
    assert judge(captured(FOLLOWED), Lose((4,))).verdict.reason.startswith("4 is not a voter; ")
    assert judge(captured(HEALTHY), Lose((1, 8, 9))).verdict.reason.startswith("8, 9 are not voters; ")


def test_nothing_is_changed_before_it_is_known_to_be_safe() -> None:
    """A new node may be formatted and started; the rest is planned again."""
    made = plan(captured(HEALTHY), Replace(2, 4))
    assert made.judged.verdict.name == "not_known"
    commands = " ".join(step.command or "" for step in made.steps)
    assert "format" in commands
    assert "kraftlake capture" in commands
    assert "add-controller" not in commands
    assert "remove-controller" not in commands
    alone = plan(captured(f"{HEALTHY}/node-3"), Remove(2))
    assert [step.command and step.command.split()[0] for step in alone.steps] == ["kraftlake"]


def test_a_level_that_is_there_already_needs_the_voters_too() -> None:
    """Uncommitted it may be truncated."""
    assert judge(captured(HEALTHY), UpgradeKRaftVersion(1)).verdict.name == "safe"
    assert judge(captured(f"{HEALTHY}/node-3"), UpgradeKRaftVersion(1)).verdict.name == "not_known"


def test_a_level_that_is_there_already_is_no_step() -> None:
    (step,) = plan(captured(HEALTHY), UpgradeKRaftVersion(1)).steps
    assert step.command is not None
    assert step.command.endswith("describe --status")


def test_listeners_that_no_capture_shows_may_be_refused() -> None:
    quorum = captured(FOLLOWED)
    assert judge(quorum, Add(4)).verdict.name == "safe"
    nothing = replace(quorum, registrations=replace(quorum.registrations, controllers={}))
    judged = judge(nothing, Add(4))
    assert judged.verdict.name == "not_known"
    assert "no registration shows the listeners of 4" in judged.missing
