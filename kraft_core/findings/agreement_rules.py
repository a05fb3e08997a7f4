"""Rules 1, 3 and 4: what the replicas of a cluster must agree on.

Checked over all captures: by epoch ranges, control records and what kraft_core.evidence proves committed.
Logs may lawfully differ above what is committed, so a difference alone is not a violation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from kraft_core.evidence.facts import Capture, EpochRange, label, labels
from kraft_core.evidence.proofs import Proof
from kraft_core.evidence.truncation import committed_ranges
from kraft_core.findings.cluster_view import ClusterView, epoch_at, holds, replicas_of
from kraft_core.findings.facts import MAX_CONFLICTS, BatchConflict
from kraft_core.findings.finding import Breach, of_rule
from kraft_core.raft.quorum_invariants import leaders_agree
from kraft_core.raft.voters import ReplicaKey
from kraft_core.wording import offset_words


def one_leader_an_epoch(view: ClusterView) -> Iterator[Breach]:
    """Rule 1, by LEADER_CHANGE records, describe outputs and quorum-state files that fit their logs."""
    claims: set[tuple[int, int, int]] = set()
    sources: defaultdict[int, set[str]] = defaultdict(set)
    for record in view.known.facts.control_records:
        if record.type == "LeaderChange" and record.value is not None:
            leader = record.value["leaderId"]
            claims.add((record.leader_epoch, record.offset, leader))
            sources[record.leader_epoch].add(f"LEADER_CHANGE at {record.offset}: {leader}")
    for capture in view.known.facts.captures:
        epoch, leader = capture.quorum_state_epoch, capture.quorum_state_leader_id
        if epoch is not None and leader is not None and leader >= 0 and capture.consistent:
            claims.add((epoch, -1, leader))
            sources[epoch].add(f"quorum-state of {label(capture.replica)}: {leader}")
    for output in view.reports.not_strange:
        if output.kind == "status" and output.leader_epoch is not None:
            claims.add((output.leader_epoch, -1, output.node_id))
            sources[output.leader_epoch].add(f"{output.source}: {output.node_id}")
    for epoch in sorted({found.leader_epoch for found in leaders_agree(sorted(claims))}):
        yield _two_leaders(view, epoch, claims, sources[epoch])


def _two_leaders(
    view: ClusterView, epoch: int, claims: set[tuple[int, int, int]], sources: set[str]
) -> Breach:
    leaders = sorted({leader for of, _, leader in claims if of == epoch})
    offsets = [offset for of, offset, _ in claims if of == epoch and offset >= 0]
    captures = tuple(
        c
        for c in view.known.facts.captures
        if c.quorum_state_epoch == epoch
        or any(epoch_range.leader_epoch == epoch for epoch_range in c.epoch_ranges)
    )
    return Breach(
        of_rule(1),
        "error",
        (epoch,),
        f"Epoch {epoch} has {len(leaders)} leaders: {', '.join(map(str, leaders))}.",
        "; ".join(sorted(sources)),
        first_offset=min(offsets, default=None),
        end_offset=max(offsets) + 1 if offsets else None,
        leader_epochs=(epoch,),
        replicas=tuple(view.replica_named(leader) for leader in leaders),
        captures=captures,
        observed_at=_observed(view, epoch),
    )


def _observed(view: ClusterView, epoch: int) -> tuple[int, ...]:
    return tuple(output.observed_to for output in view.reports.not_strange if output.leader_epoch == epoch)


def logs_match(view: ClusterView) -> Iterator[Breach]:
    """Rule 3, one breach per epoch: batches that differ, or ranges and control records that contradict."""
    conflicts: defaultdict[int, list[BatchConflict]] = defaultdict(list)
    for conflict in view.facts.batch_conflicts:
        conflicts[conflict.leader_epoch].append(conflict)
    contested = set(view.known.lineage.contested_epochs)
    for epoch in sorted(conflicts.keys() | contested):
        if conflicts[epoch]:
            yield _conflicting(view, epoch, sorted(conflicts[epoch]))
        else:
            captures = tuple(
                c
                for c in view.known.facts.captures
                if any(epoch_range.leader_epoch == epoch for epoch_range in c.epoch_ranges)
            )
            line = view.known.lineage.lines[epoch]
            shown = "two starts or two contents of it, or a lower epoch above it"
            sentence = f"Logs disagree about epoch {epoch}: captures show {shown}."
            starts = sorted(
                {
                    (epoch_range.first_offset, c.replica)
                    for c in captures
                    for epoch_range in _ranges(c, epoch)
                },
                key=str,
            )
            evidence = ", ".join(f"{label(replica)} from {first}" for first, replica in starts[:20])
            yield _unmatched(epoch, sentence, evidence, line.first_offset, line.end_offset, captures)


def _ranges(capture: Capture, epoch: int) -> Iterator[EpochRange]:
    return (epoch_range for epoch_range in capture.epoch_ranges if epoch_range.leader_epoch == epoch)


def _conflicting(view: ClusterView, epoch: int, conflicts: list[BatchConflict]) -> Breach:
    """No file shows which replica is at fault; if one differs from several, it alone is named."""
    first = conflicts[0]
    copies = sorted(first.copies, key=lambda copy: (len(copy.held_by), copy.held_by))
    few = [copy for copy in copies if len(copy.held_by) == len(copies[0].held_by)]
    alone = few if len(few) < len(copies) else copies
    odd = {ReplicaKey.of(*holder) for copy in alone for holder in copy.held_by}
    sides = " against ".join(labels(ReplicaKey.of(*h) for h in copy.held_by) for copy in copies)
    captures = tuple(
        c for c in view.known.facts.captures if c.replica in odd and holds(c, epoch, first.base_offset)
    )
    end = max(copy.end_offset for conflict in conflicts for copy in conflict.copies)
    sentence = (
        f"Epoch {epoch} has different batches at the same offset, {first.base_offset}: {sides} "
        f"({_offsets(len(conflicts))})."
    )
    evidence = "; ".join(
        f"{conflict.base_offset}: "
        + ", ".join(f"crc {copy.crc} to {copy.end_offset}" for copy in sorted(conflict.copies))
        for conflict in conflicts[:10]
    )
    return _unmatched(epoch, sentence, evidence, first.base_offset, end, captures)


def _offsets(conflicts: int) -> str:
    """How many offsets differ; conflicts above MAX_CONFLICTS are not among the facts."""
    if conflicts == 1:
        return "the only such offset"
    return f"{conflicts} such offsets{' or more' if conflicts >= MAX_CONFLICTS else ''}"


def _unmatched(
    epoch: int, sentence: str, evidence: str, first: int, end: int, captures: tuple[Capture, ...]
) -> Breach:
    return Breach(
        of_rule(3),
        "error",
        (epoch,),
        sentence,
        evidence,
        first_offset=first,
        end_offset=end,
        leader_epochs=(epoch,),
        replicas=replicas_of(captures),
        captures=captures,
    )


def committed_agree(view: ClusterView) -> Iterator[Breach]:
    """Rule 4: ranges of two epochs that are both proven committed do not overlap.

    So with the last record below a checkpoint, which no captured log need hold.
    """
    reaching: tuple[int, int, int] | None = None
    logged = committed_ranges(view.known.lineage, view.known.commit.prefixes)
    for held in sorted({*logged, *_unlogged(view)}):
        if reaching is not None and held[0] < reaching[1] and held[2] != reaching[2]:
            yield _committed_twice(view, reaching, held)
        if reaching is None or held[1] > reaching[1]:
            reaching = held


def _unlogged(view: ClusterView) -> Iterator[tuple[int, int, int]]:
    """(first, end, epoch) of single records that are proven committed and that no captured log holds."""
    lines = view.known.lineage.lines
    for bound in view.known.lower_bounds:
        for epoch, end, _ in bound.proofs():
            line = lines.get(epoch)
            if line is None or not (line.contested or line.covers(end - 1)):
                yield end - 1, end, epoch


def _committed_twice(view: ClusterView, one: tuple[int, int, int], other: tuple[int, int, int]) -> Breach:
    first, end = max(one[0], other[0]), min(one[1], other[1])
    epochs = tuple(sorted((one[2], other[2])))
    proofs = [_proof(view, epoch, first + 1) for epoch in epochs]
    captures = tuple(c for c in view.known.facts.captures if epoch_at(c, first) in epochs)
    return Breach(
        of_rule(4),
        "error",
        epochs,
        f"{offset_words(first, end).capitalize()} {'was' if end == first + 1 else 'were'} committed twice: "
        f"in epoch {epochs[0]} and in epoch {epochs[1]}.",
        "; ".join(
            f"epoch {epoch}: {proof.words}" for epoch, proof in zip(epochs, proofs, strict=True) if proof
        ),
        first_offset=first,
        end_offset=end,
        leader_epochs=epochs,
        replicas=replicas_of(captures),
        captures=captures,
    )


def _proof(view: ClusterView, epoch: int, end: int) -> Proof | None:
    prefix = view.known.commit.prefixes.get(epoch)
    return prefix.proof_of(end) if prefix else None
