"""What was in force at an offset of an epoch: kraft.version, voter set, metadata.version.

KIP-853: a replica uses the newest VotersRecord it holds, committed or not; KRaftVersionRecord takes effect
likewise. So what counted for a batch follows from the records below it on its own line of the log. A snapshot
restores it where the records are gone. While there is no VotersRecord the static set counts, which shows
in each epoch's LEADER_CHANGE. Above a stretch that no capture holds nothing is known until the next record.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from kraft_core.evidence.elections import Election
from kraft_core.evidence.facts import ClusterFacts, ControlRecord, FeatureLevel, SnapshotFacts
from kraft_core.evidence.lineage import EpochLine, Lineage
from kraft_core.raft.voters import ReplicaKey, Voter, VoterSet

Source = Literal["record", "snapshot", "static"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SetInForce:
    """A voter set and where it stands: its record's place, or (end - 1, epoch) of the snapshot that has it.

    batch_base_offset, batch_end_offset: the batch of the record; for a snapshot the offset and the one after.
    """

    offset: int
    leader_epoch: int
    source: Source
    voters: VoterSet
    batch_base_offset: int
    batch_end_offset: int
    appended_at: int | None

    @property
    def words(self) -> str:
        """How evidence names the set."""
        ids = ",".join(str(voter.key.id) for voter in self.voters)
        name = {"record": "VotersRecord", "snapshot": "snapshot", "static": "LEADER_CHANGE"}[self.source]
        return f"{{{ids}}} ({name} {self.offset}/e{self.leader_epoch})"


@dataclass(frozen=True, slots=True)
class State:
    """What is in force; None: unknown. is_static: known to have no VotersRecord, so the static set counts."""

    kraft_version: int | None = None
    voters: SetInForce | None = None
    is_static: bool = False
    metadata_version: int | None = None


UNKNOWN = State()
# An empty log: kraft.version 0 and the static set, until its first leader writes otherwise.
EMPTY_LOG = State(kraft_version=0, is_static=True)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Offsets of one epoch under one voter set: batches that end above first and at or below end."""

    first_offset: int
    end_offset: int
    voters: SetInForce | None


@dataclass(frozen=True, slots=True)
class InForce:
    """The states of every epoch line, as (offset from which it holds, state), rising."""

    timelines: dict[int, tuple[tuple[int, State], ...]]
    starts: dict[int, State]
    cuts: dict[int, tuple[Stretch, ...]]
    elections: dict[int, Election]

    def at(self, leader_epoch: int, offset: int) -> State:
        """The state that the records of that epoch's line at or below `offset` put in force."""
        timeline = self.timelines.get(leader_epoch, ())
        count = bisect_right(timeline, offset, key=lambda entry: entry[0])
        return timeline[count - 1][1] if count else UNKNOWN

    def below_epoch(self, leader_epoch: int) -> State:
        """The state just below the epoch's first batch; UNKNOWN where that is not in sight."""
        return self.starts.get(leader_epoch, UNKNOWN)

    def voters_at(self, leader_epoch: int, offset: int) -> SetInForce | None:
        """The voter set that counts for a batch of that epoch whose last offset is `offset`."""
        return self._voters(leader_epoch, self.at(leader_epoch, offset))

    def _voters(self, leader_epoch: int, state: State) -> SetInForce | None:
        if state.voters is not None or not state.is_static:
            return state.voters
        election = self.elections.get(leader_epoch)
        return static_set(election) if election and election.voters else None

    def leader_among(self, voters: VoterSet, leader_epoch: int) -> Voter | None:
        """The epoch's leader among the voters: the directory that won counts, not another one of its id.

        Where the set it was elected by is not in sight, or has no directory ids, the id decides: a leader's
        id cannot get another directory while it leads.
        """
        election = self.elections.get(leader_epoch)
        if election is None:
            return None
        there = self.voters_at(leader_epoch, election.batch_end_offset - 1)
        if there is None:
            leader: ReplicaKey | None = ReplicaKey(election.leader_id)
        else:
            leader = _only([voter.key for voter in there.voters if voter.key.id == election.leader_id])
        return _only([voter for voter in voters if leader and _same_replica(voter.key, leader)])

    def stretches(self, line: EpochLine) -> tuple[Stretch, ...]:
        """The epoch's offsets cut where the voter set changes, before the batch that changes it."""
        return self.cuts[line.leader_epoch]

    def cut(self, line: EpochLine) -> None:
        """Prepare stretches() of an epoch."""
        cuts: list[tuple[int, SetInForce | None]] = []
        for offset, state in self.timelines[line.leader_epoch]:
            voters = self._voters(line.leader_epoch, state)
            own = voters is not None and voters.source == "record" and voters.offset == offset
            first = voters.batch_base_offset if own and voters is not None else offset
            if not cuts or cuts[-1][1] != voters:
                cuts.append((first, voters))
        ends = [first for first, _ in cuts[1:]] + [line.end_offset]
        self.cuts[line.leader_epoch] = tuple(
            Stretch(first, end, voters)
            for (first, voters), end in zip(cuts, ends, strict=True)
            if first < end
        )


def _only(found: list[T]) -> T | None:
    return found[0] if len(found) == 1 else None


def _same_replica(one: ReplicaKey, other: ReplicaKey) -> bool:
    """By directory id where both have one, else by id."""
    unknown = None in (one.directory_id, other.directory_id)
    return one.id == other.id and (unknown or one.directory_id == other.directory_id)


def static_set(election: Election) -> SetInForce:
    """The static voter set that a leader without VotersRecord names."""
    return SetInForce(
        election.offset,
        election.leader_epoch,
        "static",
        election.voter_set,
        election.offset,
        election.batch_end_offset,
        election.elected_at,
    )


def record_set(record: ControlRecord) -> SetInForce:
    """The voter set of a VotersRecord."""
    return SetInForce(
        record.offset,
        record.leader_epoch,
        "record",
        VoterSet.from_record(record.value),
        record.batch_base_offset,
        record.batch_end_offset,
        record.appended_at,
    )


def snapshot_set(snapshot: SnapshotFacts) -> SetInForce | None:
    """The voter set that a snapshot carries, at the last offset it covers."""
    if not snapshot.voters:
        return None
    voters = VoterSet.from_record({"voters": snapshot.voters})
    last = snapshot.end_offset - 1
    return SetInForce(last, snapshot.leader_epoch, "snapshot", voters, last, snapshot.end_offset, None)


def in_force(facts: ClusterFacts, lineage: Lineage, elections: dict[int, Election]) -> InForce:
    """The states along every epoch line of a cluster's (distinct) facts."""
    changes = _changes(facts)
    snapshots = _snapshot_states(facts.snapshots)
    found = InForce({}, {}, {}, elections)
    for epoch, line in lineage.lines.items():
        found.starts[epoch] = _start_state(line, lineage, found, snapshots)
        found.timelines[epoch] = _timeline(line, found.starts[epoch], changes[epoch], snapshots[epoch])
        found.cut(line)
    return found


def _changes(facts: ClusterFacts) -> defaultdict[int, list[ControlRecord | FeatureLevel]]:
    """The records that change a state, by epoch, by offset."""
    changes: defaultdict[int, list[ControlRecord | FeatureLevel]] = defaultdict(list)
    for record in (*facts.control_records, *facts.feature_levels):
        if not isinstance(record, ControlRecord) or record.type != "LeaderChange":
            changes[record.leader_epoch].append(record)
    for records in changes.values():
        records.sort(key=lambda record: record.offset)
    return changes


def _snapshot_states(snapshots: tuple[SnapshotFacts, ...]) -> defaultdict[int, dict[int, State]]:
    """What snapshots restore, by epoch and end offset; UNKNOWN where two of one name differ."""
    states: defaultdict[int, dict[int, State]] = defaultdict(dict)
    for snapshot in snapshots:
        if snapshot.proves:
            state = _restored(snapshot)
            known = states[snapshot.leader_epoch].setdefault(snapshot.end_offset, state)
            if known != state:
                states[snapshot.leader_epoch][snapshot.end_offset] = UNKNOWN
    return states


def _restored(snapshot: SnapshotFacts) -> State:
    """A snapshot of kraft.version 0 carries neither the version nor voters (KIP-853, Snapshots)."""
    version = snapshot.kraft_version or 0
    voters = snapshot_set(snapshot)
    return State(version, voters, voters is None and version == 0, snapshot.metadata_version)


def _start_state(
    line: EpochLine, lineage: Lineage, found: InForce, snapshots: defaultdict[int, dict[int, State]]
) -> State:
    """What the epoch inherits; an epoch whose first batches are gone inherits nothing that is known."""
    below = line.below
    if line.contested or line.start != line.first_offset:
        return UNKNOWN
    if below is None:
        return EMPTY_LOG if line.start == 0 else UNKNOWN
    parent = lineage.lines.get(below.parent)
    if parent is not None and parent.covers(below.end_offset - 1):
        return found.at(below.parent, below.end_offset - 1)
    return snapshots[below.parent].get(below.end_offset, UNKNOWN)


def _timeline(
    line: EpochLine,
    start: State,
    changes: list[ControlRecord | FeatureLevel],
    snapshots: dict[int, State],
) -> tuple[tuple[int, State], ...]:
    """The states of one line. Records come before the snapshot that ends with them: the log's word counts."""
    timeline: list[tuple[int, State]] = []
    for nth, (first, end) in enumerate(line.covered):
        state = _filled(start if nth == 0 else UNKNOWN, snapshots.get(first, UNKNOWN))
        timeline.append((first, state))
        steps = [(r.offset, 0, r) for r in changes if first <= r.offset < end]
        steps += [(x - 1, 1, s) for x, s in snapshots.items() if first < x <= end]
        for offset, _, step in sorted(steps, key=lambda entry: entry[:2]):
            after = _filled(state, step) if isinstance(step, State) else _changed(state, step)
            if after != state:
                state = after
                timeline.append((offset, state))
    return tuple(timeline)


def _filled(state: State, snapshot: State) -> State:
    """A state with what only a snapshot knows."""
    if state.kraft_version is None:
        state = replace(state, kraft_version=snapshot.kraft_version)
    if state.voters is None and not state.is_static:
        state = replace(state, voters=snapshot.voters, is_static=snapshot.is_static)
    if state.metadata_version is None:
        state = replace(state, metadata_version=snapshot.metadata_version)
    return state


def _changed(state: State, record: ControlRecord | FeatureLevel) -> State:
    if isinstance(record, FeatureLevel):
        return replace(state, metadata_version=record.level)
    if record.type == "KRaftVersion":
        return replace(state, kraft_version=record.value["kRaftVersion"])
    voters = record_set(record)
    return replace(state, voters=voters if len(voters.voters) else None, is_static=False)
