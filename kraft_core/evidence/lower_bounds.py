"""Lower bounds of the high watermark that files prove, and what they prove committed.

A snapshot is taken of committed records only (KIP-630). A new leader's controller becomes active, and writes
data, once the leader's own LEADER_CHANGE batch is committed; before 3.6 it did so once everything below it
was. A leader changes the voters only after a batch of its epoch and the change before are committed
(KIP-853, Voter changes). A leader names its high watermark with what it sends, and what is followed lies
below it (KIP-595, Fetch). Each is what the leader did by the set it believed in: where its LEADER_CHANGE
disagrees with the log's set, the bound is only believed; so is that of a snapshot whose holder may have
learnt from such a leader what is committed, and of a log whose sender may have been one. Replicas hold whole
batches, so a bound inside a batch is rounded up to its end.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from kraft_core.evidence.facts import Capture, CapturedControlRecord, ClusterFacts, SnapshotFacts, labels
from kraft_core.evidence.in_force import InForce
from kraft_core.evidence.lineage import EpochLine, Lineage
from kraft_core.evidence.named_directories import are_of_others, named_directories
from kraft_core.evidence.proofs import BoundKind, Proof
from kraft_core.raft.voters import ReplicaKey

# metadata.version 3.6-IV0: with it in force, the leader's software is 3.6 or newer.
ACTIVE_AFTER_OWN_EPOCH = 12


@dataclass(frozen=True, slots=True)
class LowerBound:
    """The high watermark was at least `bound` from `as_of` (ms) on.

    believed: only the leader of an unlawful election thought so. offset: of the record or snapshot end that
    shows it. commits: (leader epoch, end offset) of the lines it proves committed; empty where believed.
    committed_in: as in Proof.
    """

    kind: BoundKind
    leader_epoch: int
    offset: int
    bound: int
    as_of: int
    words: str
    believed: bool
    commits: tuple[tuple[int, int], ...]
    committed_in: int | None

    def proofs(self) -> Iterator[tuple[int, int, Proof]]:
        """(leader epoch, end offset, proof) for each line it proves committed."""
        for epoch, end in self.commits:
            proof = Proof(self.kind, self.leader_epoch, end, self.as_of, self.words, self.committed_in)
            yield epoch, end, proof


@dataclass(frozen=True, slots=True)
class LowerBounds:
    """The kinds of bound over one cluster's (distinct) facts."""

    facts: ClusterFacts
    lineage: Lineage
    in_force: InForce

    def all(self) -> list[LowerBound]:
        """Every bound, by epoch and offset."""
        bounds = [
            *self._snapshots(),
            *self._first_data_batches(),
            *self._voters_records(),
            *self._followed(),
            *self._answered(),
        ]
        return sorted(bounds, key=lambda b: (b.leader_epoch, b.offset, b.kind))

    def _bound(
        self,
        kind: BoundKind,
        leader_epoch: int,
        offset: int,
        bound: int,
        as_of: int,
        words: str,
        commits: tuple[tuple[int, int], ...],
        committed_in: int | None,
        *,
        believed: bool | None = None,
    ) -> LowerBound:
        """believed: None: whether the leader of that epoch was elected unlawfully."""
        believed = self.in_force.is_unlawful(leader_epoch) if believed is None else believed
        proven = () if believed else commits
        return LowerBound(kind, leader_epoch, offset, bound, as_of, words, believed, proven, committed_in)

    def _snapshots(self) -> Iterator[LowerBound]:
        held = _SnapshotHolders.of(self.facts.captures)
        unlawful = [epoch for epoch in self.in_force.elections if self.in_force.is_unlawful(epoch)]
        for (end, epoch), same in _by_name(self.facts.snapshots).items():
            dated = [s.header_timestamp for s in same if s.header_timestamp is not None]
            if not dated or self._contested(epoch):
                continue
            bound = max([end, *(s.batch_end for s in same if s.batch_end is not None)])
            holders = {ReplicaKey.of(*holder) for snapshot in same for holder in snapshot.held_by}
            words = f"snapshot {end}/e{epoch} of {labels(holders)}"
            known_in = [e for e in map(held.epoch_of, same) if e is not None]
            committed_in = min(known_in, default=None)
            at, commits = min(dated), ((epoch, bound),)
            # Its writer learnt from a leader of its epoch or of a later one what was committed.
            believed = any(e >= epoch and (committed_in is None or e <= committed_in) for e in unlawful)
            yield self._bound(
                "snapshot", epoch, end, bound, at, words, commits, committed_in, believed=believed
            )

    def _first_data_batches(self) -> Iterator[LowerBound]:
        for epoch, line in self.lineage.lines.items():
            if line.contested or line.start is None or line.first_batch_end is None:
                continue
            if line.first_data_end is None or line.first_data_appended_at is None:
                continue
            own = self._active_after_own_epoch(line, line.first_batch_end, line.first_data_end)
            bound = line.first_batch_end if own else line.start
            below = line.below
            commits = ((epoch, bound),) if own else ((below.parent, bound),) if below else ()
            if bound > 0:
                words = f"the first data batch of epoch {epoch} follows its LEADER_CHANGE at {line.start}"
                at = line.first_data_appended_at
                yield self._bound("first_data_batch", epoch, line.start, bound, at, words, commits, epoch)

    def _active_after_own_epoch(self, line: EpochLine, first_batch_end: int, first_data_end: int) -> bool:
        version = self.in_force.at(line.leader_epoch, first_batch_end - 1).kraft_version
        level = self.in_force.at(line.leader_epoch, first_data_end - 1).metadata_version
        return (version or 0) >= 1 or (level or 0) >= ACTIVE_AFTER_OWN_EPOCH

    def _voters_records(self) -> Iterator[LowerBound]:
        for record in self.facts.control_records:
            line = self.lineage.lines.get(record.leader_epoch)
            # One that shares its batch belongs to an election or to the upgrade of kraft.version.
            alone = record.batch_end_offset - record.batch_base_offset == 1
            if record.type != "KRaftVoters" or not alone or line is None or line.contested:
                continue
            # LEADER_CHANGE at least lies below it; above a gap it may be a copy with a damaged offset.
            if line.covers(record.batch_base_offset - 1):
                yield from self._before_record(record, line)

    def _before_record(self, record: CapturedControlRecord, line: EpochLine) -> Iterator[LowerBound]:
        """Its epoch's first batch and the VotersRecord before it; a snapshot does not show where that was."""
        epoch, previous = record.leader_epoch, self.in_force.at(record.leader_epoch, record.offset - 1).voters
        commits: list[tuple[int, int]] = []
        before = ""
        if line.first_batch_end is not None:
            commits.append((epoch, line.first_batch_end))
            before = f"LEADER_CHANGE {line.start}/e{epoch}"
        if previous is not None and previous.source == "record":
            commits.append((previous.leader_epoch, previous.batch_end_offset))
            before = previous.words
        if commits:
            words = f"VotersRecord {record.offset}/e{epoch} follows a committed {before}"
            bound = max(end for _, end in commits)
            at = record.appended_at
            proven = tuple(commits)
            yield self._bound("voters_record", epoch, record.offset, bound, at, words, proven, epoch)

    def _followed(self) -> Iterator[LowerBound]:
        """The end of what was followed. A leader of its last epoch or of a later one sent it.

        The stated time is that of a pass that read all, and no record is later. Where one is, a pass read it
        that did not end, at an unknown time.
        """
        unlawful = [epoch for epoch in self.in_force.elections if self.in_force.is_unlawful(epoch)]
        for copy in self.facts.followed:
            at = copy.captured_until
            if at is None or not copy.epoch_ranges or self._contested(copy.epoch_ranges[-1].leader_epoch):
                continue
            if copy.epoch_ranges[-1].last_appended_at > at:
                continue
            epoch, end = copy.epoch_ranges[-1].leader_epoch, copy.epoch_ranges[-1].end_offset
            believed = any(each >= epoch for each in unlawful)
            words = f"a leader sent everything below {end}/e{epoch} as committed"
            yield self._bound("live", epoch, end, end, at, words, ((epoch, end),), None, believed=believed)

    def _answered(self) -> Iterator[LowerBound]:
        """What a leader answered, if its LEADER_CHANGE names it, and its voters are not those of others.

        A leader knows no high watermark before a batch of its own epoch is committed (KIP-595). Where
        captures contradict each other, its answer may be of either history.
        """
        if not self.facts.answered or self.lineage.contested_epochs:
            return
        directories = named_directories(self.facts)
        for told in self.facts.answered:
            if are_of_others(told.voters, directories):
                continue
            epoch, end = told.leader_epoch, told.high_watermark
            line, election = self.lineage.lines.get(epoch), self.in_force.elections.get(epoch)
            if line is None or line.contested or line.start is None or end <= line.start:
                continue
            if election is not None and election.leader_id == told.leader_id:
                words = f"leader {told.leader_id} of epoch {epoch} reported everything below {end} committed"
                yield self._bound("answer", epoch, end, end, told.at, words, ((epoch, end),), epoch)

    def _contested(self, leader_epoch: int) -> bool:
        line = self.lineage.lines.get(leader_epoch)
        return line is not None and line.contested


@dataclass(frozen=True, slots=True)
class _SnapshotHolders:
    """The captures that may have held a snapshot, by their name and by their directory."""

    by_name: dict[str, Capture]
    by_directory: dict[tuple[int, str], list[Capture]]

    @staticmethod
    def of(captures: tuple[Capture, ...]) -> _SnapshotHolders:
        by_directory: defaultdict[tuple[int, str], list[Capture]] = defaultdict(list)
        for capture in captures:
            by_directory[capture.node_id, capture.directory_id].append(capture)
        return _SnapshotHolders({c.capture_id: c for c in captures}, dict(by_directory))

    def epoch_of(self, snapshot: SnapshotFacts) -> int | None:
        """The lowest epoch that a replica is known to have been in with the snapshot, so not before it.

        What a replica knows to be committed it learnt from leaders of its epoch or of earlier ones. Where
        the captures that held the snapshot are unknown, it may have been the last one of its directory.
        """
        if snapshot.held_in:
            held = [[self.by_name[name]] for name in snapshot.held_in if name in self.by_name]
        else:
            held = [self.by_directory.get(holder, []) for holder in snapshot.held_by]
        epochs = [[capture.in_epoch for capture in captures] for captures in held]
        known = [[e for e in of_one if e is not None] for of_one in epochs if of_one and None not in of_one]
        return min(map(max, known), default=None)


def _by_name(snapshots: tuple[SnapshotFacts, ...]) -> dict[tuple[int, int], list[SnapshotFacts]]:
    named: defaultdict[tuple[int, int], list[SnapshotFacts]] = defaultdict(list)
    for snapshot in snapshots:
        if snapshot.proves:
            named[snapshot.end_offset, snapshot.leader_epoch].append(snapshot)
    return named
