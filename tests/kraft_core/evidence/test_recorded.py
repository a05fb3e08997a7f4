"""Verdicts on captures of quorums that Kafka's own classes ran, held against what Kafka did.

In cluster-rewound Kafka's stale voter set is mended, so that its leaders count by the log's sets, as the
evidence does: nothing may contradict them.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

from kraft_core.evidence.derive import derive
from kraft_core.evidence.facts import ClusterFacts
from kraft_core.evidence.rows import HighWatermarkRow, LogRange
from tests.kraft_core.evidence.golden import union
from tests.kraft_core.evidence.recorded_quorums import RecordedQuorum, recorded_quorums

TRACES = Path(__file__).parents[2] / "traces"


def check_range(quorum: RecordedQuorum, committed: dict[int, int], row: LogRange) -> None:
    for offset in range(row.first_offset, row.end_offset):
        epoch = committed.get(offset)
        if row.commit_status == "committed":
            assert epoch in (None, row.leader_epoch), (quorum.case, row, offset)
        elif row.commit_status == "truncated":
            assert epoch != row.leader_epoch, (quorum.case, row, offset)
        elif row.commit_status == "uncommitted" and epoch == row.leader_epoch:
            assert row.as_of is not None
            assert quorum.high_watermark_at(row.as_of) <= offset, (quorum.case, row)


def check_bound(quorum: RecordedQuorum, row: HighWatermarkRow) -> None:
    assert row.believed_bound is None, (quorum.case, row)
    if row.lower_bound is not None:
        assert row.lower_bound <= quorum.high_watermark_after(row.as_of), (quorum.case, row)
    if row.upper_bound is not None:
        assert row.upper_bound >= quorum.high_watermark_at(row.as_of), (quorum.case, row)


def test_nothing_contradicts_what_kafka_did() -> None:
    random = Random(11)
    counted: Counter[str] = Counter()
    for states in recorded_quorums(TRACES / "cluster-rewound.jsonl.gz"):
        captures: list[ClusterFacts] = []
        quorum = None
        for quorum in states:
            captures += [n.capture(quorum.now) for n in quorum.nodes.values() if random.random() < 0.15]
        assert quorum is not None
        committed = quorum.committed()
        for share in (0.1, 0.4, 1.0):
            evidence = derive(union(c for c in captures if random.random() < share))
            for row in evidence.log_ranges:
                check_range(quorum, committed, row)
                counted[row.commit_status] += 1
            for row in evidence.high_watermarks:
                check_bound(quorum, row)
                counted[row.evidence] += 1
    assert all(counted[status] for status in ("committed", "truncated", "uncommitted", "undecided")), counted
    assert all(counted[kind] for kind in ("snapshot", "voters_record", "log_ends")), counted
