"""Which of all that was captured one replays: one line through the log, and the checkpoints over its gaps.

Truncated offsets are not on it. Of what is not decided yet it takes the way of the highest epoch: what a
replica that heard from every other one would hold.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

COMMITTED = "committed"
TRUNCATED = "truncated"


@dataclass(frozen=True, slots=True)
class ReplayRange:
    """Offsets of one epoch with one commit status; end_offset is exclusive."""

    first_offset: int
    end_offset: int
    leader_epoch: int
    commit_status: str


@dataclass(frozen=True, slots=True)
class PathCheckpoint:
    """A whole checkpoint. timestamp: of the last append it contains, ms; None where it does not say."""

    end_offset: int
    leader_epoch: int
    content_digest: str
    timestamp: int | None

    @property
    def first_offset(self) -> int:
        """Where it takes effect: at the last offset that it stands for."""
        return self.end_offset - 1


Step = ReplayRange | PathCheckpoint
"""Records to replay, or a state to jump to: what it has not ends there."""


def line(ranges: Iterable[ReplayRange], checkpoints: Iterable[PathCheckpoint]) -> list[Step]:
    """The steps in the order of their offsets; no two stretches overlap.

    Where the log begins above 0 or has a gap, what checkpoints tell of the missing offsets comes in; records
    up to the first checkpoint behind the gap are left out, since what they change is not known before.
    """
    usable = _one_an_offset(checkpoints)
    steps: list[Step] = []
    expected = 0
    for group in _contiguous(_way(ranges)):
        first, end = group[0].first_offset, group[-1].end_offset
        start = first
        if first > expected:
            start = next((c.end_offset for c in usable if first <= c.end_offset <= end), first)
            steps += [c for c in usable if expected < c.end_offset <= start]
        steps += [replace(s, first_offset=max(s.first_offset, start)) for s in group if s.end_offset > start]
        expected = end
    return [*steps, *(c for c in usable if c.end_offset > expected)]


def _one_an_offset(checkpoints: Iterable[PathCheckpoint]) -> list[PathCheckpoint]:
    """Of several replicas' checkpoints at one offset, which say the same, always the same one."""
    by_offset: dict[int, PathCheckpoint] = {}
    for checkpoint in sorted(checkpoints, key=lambda c: (c.leader_epoch, c.content_digest), reverse=True):
        by_offset.setdefault(checkpoint.end_offset, checkpoint)
    return [by_offset[offset] for offset in sorted(by_offset)]


def _way(ranges: Iterable[ReplayRange]) -> list[ReplayRange]:
    held = [r for r in ranges if r.commit_status != TRUNCATED]
    committed = [r for r in held if r.commit_status == COMMITTED]
    committed_end = max((r.end_offset for r in committed), default=0)
    chosen: list[ReplayRange] = []
    below = None
    # From the highest epoch down: an epoch begins where the ones before it end.
    for stretch in sorted(held, key=lambda r: (r.leader_epoch, r.first_offset), reverse=True):
        if stretch.commit_status == COMMITTED:
            chosen.append(stretch)
        elif stretch.first_offset >= committed_end:
            end = stretch.end_offset if below is None else min(stretch.end_offset, below)
            if end > stretch.first_offset:
                chosen.append(replace(stretch, end_offset=end))
                below = stretch.first_offset
    return sorted(chosen, key=lambda s: s.first_offset)


def _contiguous(stretches: Sequence[ReplayRange]) -> Iterator[list[ReplayRange]]:
    group: list[ReplayRange] = []
    for stretch in stretches:
        if group and group[-1].end_offset != stretch.first_offset:
            yield group
            group = []
        group.append(stretch)
    if group:
        yield group


def first_difference(before: Sequence[Step], after: Sequence[Step]) -> int | None:
    """The offset up to which two lines lead to the same state; None: they are equal."""
    for old, new in zip(before, after, strict=False):
        if old != new:
            return _parting(old, new)
    longer = before if len(before) > len(after) else after
    common = min(len(before), len(after))
    return longer[common].first_offset if len(longer) > common else None


def _parting(old: Step, new: Step) -> int:
    if isinstance(old, ReplayRange) and isinstance(new, ReplayRange):
        same = replace(old, end_offset=new.end_offset)
        if same == new:
            return min(old.end_offset, new.end_offset)
    return min(old.first_offset, new.first_offset)
