"""Rules 17, 18 and 22: what a checkpoint may hold, and where it may end.

Rules 17 and 18 themselves are raft.invariants; what a checkpoint must carry is in any captured log that holds
its last record, not only in that of the replica that wrote it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from kraft_core.evidence.facts import Capture, SnapshotFacts, labels
from kraft_core.evidence.states import StateInForce, snapshot_set
from kraft_core.findings.capture_order import taken_by
from kraft_core.findings.captured_logs import engine_snapshot
from kraft_core.findings.cluster_view import ClusterView
from kraft_core.findings.facts import SnapshotDeviation
from kraft_core.findings.finding import Breach, Severity, of_rule
from kraft_core.findings.snapshot_deviations import MAX_REPORTED
from kraft_core.raft import invariants
from kraft_core.raft.batches import Batch, Batches, ControlRecord, KRaftVersion
from kraft_core.raft.log import ReplicaLog
from kraft_core.raft.voters import ReplicaKey, VoterSet
from kraft_core.wording import count


def snapshots_carry_the_log(view: ClusterView) -> Iterator[Breach]:
    """Rule 17."""
    for snapshot in view.known.facts.snapshots:
        if snapshot.proves:
            for found in invariants.snapshots_carry_the_log(_log_below(view, snapshot)):
                yield checkpoint_breach(
                    view, 17, "error", snapshot, f"{checkpoint_name(snapshot)} {found.detail}.", ""
                )


def snapshots_of_one_id_agree(view: ClusterView) -> Iterator[Breach]:
    """Rule 17, where no captured log says which of two checkpoints of one end offset and epoch is right."""
    by_id: defaultdict[tuple[int, int], list[SnapshotFacts]] = defaultdict(list)
    for snapshot in view.known.facts.snapshots:
        if snapshot.proves and _logged_state(view, snapshot) is None:
            by_id[snapshot.end_offset, snapshot.leader_epoch].append(snapshot)
    for alike in by_id.values():
        by_voters = {_voters(snapshot): snapshot for snapshot in alike}
        if len(by_voters) > 1:
            each = sorted(
                f"{labels(voters) or 'none'} in {checkpoint_name(snapshot)}"
                for voters, snapshot in by_voters.items()
            )
            first = min(alike, key=lambda snapshot: snapshot.content_digest)
            sentence = f"Checkpoints of one end offset and epoch name different voters: {'; '.join(each)}."
            yield checkpoint_breach(view, 17, "error", first, sentence, "")


def _voters(snapshot: SnapshotFacts) -> frozenset[ReplicaKey]:
    place = snapshot_set(snapshot)
    return frozenset() if place is None else place.voters.keys


def _log_below(view: ClusterView, snapshot: SnapshotFacts) -> ReplicaLog:
    """The records that put the voters and the version in force at a snapshot's end, as far as logs show."""
    state = _logged_state(view, snapshot)
    last = snapshot.end_offset - 1
    values: list[VoterSet | KRaftVersion] = []
    if state is not None:
        if state.voters is not None and state.voters.source == "record":
            values.append(state.voters.voters)
        if state.kraft_version is not None:
            values.append(KRaftVersion(state.kraft_version))
    records = tuple(ControlRecord(last, value) for value in values)
    batch = Batch(last, last, snapshot.leader_epoch, control_records=records)
    return ReplicaLog(batches=Batches((batch,)), snapshots=(engine_snapshot(snapshot),))


def _logged_state(view: ClusterView, snapshot: SnapshotFacts) -> StateInForce | None:
    """The state at the last record below a snapshot's end, if a captured log holds it."""
    line = view.known.lineage.lines.get(snapshot.leader_epoch)
    last = snapshot.end_offset - 1
    if line is None or line.contested or not line.covers(last):
        return None
    return view.known.in_force.at(snapshot.leader_epoch, last)


def snapshots_are_aligned(view: ClusterView) -> Iterator[Breach]:
    """Rule 18: complete, on a batch boundary, and not above the highest possible high watermark."""
    for snapshot in view.known.facts.snapshots:
        if snapshot.unfinished or snapshot.is_bootstrap:
            continue
        if not snapshot.complete:
            sentence = f"{checkpoint_name(snapshot)} is incomplete: its header or footer is missing."
            yield checkpoint_breach(view, 18, "error", snapshot, sentence, "")
            continue
        bound = None if _is_believed(view, snapshot) else view.upper_bound_at(_held_at(view, snapshot))
        end = None if _is_held_twice(view, snapshot.batch_end) else snapshot.batch_end
        for found in invariants.snapshots_are_aligned(_log_around(snapshot, end, bound)):
            evidence = (
                f"the batch of its last record ends at {snapshot.batch_end}; log ends bound it by {bound}"
            )
            yield checkpoint_breach(
                view, 18, "error", snapshot, f"{checkpoint_name(snapshot)} {found.detail}.", evidence
            )


def _is_believed(view: ClusterView, snapshot: SnapshotFacts) -> bool:
    """Whether only the leader of an unlawful election considered its end committed (rule 23 reports it)."""
    return view.known.in_force.is_unlawful(snapshot.leader_epoch)


def _held_at(view: ClusterView, snapshot: SnapshotFacts) -> int | None:
    """When it had been written (ms): what is newer than the stated time was copied later."""
    taken = taken_by(_captures(view, snapshot))
    return None if taken is None else max(taken, snapshot.header_timestamp or taken)


def _is_held_twice(view: ClusterView, batch_end: int | None) -> bool:
    """Whether a batch's end lies in another one of its log: either may be at wrong offsets."""
    return batch_end is not None and any(first < batch_end <= end for first, end in view.held_twice)


def _log_around(snapshot: SnapshotFacts, batch_end: int | None, bound: int | None) -> ReplicaLog:
    """A log with the batch that holds a snapshot's last record, and the highest possible high watermark.

    batch_end: of that batch, None if not known.
    """
    last, end = snapshot.end_offset - 1, batch_end or snapshot.end_offset
    return ReplicaLog(
        high_watermark=0 if bound is None else bound,
        known_high_watermark=bound,
        batches=Batches((Batch(last, end - 1, snapshot.leader_epoch),)),
        snapshots=(engine_snapshot(snapshot),),
    )


def snapshots_equal_the_replay(view: ClusterView) -> Iterator[Breach]:
    """Rule 22; a warning if a known defect of Kafka explains it: then its image, not the file, is wrong."""
    by_snapshot: defaultdict[tuple[int, int, str], list[SnapshotDeviation]] = defaultdict(list)
    for deviation in view.facts.snapshot_deviations:
        by_snapshot[deviation.end_offset, deviation.leader_epoch, deviation.content_digest].append(deviation)
    for snapshot in view.known.facts.snapshots:
        differing = sorted(by_snapshot[snapshot.end_offset, snapshot.leader_epoch, snapshot.content_digest])
        if differing:
            unexplained = [deviation for deviation in differing if not deviation.explanation]
            severity: Severity = "error" if unexplained else "warning"
            evidence = "; ".join(_difference(deviation) for deviation in differing[:50])
            yield checkpoint_breach(
                view, 22, severity, snapshot, _deviates(snapshot, differing, unexplained), evidence
            )


def _deviates(
    snapshot: SnapshotFacts, differing: list[SnapshotDeviation], unexplained: list[SnapshotDeviation]
) -> str:
    at_least = "at least " if len(differing) >= MAX_REPORTED else ""
    places = f"{at_least}{count(len(differing), 'place')}"
    difference = f"{places}: it {_difference(differing[0])}"
    what = f"{checkpoint_name(snapshot)} differs from the log below it in {difference}"
    if unexplained:
        return f"{what}."
    return f"{what}. A known defect of Kafka: {differing[0].explanation}."


def _difference(deviation: SnapshotDeviation) -> str:
    verb = "differs in"
    if deviation.is_missing or deviation.is_extra:
        verb = "lacks" if deviation.is_missing else "has, unlike the log,"
    return f"{verb} {deviation.kind} {deviation.subject}"


def checkpoint_name(snapshot: SnapshotFacts) -> str:
    """A checkpoint in words: its end offset and epoch, and who held it."""
    holders = labels({ReplicaKey.of(*holder) for holder in snapshot.held_by})
    return f"Checkpoint {snapshot.end_offset}-{snapshot.leader_epoch} of {holders}"


def checkpoint_breach(
    view: ClusterView, rule: int, severity: Severity, snapshot: SnapshotFacts, sentence: str, evidence: str
) -> Breach:
    """A breach of a rule by a checkpoint."""
    return Breach(
        of_rule(rule),
        severity,
        (snapshot.end_offset, snapshot.leader_epoch, snapshot.content_digest),
        sentence,
        evidence,
        first_offset=snapshot.end_offset - 1,
        end_offset=snapshot.end_offset,
        leader_epochs=(snapshot.leader_epoch,),
        replicas=tuple(ReplicaKey.of(*holder) for holder in snapshot.held_by),
        captures=_captures(view, snapshot),
    )


def _captures(view: ClusterView, snapshot: SnapshotFacts) -> tuple[Capture, ...]:
    """The captures that held it; if unknown, all of its holders' from its first capture on."""
    if snapshot.held_in:
        return tuple(view.captures[name] for name in snapshot.held_in if name in view.captures)
    return tuple(
        capture
        for capture in view.known.facts.captures
        if (capture.node_id, capture.directory_id) in snapshot.held_by
        and capture.captured_at >= snapshot.first_captured_at
    )
