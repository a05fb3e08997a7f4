"""Rules 8, 9 and 24: the high watermarks that leaders reported, and acted on, against captured logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kraft_core.evidence.facts import Capture
from kraft_core.evidence.holdings import lacks
from kraft_core.evidence.lineage import EpochLine
from kraft_core.evidence.states import SetInForce
from kraft_core.findings.capture_order import taken_by
from kraft_core.findings.cluster_view import ClusterView, holds
from kraft_core.findings.facts import Observation
from kraft_core.findings.finding import Breach, of_rule
from kraft_core.findings.reported_watermarks import of_leader, reported_watermarks
from kraft_core.raft import quorum_invariants
from kraft_core.raft.batches import Batch, Batches
from kraft_core.raft.log import ReplicaLog
from kraft_core.raft.quorum_invariants import Committed
from kraft_core.raft.rules import Violation
from kraft_core.raft.voters import ReplicaKey, Voter


@dataclass(frozen=True, slots=True)
class _Claim:
    """A reported high watermark and the voter sets that a leader can have counted by when it reached it.

    last: the last offset below it, as a batch of the leader's epoch. voters: in force there. replaced: the
    set before that one, () where it is unknown. following: the first set that captures show the leader to
    have appended above. Its record may lie above the high watermark: the leader counts by it, for older
    batches too, as soon as it has appended it.
    """

    output: Observation
    high_watermark: int
    line: EpochLine
    last: Batch
    voters: SetInForce
    replaced: tuple[SetInForce, ...]
    following: tuple[SetInForce, ...]

    @property
    def epoch(self) -> int:
        return self.last.leader_epoch


def _claim(view: ClusterView, output: Observation, high_watermark: int, epoch: int) -> _Claim | None:
    """None where no captured log shows the epoch up to the high watermark, or the set in force there."""
    last = Batch(high_watermark - 1, high_watermark - 1, epoch)
    voters = view.known.in_force.voters_at(epoch, last.base_offset)
    line = view.known.lineage.lines.get(epoch)
    if voters is None or line is None or not line.covers(last.base_offset):
        return None
    following = _next_set(view, line, high_watermark)
    return _Claim(
        output,
        high_watermark,
        line,
        last,
        voters,
        tuple(view.history_of(voters)[1:2]),
        () if following is None else (following,),
    )


def majority_holds_high_watermark(view: ClusterView) -> Iterator[Breach]:
    """Rule 8, of reported high watermarks, and of what a leader's first data batch says is committed.

    Where the leader reached it only by counting itself, rule 24 reports it.
    """
    for output, high_watermark, epoch in reported_watermarks(view):
        claim = _claim(view, output, high_watermark, epoch)
        if claim is not None and _self_counted(view, claim) is not None:
            continue
        details = [
            *(_unheld(view, claim) if claim is not None else ()),
            *_above_bound(view, output, high_watermark, epoch),
        ]
        if details:
            sentence = (
                f"Leader {output.node_id} of epoch {epoch} reported the high watermark {high_watermark}, "
                f"which {details[0]}."
            )
            evidence = f"{output.source}; {'; '.join(details)}"
            yield _of_output(view, 8, output, (epoch, high_watermark), sentence, evidence)
    yield from _data_too_early(view)


def leader_outside_voters_is_not_counted(view: ClusterView) -> Iterator[Breach]:
    """Rule 24, of high watermarks that a leader reported after it had removed itself from the voters.

    A breach takes a describe output, the leader's own VotersRecord below the high watermark, and for so many
    voters of that set a later capture that lacks the last batch that the others are no majority without the
    leader. A voter that was not captured may hold it. The leader of an unlawful election counted by another
    set: rule 23 reports that.
    """
    for output, high_watermark, epoch in reported_watermarks(view):
        claim = _claim(view, output, high_watermark, epoch)
        found = _self_counted(view, claim) if claim is not None else None
        if claim is None or found is None:
            continue
        sentence = (
            f"Leader {output.node_id} of epoch {epoch} counted itself for the high watermark "
            f"{high_watermark}: it is not a voter of {claim.voters.words}, and what lies below "
            f"{found.detail}."
        )
        yield _of_output(
            view, 24, output, (epoch, high_watermark), sentence, f"{output.source}; {found.detail}"
        )


def _of_output(
    view: ClusterView,
    rule: int,
    output: Observation,
    identity: tuple[int, int],
    sentence: str,
    evidence: str,
) -> Breach:
    """A breach that a describe output shows; identity: the epoch and its high watermark."""
    epoch, high_watermark = identity
    leader = view.replica_named(output.node_id)
    return Breach(
        of_rule(rule),
        "error",
        identity,
        sentence,
        evidence,
        first_offset=high_watermark - 1,
        end_offset=high_watermark,
        leader_epochs=(epoch,),
        replicas=(leader,),
        captures=of_leader(view, leader, epoch),
        observed_at=(output.observed_from, output.observed_to),
    )


def _unheld(view: ClusterView, claim: _Claim) -> Iterator[str]:
    """Why no majority of a set that can have counted held what lies below the high watermark."""
    sets = (claim.voters, *claim.replaced, *claim.following)
    logs = _logs(view, claim, sets)
    if not _is_decided(view, claim, logs, claim.voters):
        return
    for found in quorum_invariants.majority_holds(logs, _committed(claim), tuple(s.voters for s in sets)):
        yield f"{found.detail}, of {claim.voters.words}"


def _self_counted(view: ClusterView, claim: _Claim) -> Violation | None:
    """The breach of rule 24, if the leader had removed itself below the high watermark and counted itself."""
    leader = _removed_leader(view, claim)
    if leader is None:
        return None
    sets = (claim.voters, *claim.following)
    logs = _logs(view, claim, sets)
    if not _is_decided(view, claim, logs, claim.replaced[0]):
        return None
    counted = tuple(s.voters for s in sets)
    return next(
        quorum_invariants.leader_outside_voters_is_not_counted(leader, logs, _committed(claim), counted), None
    )


def _removed_leader(view: ClusterView, claim: _Claim) -> ReplicaKey | None:
    """The epoch's leader, if its own VotersRecord, in force at the high watermark, left it out."""
    voters, in_force = claim.voters, view.known.in_force
    is_own = voters.source == "record" and voters.leader_epoch == claim.epoch
    if not is_own or not claim.replaced or in_force.is_unlawful(claim.epoch):
        return None
    leader = in_force.leader_among(claim.replaced[0].voters, claim.epoch)
    if leader is None or leader.key.id in voters.voters.ids or leader.key.id != claim.output.node_id:
        return None
    return leader.key


def _logs(view: ClusterView, claim: _Claim, sets: Iterable[SetInForce]) -> dict[ReplicaKey, ReplicaLog]:
    """For each voter a log with the last batch, or without it where captures show that it lacked it."""
    holding, empty = ReplicaLog(batches=Batches((claim.last,))), ReplicaLog()
    logs: dict[ReplicaKey, ReplicaLog] = {}
    for voter in (voter for counted in sets for voter in counted.voters):
        replicas = view.known.holdings.replicas_of(voter)
        lacking = bool(replicas) and all(_lacked(view, voter, r, claim) for r in replicas)
        logs[voter.key] = empty if lacking else holding
    return logs


def _committed(claim: _Claim) -> Committed:
    return Committed(ReplicaLog(batches=Batches((claim.last,))), claim.high_watermark)


def _is_decided(
    view: ClusterView, claim: _Claim, logs: dict[ReplicaKey, ReplicaLog], leads_in: SetInForce
) -> bool:
    """Whether no set that captures do not show can have made the holders a majority.

    A leader appends no second change before the first is committed, so only the next set counts. Where it is
    not known, it may be any that one voter, added or removed, makes of the set in force: half the voters of
    an even set are a majority of such a one, less than half of them never are. leads_in: the set in which
    the leader is found.
    """
    voters = claim.voters.voters
    is_half = 2 * sum(claim.last in logs[voter.key].batches for voter in voters) >= len(voters)
    return not is_half or _is_next(claim) or _leader_shows(view, claim, leads_in)


def _next_set(view: ClusterView, line: EpochLine, high_watermark: int) -> SetInForce | None:
    """The first captured set that the epoch's leader appended above a high watermark."""
    for part in view.known.in_force.voter_set_ranges(line):
        voters = part.voters
        if voters is None or voters.source != "record" or voters.leader_epoch != line.leader_epoch:
            continue
        if voters.batch_base_offset >= high_watermark:
            return voters
    return None


def _is_next(claim: _Claim) -> bool:
    """Whether the log is captured from the high watermark to the following set: no other lies between."""
    return any(
        first < claim.high_watermark and following.offset < end
        for following in claim.following
        for first, end in claim.line.covered
    )


def _leader_shows(view: ClusterView, claim: _Claim, leads_in: SetInForce) -> bool:
    """Whether the leader was captured in its epoch after the output, with all that it had appended above."""
    leader = view.known.in_force.leader_among(leads_in.voters, claim.epoch)
    return leader is not None and any(
        _was_taken_after(capture, claim.output)
        and capture.in_epoch == claim.epoch
        and capture.known_end == capture.epoch_ranges[-1].end_offset
        and holds(capture, claim.epoch, claim.last.base_offset)
        for replica in view.known.holdings.replicas_of(leader)
        for capture in view.known.holdings.captures[replica]
        if capture.epoch_ranges
    )


def _lacked(view: ClusterView, voter: Voter, replica: ReplicaKey, claim: _Claim) -> bool:
    """Whether a voter never had the batch: a capture after the output lacks it, and no capture holds it."""
    last = claim.last
    # Of an epoch that was only followed no replica holds anything.
    held = view.known.holdings.by_epoch.get(last.leader_epoch, {}).get(replica)
    if held is not None and any(first <= last.base_offset < end for first, end in held.ranges):
        return False
    return any(
        _was_taken_after(capture, claim.output)
        and lacks(capture, last.leader_epoch, last.base_offset)
        and not view.known.holdings.may_be_new_disk(capture, voter)
        for capture in view.known.holdings.captures[replica]
    )


def _was_taken_after(capture: Capture, output: Observation) -> bool:
    """Whether a capture was taken at or after the end of a describe command."""
    return capture.captured_from is not None and capture.captured_from >= output.observed_to


def _above_bound(view: ClusterView, output: Observation, high_watermark: int, epoch: int) -> Iterator[str]:
    bound = view.upper_bound_at(output.observed_to)
    if bound is not None and high_watermark > bound and not view.known.in_force.is_unlawful(epoch):
        yield f"is above {bound}, the most that captured log ends allow"


def _data_too_early(view: ClusterView) -> Iterator[Breach]:
    """A leader writes data once the log up to its epoch has committed; an upper bound below is a breach."""
    for lower in view.known.lower_bounds:
        if lower.kind != "first_data_batch" or lower.believed:
            continue
        data_end = view.known.lineage.lines[lower.leader_epoch].first_data_end
        captures = view.holding(lower.leader_epoch, lower.offset if data_end is None else data_end - 1)
        bound = view.upper_bound_at(taken_by(captures))
        election = view.known.elections.get(lower.leader_epoch)
        if bound is not None and lower.bound > bound and election is not None:
            yield Breach(
                of_rule(8),
                "error",
                (lower.leader_epoch, "first_data_batch"),
                f"Leader {election.leader_id} of epoch {lower.leader_epoch} wrote data before a majority can "
                f"have held the log up to {lower.bound}.",
                f"{lower.words}; by captured log ends the high watermark was at most {bound}",
                first_offset=lower.offset,
                end_offset=lower.bound,
                leader_epochs=(lower.leader_epoch,),
                replicas=(view.replica_named(election.leader_id),),
                captures=captures,
            )


def high_watermark_in_epoch(view: ClusterView) -> Iterator[Breach]:
    """Rule 9: a reported high watermark lies above the start of its leader's epoch."""
    for output, high_watermark, epoch in reported_watermarks(view):
        election = view.known.elections.get(epoch)
        if election is None:
            continue
        leader = ReplicaLog(known_high_watermark=high_watermark)
        for found in quorum_invariants.high_watermark_is_in_epoch(leader, election.offset):
            replica = view.replica_named(output.node_id)
            yield Breach(
                of_rule(9),
                "error",
                (epoch, high_watermark),
                f"Leader {output.node_id} of epoch {epoch} reported a high watermark too low: "
                f"{found.detail}.",
                output.source,
                first_offset=high_watermark,
                end_offset=election.offset + 1,
                leader_epochs=(epoch,),
                replicas=(replica,),
                captures=of_leader(view, replica, epoch),
                observed_at=(output.observed_from, output.observed_to),
            )
