"""Which replay of the log each captured checkpoint must equal (rule 22).

By Raft's log matching (KIP-595) the last record of a checkpoint, by offset and epoch, identifies the whole
log below it, whichever replica's capture shows that log. Where captures reach down to offset 0, every
checkpoint on that log must equal the replay from there. Elsewhere a replica's oldest checkpoint is trusted,
and its later ones are compared with the replay from that one on: what lay below it is unknown.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kraft_core.evidence.lineage import Lineage
from kraft_core.findings.facts import Holder

# Raised when the same records give another image, or the same image other deviations.
COMPARISON_VERSION = 1


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """A range of one epoch in a log; end_offset is exclusive."""

    leader_epoch: int
    first_offset: int
    end_offset: int


Log = tuple[Part, ...]
"""Parts that follow each other without a gap."""


@dataclass(frozen=True, slots=True, order=True)
class CheckpointKey:
    """A checkpoint, by its end, the epoch of its last record and the digest of its content."""

    end_offset: int
    leader_epoch: int
    content_digest: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """A checkpoint that must equal the replay of `log` onto `base`; None: onto nothing, from offset 0."""

    checkpoint: CheckpointKey
    base: CheckpointKey | None
    log: Log

    @property
    def log_digest(self) -> str:
        """Identifies the replay: equal digests mean equal results of the comparison."""
        return digest_of(self.log)


def digest_of(log: Log) -> str:
    """Identifies a log by its epochs and offsets."""
    text = repr((COMPARISON_VERSION, [(p.leader_epoch, p.first_offset, p.end_offset) for p in log]))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class SnapshotReplay:
    """A replay of `log` onto the checkpoint `start` (None: from offset 0), and its comparisons."""

    start: CheckpointKey | None
    log: Log
    comparisons: tuple[Comparison, ...]


def comparisons(
    lineage: Lineage,
    held: Mapping[Holder, Collection[CheckpointKey]],
    held_twice: Collection[tuple[int, int]] = (),
) -> list[Comparison]:
    """The comparisons of the complete checkpoints that each replica held, in any of its captures.

    There is none for a checkpoint whose last record no capture shows, and for a trusted one. held_twice:
    offsets (LogOrderFault.held_twice) at which the log is not known, as in a gap.
    """
    below = LogsBelow(lineage)
    every = sorted({checkpoint for some in held.values() for checkpoint in some})
    logs: dict[CheckpointKey, Log] = {}
    for key in every:
        known_from = max((end for first, end in held_twice if first < key.end_offset), default=0)
        logs[key] = log_from(below.log(key.leader_epoch, key.end_offset), known_from)
    found: dict[Comparison, None] = {}
    for holder in sorted(held):
        own = sorted(held[holder])
        for checkpoint in own:
            log = logs[checkpoint]
            if not log:
                continue
            if log[0].first_offset == 0:
                found[Comparison(checkpoint, None, log)] = None
                continue
            base = next(c for c in own if lies_on(c, log))
            if base != checkpoint:
                found[Comparison(checkpoint, base, log_from(log, base.end_offset))] = None
    return list(found)


def replays(wanted: Iterable[Comparison], equal: Iterable[Comparison]) -> list[SnapshotReplay]:
    """The replays for the wanted comparisons, each from the newest checkpoint that is known to be right.

    equal: earlier comparisons whose checkpoint equals the replay.
    """
    known = _by_base(equal)
    return [
        _replay(base, along, known.get(base, ()))
        for base, some in _by_base(wanted).items()
        for along in _lines(some)
    ]


def goes_on_from(comparison: Comparison, earlier: Comparison) -> bool:
    """Whether the replay of a comparison continues that of an earlier one."""
    return comparison.base == earlier.base and begins(earlier.log, comparison.log)


def _replay(
    base: CheckpointKey | None, along: Sequence[Comparison], known: Iterable[Comparison]
) -> SnapshotReplay:
    log = along[0].log
    lowest = min(c.checkpoint.end_offset for c in along)
    starts = [c.checkpoint for c in known if c.checkpoint.end_offset <= lowest and begins(c.log, log)]
    if not starts:
        return SnapshotReplay(base, log, tuple(along))
    start = max(starts)
    return SnapshotReplay(start, log_from(log, start.end_offset), tuple(along))


def _by_base(items: Iterable[Comparison]) -> dict[CheckpointKey | None, list[Comparison]]:
    grouped: defaultdict[CheckpointKey | None, list[Comparison]] = defaultdict(list)
    for item in items:
        grouped[item.base].append(item)
    return grouped


def _lines(items: Iterable[Comparison]) -> Iterator[list[Comparison]]:
    """Groups of comparisons whose logs continue each other, the longest log first: mostly one group."""
    rest = sorted(items, key=lambda c: c.checkpoint, reverse=True)
    while rest:
        longest = rest[0].log
        yield [c for c in rest if begins(c.log, longest)]
        rest = [c for c in rest if not begins(c.log, longest)]


def begins(log: Log, longer: Log) -> bool:
    """Whether a log is the beginning of another one, or all of it."""
    if not log:
        return True
    last = len(log) - 1
    if len(log) > len(longer) or log[:last] != longer[:last]:
        return False
    one, other = log[last], longer[last]
    return replace(one, end_offset=other.end_offset) == other and one.end_offset <= other.end_offset


def log_from(log: Log, offset: int) -> Log:
    """A log from an offset on."""
    return tuple(
        replace(part, first_offset=max(part.first_offset, offset)) for part in log if part.end_offset > offset
    )


def lies_on(checkpoint: CheckpointKey, log: Log) -> bool:
    """Whether a checkpoint ends where the log begins, or its last record is one of the log's."""
    if checkpoint.end_offset == log[0].first_offset:
        return checkpoint.leader_epoch <= log[0].leader_epoch
    nth = bisect_right(log, checkpoint.end_offset - 1, key=lambda part: part.first_offset) - 1
    if nth < 0:
        return False
    part = log[nth]
    return part.leader_epoch == checkpoint.leader_epoch and checkpoint.end_offset <= part.end_offset


class LogsBelow:
    """The captured logs that end at given records; what lies below an epoch is computed once."""

    def __init__(self, lineage: Lineage) -> None:
        self._lineage = lineage
        self._known: dict[tuple[int, int], Log] = {}

    def log(self, leader_epoch: int, end_offset: int) -> Log:
        """What captures hold without a gap below an offset whose last record is of an epoch.

        Empty if no capture has that record, or if captures contradict each other about its epoch.
        """
        passed: list[Part] = []
        part = _part(self._lineage, leader_epoch, end_offset)
        while part is not None and (part.leader_epoch, part.first_offset) not in self._known:
            passed.append(part)
            part = self._next_below(part)
        under = (*self._known[part.leader_epoch, part.first_offset], part) if part else ()
        log = (*under, *reversed(passed))
        if log:
            self._known[log[-1].leader_epoch, log[-1].first_offset] = log[:-1]
        return log

    def _next_below(self, part: Part) -> Part | None:
        link = self._lineage.lines[part.leader_epoch].below
        if link is None or link.end_offset != part.first_offset:
            return None
        return _part(self._lineage, link.parent, link.end_offset)


def _part(lineage: Lineage, leader_epoch: int, end_offset: int) -> Part | None:
    line = lineage.lines.get(leader_epoch)
    if line is None or line.contested:
        return None
    held = (first for first, end in line.covered if first < end_offset <= end)
    first = next(held, None)
    return None if first is None else Part(leader_epoch, first, end_offset)
