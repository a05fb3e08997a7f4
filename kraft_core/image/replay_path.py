"""Choose the replay path: one way through the captured log, with checkpoints over its gaps.

Truncated offsets are not on it. Where the commit status is undecided the highest epoch wins, with what its
log is known to have below: what a replica that heard from every other one would hold.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
    """A complete checkpoint. timestamp: LastContainedLogTimestamp, ms; None where its header lacks it."""

    end_offset: int
    leader_epoch: int
    content_digest: str
    timestamp: int | None

    @property
    def first_offset(self) -> int:
        """Where it takes effect: at the last offset that it covers."""
        return self.end_offset - 1


Step = ReplayRange | PathCheckpoint
"""Records to replay, or a state to jump to: what it lacks ends there."""

_FIRST_AT_AN_OFFSET = (
    "BEGIN_TRANSACTION_RECORD",
    "CLEAR_ELR_RECORD",
    "REMOVE_TOPIC_RECORD",
    "TOPIC_RECORD",
)
_LAST_AT_AN_OFFSET = ("END_TRANSACTION_RECORD", "ABORT_TRANSACTION_RECORD")


def replay_order(offset: int, record_type: str, batch_crc: int) -> tuple[int, int, int]:
    """Sort key of records. Several lie at one offset only where batches of one epoch conflict.

    All of them are replayed, by the checksum of their batches: no order is lawful, but it must not depend on
    the order of the captures. What opens a transaction, and what ends or opens a topic, comes first, so that
    an offset alone says what lies inside.
    """
    if record_type in _FIRST_AT_AN_OFFSET:
        return offset, _FIRST_AT_AN_OFFSET.index(record_type) - len(_FIRST_AT_AN_OFFSET), batch_crc
    return offset, int(record_type in _LAST_AT_AN_OFFSET), batch_crc


def replay_path(
    ranges: Iterable[ReplayRange], checkpoints: Iterable[PathCheckpoint], previous: Mapping[int, int]
) -> list[Step]:
    """The steps in the order of their offsets; no two ranges overlap.

    previous: by epoch, that of the offset below its first, as far as a captured log shows it.

    Where the log begins above 0 or has a gap, the checkpoints of the missing offsets are loaded; records up
    to the first checkpoint behind the gap are left out, since the state that they change is not known.
    """
    usable = _one_an_offset(checkpoints)
    steps: list[Step] = []
    expected = 0
    for group in _contiguous(_without_overlaps(ranges, previous)):
        first, end = group[0].first_offset, group[-1].end_offset
        start = first
        if first > expected:
            start = next((c.end_offset for c in usable if first <= c.end_offset <= end), first)
            steps += [c for c in usable if expected < c.end_offset <= start]
        steps += [replace(r, first_offset=max(r.first_offset, start)) for r in group if r.end_offset > start]
        expected = end
    return [*steps, *(c for c in usable if c.end_offset > expected)]


def _one_an_offset(checkpoints: Iterable[PathCheckpoint]) -> list[PathCheckpoint]:
    """Of several replicas' checkpoints at one offset, which are equal, always the same one."""
    by_offset: dict[int, PathCheckpoint] = {}
    for checkpoint in sorted(checkpoints, key=lambda c: (c.leader_epoch, c.content_digest), reverse=True):
        by_offset.setdefault(checkpoint.end_offset, checkpoint)
    return [by_offset[offset] for offset in sorted(by_offset)]


def _without_overlaps(ranges: Iterable[ReplayRange], previous: Mapping[int, int]) -> list[ReplayRange]:
    held = [r for r in ranges if r.commit_status != TRUNCATED]
    committed = [r for r in held if r.commit_status == COMMITTED]
    committed_end = max((r.end_offset for r in committed), default=0)
    above = [r for r in held if r.commit_status != COMMITTED and r.first_offset >= committed_end]
    chosen = committed
    epoch = max((r.leader_epoch for r in above), default=None)
    below = None
    # From the highest epoch down: an epoch begins where the one before it ends. What other epochs have below
    # is of other logs, which the highest one need not contain.
    while epoch is not None:
        of_epoch = [r for r in above if r.leader_epoch == epoch]
        for range_ in sorted(of_epoch, key=lambda r: r.first_offset, reverse=True):
            end = range_.end_offset if below is None else min(range_.end_offset, below)
            if end > range_.first_offset:
                chosen.append(replace(range_, end_offset=end))
                below = range_.first_offset
        following = previous.get(epoch, epoch)
        if following >= epoch:
            # What lies directly below is not known: an offset is missing.
            below = None if below is None else below - 1
            following = max((r.leader_epoch for r in above if r.leader_epoch < epoch), default=None)
        epoch = following
    return sorted(chosen, key=lambda r: r.first_offset)


def _contiguous(ranges: Sequence[ReplayRange]) -> Iterator[list[ReplayRange]]:
    group: list[ReplayRange] = []
    for range_ in ranges:
        if group and group[-1].end_offset != range_.first_offset:
            yield group
            group = []
        group.append(range_)
    if group:
        yield group


def first_difference(before: Sequence[Step], after: Sequence[Step]) -> int | None:
    """The offset up to which two paths lead to the same state; None: they are equal."""
    for old, new in zip(before, after, strict=False):
        if old != new:
            return _where_they_part(old, new)
    longer = before if len(before) > len(after) else after
    common = min(len(before), len(after))
    return longer[common].first_offset if len(longer) > common else None


def _where_they_part(old: Step, new: Step) -> int:
    if isinstance(old, ReplayRange) and isinstance(new, ReplayRange):
        same = replace(old, end_offset=new.end_offset)
        if same == new:
            return min(old.end_offset, new.end_offset)
    return min(old.first_offset, new.first_offset)
