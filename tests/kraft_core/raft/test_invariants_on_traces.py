"""KRaft's rules on the simulated quorums: which does Kafka break, with and without the stale voter set?

The traces are of real KafkaRaftClients under partitions, crashes and changes of voters, so a rule that is
broken here is either wrong or a fault of Kafka. In `cluster-rewound` two are left:
- 20: a removed leader leads on if the request to remove it timed out before the removal committed.
- 16: a fetched snapshot that ends below what the replica had read is not read (one replica).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

import pytest

from kraft_core.raft import invariants as one
from kraft_core.raft import quorum_invariants as between
from kraft_core.raft import replay
from kraft_core.raft.emulation import EmulatedReplica
from kraft_core.raft.log import ReplicaLog, controls_of_log
from kraft_core.raft.quorum_invariants import Committed
from kraft_core.raft.rules import RULES, Violation
from kraft_core.raft.voters import VoterSet
from tests.conformance.cluster import SimulatedQuorum
from tests.conformance.tally import Tally
from tests.conformance.trace import read_trace

TRACES = Path(__file__).parents[2] / "traces"

# The cases of each file that break a rule.
BROKEN = {
    "cluster-rewound": {16: {0}, 20: {1, 17, 20, 30, 44}},
    "cluster": {
        4: {18},
        13: {17, 28},
        16: {0, 4, 5, 6, 9, 15, 17, 18, 20, 23, 26, 28, 31, 34, 40, 45, 47},
        17: {0, 5, 26, 28, 40, 47},
        20: {1, 17, 20, 30, 44},
        23: {17, 18, 26, 28},
    },
}


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_rules_on_simulated_quorums(name: str) -> None:
    broken: dict[int, set[int]] = defaultdict(set)
    for case, violation in judged(name):
        assert violation.rule in RULES
        broken[violation.rule].add(case)
    assert broken == BROKEN[name]


def test_only_quorums_with_a_stale_replica_lose_consistency() -> None:
    stale = BROKEN["cluster"][16]
    assert all(BROKEN["cluster"][rule] <= stale for rule in (4, 13, 17, 23))


def judged(name: str) -> Iterator[tuple[int, Violation]]:
    """Each violation in a trace file with its case."""
    book = None
    for line in read_trace(TRACES / f"{name}.jsonl.gz"):
        if "ev" not in line:
            book = RuleBook(SimulatedQuorum(line, Tally(), rewinds=name == "cluster-rewound"))
        elif book and line["ev"] != "aborted":
            for violation in book.after(line):
                yield line["case"], violation


class RuleBook:
    """Judges one simulated quorum, operation by operation and after each event."""

    def __init__(self, quorum: SimulatedQuorum) -> None:
        quorum.observe = self._operation
        self.quorum = quorum
        self.committed = Committed(ReplicaLog(), 0)  # the furthest that any replica has known
        self.committed_before = (
            self.committed
        )  # as of the last event: within one, nodes come in no order of time
        self.epoch_starts: dict[str, int] = {}  # of the nodes that lead
        self.changed: set[str] = set()
        self.raised: set[str] = set()
        self.found: list[Violation] = []

    def after(self, line: dict) -> list[Violation]:
        """What one event of the trace breaks."""
        self.changed, self.raised, self.found = set(), set(), []
        self.quorum.event(line)
        logs = {self.quorum.keys[node]: replica.log for node, replica in self.quorum.replicas.items()}
        for node in self.changed:
            self._note(self._of_one_log(self.quorum.replicas[node]))
        for node in self.raised:
            log = self.quorum.replicas[node].log
            committed = Committed(log, log.known_high_watermark or 0)
            self._note(between.majority_holds(logs, committed, _sets(log)))
        if self.changed:
            known = {key: Committed(log, log.known_high_watermark or 0) for key, log in logs.items()}
            self._note(
                chain(
                    between.one_leader_an_epoch(logs),
                    between.logs_match(logs),
                    between.committed_agree(known),
                )
            )
        self.committed_before = self.committed
        return self.found

    def _operation(
        self, node: str, before: EmulatedReplica, operation: replay.Operation, after: EmulatedReplica
    ) -> None:
        log = after.log
        if not isinstance(operation, replay.UpdateHighWatermark):
            self.changed.add(node)
        match operation:
            case replay.BeginEpoch():
                self.epoch_starts[node] = log.end_offset
                self._note(between.leader_is_complete(log, self.committed_before))
            case replay.AppendAsLeader(batches=batches):
                self._note(between.changes_follow_a_commit(before.log, self.epoch_starts[node], batches))
            case replay.UpdateHighWatermark() if node in self.epoch_starts:
                self.raised.add(node)
                self._note(between.high_watermark_rises(before.log, log))
                self._note(between.high_watermark_is_in_epoch(log, self.epoch_starts[node]))
            case replay.UpdateHighWatermark() | replay.CreateSnapshot() | replay.DeleteBefore():
                pass
            case _:
                self.epoch_starts.pop(node, None)
        if not isinstance(operation, replay.Restart):
            self._note(between.committed_stay(before.log, log, self.committed_before))
        if (log.known_high_watermark or 0) > self.committed.end_offset:
            self.committed = Committed(log, log.known_high_watermark or 0)

    def _of_one_log(self, replica: EmulatedReplica) -> Iterator[Violation]:
        log = replica.log
        yield from one.epochs_never_go_back(log)
        yield from one.epoch_cache_matches_batches(log)
        yield from one.epochs_begin_with_leader_change(log)
        yield from one.one_change_uncommitted(log, self.committed.end_offset)
        yield from one.one_voter_at_a_time(log)
        yield from one.kraft_version_allows_voters(log)
        yield from one.kafka_goes_by_its_log(replica)
        yield from one.snapshots_carry_the_log(log)
        yield from one.snapshots_are_aligned(log)
        yield from one.starts_under_a_snapshot(log)
        yield from one.removed_leader_changes_no_more(log)
        yield from one.leader_change_names_the_set(log)

    def _note(self, violations: Iterable[Violation]) -> None:
        self.found.extend(violations)


def _sets(log: ReplicaLog) -> tuple[VoterSet, ...]:
    """The set in force and the one before it."""
    voters = controls_of_log(log).voters
    sets = tuple(held for _, held in voters.sets.entries[-2:])
    return sets or ((voters.static,) if voters.static else ())
