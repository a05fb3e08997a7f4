"""The stale voter set, a defect of Kafka since 3.9, as captures show it.

A replica that truncates its log from E to T, without a restart, and then receives a VotersRecord at V with
T <= V < E never reads it (raft.emulation). Captures show the truncation, and so whether a running Kafka would
be stale; or they show an election by the older set, which proves that a replica was. Kraftlake computes by
the log; only this module determines the set that Kafka used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kraft_core.evidence.commit import CommitVerdict
from kraft_core.evidence.elections import Election
from kraft_core.evidence.facts import Capture
from kraft_core.evidence.states import SetInForce
from kraft_core.findings.capture_order import is_later
from kraft_core.findings.cluster_view import ClusterView, holds
from kraft_core.findings.truncations import TruncationRow
from kraft_core.raft.batches import Batch
from kraft_core.raft.emulation import ControlReaderError, EmulatedReplica, emulate, is_stale, start
from kraft_core.raft.log import ReplicaLog, voters_of_log
from kraft_core.raft.replay import AppendAsFollower, OperationRefusedError, TruncateTo
from kraft_core.raft.voters import ReplicaKey


@dataclass(frozen=True, slots=True)
class StaleLeader:
    """A leader that was elected, and counted majorities, by a voter set older than its log's.

    in_force: the log's set just below its LEADER_CHANGE. believed: the set that it used. missed: the
    VotersRecords between the two, oldest first. truncation: after which it did not read them, None if no two
    captures show it. end_offset: up to where its epoch is captured. acknowledged_end: up to where it is known
    to have considered its epoch committed, by files or describe outputs, else the epoch's start. verdict: by
    the log's set, on what it wrote.
    """

    replica: ReplicaKey
    election: Election
    in_force: SetInForce
    believed: SetInForce
    missed: tuple[SetInForce, ...]
    truncation: TruncationRow | None
    end_offset: int
    acknowledged_end: int
    verdict: CommitVerdict


@dataclass(frozen=True, slots=True)
class StaleAfterTruncation:
    """A replica that, unless it was restarted since, uses the voter set of `emulated` and not its log's."""

    truncation: TruncationRow
    emulated: EmulatedReplica
    missed: tuple[int, ...]
    captures: tuple[Capture, ...]


def stale_leaders(view: ClusterView) -> Iterator[StaleLeader]:
    """The unlawful elections that an older voter set explains."""
    known = view.known
    for epoch, election in known.elections.items():
        in_force = known.in_force.below_epoch(epoch).voters
        line = known.lineage.lines.get(epoch)
        if in_force is None or line is None or not known.in_force.is_unlawful(epoch):
            continue
        history = view.history_of(in_force)
        believed = next((s for s in history if s.voters.ids == election.voters), None)
        if believed is None or believed == in_force:
            continue
        missed = tuple(reversed(history[: history.index(believed)]))
        replica = next(
            (v.key for v in in_force.voters if v.key.id == election.leader_id),
            view.replica_named(election.leader_id),
        )
        reported = [bound.bound for bound in known.lower_bounds if bound.leader_epoch == epoch]
        reported += [
            output.high_watermark
            for output in view.reports.tied
            if output.leader_epoch == epoch and output.high_watermark is not None
        ]
        yield StaleLeader(
            replica,
            election,
            in_force,
            believed,
            missed,
            _truncation(view, replica, missed[0].offset, election.offset),
            line.end_offset,
            max([election.offset, *reported]),
            known.commit.of_batch(epoch, election.offset, election.batch_end_offset),
        )


def _truncation(view: ClusterView, replica: ReplicaKey, missed: int, before: int) -> TruncationRow | None:
    """The truncation after which the replica did not read the record at an offset."""
    found = [
        row
        for row in view.truncations
        if ReplicaKey.of(row.node_id, row.directory_id) == replica
        and row.first_offset <= missed < row.end_offset
        and row.first_offset <= before
    ]
    return max(found, default=None, key=lambda row: row.held_at)


def stale_after_truncation(view: ClusterView) -> Iterator[StaleAfterTruncation]:
    """The truncations after which a Kafka that kept running would be stale, by emulation.

    Of each, the captures that show it: from the one that shows the truncation until the replica led lawfully.
    """
    for row in view.truncations:
        before, after = view.captures[row.held_capture_id], view.captures[row.lost_capture_id]
        emulated = _emulated(view, before, after, row.first_offset)
        if emulated is None or not is_stale(emulated):
            continue
        missed = tuple(
            record.offset
            for record in view.known.facts.control_records
            if record.type == "KRaftVoters"
            and row.first_offset <= record.offset < row.end_offset
            and holds(after, record.leader_epoch, record.offset)
        )
        captures = view.known.holdings.captures[after.replica]
        yield StaleAfterTruncation(
            row,
            emulated,
            missed,
            tuple(
                c for c in captures if (c is after or is_later(c, after)) and not _has_led(view, c, missed)
            ),
        )


def _emulated(
    view: ClusterView, before: Capture, after: Capture, truncated_to: int
) -> EmulatedReplica | None:
    """Kafka emulated from one capture to the next; None if a log is not whole, or Kafka refuses."""
    logs = view.logs.of(before).sections, view.logs.of(after).sections
    if len(logs[0]) != 1 or len(logs[1]) != 1:
        return None
    if logs[0][0].start_offset > 0 and voters_of_log(logs[0][0]) is None:
        return None  # the set that it used lies below its start
    fetched = tuple(_from(logs[1][0], truncated_to))
    if not fetched:
        return None
    try:
        replica = emulate(start(logs[0][0]), TruncateTo(truncated_to))
        return emulate(replica, AppendAsFollower(fetched[-1].leader_epoch, fetched))
    except (OperationRefusedError, ControlReaderError):
        return None


def _from(log: ReplicaLog, offset: int) -> Iterator[Batch]:
    """The batches of a log at and above an offset, where it begins one."""
    return iter(batch for batch in log.batches.starting_at(offset) if batch.base_offset >= offset)


def _has_led(view: ClusterView, capture: Capture, missed: tuple[int, ...]) -> bool:
    """Whether by then the replica had lawfully led an epoch above what it had missed."""
    return any(
        election.leader_id == capture.node_id
        and election.offset > max(missed, default=-1)
        and not view.known.in_force.is_unlawful(epoch)
        and any(epoch_range.leader_epoch == epoch for epoch_range in capture.epoch_ranges)
        for epoch, election in view.known.elections.items()
    )
