"""One cluster as the rules see it: facts, conclusions, logs, and queries that several rules share."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Hashable
from functools import cached_property

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.facts import Capture
from kraft_core.evidence.rows import HighWatermarkRow
from kraft_core.evidence.set_history import Key, SetNode, set_nodes
from kraft_core.evidence.states import SetInForce
from kraft_core.evidence.watermarks import high_watermarks
from kraft_core.findings.captured_logs import CapturedLogs
from kraft_core.findings.facts import LogOrderFault, RuleFacts, distinct
from kraft_core.findings.reports import Reports
from kraft_core.findings.truncations import TruncationRow, observed_truncations
from kraft_core.raft.voters import ReplicaKey


class ClusterView:
    """Everything known of one cluster; expensive values are computed on first use and cached."""

    def __init__(self, known: Conclusions, facts: RuleFacts) -> None:
        self.known = known
        self.facts = distinct(facts)
        self.logs = CapturedLogs(known, self.facts.batch_conflicts)
        self.captures = {capture.capture_id: capture for capture in known.facts.captures}

    @cached_property
    def reports(self) -> Reports:
        """The describe outputs, by whether they are about the captured quorum."""
        return Reports(self.known, self.facts.observations)

    @cached_property
    def sets(self) -> list[SetNode]:
        """The history of voter sets."""
        return set_nodes(self.known)

    @cached_property
    def _sets_by_key(self) -> dict[Key, SetNode]:
        return {node.key: node for node in self.sets}

    def history_of(self, voters: SetInForce) -> list[SetInForce]:
        """The set and those before it, newest first."""
        node = self._sets_by_key.get((voters.offset, voters.leader_epoch, voters.source))
        history = [voters]
        while node is not None and node.before is not None:
            node = self._sets_by_key.get(node.before)
            if node is not None:
                history.append(node.voters)
        return history

    @cached_property
    def order_faults(self) -> dict[str, list[LogOrderFault]]:
        """By capture id; captures without faults are absent."""
        found: defaultdict[str, list[LogOrderFault]] = defaultdict(list)
        for fault in self.facts.order_faults:
            found[fault.capture_id].append(fault)
        return dict(found)

    @cached_property
    def _with_faults(self) -> set[str]:
        """Ids of captures with faults of order or unreadable bytes."""
        return {fault.capture_id for fault in (*self.facts.order_faults, *self.facts.unreadable)}

    def content(self, capture: Capture) -> Hashable:
        """Everything of a capture but when it was taken, and its id where no fault is known by it.

        But whose it is, where its log has no gap: what lies in one, others of the replica may hold. And but
        how far its log goes on (CapturedLogs.outline).
        """
        is_dated = capture.captured_until is not None, capture.captured_from is not None
        return (
            self.logs.outline(capture),
            None if capture.is_contiguous else capture.replica,
            None if capture.log_end_offset is None else capture.log_end_offset - capture.segments_end,
            capture.quorum_state_epoch,
            capture.consistent,
            capture.readable,
            capture.older_log,
            capture.captured_at_source,
            is_dated,
            capture.capture_id if capture.capture_id in self._with_faults else None,
        )

    @cached_property
    def held_twice(self) -> list[tuple[int, int]]:
        """The offsets that two batches of one captured log hold (LogOrderFault.held_twice)."""
        return sorted({fault.held_twice for fault in self.facts.order_faults if fault.held_twice})

    @cached_property
    def unread_elections(self) -> set[tuple[int, int]]:
        """Epoch and offset of each LEADER_CHANGE that cannot be read."""
        return {
            (record.leader_epoch, record.batch_base_offset)
            for record in self.known.facts.control_records
            if record.type == "LeaderChange" and record.value is None
        }

    @cached_property
    def truncations(self) -> list[TruncationRow]:
        """The truncations that two captures of a replica show."""
        return observed_truncations(self.known)

    @cached_property
    def upper_bounds(self) -> list[HighWatermarkRow]:
        """The upper bounds of the high watermark, by time, rising."""
        rows = [row for row in high_watermarks(self.known, self.sets) if row.upper_bound is not None]
        return sorted(rows, key=lambda row: row.as_of)

    def upper_bound_at(self, moment: int | None) -> int | None:
        """The highest that the high watermark can have been at a moment (ms); None: unbounded."""
        if moment is None:
            return None
        nth = bisect_left(self.upper_bounds, moment, key=lambda row: row.as_of)
        return self.upper_bounds[nth].upper_bound if nth < len(self.upper_bounds) else None

    def holding(self, leader_epoch: int, offset: int) -> tuple[Capture, ...]:
        """The captures whose log has a batch of that epoch at an offset."""
        return tuple(c for c in self.known.facts.captures if holds(c, leader_epoch, offset))

    def replica_named(self, node_id: int) -> ReplicaKey:
        """The replica with a node id; with its directory id if only one of that node is known."""
        found = self._directories.get(node_id, set())
        return next(iter(found)) if len(found) == 1 else ReplicaKey(node_id)

    def is_voter(self, capture: Capture) -> bool:
        """Whether any known voter set has the replica, or the static voters in its own quorum-state."""
        if capture.consistent and capture.node_id in (capture.current_voters or ()):
            return True
        return capture.replica in self._named_voters

    @cached_property
    def _named_voters(self) -> set[ReplicaKey]:
        """The captured replicas that any known voter set has."""
        voters = {voter for node in self.sets for voter in node.voters.voters}
        captured = self.known.holdings.captures
        return {replica for replica in captured if any(voter.matches(replica) for voter in voters)}

    @cached_property
    def _directories(self) -> dict[int, set[ReplicaKey]]:
        found: defaultdict[int, set[ReplicaKey]] = defaultdict(set)
        for replica in self.known.holdings.captures:
            found[replica.id].add(replica)
        for node in self.sets:
            for voter in node.voters.voters:
                if voter.key.directory_id is not None:
                    found[voter.key.id].add(voter.key)
        return dict(found)


def holds(capture: Capture, leader_epoch: int, offset: int) -> bool:
    """Whether a captured log has a batch of that epoch at an offset."""
    return any(
        epoch_range.leader_epoch == leader_epoch
        and epoch_range.first_offset <= offset < epoch_range.end_offset
        for epoch_range in capture.epoch_ranges
    )


def epoch_at(capture: Capture, offset: int) -> int | None:
    """The epoch of the batch that a captured log has at an offset; None where it has none."""
    nth = bisect_right(capture.epoch_ranges, offset, key=lambda epoch_range: epoch_range.first_offset) - 1
    if nth < 0 or offset >= capture.epoch_ranges[nth].end_offset:
        return None
    return capture.epoch_ranges[nth].leader_epoch


def replicas_of(captures: tuple[Capture, ...]) -> tuple[ReplicaKey, ...]:
    """The replicas that captures are of, each once."""
    return tuple(dict.fromkeys(capture.replica for capture in captures))
