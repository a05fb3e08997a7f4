"""kraftlake describe, of simulated quorums on loopback."""

from __future__ import annotations

import json
import re

import pytest

from jobs.cli import main
from jobs.runtime.outcome import ExitCode
from kraft_core.messages.uuid_text import ZERO_UUID
from kraft_core.simulation.actions import Crash
from tests.kraft_core.wire.test_follower import started
from tests.transforms.live.loopback import controllers, loopback


def test_the_quorum_as_its_leader_knows_it(capsys: pytest.CaptureFixture[str]) -> None:
    quorum = started()
    with loopback(quorum) as held:
        where = ("describe", "--bootstrap-controllers", controllers(held))
        assert main([*where, "--format", "json"]) == 0
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert main([*where]) == 0
        text = capsys.readouterr().out
    leader = quorum.leader()
    assert leader is not None
    ends = {row["node_id"]: row["log_end_offset"] for row in rows}
    assert ends == {node: replica.log.end_offset for node, replica in quorum.replicas.items()}
    assert text.startswith(f"cluster {quorum.setup.cluster_id} at ")
    assert f"epoch {leader.epoch}, leader {leader.key.id}, high watermark " in text
    assert re.search(rf"  {leader.key.id} \({leader.key.directory_id}\) voter, leads: log end \d+, ", text)
    assert len(re.findall(r"lacks 0, caught up 0\.\d s ago", text)) == len(quorum.replicas) - 1


def test_a_directory_id_that_the_leader_does_not_know_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    """As of a static quorum, whose voters the leader knows by their ids alone."""
    quorum = started(static=True)
    with loopback(quorum) as held:
        assert main(["describe", "--bootstrap-controllers", controllers(held)]) == 0
    said = capsys.readouterr().out
    assert len(re.findall(r"^  \d voter[,:] ", said, re.MULTILINE)) == quorum.setup.voters
    assert ZERO_UUID not in said


def test_without_a_leader_it_can_be_tried_again(capsys: pytest.CaptureFixture[str]) -> None:
    quorum = started()
    with loopback(quorum) as held:
        quorum.act(Crash(quorum.leader().key.id - 1, 100))
        assert main(["describe", "--bootstrap-controllers", controllers(held)]) == ExitCode.TRY_AGAIN
    said = capsys.readouterr().err
    assert "no leader answers: " in said
    assert "the node is not the leader of the quorum" in said


def test_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe"]) == ExitCode.USAGE
    assert "give --bootstrap-controllers or --bootstrap-servers" in capsys.readouterr().err
    assert main(["describe", "--bootstrap-servers", "h1"]) == ExitCode.USAGE
    assert "'h1' is not HOST:PORT" in capsys.readouterr().err
