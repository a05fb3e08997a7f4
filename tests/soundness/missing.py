"""What an incomplete copy lacks of its directory, and what it holds.

A copy may lack segments (the first ones, some in between, or all of them: not copied, not readable, or
damaged), its checkpoints, quorum-state, leader-epoch-checkpoint and the directory id (before Kafka 3.7, or a
node named by hand). Each batch may be a segment of its own. Not drawn: last segments that were not copied,
for what is left reads as an older log, and so as an older time than the stated one.
"""

from __future__ import annotations

import random
from collections.abc import Container
from dataclasses import dataclass, replace
from typing import Literal

from kraft_core.protocol.replica import Replica
from kraft_core.raft.batches import Batch
from kraft_core.raft.log import Snapshot

_ALL = (0, 1 << 40)


@dataclass(frozen=True, slots=True)
class Missing:
    """What a copy lacks.

    segments: those that hold the batches from the first of these offsets to below the second one. how: they
    were not copied; or they are named, and could not be read; or their bytes are damaged. The others: those
    files, or that line of meta.properties.
    """

    segments: tuple[int, int] = (0, 0)
    how: Literal["absent", "unreadable", "damaged"] = "absent"
    checkpoints: bool = False
    quorum_state: bool = False
    leader_epoch_checkpoint: bool = False
    directory_id: bool = False

    def __str__(self) -> str:
        first, end = self.segments
        gone = "all segments" if self.segments == _ALL else f"segments {first} to {end - 1}"
        lacking = [f"{gone} ({self.how})"] if end else []
        names = ("checkpoints", "quorum_state", "leader_epoch_checkpoint", "directory_id")
        return ", ".join([*lacking, *(name for name in names if getattr(self, name))]) or "nothing"

    @property
    def is_listed(self) -> bool:
        """Whether the log's directory could be listed: not if its files are named by nothing."""
        return not (self.segments == _ALL and self.how == "unreadable" and self.checkpoints)


NOTHING = Missing()


@dataclass(frozen=True, slots=True)
class PartialLog:
    """The log that a copy holds.

    start_offset: where the first segment begins, by its name; None without any. named_end: where the last one
    begins.
    """

    batches: tuple[Batch, ...]
    snapshots: tuple[Snapshot, ...]
    start_offset: int | None
    named_end: int | None
    readable: bool
    tail_damaged: bool

    def covers(self, batch: Batch, committed: Container[tuple[int, int]]) -> bool:
        """Whether it has the batch, or a checkpoint that covers it: those are of `committed` batches."""
        if batch in self.batches:
            return True
        place = (batch.base_offset, batch.leader_epoch)
        latest = self.snapshots[-1].end_offset if self.snapshots else 0
        return latest >= batch.end_offset and place in committed


def held(replica: Replica, missing: Missing) -> PartialLog:
    """What a copy of a replica's directory holds."""
    log, (first, end) = replica.log, missing.segments
    batches = tuple(log.batches)
    kept = tuple(batch for batch in batches if not first <= batch.base_offset < end)
    start: int | None = log.segments[0].base_offset
    named_end: int | None = log.segments[-1].base_offset
    if missing.segments == _ALL and (missing.how == "absent" or not missing.is_listed):
        start = named_end = None
    elif missing.how == "absent" and kept and kept[0] != batches[0]:
        start, named_end = kept[0].base_offset, max(kept[0].base_offset, log.segments[-1].base_offset)
    damaged = missing.how == "damaged" and kept[-1:] != batches[-1:]
    return PartialLog(
        kept,
        () if missing.checkpoints else log.snapshots,
        start,
        named_end,
        not (missing.how == "unreadable" and len(kept) < len(batches)) and missing.is_listed,
        damaged,
    )


def random_missing(source: random.Random, replica: Replica, *, has_id: bool) -> Missing:
    """What one copy lacks: often nothing. has_id: whether the directories of the quorum have one."""
    places = [batch.base_offset for batch in replica.log.batches]
    missing = Missing(
        quorum_state=source.random() < 0.2,
        leader_epoch_checkpoint=source.random() < 0.2,
        directory_id=not has_id or source.random() < 0.03,
        checkpoints=source.random() < 0.15,
    )
    if not places or source.random() < 0.45:
        return missing
    how = source.choice(("absent", "absent", "unreadable", "damaged"))
    first, last = sorted((source.randrange(len(places)), source.randrange(len(places))))
    after = places[last + 1] if last + 1 < len(places) else _ALL[1]
    drawn = source.choice(("first", "between", "all"))
    if drawn == "all" or (how == "absent" and after == _ALL[1]):
        return replace(missing, segments=_ALL, how=how)
    return replace(missing, segments=(0 if drawn == "first" else places[first], after), how=how)
