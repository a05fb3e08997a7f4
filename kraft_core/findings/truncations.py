"""Truncations that captures show: what one capture holds, and a higher epoch overwrote in the next one.

KIP-595: a follower truncates what the leader's log does not have. Only a batch of a higher epoch at the
offset proves it: a shorter log may be an older copy, a deleted prefix or a gap is not a truncation, and
another directory is another replica. Which capture came first must be known: by stated times, or by the
epochs.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.facts import Capture, CapturedControlRecord
from kraft_core.evidence.states import record_set
from kraft_core.findings.capture_order import successive
from kraft_core.messages.uuid_text import ZERO_UUID
from kraft_core.raft.voters import VoterSet, change_between


@dataclass(frozen=True, slots=True)
class TruncationRow:
    """A replica lost first_offset (inclusive) to end_offset (exclusive), replaced by truncated_by_epoch.

    leader_epochs: of what was lost. voter_set_offsets: the VotersRecords among it; lost_voter_changes: what
    these had changed, in words, "" for none. held_at, lost_at (ms): captures between which it happened.
    Key: node_id, directory_id, first_offset, end_offset, truncated_by_epoch.
    """

    cluster_id: str
    node_id: int
    directory_id: str
    first_offset: int
    end_offset: int
    leader_epochs: tuple[int, ...]
    voter_set_offsets: tuple[int, ...]
    lost_voter_changes: str
    truncated_by_epoch: int
    held_at: int
    lost_at: int
    held_capture_id: str
    lost_capture_id: str


def observed_truncations(known: Conclusions) -> list[TruncationRow]:
    """Every truncation between two successive captures of one replica, by replica and time.

    Two copies of the same moment, of unknown order, or of times that contradict the epochs, show none; nor do
    captures that may be of two histories.
    """
    if known.lineage.contested_epochs:
        return []
    rows = (
        row
        for replica, captures in known.holdings.captures.items()
        if replica.directory_id is not None  # else each capture may be of another disk
        for before, after in successive(captures)
        for row in _between(known, before, after)
    )
    narrowest: dict[tuple[int, str, int, int, int], TruncationRow] = {}
    for row in sorted(rows, key=lambda row: (-row.held_at, row.lost_at, row.held_capture_id)):
        key = (row.node_id, row.directory_id, row.first_offset, row.end_offset, row.truncated_by_epoch)
        narrowest.setdefault(key, row)
    return sorted(
        narrowest.values(), key=lambda row: (row.node_id, row.directory_id, row.held_at, row.first_offset)
    )


def truncation_point(before: Capture, after: Capture) -> tuple[int, int] | None:
    """The lowest offset at which a later capture has a higher epoch, and that epoch; else None."""
    for held in before.epoch_ranges:
        nth = bisect_right(
            after.epoch_ranges, held.first_offset, key=lambda epoch_range: epoch_range.end_offset
        )
        for now in after.epoch_ranges[nth:]:
            if now.first_offset >= held.end_offset:
                break
            if now.leader_epoch > held.leader_epoch:
                return max(held.first_offset, now.first_offset), now.leader_epoch
    return None


def _between(known: Conclusions, before: Capture, after: Capture) -> Iterator[TruncationRow]:
    point = truncation_point(before, after)
    if point is None:
        return
    truncated_to, by_epoch = point
    lost = [epoch_range for epoch_range in before.epoch_ranges if epoch_range.end_offset > truncated_to]
    records = [
        r
        for r in known.facts.control_records
        if r.type == "KRaftVoters"
        and any(
            epoch_range.leader_epoch == r.leader_epoch
            and max(epoch_range.first_offset, truncated_to) <= r.offset < epoch_range.end_offset
            for epoch_range in lost
        )
    ]
    yield TruncationRow(
        known.facts.cluster_id,
        before.node_id,
        before.directory_id or ZERO_UUID,
        truncated_to,
        max(epoch_range.end_offset for epoch_range in lost),
        tuple(sorted({epoch_range.leader_epoch for epoch_range in lost})),
        tuple(sorted({record.offset for record in records})),
        "; ".join(dict.fromkeys(_change(known, record) for record in records)),
        by_epoch,
        before.captured_at,
        after.captured_at,
        before.capture_id,
        after.capture_id,
    )


def _change(known: Conclusions, record: CapturedControlRecord) -> str:
    """What a VotersRecord changed, in words."""
    place = f"VotersRecord {record.offset}/e{record.leader_epoch}"
    after = record_set(record)
    before = known.in_force.at(record.leader_epoch, record.offset - 1).voters
    if after is None:
        return f"{place}, which cannot be read"
    ids = ",".join(str(voter.key.id) for voter in after.voters)
    return f"{place} {{{ids}}}{_step(before.voters, after.voters) if before else ''}"


def _step(before: VoterSet, after: VoterSet) -> str:
    change = change_between(before, after)
    kinds = (("added", change.added), ("removed", change.removed), ("updated", change.updated))
    parts = [f"{kind} {', '.join(str(voter.key.id) for voter in voters)}" for kind, voters in kinds if voters]
    return f", which {' and '.join(parts)}" if parts else ""
