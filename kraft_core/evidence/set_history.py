"""The history of voter sets: every set that captures show, and which took the place of which.

Sources: VotersRecords of captured logs; sets known only from snapshots; static sets, which with
kraft.version 0 show in LEADER_CHANGE records; and the bootstrap checkpoint's (KIP-853, Bootstrapping). The
set before a record is the one in force just below it on its own line of the log.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from kraft_core.evidence.commit import CommitVerdict
from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.facts import SnapshotFacts, labels
from kraft_core.evidence.rows import SetSource
from kraft_core.evidence.states import UNKNOWN, SetInForce, StateInForce, record_set, snapshot_set, static_set
from kraft_core.raft.voters import ReplicaKey, VoterSet

Key: TypeAlias = tuple[int, int, str]  # offset, leader epoch, source


@dataclass(frozen=True, slots=True)
class SetNode:
    """A voter set in its history.

    before: the set it took the place of, if one is known. is_first: nothing came before it but a static or a
    bootstrap configuration. is_next: no set that captures do not show can have come between the one before
    and it. since (ms): when its record was appended; of a snapshot, when it was in force at the latest; None
    if unknown. verdict: None for static and bootstrap sets. committed_at: when it, or the LEADER_CHANGE that
    shows it, is known to be committed.
    """

    source: SetSource
    voters: SetInForce
    before: Key | None
    is_first: bool
    is_next: bool
    since: int | None
    verdict: CommitVerdict | None
    committed_at: int | None
    evidence: str

    @property
    def key(self) -> Key:
        return (self.voters.offset, self.voters.leader_epoch, self.source)

    @property
    def is_exact(self) -> bool:
        """Whether its place and time are where it came into force, not only where it is first known."""
        return self.source in ("record", "bootstrap") or (self.source == "static" and self.is_first)

    def may_count_at(self, moment: int) -> bool:
        """Whether a leader may have counted by this set at a moment (ms), by what is known of its times."""
        verdict = self.verdict
        gone = verdict is not None and verdict.status == "truncated"
        gone_at = verdict.as_of if verdict is not None and gone else None
        begun = self.source == "snapshot" or self.since is None or self.since <= moment
        return begun and (gone_at is None or moment < gone_at)


def set_nodes(known: Conclusions) -> list[SetNode]:
    """All sets of a cluster, by offset and epoch."""
    static = list(_static_nodes(known))
    bootstrap = _bootstrap_node(known)
    resolved = _Resolved(known, static, bootstrap)
    nodes = [*([bootstrap] if bootstrap else []), *static, *resolved.record_nodes(), *resolved.snapshot_nodes]
    return sorted(nodes, key=lambda node: node.key)


def _static_nodes(known: Conclusions) -> Iterator[SetNode]:
    """One for each LEADER_CHANGE under kraft.version 0 that names other voters than the one before."""
    previous: SetNode | None = None
    unbroken = _unbroken(known)
    for epoch, election in known.elections.items():
        state = known.in_force.at(epoch, election.batch_end_offset - 1)
        if not state.is_static or (previous and previous.voters.voters == election.voter_set):
            continue
        prefix = known.commit.prefixes.get(epoch)
        proof = prefix.proof_of(election.batch_end_offset) if prefix else None
        previous = SetNode(
            "static",
            static_set(election),
            previous.key if previous else None,
            is_first=previous is None and election.offset == 0,
            is_next=epoch in unbroken,
            since=election.elected_at,
            verdict=None,
            committed_at=proof.as_of if proof else None,
            evidence=f"voters of the LEADER_CHANGE of epoch {epoch}",
        )
        yield previous


def _unbroken(known: Conclusions) -> set[int]:
    """The epochs below which every LEADER_CHANGE of their line is captured."""
    found: set[int] = set()
    for epoch, line in known.lineage.lines.items():
        seen_below = line.below.parent in found if line.below else line.start == 0
        if seen_below and epoch in known.elections:
            found.add(epoch)
    return found


def _bootstrap_node(known: Conclusions) -> SetNode | None:
    """The set that formatting wrote; of several that differ, the one most directories have."""
    holders: defaultdict[VoterSet, set[ReplicaKey]] = defaultdict(set)
    for snapshot in known.facts.snapshots:
        voters = snapshot_set(snapshot)
        if snapshot.is_bootstrap and snapshot.complete and not snapshot.unfinished and voters is not None:
            holders[voters.voters] |= {ReplicaKey.of(*holder) for holder in snapshot.held_by}
    if not holders:
        return None
    voter_set, held_by = min(holders.items(), key=lambda entry: (-len(entry[1]), repr(entry[0])))
    others = "" if len(holders) == 1 else f"; {len(holders) - 1} others differ"
    place = SetInForce(-1, 0, "snapshot", voter_set, -1, 0, None)
    evidence = f"bootstrap checkpoint of {labels(held_by)}{others}"
    return SetNode("bootstrap", place, None, True, True, None, None, None, evidence)


class _Resolved:
    """Which set a state speaks of: a record's, a static one, or one known only from snapshots."""

    def __init__(self, known: Conclusions, static: list[SetNode], bootstrap: SetNode | None) -> None:
        self.known = known
        self.static = static
        self.bootstrap = bootstrap
        self.records = _records(known)
        self.verdicts = {
            key: known.commit.of_batch(place.leader_epoch, place.batch_base_offset, place.batch_end_offset)
            for key, place in self.records.items()
        }
        self.by_snapshot: dict[tuple[int, int], Key] = {}
        self.snapshot_nodes = self._snapshot_nodes()

    def record_nodes(self) -> Iterator[SetNode]:
        for key, place in self.records.items():
            verdict = self.verdicts[key]
            before, is_first = self._before(place)
            at = verdict.as_of if verdict.status == "committed" else None
            is_next = before is not None or is_first
            since, evidence = place.appended_at, verdict.evidence
            yield SetNode("record", place, before, is_first, is_next, since, verdict, at, evidence)

    def _before(self, place: SetInForce) -> tuple[Key | None, bool]:
        """The set that a record took the place of, and whether the record is the first of its line."""
        state = self._state_below(place)
        if not state.is_static:
            return self._key_of(state.voters), False
        election = self.known.elections.get(place.leader_epoch)
        if election is not None and election.offset == place.batch_base_offset:
            return (self.bootstrap.key if self.bootstrap else None), True
        static = [node for node in self.static if node.voters.leader_epoch <= place.leader_epoch]
        return (static[-1].key if static else None), True

    def _state_below(self, place: SetInForce) -> StateInForce:
        line = self.known.lineage.lines.get(place.leader_epoch)
        if line is not None and place.offset == line.first_offset:
            return self.known.in_force.below_epoch(place.leader_epoch)
        return self.known.in_force.at(place.leader_epoch, place.offset - 1)

    def _state_in_log(self, place: SetInForce) -> StateInForce:
        """What captured logs put in force where a snapshot ends; UNKNOWN where none reaches that far."""
        line = self.known.lineage.lines.get(place.leader_epoch)
        if line is None or not line.covers(place.offset):
            return UNKNOWN
        return self.known.in_force.at(place.leader_epoch, place.offset)

    def _key_of(self, place: SetInForce | None) -> Key | None:
        if place is None:
            return None
        if place.source == "snapshot":
            return self.by_snapshot.get((place.offset, place.leader_epoch))
        return (place.offset, place.leader_epoch, place.source)

    def _snapshot_nodes(self) -> list[SetNode]:
        """Sets that no captured record explains, at the lowest snapshot end that shows them."""
        nodes: list[SetNode] = []
        committed = [p for key, p in self.records.items() if self.verdicts[key].status == "committed"]
        history: list[tuple[int, VoterSet, Key]] = [
            (p.offset, p.voters, (p.offset, p.leader_epoch, "record")) for p in committed
        ]
        for snapshot in self.known.facts.snapshots:
            place = snapshot_set(snapshot) if snapshot.proves else None
            if place is None:
                continue
            by_log = self._state_in_log(place)
            below = max((entry for entry in history if entry[0] <= place.offset), default=None, key=_place)
            if by_log.is_static or (by_log.voters and by_log.voters.source == "record"):
                key = self._key_of(by_log.voters)
            elif below is not None and below[1] == place.voters:
                key = below[2]
            else:
                key = (place.offset, place.leader_epoch, "snapshot")
                history.append((place.offset, place.voters, key))
                nodes.append(self._snapshot_node(snapshot, place, below[2] if below else None))
            if key is not None:
                self.by_snapshot.setdefault((place.offset, place.leader_epoch), key)
        return nodes

    def _snapshot_node(self, snapshot: SnapshotFacts, place: SetInForce, before: Key | None) -> SetNode:
        verdict = self.known.commit.of_batch(place.leader_epoch, place.offset, place.batch_end_offset)
        evidence = f"known from snapshots, in force at or before {place.offset}; {verdict.evidence}"
        at = verdict.as_of if verdict.status == "committed" else None
        since = snapshot.last_contained_log_timestamp
        return SetNode("snapshot", place, before, False, False, since, verdict, at, evidence)


def _place(entry: tuple[int, VoterSet, Key]) -> tuple[int, Key]:
    return entry[0], entry[2]


def _records(known: Conclusions) -> dict[Key, SetInForce]:
    """The VotersRecords of captured logs by their key, by offset."""
    found: dict[Key, SetInForce] = {}
    for record in known.facts.control_records:
        place = record_set(record) if record.type == "KRaftVoters" else None
        if place is not None:
            found.setdefault((record.offset, record.leader_epoch, "record"), place)
    return found
