"""Whether two lines, which nothing connects, may be of one history (kraft_core.evidence.lives)."""

from __future__ import annotations

from collections.abc import Sequence

from kraft_core.evidence.facts import CLOCK_SKEW_MS
from kraft_core.evidence.life_lines import Line, LoggedCheckpoint, LoggedRange


def contest(one: Line, other: Line) -> bool:
    """Whether the lines, which share no batch, cannot be parts of one history."""
    return (
        _logs_contest(one, other)
        or any(_checkpoints_contest(a, b) for a in one.checkpoints for b in other.checkpoints)
        or any(_contradicts(c, held) for c in one.checkpoints for held, _ in other.ranges)
        or any(_contradicts(c, held) for c in other.checkpoints for held, _ in one.ranges)
    )


def _checkpoints_contest(one: LoggedCheckpoint, other: LoggedCheckpoint) -> bool:
    """Whether the higher one is of a lower epoch."""
    return (one.end_offset - other.end_offset) * (one.leader_epoch - other.leader_epoch) < 0


def _contradicts(checkpoint: LoggedCheckpoint, held: LoggedRange) -> bool:
    """Whether epochs would fall between the record below a checkpoint's end and a range of another log."""
    if held.leader_epoch < checkpoint.leader_epoch:
        return held.end_offset >= checkpoint.end_offset
    return held.leader_epoch > checkpoint.leader_epoch and held.first_offset < checkpoint.end_offset


def _logs_contest(one: Line, other: Line) -> bool:
    """Whether one of the logs holds something that the other history cannot have beside it."""
    every = [(held, side) for side, line in enumerate((one, other)) for held, _ in line.ranges]
    end, epoch, appended_at = [-1, -1], [-1, -1], [-1, -1]
    for held, side in sorted(every, key=lambda each: each[0].first_offset):
        below = 1 - side
        if (
            end[below] > held.first_offset
            or epoch[below] > held.leader_epoch
            or appended_at[below] > held.first_appended_at + CLOCK_SKEW_MS
        ):
            return True
        end[side] = max(end[side], held.end_offset)
        epoch[side] = max(epoch[side], held.leader_epoch)
        appended_at[side] = max(appended_at[side], held.last_appended_at)
    return False


def any_meet(one: Sequence[Line], other: Sequence[Line]) -> bool:
    return any(_meet(a, b) for a in one for b in other)


def _meet(one: Line, other: Line) -> bool:
    """Whether one of the lines, which share no batch, would say something of the other."""
    return (
        not _epochs(one).isdisjoint(_epochs(other))
        or _follows(one, other)
        or _follows(other, one)
        or any(_proves(c, held) for c in one.checkpoints for held, _ in other.ranges)
        or any(_proves(c, held) for c in other.checkpoints for held, _ in one.ranges)
    )


def _epochs(line: Line) -> set[int]:
    return {held.leader_epoch for held, _ in line.ranges}


def _follows(one: Line, other: Line) -> bool:
    """Whether one begins a range where the other ends one."""
    ends = {held.end_offset for held, _ in other.ranges}
    return any(held.first_offset in ends for held, _ in one.ranges)


def _proves(checkpoint: LoggedCheckpoint, held: LoggedRange) -> bool:
    """Whether a checkpoint would prove records of the range committed, or be the state in which it begins."""
    of_its_epoch = held.leader_epoch == checkpoint.leader_epoch
    return held.first_offset == checkpoint.end_offset or (
        of_its_epoch and held.first_offset < checkpoint.end_offset
    )
