"""What became of one offset: who held it, what proves its status, and what replaced it."""

from __future__ import annotations

from dataclasses import dataclass

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.facts import Capture, label, labels
from kraft_core.evidence.holdings import lacks
from kraft_core.evidence.lineage import EpochLine
from kraft_core.findings.capture_order import newest_readable
from kraft_core.findings.cluster_view import holds
from kraft_core.messages.uuid_text import ZERO_UUID
from kraft_core.raft.voters import ReplicaKey


@dataclass(frozen=True, slots=True)
class Held:
    """A replica that held an offset of one epoch. still_held: its newest readable capture has it in its log;
    None where that is not known: of several captures the newest is unknown, or its log is damaged there.

    first_captured_at, last_captured_at (ms): of the captures that hold it.
    """

    node_id: int
    directory_id: str
    first_captured_at: int
    last_captured_at: int
    still_held: bool | None

    @property
    def replica(self) -> ReplicaKey:
        return ReplicaKey.of(self.node_id, self.directory_id)


@dataclass(frozen=True, slots=True)
class BatchAtOffset:
    """One epoch's batch at the offset. leader_id: None where no file names it.

    status, evidence, as_of, truncated_by_epoch: as in log_ranges. first_offset, end_offset: the captured
    range of that epoch in which it lies. voters_in_force: in words, None if unknown.
    """

    leader_epoch: int
    leader_id: int | None
    first_offset: int
    end_offset: int
    status: str
    evidence: str
    as_of: int | None
    truncated_by_epoch: int | None
    held_by: tuple[Held, ...]
    voters_in_force: str | None
    is_lawful: bool


@dataclass(frozen=True, slots=True)
class Explanation:
    """batches: what captures hold at the offset, one per epoch, the oldest epoch first.

    in_checkpoints: replicas whose log begins above, and that have it in a checkpoint. words: all of it in
    sentences.
    """

    cluster_id: str
    offset: int
    batches: tuple[BatchAtOffset, ...]
    in_checkpoints: tuple[str, ...]
    words: tuple[str, ...]


def explain(known: Conclusions, offset: int) -> Explanation:
    """Everything that the captures of a cluster show of one offset."""
    lines = [line for line in known.lineage.lines.values() if line.covers(offset)]
    batches = tuple(_batch_at(known, line, offset) for line in lines)
    begin_above = [
        capture
        for captures in known.holdings.captures.values()
        for capture in newest_readable(captures)[-1:]
        if (capture.log_start_offset or 0) > offset
    ]
    has_it = {label(c.replica): _in_checkpoint(known, c, offset) for c in begin_above}
    above = tuple(name for name, has in has_it.items() if has)
    nowhere = tuple(name for name, has in has_it.items() if not has)
    words = [sentence for batch in batches for sentence in _sentences(offset, batch)]
    if not batches:
        ends = [c.log_end_offset for c in known.facts.captures if c.log_end_offset is not None]
        longest = f"; the longest ends at {max(ends)}" if ends else ""
        words.append(f"No captured log contains offset {offset}{longest}.")
        unread = {
            c.replica for c in known.facts.captures if c.tail_damaged or c.ends_inside_batch or not c.readable
        }
        if unread:
            words.append(f"Not all of the logs of {labels(unread)} could be read: they may contain it.")
    if above:
        words.append(f"The logs of {', '.join(above)} begin above it: they have it only in a checkpoint.")
    if nowhere:
        of = ", ".join(nowhere)
        words.append(f"The logs of {of} begin above it, and no captured checkpoint of theirs contains it.")
    return Explanation(known.facts.cluster_id, offset, batches, above, tuple(words))


def _in_checkpoint(known: Conclusions, capture: Capture, offset: int) -> bool:
    """Whether a complete checkpoint of a capture reaches above an offset."""
    return any(
        snapshot.proves
        and snapshot.end_offset > offset
        and (capture.node_id, capture.directory_id) in snapshot.held_by
        and (not snapshot.held_in or capture.capture_id in snapshot.held_in)
        for snapshot in known.facts.snapshots
    )


def _batch_at(known: Conclusions, line: EpochLine, offset: int) -> BatchAtOffset:
    epoch = line.leader_epoch
    verdict = known.commit.of_batch(epoch, offset, offset + 1)
    election = known.elections.get(epoch)
    first, end = next((f, e) for f, e in line.covered if f <= offset < e)
    voters = known.in_force.voters_at(epoch, offset)
    return BatchAtOffset(
        epoch,
        election.leader_id if election else None,
        first,
        end,
        verdict.status,
        verdict.evidence,
        verdict.as_of,
        verdict.truncated_by_epoch,
        tuple(
            held
            for replica, captures in known.holdings.captures.items()
            if (held := _held(replica, captures, epoch, offset)) is not None
        ),
        voters.words if voters else None,
        not known.in_force.is_unlawful(epoch),
    )


def _held(replica: ReplicaKey, captures: tuple[Capture, ...], epoch: int, offset: int) -> Held | None:
    holding = [capture for capture in captures if holds(capture, epoch, offset)]
    if not holding:
        return None
    return Held(
        replica.id,
        replica.directory_id or ZERO_UUID,
        holding[0].captured_at,
        holding[-1].captured_at,
        _still_held(captures, epoch, offset),
    )


def _still_held(captures: tuple[Capture, ...], epoch: int, offset: int) -> bool | None:
    newest = newest_readable(captures)
    if newest and all(holds(capture, epoch, offset) for capture in newest):
        return True
    is_gone = all(lacks(c, epoch, offset) or (c.log_start_offset or 0) > offset for c in newest)
    return False if newest and is_gone else None


def _sentences(offset: int, batch: BatchAtOffset) -> list[str]:
    leader = f"leader {batch.leader_id}" if batch.leader_id is not None else "an unknown leader"
    unlawful = "" if batch.is_lawful else ", whose election was unlawful (rule 23)"
    still = [held.replica for held in batch.held_by if held.still_held]
    once = [held.replica for held in batch.held_by if held.still_held is False]
    perhaps = [held.replica for held in batch.held_by if held.still_held is None]
    words = [f"Offset {offset} of epoch {batch.leader_epoch} was written by {leader}{unlawful}."]
    if still:
        words.append(f"Held by {labels(still)}.")
    if once:
        words.append(f"Held earlier, but not in the newest capture, by {labels(once)}.")
    if perhaps:
        words.append(f"Held by {labels(perhaps)}; its captures do not show whether it still is.")
    became = f", replaced by epoch {batch.truncated_by_epoch}" if batch.truncated_by_epoch is not None else ""
    words.append(f"It is {batch.status}{became}: {batch.evidence}.")
    if batch.voters_in_force:
        words.append(f"Voter set in force: {batch.voters_in_force}.")
    return words
