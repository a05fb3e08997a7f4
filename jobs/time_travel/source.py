"""What shell and diff read from a source: the metadata at an offset, its changes, voter sets and epochs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from kraft_core.image import tree
from kraft_core.image.differences import Difference
from kraft_core.image.events import Event
from kraft_core.image.image import Image
from kraft_core.kafka_tools.quorum import LeaderAnswer
from kraft_core.raft.voters import VoterSet


@dataclass(frozen=True, slots=True)
class SourcedVoterSet:
    """A voter set and its source.

    source: record (a VotersRecord of the log), snapshot (offset: the checkpoint's last), bootstrap (-1), or
    static (the ids in a LEADER_CHANGE, if the log has no VotersRecord); describe or quorum-state only report
    it and do not know its place: offset is the lowest that it can have. timestamp: ms, None if unknown.
    """

    offset: int
    leader_epoch: int
    timestamp: int | None
    source: str
    voters: VoterSet | None
    ids: tuple[int, ...]

    @property
    def is_exact(self) -> bool:
        """Whether the set came into force there; else it was in force at or before."""
        return self.source in ("record", "bootstrap") or (self.source == "static" and self.offset == 0)

    @property
    def is_reported(self) -> bool:
        return self.source in ("describe", "quorum-state")


@dataclass(frozen=True, slots=True)
class Epoch:
    """A leader epoch. leaderless_ms: since the append before, by two leaders' clocks.

    source: record, or what reports the leader of an epoch without a captured LEADER_CHANGE. Then timestamp is
    the latest that its election can have been, None if nothing bounds it, and start_offset None.
    """

    leader_epoch: int
    start_offset: int | None
    leader_id: int | None
    timestamp: int | None
    voters: tuple[int, ...]
    granting_voters: tuple[int, ...]
    leaderless_ms: int | None
    source: str = "record"

    @property
    def is_exact(self) -> bool:
        return self.source == "record"


class MetadataSource(Protocol):
    """The cluster's metadata along its log. Offsets are inclusive, times in ms.

    image_at and offset_at raise OutOfReachError for what the source does not cover. notes: what is missing or
    unreadable, as text. differences: those of kraft_core.image.differences between two images of this source.
    oldest_known: the offset of the oldest known state, and its time if that is known.
    commit_status: of the record at an offset, None where one log cannot show it. known_from: the end of the
    last offsets up to this one that are missing or unreadable, over which no checkpoint is loaded; 0: none.
    leader_answer: the newest to kraftlake follow of the leader of an epoch, with that high watermark and
    those voters if any.
    """

    @property
    def notes(self) -> list[str]: ...
    @property
    def cluster_id(self) -> str | None: ...
    @property
    def last_offset(self) -> int: ...
    @property
    def oldest_known(self) -> tuple[int, int | None]: ...
    def image_at(self, offset: int | None = None) -> Image: ...
    def differences(self, before: Image, after: Image) -> Iterator[Difference]: ...
    def commit_status(self, offset: int) -> str | None: ...
    def known_from(self, offset: int) -> int: ...
    def offset_at(self, time: int) -> int: ...
    def append_before(self, offset: int) -> int | None: ...
    def events(self, patterns: Sequence[tree.Path], last_offset: int) -> Iterator[Event]: ...
    def voter_sets(self) -> list[SourcedVoterSet]: ...
    def epochs(self) -> list[Epoch]: ...
    def leader_answer(
        self,
        leader_epoch: int,
        high_watermark: int | None = None,
        voter_ids: Collection[int] | None = None,
    ) -> LeaderAnswer | None: ...


def voters_at(source: MetadataSource, offset: int) -> SourcedVoterSet | None:
    """The set in force at an offset; None: not known, as where records that may have changed it are missing.

    A set that is only reported counts for nothing.
    """
    sets = [one for one in source.voter_sets() if one.offset <= offset and not one.is_reported]
    newest = max(sets, key=lambda one: one.offset, default=None)
    known_from = source.known_from(offset)
    return None if newest is None or (known_from and newest.offset < known_from) else newest
