"""A second implementation of voter history, epochs and high watermark, as simple as can be and slow.

It keeps every record of the log and answers each question by looking at all of them. Nothing in it is shared
with kraft_core.raft but the voter set's type.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations

from kraft_core.raft.voters import ReplicaKey, VoterSet


@dataclass(slots=True)
class SimpleRecord:
    """One offset of the log: its epoch, where its batch began, and the voters it sets, if it does."""

    epoch: int
    batch_base: int
    voters: VoterSet | None = None


@dataclass(slots=True)
class SimpleLog:
    """`records[offset - start]` is the record at an offset; a snapshot is (end offset, epoch, voters)."""

    static: VoterSet | None = None
    start: int = 0
    records: list[SimpleRecord] = field(default_factory=list)
    snapshot: tuple[int, int, VoterSet | None] | None = None
    high_watermark: int = 0

    @property
    def end(self) -> int:
        return self.start + len(self.records)

    def append(self, epoch: int, voters: list[VoterSet | None]) -> None:
        base = self.end
        self.records.extend(SimpleRecord(epoch, base, held) for held in voters)

    def truncate(self, end: int) -> None:
        del self.records[end - self.start :]

    def install(self, end: int, epoch: int, voters: VoterSet | None) -> None:
        self.start, self.records = end, []
        self.snapshot, self.high_watermark = (end, epoch, voters), end

    def restart(self) -> None:
        """Nothing is known to be committed; a log that ends below its snapshot begins anew behind it."""
        self.high_watermark = self.start
        last_epoch = self.records[-1].epoch if self.records else 0
        if self.snapshot and (self.snapshot[1], self.snapshot[0]) > (last_epoch, self.end):
            self.install(*self.snapshot)

    def voters_in_force(self) -> tuple[VoterSet | None, int | None]:
        """The set in force and its offset: every record is asked, the last one that knows has it."""
        voters, at = self.static, None
        first = 0
        if self.snapshot:
            first = self.snapshot[0]
            if self.snapshot[2]:
                voters, at = self.snapshot[2], first - 1
        for offset, record in enumerate(self.records, self.start):
            if offset >= first and record.voters:
                voters, at = record.voters, offset
        return voters, at

    def voters_below(self, end: int) -> VoterSet | None:
        """What a snapshot that ends there carries."""
        shorter = SimpleLog(self.static, self.start, self.records[: end - self.start], self.snapshot)
        voters, at = shorter.voters_in_force()
        return voters if at is not None else None

    def epochs(self) -> list[tuple[int, int]]:
        """Each epoch with its first offset."""
        found: dict[int, int] = {}
        for offset, record in enumerate(self.records, self.start):
            found.setdefault(record.epoch, offset)
        return sorted(found.items())

    def end_of_epoch(self, epoch: int) -> tuple[int, int] | None:
        """Of the records whose epoch is not above `epoch`: the end of the last, and its epoch."""
        below = [
            (offset + 1, record.epoch)
            for offset, record in enumerate(self.records, self.start)
            if record.epoch <= epoch
        ]
        return max(below) if below else None


def majority_reached(ends: dict[ReplicaKey, int | None], voters: VoterSet) -> int | None:
    """The furthest offset that all of some majority are known to have reached."""
    offsets = [
        min(end for end in (ends.get(voter.key) for voter in group) if end is not None)
        for group in combinations(voters.voters, len(voters) // 2 + 1)
        if all(ends.get(voter.key) is not None for voter in group)
    ]
    return max(offsets, default=None)


def majorities_always_meet(one: VoterSet, other: VoterSet) -> bool:
    """Every majority against every majority."""
    return all(
        {voter.key for voter in mine} & {voter.key for voter in theirs}
        for mine in combinations(one.voters, len(one) // 2 + 1)
        for theirs in combinations(other.voters, len(other) // 2 + 1)
    )
