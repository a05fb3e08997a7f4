"""kraftlake plan --live, of simulated quorums on loopback: the verdicts, and what takes them away."""

from __future__ import annotations

import json
import re
import socket
from typing import Any

import pytest

from jobs.cli import main
from jobs.runtime.outcome import ExitCode
from kraft_core.simulation.actions import Crash, Elapse, RemoveVoter, Write
from kraft_core.simulation.directories import write_directories
from kraft_core.simulation.quorum import SimulatedQuorum
from tests.kraft_core.wire.test_follower import snapshotted, started
from tests.transforms.live.loopback import LoopbackQuorum, controllers, loopback
from transforms.live import connection

# Ten seconds after the simulation's START_TIME.
SOON = "2023-11-14T22:13:30Z"


def planned(held: LoopbackQuorum, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """The plan as JSON, made soon after the leader's answer."""
    code = main(["plan", "--live", controllers(held), *words, "--format", "json", "--now", SOON])
    made = json.loads(capsys.readouterr().out)
    assert (code == 0) == (made["verdict"] == "safe")
    return made


def a_follower(quorum: SimulatedQuorum) -> int:
    leader = quorum.leader()
    assert leader is not None
    return next(id_ for id_ in leader.voters.ids if id_ != leader.key.id)


@pytest.mark.parametrize("begin", [started, snapshotted])
def test_it_answers_as_captures_of_that_moment_do(
    begin: Any, capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    quorum = begin()
    quorum.act(Write(1))
    quorum.act(Elapse(100))
    follower, leader = a_follower(quorum), quorum.leader()
    write_directories(quorum, tmp_path)
    observer = next(node for node in quorum.replicas if node not in leader.voters.ids)
    actions = [
        ("remove", str(follower)),
        ("remove", str(leader.key.id)),
        ("add", str(observer)),
        ("remove", "9"),
        ("replace", str(follower), "--by", str(observer)),
        ("lose", str(follower)),
        ("lose", str(leader.key.id), str(follower)),
        ("upgrade-kraft-version",),
    ]
    with loopback(quorum) as held:
        for action in actions:
            live = planned(held, capsys, *action)
            main(["plan", *action, "--captures", str(tmp_path), "--format", "json", "--now", SOON])
            captured = json.loads(capsys.readouterr().out)
            alike = ("verdict", "error", "leader", "leader_epoch", "log_end_offset", "before", "after")
            assert {name: live[name] for name in alike} == {name: captured[name] for name in alike}, action


def test_a_leader_that_removed_itself_leads_until_that_commits(
    capsys: pytest.CaptureFixture[str], tmp_path: Any
) -> None:
    """Meanwhile it reports itself as an observer; Kafka's own tools end with NoSuchElementException."""
    quorum = started()
    leader, down = quorum.leader().key.id, a_follower(quorum)
    other = next(id_ for id_ in quorum.leader().voters.ids if id_ not in (down, leader))
    quorum.act(Crash(down - 1, 100))
    for action in (Write(1), Elapse(60), RemoveVoter(leader - 1), Elapse(60)):
        quorum.act(action)
    assert quorum.leader().key.id == leader
    assert leader not in quorum.leader().voters.ids
    write_directories(quorum, tmp_path)
    with loopback(quorum) as held:
        for action in (("remove", str(other)), ("add", str(leader)), ("lose", str(leader), str(down))):
            live = planned(held, capsys, *action)
            main(["plan", *action, "--captures", str(tmp_path), "--format", "json", "--now", SOON])
            captured = json.loads(capsys.readouterr().out)
            alike = ("verdict", "error", "error_message", "leader", "leader_epoch", "log_end_offset")
            assert {name: live[name] for name in alike} == {name: captured[name] for name in alike}, action
            assert live["verdict"] in ("refused", "unsafe")
            watermark = quorum.leader().log.known_high_watermark
            assert (f"with HWM {watermark}" in (live["error_message"] or "")) == (
                live["verdict"] == "refused"
            )
        assert main(["describe", "--bootstrap-controllers", controllers(held)]) == 0
        said = capsys.readouterr().out
    assert f" observer, leads: log end {quorum.leader().log.end_offset}" in said
    assert len(re.findall(r"lacks \d+, caught up", said)) == len(quorum.replicas) - 1


def test_a_voter_that_is_down_takes_the_answer_away(capsys: pytest.CaptureFixture[str]) -> None:
    quorum = started()
    with loopback(quorum) as held:
        down = a_follower(quorum)
        other = next(id_ for id_ in quorum.leader().voters.ids if id_ not in (down, quorum.leader().key.id))
        assert planned(held, capsys, "lose", str(down))["verdict"] == "safe"
        with held.lock:
            quorum.act(Crash(down - 1, 100))
            for _ in range(30):
                quorum.act(Write(1))
                quorum.act(Elapse(100))
        made = planned(held, capsys, "lose", str(other))
        assert made["verdict"] == "unsafe"
        (replica,) = (each for each in made["replicas"] if each["replica"].startswith(f"{down}"))
        assert replica["standing"] == "behind"
        assert replica["lag_ms"] > 2000


def test_the_high_watermark_that_the_leader_reports_proves_a_change_committed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Its log alone does not: which followers have the new voter set no record says."""
    quorum = started(voters=5)
    with loopback(quorum) as held:
        for followers_down in (0, 3):
            followers = [id_ for id_ in quorum.leader().voters.ids if id_ != quorum.leader().key.id]
            with held.lock:
                for id_ in followers[:followers_down]:
                    quorum.act(Crash(id_ - 1, 100))
                quorum.act(RemoveVoter(followers[0] - 1))
                quorum.act(Elapse(100))
            made = planned(held, capsys, "lose", str(followers[0]))
            assert ("uncommitted_change" in risks(made)) == (followers_down > 0)


def risks(plan: dict[str, Any]) -> set[str]:
    return {risk["name"] for risk in plan["risks"]}


def test_a_description_of_another_moment_decides_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    quorum = started()
    with loopback(quorum) as held:
        follower = a_follower(quorum)
        answer = held._described

        def without_one(replica: Any) -> dict[str, Any]:
            body = answer(replica)
            one = body["topics"][0]["partitions"][0]
            one["currentVoters"] = [v for v in one["currentVoters"] if v["replicaId"] != follower]
            return body

        monkeypatch.setattr(held, "_described", without_one)
        made = planned(held, capsys, "lose", str(follower))
        assert made["verdict"] == "not_known"
        assert "not those of its log" in made["missing"][0]


def test_the_leader_whose_log_was_read_is_asked_for_its_replicas(capsys: pytest.CaptureFixture[str]) -> None:
    """Another address leads to a clone of the quorum, all of whose voters are up: it was SAFE."""
    quorum, clone = started(), started()
    leader, down = quorum.leader().key.id, a_follower(quorum)
    other = next(id_ for id_ in quorum.leader().voters.ids if id_ not in (down, leader))
    with loopback(quorum) as held, loopback(clone) as cloned:
        with held.lock:
            quorum.act(Crash(down - 1, 100))
            for _ in range(30):
                quorum.act(Write(1))
                quorum.act(Elapse(100))
        addresses = f"{address(held, other)},{address(cloned, leader)}"
        main(["plan", "--live", addresses, "lose", str(other), "--format", "json", "--now", SOON])
    assert json.loads(capsys.readouterr().out)["verdict"] == "unsafe"


def test_a_node_that_hangs_is_waited_for_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a paused one: its machine takes connections, and nothing answers."""
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 2.0)
    quorum = started()
    with loopback(quorum) as held, socket.create_server(("127.0.0.1", 0)) as hung:
        where = f"127.0.0.1:{hung.getsockname()[1]},{controllers(held)}"
        code = main(["plan", "--live", where, "lose", str(a_follower(quorum)), "--now", SOON])
        assert code == 0, capsys.readouterr()
        hung.setblocking(False)
        hung.accept()[0].close()
        with pytest.raises(BlockingIOError):
            hung.accept()


def address(held: LoopbackQuorum, node: int) -> str:
    endpoint = held.quorum.replicas[node].endpoints[0]
    return f"{endpoint.host}:{endpoint.port}"


@pytest.mark.parametrize("lacking", ["lastFetchTimestamp", "lastCaughtUpTimestamp", "logEndOffset"])
def test_what_the_leader_does_not_tell_of_a_follower_is_not_known(
    lacking: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    quorum = started()
    with loopback(quorum) as held:
        leader = quorum.leader().key.id
        answer = held._described

        def less(replica: Any) -> dict[str, Any]:
            body = answer(replica)
            for each in body["topics"][0]["partitions"][0].get("currentVoters", ()):
                if each["replicaId"] != leader:
                    each[lacking] = -1
            return body

        monkeypatch.setattr(held, "_described", less)
        made = planned(held, capsys, "lose", str(a_follower(quorum)))
        assert made["verdict"] == "not_known"
        assert {each["standing"] for each in made["replicas"] if each["is_voter"]} == {
            "leader",
            "lost",
            "not known",
        }


def test_nobody_leads(capsys: pytest.CaptureFixture[str]) -> None:
    quorum = started()
    with loopback(quorum) as held:
        quorum.act(Crash(quorum.leader().key.id - 1, 100))
        assert main(["plan", "--live", controllers(held), "lose", "1"]) == ExitCode.TRY_AGAIN
    assert "no leader answers" in capsys.readouterr().err
