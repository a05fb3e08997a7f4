"""kraftlake describe and plan --live against real Kafka: by controllers, and by a broker, which asks them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from jobs.cli import main
from tests.long.live_stream import ObservedCluster, controllers, observed_cluster

VOTERS, BROKER = (1, 2, 3), 11


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObservedCluster]:
    """Voters 1, 2 and 3 and broker 11, which answers: each test leaves them running."""
    with observed_cluster(tmp_path_factory.mktemp("describe") / "live", 29460, BROKER) as live:
        give_up = time.monotonic() + 120
        while live.described(BROKER) is None or BROKER not in live.observers(live.leader(*VOTERS)):
            assert time.monotonic() < give_up, (live.path / f"{BROKER}.out").read_text()[-4000:]
            time.sleep(0.5)
        yield live


@pytest.mark.long
def test_describe_asks_a_controller_or_a_broker(
    live: ObservedCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both name the same replicas, and neither leaves a trace."""
    leader = live.leader(*VOTERS)
    before = live.observers(leader)
    for flag, where in (
        ("--bootstrap-controllers", controllers(live, *VOTERS)),
        ("--bootstrap-servers", live.address(BROKER)),
    ):
        assert main(["describe", flag, where, "--format", "json"]) == 0
        rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        assert {row["leader_id"] for row in rows} == {leader}
        assert {row["node_id"] for row in rows if row["is_voter"]} == set(VOTERS)
        assert {row["node_id"] for row in rows if not row["is_voter"]} == {BROKER}
        assert {row["cluster_id"] for row in rows} == {live.cluster_id}
        assert all(row["lag_records"] is not None for row in rows)
    assert live.observers(leader) == before


@pytest.mark.long
def test_plan_judges_a_running_quorum(live: ObservedCluster, capsys: pytest.CaptureFixture[str]) -> None:
    """While all voters are in sync any one may go; while one is stopped, the other follower may not."""
    leader = live.leader(*VOTERS)
    follower, other = sorted(set(VOTERS) - {leader})
    words = ["plan", "--live", controllers(live, *VOTERS), "--format", "json"]
    for action in (["remove", str(follower)], ["lose", str(follower)], ["lose", str(leader)]):
        assert main([*words, *action]) == 0, capsys.readouterr().out
        assert json.loads(capsys.readouterr().out)["leader"].startswith(f"{leader}@")
    live.pause(other)
    try:
        time.sleep(4)
        assert main([*words, "lose", str(follower)]) == 1
        made = json.loads(capsys.readouterr().out)
    finally:
        live.resume(other)
    assert made["verdict"] == "unsafe", made["reason"]
    standings = {each["replica"].partition("@")[0]: each["standing"] for each in made["replicas"]}
    assert (standings[str(leader)], standings[str(other)]) == ("leader", "behind")
