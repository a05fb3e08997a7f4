"""Plans made from captures of a running quorum, then really done with Kafka's tools, and compared.

Needs `make kafka`.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraft_core.evidence.collect import collect
from kraft_core.evidence.conclusions import conclude
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.plan.actions import Action, Add, Lose, Remove, Replace, Update, UpgradeKRaftVersion
from kraft_core.plan.captured_quorum import quorum_of
from kraft_core.plan.plan import Plan, plan
from kraft_core.plan.registrations import registered
from kraft_core.plan.standings import FETCH_TIMEOUT_MS, Standing
from kraft_core.raft.voters import Endpoint
from tests.long.live_quorum import LiveQuorum, Tool, kafka_tools


@pytest.fixture
def tools() -> Path:
    return kafka_tools()


@pytest.fixture
def live(tools: Path, tmp_path: Path) -> Iterator[LiveQuorum]:
    """Three voters and an observer, 4, in sync."""
    quorum = LiveQuorum(tools, tmp_path / "quorum", 29800)
    for node in (1, 2, 3, 4):
        quorum.address(node)
    initial = ",".join(f"{n}@{quorum.address(n)}:{quorum.random_uuid()}" for n in (1, 2, 3))
    for node in (1, 2, 3):
        quorum.format(node, "--initial-controllers", initial)
    quorum.format(4, "--no-initial-controllers")
    try:
        for node in (1, 2, 3, 4):
            quorum.start(node)
        quorum.leader(1, 2, 3)
        time.sleep(5)
        yield quorum
    finally:
        quorum.close()


@pytest.fixture
def alone(tools: Path, tmp_path: Path) -> Iterator[LiveQuorum]:
    """One static voter, kraft.version 0."""
    quorum = LiveQuorum(tools, tmp_path / "alone", 29850, static=True)
    quorum.address(1)
    quorum.format(1)
    try:
        quorum.start(1)
        quorum.leader(1)
        time.sleep(5)
        yield quorum
    finally:
        quorum.close()


@pytest.fixture
def static(tools: Path, tmp_path: Path) -> Iterator[LiveQuorum]:
    """Three static voters, kraft.version 0, with Kafka's default fetch timeout."""
    quorum = LiveQuorum(tools, tmp_path / "static", 29870, static=True)
    for node in (1, 2, 3):
        quorum.address(node)
        quorum.fetch_timeouts[node] = FETCH_TIMEOUT_MS
    for node in (1, 2, 3):
        quorum.format(node)
    try:
        for node in (1, 2, 3):
            quorum.start(node)
        quorum.leader(1, 2, 3)
        time.sleep(5)
        yield quorum
    finally:
        quorum.close()


def planned(quorum: LiveQuorum, label: str, action: Action, *nodes: int) -> Plan:
    """The plan by captures taken now."""
    directories = find_controller_dirs([quorum.capture(label, *nodes)]).directories
    (facts,) = collect(directories)
    standing = quorum_of(conclude(facts), registered(directories))
    assert standing is not None
    return plan(standing, action)


def agree_on_refusal(made: Plan, done: Tool) -> None:
    """Kafka's tool fails with the exception and the words of the plan."""
    verdict = made.judged.verdict
    assert verdict.name == "refused", verdict.reason
    assert done.code != 0, done.printed
    assert done.exception == verdict.exception, done.printed
    assert verdict.error_text is not None
    assert verdict.error_text in done.printed, (verdict.error_text, done.printed)


def agree_on_success(made: Plan, done: Tool) -> None:
    assert made.judged.verdict.name == "safe", made.judged.verdict.reason
    assert done.code == 0, done.printed


@pytest.mark.long
def test_changes_of_voters(live: LiveQuorum) -> None:
    """Nine verdicts: levels of kraft.version, adding, removing, the leader itself, another port."""
    everyone = (1, 2, 3, 4)
    leader = live.leader(1, 2, 3)
    follower, other = sorted({1, 2, 3} - {leader})

    made = planned(live, "same-level", UpgradeKRaftVersion(1), *everyone)
    agree_on_success(made, live.features("upgrade", "--feature", "kraft.version=1", by=leader))

    made = planned(live, "downgrade", UpgradeKRaftVersion(0), *everyone)
    done = live.features("downgrade", "--feature", "kraft.version=0", by=leader)
    assert made.judged.verdict.name == "refused"
    assert made.judged.verdict.exception == "InvalidUpdateVersionException"
    assert done.code != 0
    assert "kraft.version" in done.printed

    made = planned(live, "add", Add(4), *everyone)
    agree_on_success(made, live.add(4, by=leader))
    after = made.judged.after
    assert after is not None
    assert live.voters(leader) == {(key.id, key.directory_id) for key in after.voters}

    agree_on_refusal(planned(live, "again", Add(4), *everyone), live.add(4, by=leader))

    stranger = live.random_uuid()
    made = planned(live, "stranger", Remove(9, stranger), *everyone)
    agree_on_refusal(made, live.remove(9, stranger, by=leader))

    made = planned(live, "remove", Remove(4), *everyone)
    agree_on_success(made, live.remove(4, live.directory_id(4), by=leader))

    live.ports[follower] += 20
    moved = Endpoint("CONTROLLER", "127.0.0.1", live.ports[follower])
    made = planned(live, "update", Update(follower, (moved,)), *everyone)
    assert made.judged.verdict.name == "safe"
    live.stop(follower)
    live.start(follower)
    assert _eventually(lambda: str(moved.port) in live.status(other).get("CurrentVoters", ""))

    made = planned(live, "remove-leader", Remove(leader), *everyone)
    agree_on_success(made, live.remove(leader, live.directory_id(leader), by=other))
    assert "leader_goes" in {risk.name for risk in made.risks}
    successor = live.leader(follower, other, but=leader)
    assert {node for node, _ in live.voters(successor)} == {follower, other}

    made = planned(live, "add-back", Add(leader), *everyone)
    agree_on_success(made, live.add(leader, by=successor))


@pytest.mark.long
def test_losses_and_a_replaced_disk(live: LiveQuorum) -> None:
    """Verdicts on losses: one, its disk, two that stand still, what is refused meanwhile, the leader, two."""
    everyone = (1, 2, 3, 4)
    leader = live.leader(1, 2, 3)
    failed, other = sorted({1, 2, 3} - {leader})
    lost = live.directory_id(failed)

    made = planned(live, "lose-one", Lose((failed,)), *everyone)
    assert made.judged.verdict.name == "safe"
    live.kill(failed)
    before = live.watermark(leader)
    assert _eventually(lambda: live.watermark(leader) > before)

    made = planned(live, "replace", Replace(failed), *everyone)
    assert made.judged.verdict.name == "safe"
    shutil.rmtree(live.folder(failed))
    live.format(failed, "--no-initial-controllers")
    live.start(failed)
    log = live.folder(failed) / "__cluster_metadata-0/00000000000000000000.log"
    assert _eventually(lambda: log.is_file() and log.stat().st_size > 0)
    time.sleep(3)
    agree_on_refusal(planned(live, "duplicate", Add(failed), *everyone), live.add(failed, by=leader))
    made = planned(live, "reformatted", Replace(failed), *everyone)
    commands = [step.command or "" for step in made.steps]
    assert any(f"--controller-directory-id {lost}" in command for command in commands)
    agree_on_success(made, live.remove(failed, lost, by=leader))
    agree_on_success(made, live.add(failed, by=leader))
    assert (failed, live.directory_id(failed)) in live.voters(leader)

    live.pause(failed, other)
    time.sleep(4)
    made = planned(live, "stalled", Add(4), *everyone)
    assert made.judged.verdict.name == "unsafe", made.judged.verdict.reason
    standings = {m.key.id: m.standing for m in made.quorum.members if m.is_voter}
    assert standings == {leader: Standing.LEADER, failed: Standing.BEHIND, other: Standing.BEHIND}
    stuck = live.add(4, by=leader)
    assert (stuck.code != 0, stuck.exception) == (True, "TimeoutException"), stuck.printed
    made = planned(live, "pending", Remove(4), *everyone)
    assert "uncommitted_change" in {risk.name for risk in made.risks}
    agree_on_refusal(made, live.remove(4, live.directory_id(4), by=leader))
    live.resume(failed, other)
    leader = live.leader(1, 2, 3)
    assert _eventually(lambda: (4, live.directory_id(4)) in live.voters(leader))

    made = planned(live, "lose-leader", Lose((leader,)), *everyone)
    assert made.judged.verdict.name == "safe", made.judged.verdict.reason
    live.kill(leader)
    left = sorted(set(everyone) - {leader})
    successor = live.leader(*left, but=leader)
    assert successor in left

    gone = sorted(set(left) - {successor})[0]
    # Until then the killed leader may be a voter that has not heard of the election yet: NOT KNOWN.
    assert _eventually(lambda: _led_ms(live, successor) > FETCH_TIMEOUT_MS)
    made = planned(live, "lose-another", Lose((gone,)), *everyone)
    assert made.judged.verdict.name == "unsafe", made.judged.verdict.reason
    live.kill(gone)
    frozen = live.watermark(successor)
    time.sleep(3)
    assert live.watermark(successor) in (frozen, -1)


@pytest.mark.long
def test_a_static_quorum_of_one(alone: LiveQuorum) -> None:
    """Three verdicts: no removal with kraft.version 0, the upgrade, and not the last voter."""
    directory = alone.directory_id(1)
    made = planned(alone, "static", Remove(1), 1)
    agree_on_refusal(made, alone.remove(1, directory, by=1))

    made = planned(alone, "upgrade", UpgradeKRaftVersion(1), 1)
    agree_on_success(made, alone.features("upgrade", "--feature", "kraft.version=1", by=1))

    made = planned(alone, "last", Remove(1), 1)
    agree_on_refusal(made, alone.remove(1, directory, by=1))


@pytest.mark.long
def test_a_static_voter_tells_every_new_leader_what_it_supports(static: LiveQuorum) -> None:
    """Two verdicts on the upgrade: while a voter is down since before the election, and once it is back."""
    former = static.leader(1, 2, 3)
    down, other = sorted({1, 2, 3} - {former})
    static.kill(down)
    static.kill(former)
    static.start(former)
    leader = static.leader(former, other)
    time.sleep(6)
    made = planned(static, "down", UpgradeKRaftVersion(1), 1, 2, 3)
    assert made.judged.verdict.name == "not_known"
    assert any(f"voter {down} may not have told the leader" in each for each in made.judged.missing)
    done = static.features("upgrade", "--feature", "kraft.version=1", by=leader)
    assert done.code != 0
    assert "not all of the voters support it" in done.printed

    static.start(down)
    time.sleep(12)
    leader = static.leader(1, 2, 3)
    made = planned(static, "back", UpgradeKRaftVersion(1), 1, 2, 3)
    agree_on_success(made, static.features("upgrade", "--feature", "kraft.version=1", by=leader))


def _led_ms(quorum: LiveQuorum, leader: int) -> int:
    """For how long the leader has appended in its epoch, by its log."""
    (facts,) = collect(find_controller_dirs([quorum.folder(leader)]).directories)
    of_epoch = facts.captures[0].epoch_ranges[-1]
    return of_epoch.last_appended_at - of_epoch.first_appended_at


def _eventually(holds) -> bool:
    for _ in range(60):
        if holds():
            return True
        time.sleep(1)
    return False
