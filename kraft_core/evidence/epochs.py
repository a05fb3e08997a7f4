"""The leader epochs that captures show: by LEADER_CHANGE records, else by any other sign of the epoch.

Every epoch of a batch, a snapshot, an entry of leader-epoch-checkpoint or a quorum-state with a leader had a
leader. Only the LEADER_CHANGE has its exact start; an entry of leader-epoch-checkpoint may lie above it, for
Kafka raises the first entry to the log's start. Skipped numbers are failed elections and get no row.
"""

from __future__ import annotations

from collections import defaultdict

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.elections import Election
from kraft_core.evidence.rows import EpochRow, EpochSource
from kraft_core.evidence.shared_parts import distinct_ranges, each_once


def epochs(known: Conclusions) -> list[EpochRow]:
    """One row for each epoch that is known to have had a leader."""
    starts, times, leaders = _starts_not_below(known), _times(known), leaders_named(known)
    snapshots = {s.leader_epoch for s in known.facts.snapshots if s.proves}

    def row(epoch: int) -> EpochRow:
        start, (known_from, known_to) = starts.get(epoch), times.get(epoch, (None, None))
        election = known.elections.get(epoch)
        if election is not None:
            return _elected(known, election, known_to)
        source: EpochSource = "quorum-state"
        if start is not None:
            source = "log"
        elif epoch in snapshots:
            source = "snapshot"
        leader = leaders.get(epoch)
        return EpochRow(
            known.facts.cluster_id,
            epoch,
            leader,
            start,
            False,
            None,
            None,
            None,
            None,
            source,
            None if leader is None else "quorum-state",
            known_from,
            known_to,
            previous_epoch=_previous_epoch(known, epoch),
        )

    return [row(epoch) for epoch in sorted({*starts, *leaders})]


def _elected(known: Conclusions, election: Election, known_to: int | None) -> EpochRow:
    return EpochRow(
        known.facts.cluster_id,
        election.leader_epoch,
        election.leader_id,
        election.offset,
        election.leader_epoch not in known.lineage.contested_epochs,
        election.elected_at,
        election.voters,
        election.granting_voters,
        _leaderless_ms(known, election.leader_epoch, election.elected_at),
        "record",
        "record",
        election.elected_at,
        known_to,
        previous_epoch=_previous_epoch(known, election.leader_epoch),
    )


def _previous_epoch(known: Conclusions, epoch: int) -> int | None:
    line = known.lineage.lines.get(epoch)
    return None if line is None or line.below is None else line.below.parent


def _starts_not_below(known: Conclusions) -> dict[int, int | None]:
    """For each epoch the lowest offset at which it is seen; None where only snapshots show it."""
    found: dict[int, int | None] = dict.fromkeys(known.elections)
    for snapshot in known.facts.snapshots:
        if snapshot.proves:
            found.setdefault(snapshot.leader_epoch, None)
    seen = [(line.leader_epoch, line.first_offset) for line in known.lineage.lines.values()]
    for entries in each_once(capture.leader_epoch_checkpoint for capture in known.facts.captures):
        seen += entries or ()
    for epoch, offset in seen:
        lowest = found.get(epoch)
        found[epoch] = offset if lowest is None else min(offset, lowest)
    return found


def _times(known: Conclusions) -> dict[int, tuple[int | None, int | None]]:
    """For each epoch (known_from, known_to): by its batches, its snapshots and quorum-states that name it.

    A leader stamps its batches, so it led when its newest one was appended. A snapshot ends at a batch of its
    epoch, and a quorum-state had been copied by captured_until: both only follow the election.
    """
    earliest: dict[int, int] = {}
    latest: dict[int, int] = {}

    def at_or_before(epoch: int | None, time: int | None) -> None:
        if epoch is not None and time is not None:
            earliest[epoch] = min(time, earliest.get(epoch, time))

    for capture in known.facts.logs:
        if capture.quorum_state_leader_id is not None and capture.quorum_state_leader_id >= 0:
            at_or_before(capture.quorum_state_epoch, capture.captured_until)
    for epoch_range in distinct_ranges(known.facts.logs):
        at_or_before(epoch_range.leader_epoch, epoch_range.first_appended_at)
        epoch, at = epoch_range.leader_epoch, epoch_range.last_appended_at
        latest[epoch] = max(at, latest.get(epoch, at))
    for snapshot in known.facts.snapshots:
        if snapshot.proves:
            at_or_before(snapshot.leader_epoch, snapshot.last_contained_log_timestamp)
    return {epoch: (earliest.get(epoch), latest.get(epoch)) for epoch in {*earliest, *latest}}


def leaders_named(known: Conclusions) -> dict[int, int | None]:
    """Leaders that quorum-state files name; none where two files name different ones of one epoch.

    With captures of two histories it is not known whose leader a file shows.
    """
    found: defaultdict[int, set[int]] = defaultdict(set)
    if known.lineage.contested_epochs:
        return {}
    for capture in known.facts.captures:
        epoch, leader_id = capture.quorum_state_epoch, capture.quorum_state_leader_id
        if epoch is not None and leader_id is not None and leader_id >= 0:
            found[epoch].add(leader_id)
    return {epoch: next(iter(leaders)) if len(leaders) == 1 else None for epoch, leaders in found.items()}


def _leaderless_ms(known: Conclusions, epoch: int, elected_at: int) -> int | None:
    """An upper estimate; None where the append before was not captured or the clocks contradict."""
    line = known.lineage.lines.get(epoch)
    below = line.below if line else None
    if below is None or below.last_appended_at is None:
        return None
    silence = elected_at - below.last_appended_at
    return silence if silence >= 0 else None
