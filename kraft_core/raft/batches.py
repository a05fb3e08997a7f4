"""The batches of a log, as far as replaying needs them: bounds, epoch, size and control records.

A replica appends, truncates and deletes whole batches. They are kept in chunks, so that a new state shares
nearly all of its memory with the one before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from kraft_core.raft.voters import ReplicaKey, VoterSet

CHUNK_LENGTH = 256


@dataclass(frozen=True, slots=True)
class LeaderChange:
    """LeaderChangeMessage: a new leader's first record. Directory ids are None in version 0."""

    leader_id: int
    voters: tuple[ReplicaKey, ...]
    granting_voters: tuple[ReplicaKey, ...]


@dataclass(frozen=True, slots=True)
class KRaftVersion:
    """KRaftVersionRecord: the level takes effect at once, committed or not."""

    level: int


@dataclass(frozen=True, slots=True)
class ControlRecord:
    """A control record that bears on replication; snapshot headers and footers do not."""

    offset: int
    value: LeaderChange | KRaftVersion | VoterSet


@dataclass(frozen=True, slots=True)
class Batch:
    """A record batch; `last_offset` is inclusive, `crc` (with size) represents its content."""

    base_offset: int
    last_offset: int
    leader_epoch: int
    size_bytes: int = 0
    crc: int = 0
    control_records: tuple[ControlRecord, ...] = ()

    @property
    def end_offset(self) -> int:
        return self.last_offset + 1


class Batches:
    """An immutable sequence of batches with rising offsets, cheap to extend and to cut."""

    __slots__ = ("_chunks",)

    def __init__(self, batches: Iterable[Batch] = ()) -> None:
        items = tuple(batches)
        self._chunks = tuple(items[at : at + CHUNK_LENGTH] for at in range(0, len(items), CHUNK_LENGTH))

    @classmethod
    def _of_chunks(cls, chunks: tuple[tuple[Batch, ...], ...]) -> Batches:
        made = cls()
        made._chunks = chunks
        return made

    def __iter__(self) -> Iterator[Batch]:
        return chain.from_iterable(self._chunks)

    def __len__(self) -> int:
        return sum(map(len, self._chunks))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Batches) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        return f"Batches({tuple(self)!r})"

    @property
    def first(self) -> Batch | None:
        return self._chunks[0][0] if self._chunks else None

    @property
    def last(self) -> Batch | None:
        return self._chunks[-1][-1] if self._chunks else None

    def extended(self, batches: Iterable[Batch]) -> Batches:
        """With `batches` behind the last one."""
        if not self._chunks:
            return Batches(batches)
        tail = Batches(chain(self._chunks[-1], batches))
        return Batches._of_chunks(self._chunks[:-1] + tail._chunks)

    def truncated(self, end_offset: int) -> Batches:
        """The batches that lie wholly below `end_offset`; one that straddles it goes too."""
        chunk, index = self._position(end_offset)
        cut = (self._chunks[chunk][:index],) if index else ()
        return Batches._of_chunks(self._chunks[:chunk] + cut)

    def starting_at(self, offset: int) -> Batches:
        """The batches from the one that holds `offset` (or the next one) to the end."""
        chunk, index = self._position(offset)
        if chunk == len(self._chunks):
            return Batches()
        return Batches._of_chunks((self._chunks[chunk][index:], *self._chunks[chunk + 1 :]))

    def holding(self, offset: int) -> Batch | None:
        """The batch that `offset` lies in, or None."""
        found = self.starting_at(offset).first
        return found if found and found.base_offset <= offset else None

    def _position(self, offset: int) -> tuple[int, int]:
        """Chunk and index of the first batch that ends above `offset`."""
        chunk = bisect_right(self._chunks, offset, key=lambda chunk: chunk[-1].end_offset)
        if chunk == len(self._chunks):
            return chunk, 0
        return chunk, bisect_right(self._chunks[chunk], offset, key=lambda batch: batch.end_offset)


def control_record(offset: int, type_name: str, value: Mapping[str, Any]) -> ControlRecord | None:
    """A decoded control record as the engine's value; None for the header and footer of a snapshot.

    type_name: Kafka's (ControlRecordType), as in Message.type_name.
    """
    match type_name:
        case "LeaderChange":
            voters, granting = _replicas(value["voters"]), _replicas(value["grantingVoters"])
            return ControlRecord(offset, LeaderChange(value["leaderId"], voters, granting))
        case "KRaftVersion":
            return ControlRecord(offset, KRaftVersion(value["kRaftVersion"]))
        case "KRaftVoters":
            return ControlRecord(offset, VoterSet.from_record(value))
        case _:
            return None


def _replicas(voters: list[Mapping[str, Any]]) -> tuple[ReplicaKey, ...]:
    return tuple(ReplicaKey.of(voter["voterId"], voter.get("voterDirectoryId")) for voter in voters)
