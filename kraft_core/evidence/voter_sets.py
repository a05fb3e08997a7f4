"""The voter sets that captures show, each with its place in the history of its line.

Sources: VotersRecords of captured logs; sets known only from snapshots; static sets, which with
kraft.version 0 show in LEADER_CHANGE records; and the bootstrap checkpoint's (KIP-853, Bootstrapping). A set
is in force from its record on, until the next one of the same line; one that is truncated away gives way to
the one before it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from kraft_core.evidence.commit import Verdict
from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.facts import SnapshotFacts, labels
from kraft_core.evidence.in_force import UNKNOWN, SetInForce, State, record_set, snapshot_set, static_set
from kraft_core.evidence.rows import EndpointRow, SetSource, VoterRow, VoterSetRow
from kraft_core.raft.voters import ReplicaKey, Voter, VoterSet
from kraft_core.uuid_text import ZERO_UUID

Key: TypeAlias = tuple[int, int, str]  # offset, leader epoch, source


@dataclass(frozen=True, slots=True)
class SetNode:
    """A voter set in its history.

    before: the set it took the place of, if that is known. is_first: nothing came before it but a static or
    a bootstrap configuration. since (ms): when its record was appended; of a snapshot, when it was in force
    at the latest; None if unknown. verdict: None for static and bootstrap sets. committed_at: when it, or
    the LEADER_CHANGE that shows it, is known to be committed.
    """

    source: SetSource
    voters: SetInForce
    before: Key | None
    is_first: bool
    since: int | None
    verdict: Verdict | None
    committed_at: int | None
    evidence: str

    @property
    def key(self) -> Key:
        return (self.voters.offset, self.voters.leader_epoch, self.source)

    @property
    def is_next(self) -> bool:
        """Whether the set before it, on its own line of the log, is known."""
        return self.source != "snapshot" and (self.before is not None or self.is_first)

    def may_count_at(self, moment: int) -> bool:
        """Whether a leader may have counted by this set at a moment (ms), by what is known of its times."""
        verdict = self.verdict
        gone = verdict is not None and verdict.status == "truncated" and verdict.for_good
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
            previous is None and election.offset == 0,
            election.elected_at,
            None,
            proof.as_of if proof else None,
            f"voters of the LEADER_CHANGE of epoch {epoch}",
        )
        yield previous


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
    return SetNode("bootstrap", place, None, True, None, None, None, evidence)


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
            yield SetNode("record", place, before, is_first, place.appended_at, verdict, at, verdict.evidence)

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

    def _state_below(self, place: SetInForce) -> State:
        line = self.known.lineage.lines.get(place.leader_epoch)
        if line is not None and place.offset == line.first_offset:
            return self.known.in_force.below_epoch(place.leader_epoch)
        return self.known.in_force.at(place.leader_epoch, place.offset - 1)

    def _state_in_log(self, place: SetInForce) -> State:
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
        return SetNode("snapshot", place, before, False, since, verdict, at, evidence)


def _place(entry: tuple[int, VoterSet, Key]) -> tuple[int, Key]:
    return entry[0], entry[2]


def _records(known: Conclusions) -> dict[Key, SetInForce]:
    """The VotersRecords of captured logs by their key, by offset."""
    found: dict[Key, SetInForce] = {}
    for record in known.facts.control_records:
        if record.type == "KRaftVoters":
            found.setdefault((record.offset, record.leader_epoch, "record"), record_set(record))
    return found


def voter_sets(known: Conclusions, nodes: list[SetNode]) -> list[VoterSetRow]:
    """The table's rows, in the order of the nodes."""
    successors: defaultdict[Key, list[SetNode]] = defaultdict(list)
    for node in nodes:
        if node.before is not None:
            successors[node.before].append(node)
    return [_row(known, node, _successor(node, successors[node.key])) for node in nodes]


def _status(node: SetNode) -> str | None:
    return node.verdict.status if node.verdict else None


def _successor(node: SetNode, candidates: list[SetNode]) -> SetNode | None:
    """The set that took its place: one that was truncated did so only for a set truncated with it."""
    lasting = [c for c in candidates if _status(c) != "truncated" or _status(node) == "truncated"]
    return min(lasting, default=None, key=lambda c: (_status(c) != "committed", c.key))


def _row(known: Conclusions, node: SetNode, successor: SetNode | None) -> VoterSetRow:
    to_offset, to = _until(known, node, successor)
    place, verdict = node.voters, node.verdict
    return VoterSetRow(
        known.facts.cluster_id,
        place.offset,
        place.leader_epoch,
        node.source,
        tuple(_voter_row(voter, node.source) for voter in place.voters),
        place.voters.ids,
        place.voters.majority,
        verdict.status if verdict else None,
        node.evidence,
        verdict.as_of if verdict else None,
        place.appended_at,
        place.offset,
        to_offset,
        node.since,
        to,
        verdict.truncated_by_epoch if verdict else None,
    )


def _until(known: Conclusions, node: SetNode, successor: SetNode | None) -> tuple[int | None, int | None]:
    """Until which offset and time a set was in force."""
    if successor is not None:
        return successor.voters.offset, successor.since
    verdict = node.verdict
    if verdict is None or verdict.truncated_by_epoch is None:
        return None, None
    line = known.lineage.lines.get(node.voters.leader_epoch)
    election = known.elections.get(verdict.truncated_by_epoch)
    return (line.end_offset if line else None), (election.elected_at if election else verdict.as_of)


def _voter_row(voter: Voter, source: SetSource) -> VoterRow:
    static = source == "static"
    return VoterRow(
        voter.key.id,
        voter.key.directory_id or ZERO_UUID,
        tuple(EndpointRow(end.name, end.host, end.port) for end in voter.endpoints),
        None if static else voter.min_supported_version,
        None if static else voter.max_supported_version,
    )
