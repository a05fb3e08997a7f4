"""The leader epochs that captures show: by LEADER_CHANGE records, else by whatever names the epoch.

Every epoch of a batch, a snapshot, an entry of leader-epoch-checkpoint or a quorum-state with a leader had a
leader. Only the LEADER_CHANGE has its exact start; an entry of leader-epoch-checkpoint may lie above it, for
Kafka raises the first entry to the log's start. Skipped numbers are failed elections and get no row.
"""

from __future__ import annotations

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.rows import EpochRow


def epochs(known: Conclusions) -> list[EpochRow]:
    """One row for each epoch that is known to have had a leader."""
    starts = _starts_not_below(known)
    leaders = _leaders(known)
    return [
        _row(known, epoch, starts.get(epoch), leaders.get(epoch)) for epoch in sorted({*starts, *leaders})
    ]


def _row(known: Conclusions, epoch: int, start: int | None, leader_id: int | None) -> EpochRow:
    election = known.elections.get(epoch)
    if election is None:
        return EpochRow(known.facts.cluster_id, epoch, leader_id, start, False, None, None, None, None)
    return EpochRow(
        known.facts.cluster_id,
        epoch,
        election.leader_id,
        election.offset,
        True,
        election.elected_at,
        election.voters,
        election.granting_voters,
        _leaderless_ms(known, epoch, election.elected_at),
    )


def _starts_not_below(known: Conclusions) -> dict[int, int | None]:
    """For each epoch the lowest offset at which it is seen; None where only snapshots show it."""
    found: dict[int, int | None] = dict.fromkeys(known.elections)
    for snapshot in known.facts.snapshots:
        if snapshot.proves:
            found.setdefault(snapshot.leader_epoch, None)
    seen = [(line.leader_epoch, line.first_offset) for line in known.lineage.lines.values()]
    for capture in known.facts.captures:
        seen += capture.leader_epoch_checkpoint or ()
    for epoch, offset in seen:
        lowest = found.get(epoch)
        found[epoch] = offset if lowest is None else min(offset, lowest)
    return found


def _leaders(known: Conclusions) -> dict[int, int]:
    """Leaders that quorum-state files name; one epoch never has two, so any of them will do."""
    found: dict[int, int] = {}
    for capture in known.facts.captures:
        epoch, leader_id = capture.quorum_state_epoch, capture.quorum_state_leader_id
        if epoch is not None and leader_id is not None and leader_id >= 0:
            found[epoch] = min(leader_id, found.get(epoch, leader_id))
    return found


def _leaderless_ms(known: Conclusions, epoch: int, elected_at: int) -> int | None:
    """An upper estimate; None where the append before was not captured or the clocks contradict."""
    line = known.lineage.lines.get(epoch)
    below = line.below if line else None
    if below is None or below.last_appended_at is None:
        return None
    silence = elected_at - below.last_appended_at
    return silence if silence >= 0 else None
