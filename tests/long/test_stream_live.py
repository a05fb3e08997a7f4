"""readStream.format("kraft") against real Kafka: its rows are the committed records of the directories."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.long.live_stream import (
    Driver,
    ObservedCluster,
    Operator,
    alike,
    captured_rows,
    controllers,
    driving,
    file_rows,
    observed_cluster,
)

VOTERS = (1, 2, 3)
EVERY_SECOND = {"processingTime": "1 second"}


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObservedCluster]:
    """Voters 1, 2 and 3, and broker 11: each test leaves them running."""
    with observed_cluster(tmp_path_factory.mktemp("stream") / "live", 29400, 11) as live:
        yield live


@pytest.fixture(scope="module")
def ops(live: ObservedCluster) -> Iterator[Operator]:
    operator = Operator(live, live.address(11))
    yield operator
    operator.close()


def equal_captures(driver: Driver, live: ObservedCluster, label: str) -> int:
    """Capture what the stream has read. Returns up to which offset the rows were compared."""
    rows = alike(driver.rows())
    held = captured_rows(live.capture(label, *VOTERS), live.cluster_id, len(rows))
    assert [row["offset"] for row in rows] == list(range(len(rows)))
    assert rows == [held[offset] for offset in range(len(rows))]
    return len(rows)


def options(live: ObservedCluster) -> dict[str, str]:
    return {"bootstrap.controllers": controllers(live, *VOTERS)}


@pytest.mark.long
def test_a_leader_and_drivers_are_killed(live: ObservedCluster, ops: Operator, tmp_path: Path) -> None:
    before = live.observers(live.leader(*VOTERS))
    driver = Driver(tmp_path / "on", options(live), EVERY_SECOND)
    with driving(driver):
        for number in range(5):
            assert "OK" in ops.do(f"topic before-{number} 2 1")
        driver.until(live.watermark(live.leader(*VOTERS)))
        ops.do("deltopic before-0")
        first = live.leader(*VOTERS)
        live.kill(first)
        others = [node for node in VOTERS if node != first]
        second = live.leader(*others, but=first)
        assert "OK" in ops.do("topic between 2 1")
        driver.kill()
        live.start(first)
        driver.start()
        end = live.watermark(second)
        driver.until(end)
        assert live.observers(second) <= before | set(VOTERS)
        driver.kill()
    assert equal_captures(driver, live, "killed") > end


@pytest.mark.long
def test_an_uncommitted_tail_is_no_row(live: ObservedCluster, ops: Operator, tmp_path: Path) -> None:
    """The leader alone appends what is truncated later; meanwhile the stream asks it."""
    driver = Driver(tmp_path / "on", options(live), EVERY_SECOND)
    with driving(driver):
        leader = live.leader(*VOTERS)
        driver.until(live.watermark(leader))
        followers = [node for node in VOTERS if node != leader]
        live.pause(*followers)
        time.sleep(1)
        ops.send("topic lost 2 1")
        time.sleep(6)
        alone = live.capture("alone", leader)
        seen = max(driver.offsets())
        live.pause(leader)
        live.resume(*followers)
        successor = live.leader(*followers, but=leader)
        live.resume(leader)
        ops.answer()
        assert "OK" in ops.do("topic after 2 1")
        end = live.watermark(successor)
        driver.until(end)
        driver.kill()
    assert equal_captures(driver, live, "truncated") > end
    rows = {(row["offset"], row["leader_epoch"]) for row in alike(driver.rows())}
    tail = {(row["offset"], row["leader_epoch"]) for row in file_rows(alone, live.cluster_id)} - rows
    assert tail, "nothing was truncated: the scenario shows nothing"
    assert seen < min(offset for offset, _ in tail)


@pytest.mark.long
def test_a_minute_without_a_leader_is_waited_out(
    live: ObservedCluster, ops: Operator, tmp_path: Path
) -> None:
    """Two of three voters are stopped; the stream says so once a minute, and goes on with their return."""
    driver = Driver(tmp_path / "on", options(live), EVERY_SECOND)
    with driving(driver):
        driver.until(live.watermark(live.leader(*VOTERS)))
        live.pause(1, 2)
        time.sleep(75)
        assert driver.is_running()
        held = len(driver.offsets())
        time.sleep(5)
        assert len(driver.offsets()) == held
        live.resume(1, 2)
        live.leader(*VOTERS)
        assert "OK" in ops.do("topic after-a-minute 1 1")
        end = live.watermark(live.leader(*VOTERS))
        driver.until(end)
        driver.kill()
    assert 1 <= driver.said.count("no leader answers, retrying") <= 8
    assert equal_captures(driver, live, "a-minute") >= end


@pytest.mark.long
def test_available_now_reads_what_is_committed(live: ObservedCluster, tmp_path: Path) -> None:
    committed = live.watermark(live.leader(*VOTERS))
    driver = Driver(tmp_path / "now", options(live) | {"maxOffsetsPerTrigger": "200"}, {"availableNow": True})
    with driving(driver):
        assert driver.ended() == 0, driver.said
    assert equal_captures(driver, live, "now") >= committed


@pytest.mark.long
def test_a_broker_does_not_serve_the_log(live: ObservedCluster, tmp_path: Path) -> None:
    driver = Driver(tmp_path / "broker", {"bootstrap.controllers": live.address(11)}, {"availableNow": True})
    with driving(driver):
        assert driver.ended() != 0
    assert f"{live.address(11)}: it is a broker, and brokers do not serve the metadata log" in driver.said
