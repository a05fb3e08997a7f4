"""Facts of a cluster with many epochs, captured many times."""

from __future__ import annotations

from kraft_core.evidence.facts import Capture, CapturedControlRecord, ClusterFacts, EpochRange
from tests.kraft_core.evidence.narrated import directory, voters

PER_EPOCH = 10


def long_life(epochs: int, replicas: int, times: int) -> ClusterFacts:
    """A new leader every ten offsets; all replicas are captured `times` times, evenly spaced."""
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
    for time in range(1, times + 1):
        written = runs[: epochs * time // times]
        for node in range(1, replicas + 1):
            at = written[-1].last_appended_at + node
            name, end = f"{time} {node}", written[-1].end_offset
            last = written[-1].leader_epoch
            captures.append(
                Capture(
                    name,
                    *directory(str(node)),
                    at,
                    0,
                    end,
                    tuple(written),
                    quorum_state_epoch=last,
                    captured_from=at,
                    captured_until=at,
                    time_source="capture.json",
                )
            )
    return ClusterFacts("long", tuple(captures), tuple(records))
