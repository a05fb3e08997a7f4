"""Voters, voter sets, and which set was in force at which offset.

KIP-853. A voter is a replica id with a directory id: a replaced disk is another replica. A set read from
`controller.quorum.voters` has no directory ids; such an entry matches any directory of that id. A set is
in force from the moment a replica holds its VotersRecord, committed or not, and reverts when the record is
truncated. Only one voter is added or removed at a time, because then every majority of the old set
intersects every majority of the new one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kraft_core.addresses import address_text
from kraft_core.messages.uuid_text import ZERO_UUID
from kraft_core.raft.history import OffsetHistory


@dataclass(frozen=True, slots=True)
class ReplicaKey:
    """A replica: its id, and its directory id as Kafka prints uuids (None: unknown)."""

    id: int
    directory_id: str | None = None

    @staticmethod
    def of(replica_id: int, directory_id: str | None) -> ReplicaKey:
        """The key with Kafka's sign for an unknown directory, the zero uuid, read as None."""
        return ReplicaKey(replica_id, None if directory_id == ZERO_UUID else directory_id)

    def __lt__(self, other: ReplicaKey) -> bool:
        """By id, then by directory id, an unknown one first."""
        return (self.id, self.directory_id or "") < (other.id, other.directory_id or "")


@dataclass(frozen=True, slots=True)
class Endpoint:
    name: str
    host: str
    port: int

    def __str__(self) -> str:
        """As a listener in Kafka's properties: NAME://HOST:PORT."""
        return f"{self.name}://{address_text(self.host, self.port)}"


@dataclass(frozen=True, slots=True)
class Voter:
    """One entry of a VotersRecord: the replica, its endpoints, the kraft.versions it supports (inclusive)."""

    key: ReplicaKey
    endpoints: tuple[Endpoint, ...] = ()
    min_supported_version: int = 0
    max_supported_version: int = 0

    def matches(self, replica: ReplicaKey) -> bool:
        """Whether `replica` is this voter: by directory where the entry has one, else by id alone."""
        return self.key.id == replica.id and self.key.directory_id in (None, replica.directory_id)


@dataclass(frozen=True, slots=True)
class VoterSet:
    """Voters, sorted by (id, directory id). Never empty in a log; two directories of an id are two voters."""

    voters: tuple[Voter, ...]

    @staticmethod
    def of(voters: Iterable[Voter]) -> VoterSet:
        return VoterSet(tuple(sorted(voters, key=lambda voter: voter.key)))

    @staticmethod
    def from_record(value: Mapping[str, Any]) -> VoterSet:
        """The set in a decoded VotersRecord."""
        return VoterSet.of(_voter_from_record(voter) for voter in value["voters"])

    def __iter__(self) -> Iterator[Voter]:
        return iter(self.voters)

    def __len__(self) -> int:
        return len(self.voters)

    @property
    def ids(self) -> tuple[int, ...]:
        """The voters' ids, rising, each once."""
        return tuple(sorted({voter.key.id for voter in self.voters}))

    @property
    def keys(self) -> frozenset[ReplicaKey]:
        return frozenset(voter.key for voter in self.voters)

    @property
    def majority(self) -> int:
        """How many voters a majority takes."""
        return len(self.voters) // 2 + 1

    def voter_for(self, replica: ReplicaKey) -> Voter | None:
        """The entry that `replica` is, or None where it is not a voter."""
        return next((voter for voter in self.voters if voter.matches(replica)), None)

    def to_record(self) -> dict[str, Any]:
        """The set as a VotersRecord (version 0)."""
        return {"version": 0, "voters": [_voter_to_record(voter) for voter in self.voters]}


@dataclass(frozen=True, slots=True)
class VoterChange:
    """What one set has that another has not. An entry that only gained its directory id is an update."""

    added: tuple[Voter, ...] = ()
    removed: tuple[Voter, ...] = ()
    updated: tuple[Voter, ...] = ()

    @property
    def is_one_step(self) -> bool:
        """Whether the members differ by at most one added or one removed voter (KIP-853, VotersRecord)."""
        return len(self.added) + len(self.removed) <= 1

    @property
    def keeps_members(self) -> bool:
        return not self.added and not self.removed


def change_between(before: VoterSet, after: VoterSet) -> VoterChange:
    """The step from one voter set to the next."""
    gained = {
        voter.key.id: voter
        for voter in before
        if voter.key.directory_id is None and voter.key not in after.keys and voter.key.id in after.ids
    }
    known = {voter.key: voter for voter in before}
    added: list[Voter] = []
    updated: list[Voter] = []
    for voter in after:
        predecessor = known.pop(voter.key, None) or gained.pop(voter.key.id, None)
        if predecessor is None:
            added.append(voter)
        elif predecessor != voter:
            known.pop(predecessor.key, None)
            updated.append(voter)
    return VoterChange(tuple(added), tuple(known.values()), tuple(updated))


def kafka_accepts_step(before: VoterSet, after: VoterSet) -> bool:
    """Kafka's own, weaker check (VoterSet.hasOverlappingMajority): at most one removed and one added key.

    A voter swapped for another passes, though of three voters the majorities {1,2} and {3,4} do not meet.
    """
    return len(before.keys - after.keys) <= 1 and len(after.keys - before.keys) <= 1


_NO_SETS: OffsetHistory[VoterSet] = OffsetHistory()


@dataclass(frozen=True, slots=True)
class VoterHistory:
    """The voter sets of a log by offset, and the static set that is in force while the log has none."""

    static: VoterSet | None = None
    sets: OffsetHistory[VoterSet] = _NO_SETS

    @property
    def last(self) -> VoterSet | None:
        """The set in force: the newest, committed or not. None where nothing names a voter."""
        return self.sets.last[1] if self.sets.last else self.static

    @property
    def last_offset(self) -> int | None:
        """The offset of the set in force; -1 from the bootstrap checkpoint, None for the static set."""
        return self.sets.last[0] if self.sets.last else None

    def at(self, offset: int) -> VoterSet | None:
        """The set that the records at or below `offset` put in force; the static one does not count."""
        entry = self.sets.at(offset)
        return entry[1] if entry else None

    def add(self, offset: int, voters: VoterSet) -> VoterHistory:
        return VoterHistory(self.static, self.sets.add(offset, voters))

    def truncate(self, end_offset: int) -> VoterHistory:
        return VoterHistory(self.static, self.sets.truncate(end_offset))

    def prune(self, start_offset: int) -> VoterHistory:
        return VoterHistory(self.static, self.sets.prune(start_offset))

    def is_uncommitted(self, high_watermark: int) -> bool:
        """Whether the set in force lies at or above the high watermark (exclusive end of what committed)."""
        return self.last_offset is not None and self.last_offset >= high_watermark


def _voter_from_record(value: Mapping[str, Any]) -> Voter:
    versions = value["kRaftVersionFeature"]
    return Voter(
        ReplicaKey.of(value["voterId"], value["voterDirectoryId"]),
        tuple(Endpoint(end["name"], end["host"], end["port"]) for end in value["endpoints"]),
        versions["minSupportedVersion"],
        versions["maxSupportedVersion"],
    )


def _voter_to_record(voter: Voter) -> dict[str, Any]:
    return {
        "voterId": voter.key.id,
        "voterDirectoryId": voter.key.directory_id or ZERO_UUID,
        "endpoints": [{"name": end.name, "host": end.host, "port": end.port} for end in voter.endpoints],
        "kRaftVersionFeature": {
            "minSupportedVersion": voter.min_supported_version,
            "maxSupportedVersion": voter.max_supported_version,
        },
    }
