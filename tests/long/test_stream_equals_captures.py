"""A stream beside all that befalls a quorum at once, its drivers killed: its rows are those of captures.

Kafka deletes once a minute what snapshots cover, so that what the stream read first is in no directory at the
end: captures of a leader, taken meanwhile, have it below the high watermark of then.
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.long.live_stream import (
    LONGEST,
    Driver,
    ObservedCluster,
    Operator,
    Row,
    alike,
    captured_rows,
    controllers,
    driving,
    file_rows,
    observed_cluster,
    snapshots,
)

VOTERS, JOINING, BROKER = (1, 2, 3), 4, 11
TOPICS, LEADER_KILLS, DRIVER_KILLS = 200, 5, 10
SMALL = (
    "internal.metadata.log.segment.bytes=16384",
    "metadata.log.max.record.bytes.between.snapshots=8000",
    "metadata.log.max.snapshot.interval.ms=0",
    "metadata.max.retention.bytes=60000",
)
# Milliseconds without the leader, after which a voter of a busy machine wants an election.
FETCH_TIMEOUT_MS = 8000
# When a driver is killed: within a batch, after Delta's commit of one, or at any moment.
FIRST, WITHIN, COMMITTED, ANY = "in the first batch", "in a batch", "after the table's commit", "at any time"
MOMENTS = (FIRST, COMMITTED, WITHIN, ANY, COMMITTED, WITHIN, ANY, ANY, COMMITTED, ANY)
# Seconds after its start within which a driver is killed at any time.
ANY_SECONDS = 20.0


@dataclass(slots=True)
class SmallSegments(ObservedCluster):
    """Controllers that snapshot often and delete what snapshots cover."""

    fetch_timeouts: dict[int, int] = field(
        default_factory=lambda: dict.fromkeys((*VOTERS, JOINING), FETCH_TIMEOUT_MS)
    )

    def configure(self, node: int) -> str:
        file = ObservedCluster.configure(self, node)
        if node not in self.brokers:
            with Path(file).open("a") as written:
                written.write("".join(f"\n{line}" for line in SMALL))
        return file


@dataclass(slots=True)
class Committed:
    """The records of the log below the high watermark, as captures show them."""

    live: SmallSegments
    rows: dict[int, Row] = field(default_factory=dict)
    taken: int = 0

    def capture(self, *voters: int) -> None:
        """Add what a leader has below its high watermark. Whoever leads afterwards, that stays committed."""
        leader = self.live.leader(*(voters or VOTERS))
        self.add(leader, self.live.watermark(leader))

    def add(self, node: int, end: int) -> Path:
        """Add what a node has below an offset up to which its log is committed."""
        folder = self.captured(node)
        for offset, row in captured_rows(folder, self.live.cluster_id, end).items():
            known = self.rows.setdefault(offset, row)
            assert known == row, (known, row)
        return folder

    def captured(self, node: int) -> Path:
        """A capture, taken again where Kafka deletes what is being copied."""
        while True:
            self.taken += 1
            label = f"{self.taken}-{node}"
            try:
                return self.live.capture(label, node)
            except (shutil.Error, FileNotFoundError):
                shutil.rmtree(self.live.path / "captures" / label)


@pytest.fixture
def live(tmp_path: Path) -> Iterator[SmallSegments]:
    with observed_cluster(tmp_path / "live", 29700, BROKER, SmallSegments) as live:
        yield live


@contextmanager
def beside(work: Callable[[], Any]) -> Iterator[Future[Any]]:
    """Work in a thread of its own, whose failure is raised at the end."""
    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(work)
        yield done
        done.result()


def make_and_delete_topics(ops: Operator) -> None:
    """Each until it is done: a change of leaders may take an answer away."""
    for number in range(TOPICS):
        _until_done(ops, f"topic t-{number} 2 1", "TopicExistsException")
        if number >= 5:
            _until_done(ops, f"deltopic t-{number - 5}", "UnknownTopicOrPartitionException")
        time.sleep(0.8)
    for number in range(TOPICS - 5, TOPICS):
        _until_done(ops, f"deltopic t-{number}", "UnknownTopicOrPartitionException")


def _until_done(ops: Operator, line: str, done_before: str) -> None:
    give_up = time.monotonic() + LONGEST
    while "-> OK" not in (answer := ops.do(line)) and done_before not in answer:
        assert time.monotonic() < give_up, answer
        time.sleep(1)


def kill_drivers(driver: Driver) -> list[str]:
    """Kill a running driver at each of MOMENTS, and leave one running. Returns in what it was killed."""
    chance, killed = random.Random(os.environ.get("KRAFTLAKE_SEED", "1")), []
    for moment in MOMENTS:
        _wait_for(driver, moment, chance)
        driver.kill()
        killed.append(_progress(driver).doing())
        driver.start()
    return killed


def _wait_for(driver: Driver, moment: str, chance: random.Random) -> None:
    """Until a driver that has done a batch, but for the first one, is at a moment."""
    if moment == ANY:
        time.sleep(chance.uniform(0, ANY_SECONDS))
        return
    give_up = time.monotonic() + LONGEST
    before = _progress(driver).done
    while (now := _progress(driver)).doing() != moment or (moment != FIRST and now.done <= before):
        assert driver.is_running(), driver.said[-4000:]
        assert time.monotonic() < give_up, driver.said[-4000:]
        time.sleep(0.002)


@dataclass(frozen=True, slots=True)
class Progress:
    """How many batches a query has done, has in the table, and has begun."""

    done: int
    in_table: int
    begun: int

    def doing(self) -> str:
        if self.begun == self.done:
            return "between batches"
        if self.in_table > self.done:
            return COMMITTED
        return FIRST if self.done == 0 else WITHIN


def _progress(driver: Driver) -> Progress:
    checkpoint = driver.folder / "checkpoint"
    return Progress(
        _count(checkpoint / "commits"), _count(driver.table / "_delta_log"), _count(checkpoint / "offsets")
    )


def _count(numbered: Path) -> int:
    """Of files with numbers as names, of which old ones may be gone."""
    numbers = (int(file.stem) for file in numbered.glob("[0-9]*") if file.stem.isdecimal())
    return max(numbers, default=-1) + 1


def kill_leader(live: SmallSegments, voters: tuple[int, ...]) -> None:
    first = live.leader(*voters)
    live.kill(first)
    live.leader(*(node for node in voters if node != first), but=first)
    live.start(first)


def uncommitted_tail(committed: Committed, voters: tuple[int, ...]) -> set[tuple[int, int]]:
    """Stop a leader's followers, then the leader itself. Returns offsets and epochs that it held alone."""
    live = committed.live
    leader = live.leader(*voters)
    end = live.watermark(leader)
    followers = [node for node in voters if node != leader]
    live.pause(*followers)
    time.sleep(5)
    alone = committed.captured(leader)
    live.pause(leader)
    live.resume(*followers)
    live.leader(*followers, but=leader)
    live.resume(leader)
    held = file_rows(alone, live.cluster_id)
    return {(row["offset"], row["leader_epoch"]) for row in held if row["offset"] >= end}


def join(live: SmallSegments) -> None:
    live.format(JOINING, "--no-initial-controllers")
    live.start(JOINING)
    leader = live.leader(*VOTERS)
    give_up = time.monotonic() + LONGEST
    while JOINING not in live.observers(leader):
        assert time.monotonic() < give_up
        time.sleep(0.5)
        leader = live.leader(*VOTERS)
    # A request that times out, as on a busy machine, may still be committed: then the next one is refused.
    while (added := live.add(JOINING, live.leader(*VOTERS))).code:
        assert time.monotonic() < give_up, added.printed
        if added.exception == "DuplicateVoterException":
            return


def leave(live: SmallSegments) -> None:
    removed = live.remove(JOINING, live.directory_id(JOINING), live.leader(*VOTERS, JOINING))
    assert removed.code == 0, removed.printed


def misfortunes(committed: Committed) -> set[tuple[int, int]]:
    """Returns offsets and epochs that a partitioned leader held alone."""
    live, four = committed.live, (*VOTERS, JOINING)
    kill_leader(live, VOTERS)
    committed.capture()
    join(live)
    committed.capture(*four)
    kill_leader(live, four)
    committed.capture(*four)
    tail = uncommitted_tail(committed, four)
    committed.capture(*four)
    kill_leader(live, four)
    leave(live)
    live.stop(JOINING)
    for _ in range(LEADER_KILLS - 3):
        committed.capture()
        kill_leader(live, VOTERS)
    return tail


@pytest.mark.long
def test_a_stream_has_what_was_committed(live: SmallSegments, tmp_path: Path) -> None:
    began = time.monotonic()
    ops, committed = Operator(live, live.address(BROKER)), Committed(live)
    where = {"bootstrap.controllers": controllers(live, *VOTERS)}
    driver = Driver(tmp_path / "on", where, {"processingTime": "1 second"})
    before = live.observers(live.leader(*VOTERS))
    try:
        with driving(driver):
            with (
                beside(lambda: kill_drivers(driver)) as drivers_killed,
                beside(lambda: make_and_delete_topics(ops)) as topics,
            ):
                tail = misfortunes(committed)
                while not all([_is_done(drivers_killed), _is_done(topics), _begin_later(live)]):
                    assert time.monotonic() < began + 2 * LONGEST
                    committed.capture()
                    time.sleep(5)
            leader = live.leader(*VOTERS)
            assert live.observers(leader) <= before | {JOINING}
            end = live.watermark(leader)
            driver.until(end - 1)
            driver.kill()
    finally:
        ops.close()
    killed = Counter(drivers_killed.result())
    assert killed.total() == DRIVER_KILLS
    assert {FIRST, WITHIN, COMMITTED} <= set(killed)
    rows = alike(driver.rows())
    leader = live.leader(*VOTERS)
    while live.watermark(leader) < len(rows):
        time.sleep(0.5)
    finals = [committed.add(node, len(rows)) for node in VOTERS]
    assert [row["offset"] for row in rows] == list(range(len(rows)))
    assert len(rows) >= end
    assert rows == [committed.rows[offset] for offset in range(len(rows))]
    assert tail - {(row["offset"], row["leader_epoch"]) for row in rows}, "nothing was truncated"
    begins_with_a_snapshot(Driver(tmp_path / "late", where, {"availableNow": True}), committed, finals)
    print(len(rows), "records;", dict(killed), f"{time.monotonic() - began:.0f} s")


def _is_done(work: Future[Any]) -> bool:
    """Raises what the work has raised."""
    if work.done():
        work.result()
    return work.done()


def _begin_later(live: SmallSegments) -> bool:
    """Whether the voters have deleted their first segments."""
    return not any((live.folder(node) / "__cluster_metadata-0" / f"{0:020}.log").exists() for node in VOTERS)


def begins_with_a_snapshot(driver: Driver, committed: Committed, finals: list[Path]) -> None:
    """A stream that begins now reads a checkpoint's records, then the log from its start on."""
    live = committed.live
    with driving(driver):
        assert driver.ended() == 0, driver.said[-4000:]
    found = driver.rows()
    log = alike(found)
    committed.add(live.leader(*VOTERS), log[-1]["offset"] + 1)
    first = log[0]["offset"]
    assert first > 0
    assert log == [committed.rows[first + index] for index in range(len(log))]
    ((place, snapshot),) = snapshots(found).items()
    copies = [
        snapshots(file_rows(capture, live.cluster_id, "checkpoints")).get(place)
        for capture in (*finals, *map(committed.captured, VOTERS))
    ]
    assert snapshot in copies
