"""What each replica is known to have stored, and what its newest capture lacks.

Followers append what the leader sends and truncate only what a later leader overrules, so a replica had
stored by the time of a capture what the capture holds of an epoch. Whether it stored it while in that epoch
is another question (Raft, figure 8): only then did it count for that epoch's leader. quorum-state answers it,
for no batch of an epoch reaches a replica before the epoch does.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field

from kraft_core.evidence.facts import Capture, EpochRange
from kraft_core.raft.voters import ReplicaKey, Voter


@dataclass(slots=True)
class EpochHolding:
    """What one replica held of one epoch, over its captures.

    ranges: (first, end offset) of each captured range, with the times of its first and last capture. held,
    held_in_epoch: (captured_at, end offset), both rising: by then it held everything of its log below that
    end; held_in_epoch counts only captures whose quorum-state was still in the epoch, of which
    last_in_epoch_at is the newest.
    """

    first_offset: int
    first_captured_at: int
    last_captured_at: int
    end_offset: int
    ranges: dict[tuple[int, int], tuple[int, int]] = field(
        default_factory=dict[tuple[int, int], tuple[int, int]]
    )
    held: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    held_in_epoch: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    last_in_epoch_at: int | None = None


@dataclass(frozen=True, slots=True)
class Holdings:
    """by_epoch: holdings by epoch and replica. captures: each replica's, by time, the newest last."""

    by_epoch: dict[int, dict[ReplicaKey, EpochHolding]]
    captures: dict[ReplicaKey, tuple[Capture, ...]]

    def replicas_of(self, voter: Voter) -> list[ReplicaKey]:
        """The captured replicas that a voter stands for: several where it has no directory id."""
        return [replica for replica in self.captures if voter.matches(replica)]


def holdings_of(captures: tuple[Capture, ...]) -> Holdings:
    """The holdings that (distinct, time-ordered) captures show."""
    by_epoch: defaultdict[int, dict[ReplicaKey, EpochHolding]] = defaultdict(dict)
    by_replica: defaultdict[ReplicaKey, list[Capture]] = defaultdict(list)
    for capture in captures:
        replica, at, in_epoch = capture.replica, capture.captured_at, capture.in_epoch
        by_replica[replica].append(capture)
        for run in capture.runs:
            of_epoch = by_epoch[run.leader_epoch]
            holding = of_epoch.get(replica)
            if holding is None:
                holding = of_epoch[replica] = EpochHolding(run.first_offset, at, at, run.end_offset)
            _add(holding, run, at, in_epoch)
    return Holdings(dict(by_epoch), {key: tuple(by_replica[key]) for key in sorted(by_replica, key=_order)})


def _add(holding: EpochHolding, run: EpochRange, at: int, in_epoch: int | None) -> None:
    bounds = (run.first_offset, run.end_offset)
    holding.first_offset = min(holding.first_offset, run.first_offset)
    holding.end_offset = max(holding.end_offset, run.end_offset)
    holding.last_captured_at = at
    holding.ranges[bounds] = (holding.ranges.get(bounds, (at, at))[0], at)
    _raise_to(holding.held, at, run.end_offset)
    if in_epoch == run.leader_epoch:
        _raise_to(holding.held_in_epoch, at, run.end_offset)
        holding.last_in_epoch_at = at


def _raise_to(rising: list[tuple[int, int]], at: int, end: int) -> None:
    if not rising or end > rising[-1][1]:
        rising.append((at, end))


def _order(replica: ReplicaKey) -> tuple[int, str]:
    return replica.id, replica.directory_id or ""


def lacks(capture: Capture, leader_epoch: int, first_offset: int) -> bool:
    """Whether a captured log had nothing of an epoch's batches from an offset on.

    It ended at or below the offset, or another epoch's batch stands there. A log whose prefix is deleted, or
    that has a hole there, may have held them.
    """
    if capture.known_end is None:
        return False
    if capture.known_end <= first_offset:
        return True
    nth = bisect_right(capture.runs, first_offset, key=lambda run: run.first_offset) - 1
    if nth < 0 or first_offset >= capture.runs[nth].end_offset:
        return False
    return capture.runs[nth].leader_epoch != leader_epoch
