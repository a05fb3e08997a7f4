"""The derivation grows with runs and control records: neither epochs nor captures make it slow."""

from __future__ import annotations

import time

import pytest

from kraft_core.evidence.derive import derive
from kraft_core.evidence.facts import Capture, CapturedControlRecord, ClusterFacts, EpochRange
from tests.kraft_core.evidence.narrated import directory, voters

PER_EPOCH = 10


def long_life(epochs: int, replicas: int, moments: int) -> ClusterFacts:
    """A cluster that elects anew every ten offsets, captured whole at some moments."""
    ids = [{"voterId": node} for node in range(1, replicas + 1)]
    names = " ".join(str(node) for node in range(1, replicas + 1))
    runs: list[EpochRange] = []
    records: list[CapturedControlRecord] = []
    for epoch in range(1, epochs + 1):
        first = (epoch - 1) * PER_EPOCH
        end = first + (3 if epoch == 1 else 1)
        at = 100 * epoch
        runs.append(
            EpochRange(epoch, first, first + PER_EPOCH, str(epoch), at, at + 90, end, end + 1, at + 10)
        )
        elected = {"leaderId": 1 + epoch % replicas, "voters": ids, "grantingVoters": ids}
        records.append(CapturedControlRecord(first, epoch, first, end, epoch, at, "LeaderChange", elected))
        if epoch == 1:
            version, sets = {"kRaftVersion": 1}, {"voters": voters(names)}
            records.append(CapturedControlRecord(1, 1, 0, 3, 1, at, "KRaftVersion", version))
            records.append(CapturedControlRecord(2, 1, 0, 3, 1, at, "KRaftVoters", sets))
    captures: list[Capture] = []
    for moment in range(1, moments + 1):
        seen = runs[: epochs * moment // moments]
        for node in range(1, replicas + 1):
            at = seen[-1].last_appended_at + node
            name, end = f"{moment} {node}", seen[-1].end_offset
            last = seen[-1].leader_epoch
            captures.append(
                Capture(name, *directory(str(node)), at, 0, end, tuple(seen), quorum_state_epoch=last)
            )
    return ClusterFacts("long", tuple(captures), tuple(records))


@pytest.mark.parametrize(("epochs", "moments", "seconds"), [(2_000, 1, 10), (365, 365, 20)])
def test_it_is_quick(epochs: int, moments: int, seconds: float) -> None:
    check_time(epochs, moments, seconds)


@pytest.mark.long
def test_ten_thousand_epochs_on_five_replicas() -> None:
    check_time(10_000, 1, 10)


def check_time(epochs: int, moments: int, seconds: float) -> None:
    facts = long_life(epochs, replicas=5, moments=moments)
    started = time.process_time()
    evidence = derive(facts)
    took = time.process_time() - started
    assert [row.commit_status for row in evidence.log_ranges] == ["committed"] * epochs
    assert len(evidence.replica_ranges) == 5 * epochs
    assert took < seconds
