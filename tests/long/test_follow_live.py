"""kraftlake follow against real Kafka: the lake has what captures have, whoever is killed meanwhile."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.long.live_stream import ObservedCluster, Operator, controllers, observed_cluster
from tests.long.processes import LONGEST, Started
from transforms.lake.delta_rs import exists, rows_with
from transforms.lake.tables import (
    BATCHES,
    CAPTURES,
    FINDINGS,
    HIGH_WATERMARKS,
    LOADED,
    LOG_RANGES,
    RECORDS,
    TABLES,
    Table,
)

VOTERS = (1, 2, 3)
BROKER = 11
# A follower is killed at most two seconds after it has begun one of these.
STAGES = ("write records", "commit", "session", "derive", "histories")
KILLS = int(os.environ.get("KRAFTLAKE_FOLLOW_KILLS", "5"))


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObservedCluster]:
    """Voters 1, 2 and 3, and broker 11: each test leaves them running."""
    with observed_cluster(tmp_path_factory.mktemp("follow") / "live", 29600, BROKER) as live:
        yield live


@pytest.fixture(scope="module")
def ops(live: ObservedCluster) -> Iterator[Operator]:
    operator = Operator(live, live.address(BROKER))
    yield operator
    operator.close()


def following(live: ObservedCluster, lake: Path, number: int, *flags: str) -> Started:
    where = ("--bootstrap-controllers", controllers(live, *VOTERS), "--lake", lake)
    return Started(lake.with_name(f"follow-{number}"), "follow", *where, "--interval", "1s", *flags)


def loaded(lake: Path) -> int:
    """Up to where the log is in the lake."""
    if not exists(lake, CAPTURES):
        return 0
    return max((row["log_end_offset"] for row in rows_with(lake, CAPTURES, ["log_end_offset"])), default=0)


def until(follow: Started, lake: Path, offset: int) -> None:
    give_up = time.monotonic() + LONGEST
    while loaded(lake) < offset:
        assert time.monotonic() < give_up, follow.err.read_text()[-4000:]
        assert follow.is_running(), follow.err.read_text()[-4000:]
        time.sleep(0.5)


def rows(lake: Path, table: Table) -> dict[tuple[Any, ...], dict[str, Any]]:
    """The rows by key, without the columns of the run."""
    of_run = {column.name for column in LOADED}
    found = rows_with(lake, table)
    by_key = {tuple(row[name] for name in table.key): row for row in found}
    assert len(by_key) == len(found), f"{table.name} has rows twice"
    return {key: {n: v for n, v in row.items() if n not in of_run} for key, row in by_key.items()}


def loading(live: ObservedCluster, lake: Path, label: str) -> None:
    captures = live.capture(label, *VOTERS)
    flags = ("--lake", lake, "--captures", captures, "--validate", "--fail-on", "open")
    run = Started(lake.with_name(f"{lake.name}-{label}"), "run", *flags)
    assert run.ended() == 0, run.err.read_text()[-4000:] + run.out.read_text()[-4000:]


@pytest.mark.long
def test_followers_and_leaders_are_killed(live: ObservedCluster, ops: Operator, tmp_path: Path) -> None:
    """What was followed equals captures taken afterwards, which change no row of it."""
    lake, chance = tmp_path / "lake", random.Random(os.environ.get("KRAFTLAKE_SEED", "1"))
    before = live.observers(live.leader(*VOTERS))
    killed = 0
    for number in range(KILLS):
        follow = following(live, lake, number)
        assert "OK" in ops.do(f"topic t{number} 3 1")
        if number % 2:
            ops.do(f"deltopic t{number - 1}")
            first = live.leader(*VOTERS)
            live.kill(first)
            live.leader(*(node for node in VOTERS if node != first), but=first)
            live.start(first)
            assert "OK" in ops.do(f"topic between-{number} 2 1")
        follow.until(STAGES[number % len(STAGES)])
        killed += follow.kill_after(chance.uniform(0, 2), only_python=bool(number % 3 == 2))
    assert killed == KILLS
    follow = following(live, lake, KILLS)
    end = live.watermark(live.leader(*VOTERS))
    until(follow, lake, end)
    assert live.observers(live.leader(*VOTERS)) <= before | set(VOTERS)
    follow.terminate()
    assert follow.ended() == 0, follow.err.read_text()[-4000:]
    assert json.loads(follow.out.read_text().splitlines()[-1])["exit_code"] == 0

    followed = rows(lake, RECORDS)
    offsets = sorted(row["offset"] for row in followed.values())
    assert offsets == list(range(len(offsets)))
    assert len(offsets) >= end
    assert {row["commit_status"] for row in rows(lake, LOG_RANGES).values()} == {"committed"}
    live_points = [row for row in rows(lake, HIGH_WATERMARKS).values() if row["evidence"] == "live"]
    assert max(row["upper_bound"] or 0 for row in live_points) <= len(offsets)

    other = tmp_path / "captured"
    loading(live, other, "afterwards")
    captured = rows(other, RECORDS)
    assert {key: captured[key] for key in followed} == followed
    loaded_before = {table: rows_with(lake, table) for table in (RECORDS, BATCHES)}
    loading(live, lake, "beside")
    for table, held in loaded_before.items():
        now = rows_with(lake, table)
        assert all(row in now for row in held), f"rows of {table.name} changed"
    for table in TABLES:
        rows(lake, table)
    assert {row["node_id"] for row in rows_with(lake, CAPTURES)} == {-1, *VOTERS}
    assert [row for row in rows_with(lake, FINDINGS) if row["severity"] == "error"] == []


@pytest.mark.long
def test_lag_and_a_pass(live: ObservedCluster, ops: Operator, tmp_path: Path) -> None:
    """How long after its commit a topic is a row, where a pass begins every second."""
    lake = tmp_path / "lake"
    follow = following(live, lake, 0)
    until(follow, lake, live.watermark(live.leader(*VOTERS)))
    lags = []
    for number in range(8):
        assert "OK" in ops.do(f"topic lag-{number} 1 1")
        began, end = time.monotonic(), live.watermark(live.leader(*VOTERS))
        until(follow, lake, end)
        lags.append(round(time.monotonic() - began, 1))
    follow.terminate()
    assert follow.ended() == 0, follow.err.read_text()[-4000:]
    passes = [json.loads(line) for line in follow.out.read_text().splitlines()]
    print("lags", sorted(lags), "seconds of a pass", sorted(each["seconds"] for each in passes))
