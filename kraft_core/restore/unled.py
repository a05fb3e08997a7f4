"""Logs that begin with a checkpoint to which no captured log leads, beside logs that end below it.

A checkpoint holds all that was committed below its end, by the quorum that wrote it. A restored quorum's says
so, too, of offsets that the old quorum may give to other records afterwards: where old controllers elect
beside it, neither log contradicts the other, and yet they are two histories (seen with Kafka 4.3.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kraft_core.restore.horizon import EPOCH_MARGIN
from kraft_core.restore.replay import Beginning, ReplayedLog

# No quorum reaches this many epochs by elections between a captured log and a checkpoint of it, and a
# restored one lies at least so far above an old one that went on beside it.
_EPOCHS_OF_ANOTHER = EPOCH_MARGIN // 2


def unled(logs: Sequence[tuple[str, ReplayedLog]]) -> Iterator[str]:
    """What shows two histories, in sentences. logs: those that can be read, each with its node's label."""
    for name, log in logs:
        begins = log.beginning
        if begins is None:
            continue
        beside = [
            f"{other} (to {old.leader_epoch}@{old.end_offset})"
            for other, old in logs
            if old.end_offset and not _is_led(old, begins, logs) and not _goes_on(old, begins)
        ]
        if beside:
            place = f"{begins.leader_epoch}@{begins.end_offset}"
            yield (
                f"The log of node {name} begins with a checkpoint at {place} that no captured log reaches, "
                f"of another quorum than node {', '.join(dict.fromkeys(beside))}: it may lack what that "
                f"one committed."
            )


def _is_led(old: ReplayedLog, begins: Beginning, logs: Sequence[tuple[str, ReplayedLog]]) -> bool:
    """Whether captured logs continue from the end of one to the checkpoint."""
    reached = _reached(old.end_offset, [each for _, each in logs])
    return old.end_offset < begins.end_offset <= reached


def _reached(end: int, logs: Iterable[ReplayedLog]) -> int:
    """How far captured logs continue from an end offset without a gap."""
    ranges = [(0 if log.beginning is None else log.beginning.end_offset, log.end_offset) for log in logs]
    for first, last in sorted(ranges):
        if first <= end < last:
            end = last
    return end


def _goes_on(old: ReplayedLog, begins: Beginning) -> bool:
    """Whether the quorum of a log may be the one that wrote the checkpoint, by KRaft's rules.

    Not where epochs jump as restorations make them, nor where the old voters have a majority without the new
    ones; static voters are in no log. Logs that reach above the checkpoint are compared with those of others.
    """
    if begins.leader_epoch - old.leader_epoch >= _EPOCHS_OF_ANOTHER:
        return False
    if old.end_offset >= begins.end_offset or old.voters is None or begins.voters is None:
        return True
    return len(old.voters.keys & begins.voters.keys) >= old.voters.majority
