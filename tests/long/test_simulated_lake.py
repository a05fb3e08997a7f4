"""Simulated quorums as controller directories, read by `kraftlake run`: the tables agree with the simulation.

The simulation knows who led, what was committed and when; captures of some moments may prove less, but
nothing else.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kraft_core.protocol.replica import Replica
from kraft_core.raft.batches import Batch
from kraft_core.raft.voters import VoterSet
from kraft_core.simulation.actions import Action, Elapse
from kraft_core.simulation.directories import START_TIME, write_directories
from kraft_core.simulation.quorum import SimulatedQuorum
from kraft_core.simulation.runs import random_run
from kraft_core.simulation.setup import Setup
from tests.jobs.lakes import run
from transforms.lake.arrow_rows import milliseconds
from transforms.lake.delta_rs import exists, rows_with
from transforms.lake.tables import BATCHES, EPOCHS, FINDINGS, HIGH_WATERMARKS, LOG_RANGES, VOTER_SETS

SETUPS = (
    Setup(12, voters=5, observers=1),
    Setup(4, voters=3, static=True),
    Setup(7, voters=3, observers=2),
    Setup(21, voters=1, observers=2),
    Setup(33, voters=4, observers=1, auto_join=True),
    Setup(40, voters=7),
    Setup(51, voters=2, observers=2, brokers=1),
    Setup(64, voters=3, observers=1),
)
MOMENTS = 10


class Controllers(SimulatedQuorum):
    """A quorum whose controllers write as Kafka's do: once something of their epoch is committed."""

    def may_write(self, replica: Replica) -> bool:
        return super().may_write(replica) and replica.log.known_high_watermark is not None


@dataclass(slots=True)
class Truth:
    """One simulated quorum, and how far its leaders had committed by when (ms).

    held: batches of each captured (node, directory), over all captures.
    """

    quorum: SimulatedQuorum
    times: list[int] = field(default_factory=list)
    committed_ends: list[int] = field(default_factory=list)
    held: dict[tuple[int, str], set[tuple[int, int, int]]] = field(default_factory=dict)

    def act(self, actions: Iterable[Action]) -> None:
        for action in actions:
            self.quorum.act(action)
            assert self.quorum.failure is None
            self.times.append(START_TIME + self.quorum.now)
            self.committed_ends.append(self.quorum.judge.committed_end)

    def capture(self, path: Path) -> None:
        write_directories(self.quorum, path / self.cluster_id)
        for node, replica in self.quorum.replicas.items():
            held = self.held.setdefault((node, str(replica.key.directory_id)), set())
            held |= {(b.base_offset, b.leader_epoch, b.last_offset) for b in replica.log.batches}
        self.act([Elapse(1)])  # what follows is later than the capture

    @property
    def cluster_id(self) -> str:
        return self.quorum.setup.cluster_id

    @property
    def committed(self) -> dict[tuple[int, int], Batch]:
        return {(batch.base_offset, batch.leader_epoch): batch for batch in self.quorum.judge.committed}

    def committed_end_after(self, at: int) -> int:
        """At the end of the first action that ended later: some take no time."""
        return self.committed_ends[min(bisect_right(self.times, at), len(self.times) - 1)]

    def committed_end_before(self, at: int) -> int:
        """At the end of the last action that was over by then."""
        ended = bisect_right(self.times, at)
        return self.committed_ends[ended - 1] if ended else 0


@pytest.fixture(scope="module")
def simulated_lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Truth]]:
    """The lake of captures of ten moments, the odd ones read last, and what the simulations knew."""
    assert spark is not None  # the session that the runs find open
    path = tmp_path_factory.mktemp("simulated")
    truths: list[Truth] = []
    for setup in SETUPS:
        actions = random_run(setup, 300).actions
        truth = Truth(Controllers(setup))
        for moment in range(MOMENTS):
            truth.act(actions[moment * len(actions) // MOMENTS : (moment + 1) * len(actions) // MOMENTS])
            truth.capture(path / ("odd" if moment % 2 else "even") / str(moment))
        truths.append(truth)
    lake = path / "lake"
    assert run(lake, path / "even") == 0
    assert run(lake, path / "odd") == 0
    return lake, truths


@pytest.mark.long
def test_every_captured_batch_is_in_the_lake(simulated_lake: tuple[Path, list[Truth]]) -> None:
    lake, truths = simulated_lake
    for truth in truths:
        found: dict[tuple[int, str], set[tuple[int, int, int]]] = {key: set() for key in truth.held}
        columns = ["node_id", "directory_id", "base_offset", "leader_epoch", "last_offset"]
        for row in rows_with(lake, BATCHES, columns, cluster_id=[truth.cluster_id]):
            batch = (row["base_offset"], row["leader_epoch"], row["last_offset"])
            found[row["node_id"], row["directory_id"]].add(batch)
        assert found == truth.held


@pytest.mark.long
def test_leaders_are_the_true_ones(simulated_lake: tuple[Path, list[Truth]]) -> None:
    lake, truths = simulated_lake
    for truth in truths:
        rows = rows_with(lake, EPOCHS, cluster_id=[truth.cluster_id])
        leaders = {row["leader_epoch"]: row["leader_id"] for row in rows}
        known = {epoch: key.id for epoch, key in truth.quorum.judge.leaders.items()}
        seen = {epoch for held in truth.held.values() for _, epoch, _ in held}
        assert seen <= leaders.keys()
        assert {epoch: leader for epoch, leader in leaders.items() if leader is not None} == {
            epoch: known[epoch] for epoch, leader in leaders.items() if leader is not None
        }


@pytest.mark.long
def test_nothing_is_called_committed_or_truncated_that_is_not(
    simulated_lake: tuple[Path, list[Truth]],
) -> None:
    lake, truths = simulated_lake
    proven = truncated = 0
    for truth in truths:
        committed, end = truth.committed, truth.quorum.judge.committed_end
        held = {batch for batches in truth.held.values() for batch in batches}
        for row in rows_with(lake, LOG_RANGES, cluster_id=[truth.cluster_id]):
            within = [
                (base, epoch)
                for base, epoch, _ in held
                if epoch == row["leader_epoch"] and row["first_offset"] <= base < row["end_offset"]
            ]
            if row["commit_status"] == "committed":
                proven += len(within)
                assert row["end_offset"] <= end
                assert all(batch in committed for batch in within)
            if row["commit_status"] == "truncated":
                truncated += 1
                assert not any(batch in committed for batch in within)
    assert proven > 400
    assert truncated >= 2


@pytest.mark.long
def test_voter_sets_are_those_of_the_logs(simulated_lake: tuple[Path, list[Truth]]) -> None:
    lake, truths = simulated_lake
    statuses: set[str] = set()
    for truth in truths:
        sets = {
            (record.offset, batch.leader_epoch): record.value
            for replica in truth.quorum.replicas.values()
            for batch in replica.log.batches
            for record in batch.control_records
            if isinstance(record.value, VoterSet)
        }
        committed = {
            (record.offset, batch.leader_epoch)
            for batch in truth.committed.values()
            for record in batch.control_records
            if isinstance(record.value, VoterSet)
        }
        rows = rows_with(lake, VOTER_SETS, cluster_id=[truth.cluster_id])
        of_records = {(row["offset"], row["leader_epoch"]): row for row in rows if row["source"] == "record"}
        assert sets.keys() <= of_records.keys()
        for place, voters in sets.items():
            assert tuple(of_records[place]["voter_ids"]) == voters.ids
        for place, row in of_records.items():
            statuses.add(row["commit_status"])
            assert row["commit_status"] != "committed" or place in committed
            assert row["commit_status"] != "truncated" or place not in committed
            if row["commit_status"] == "uncommitted" and place in committed:
                assert truth.committed_end_before(milliseconds(row["as_of"])) <= row["offset"]
    assert statuses == {"committed", "uncommitted", "undecided"}


@pytest.mark.long
def test_bounds_hold_the_high_watermark(simulated_lake: tuple[Path, list[Truth]]) -> None:
    """A static quorum's observers hold what leaders committed; only lawful leaders are simulated."""
    lake, truths = simulated_lake
    for truth in truths:
        rows = rows_with(lake, HIGH_WATERMARKS, cluster_id=[truth.cluster_id])
        assert rows
        for row in rows:
            at = milliseconds(row["as_of"])
            assert at is not None
            assert row["believed_bound"] is None
            if row["lower_bound"] is not None:
                assert row["lower_bound"] <= truth.committed_end_after(at)
            if row["upper_bound"] is not None:
                assert truth.committed_end_before(at) <= row["upper_bound"]


@pytest.mark.long
def test_no_rule_is_found_broken(simulated_lake: tuple[Path, list[Truth]]) -> None:
    lake, _ = simulated_lake
    if exists(lake, FINDINGS):
        errors = [row["sentence"] for row in rows_with(lake, FINDINGS) if row["severity"] == "error"]
        assert errors == []
