"""What records and snapshots put in force: kraft.version, voter set, metadata.version.

KIP-853: a replica uses the newest VotersRecord it holds, committed or not; KRaftVersionRecord takes effect
likewise. A snapshot restores both where the records are gone. A record that cannot be read puts something
unknown in force.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Literal

from kraft_core.evidence.elections import Election
from kraft_core.evidence.facts import CapturedControlRecord, ClusterFacts, FeatureLevel, SnapshotFacts
from kraft_core.evidence.lineage import EpochLine
from kraft_core.raft.voters import VoterSet

Source = Literal["record", "snapshot", "static"]


@dataclass(frozen=True, slots=True)
class SetInForce:
    """A voter set and its position: that of its record, or (end - 1, epoch) of the snapshot that has it.

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
class StateInForce:
    """What is in force; None: unknown. is_static: known to have no VotersRecord, so the static set counts."""

    kraft_version: int | None = None
    voters: SetInForce | None = None
    is_static: bool = False
    metadata_version: int | None = None


UNKNOWN = StateInForce()
# An empty log: kraft.version 0 and the static set, until its first leader writes otherwise.
EMPTY_LOG = StateInForce(kraft_version=0, is_static=True)


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


def record_set(record: CapturedControlRecord) -> SetInForce | None:
    """The voter set of a VotersRecord, None if that cannot be read or names no voters."""
    if not record.value or not record.value["voters"]:
        return None
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


def changes_of(facts: ClusterFacts) -> defaultdict[int, list[CapturedControlRecord | FeatureLevel]]:
    """The records that change a state, by epoch, by offset."""
    changes: defaultdict[int, list[CapturedControlRecord | FeatureLevel]] = defaultdict(list)
    for record in (*facts.control_records, *facts.feature_levels):
        if not isinstance(record, CapturedControlRecord) or record.type != "LeaderChange":
            changes[record.leader_epoch].append(record)
    for records in changes.values():
        records.sort(key=lambda record: record.offset)
    return changes


def snapshot_states(snapshots: tuple[SnapshotFacts, ...]) -> defaultdict[int, dict[int, StateInForce]]:
    """What snapshots restore, by epoch and end offset; UNKNOWN where two of one name differ."""
    states: defaultdict[int, dict[int, StateInForce]] = defaultdict(dict)
    for snapshot in snapshots:
        if snapshot.proves:
            state = _restored(snapshot)
            known = states[snapshot.leader_epoch].setdefault(snapshot.end_offset, state)
            if known != state:
                states[snapshot.leader_epoch][snapshot.end_offset] = UNKNOWN
    return states


def _restored(snapshot: SnapshotFacts) -> StateInForce:
    """A snapshot of kraft.version 0 carries neither the version nor voters (KIP-853, Snapshots)."""
    version = snapshot.kraft_version or 0
    voters = snapshot_set(snapshot)
    return StateInForce(version, voters, voters is None and version == 0, snapshot.metadata_version)


def timeline_of(
    line: EpochLine,
    start: StateInForce,
    changes: list[CapturedControlRecord | FeatureLevel],
    snapshots: dict[int, StateInForce],
) -> tuple[tuple[int, StateInForce], ...]:
    """The states of one line. Records come before the snapshot that ends with them: the log's word counts."""
    timeline: list[tuple[int, StateInForce]] = []
    for nth, (first, end) in enumerate(line.covered):
        state = _filled(start if nth == 0 else UNKNOWN, snapshots.get(first, UNKNOWN))
        timeline.append((first, state))
        steps = [(r.offset, 0, r) for r in changes if first <= r.offset < end]
        steps += [(x - 1, 1, s) for x, s in snapshots.items() if first < x <= end]
        for offset, _, step in sorted(steps, key=lambda entry: entry[:2]):
            after = _filled(state, step) if isinstance(step, StateInForce) else _changed(state, step)
            if after != state:
                state = after
                timeline.append((offset, state))
    return tuple(timeline)


def _filled(state: StateInForce, snapshot: StateInForce) -> StateInForce:
    """A state with what only a snapshot knows."""
    if state.kraft_version is None:
        state = replace(state, kraft_version=snapshot.kraft_version)
    if state.voters is None and not state.is_static:
        state = replace(state, voters=snapshot.voters, is_static=snapshot.is_static)
    if state.metadata_version is None:
        state = replace(state, metadata_version=snapshot.metadata_version)
    return state


def _changed(state: StateInForce, record: CapturedControlRecord | FeatureLevel) -> StateInForce:
    if isinstance(record, FeatureLevel):
        return replace(state, metadata_version=record.level)
    if record.type == "KRaftVersion":
        return replace(state, kraft_version=record.value["kRaftVersion"] if record.value else None)
    return replace(state, voters=record_set(record), is_static=False)
