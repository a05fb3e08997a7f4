"""Rules 8 and 9: the high watermarks that leaders told, and took for granted, against captured logs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from kraft_core.evidence.holdings import lacks
from kraft_core.evidence.lineage import EpochLine
from kraft_core.evidence.states import SetInForce
from kraft_core.findings.facts import Observation
from kraft_core.findings.finding import Breach, of_rule
from kraft_core.findings.reported_watermarks import of_leader, told_watermarks
from kraft_core.findings.view import ClusterView, holds
from kraft_core.raft.batches import Batch, Batches
from kraft_core.raft.log import ReplicaLog
from kraft_core.raft.quorum_invariants import Committed, high_watermark_is_in_epoch, majority_holds
from kraft_core.raft.voters import ReplicaKey


def majority_holds_high_watermark(view: ClusterView) -> Iterator[Breach]:
    """Rule 8, of what leaders told; and of what a leader's first data batch shows it took for committed."""
    for seen, high_watermark, epoch in told_watermarks(view):
        details = [
            *_unheld(view, seen, high_watermark, epoch),
            *_above_bound(view, seen, high_watermark, epoch),
        ]
        if details:
            leader = view.replica_named(seen.node_id)
            yield Breach(
                of_rule(8),
                "error",
                (epoch, high_watermark),
                f"Leader {seen.node_id} of epoch {epoch} told the high watermark {high_watermark}, "
                f"which {details[0]}.",
                f"{seen.source}; {'; '.join(details)}",
                first_offset=high_watermark - 1,
                end_offset=high_watermark,
                leader_epochs=(epoch,),
                replicas=(leader,),
                captures=of_leader(view, leader, epoch),
                observed_at=(seen.observed_from, seen.observed_to),
            )
    yield from _data_too_early(view)


def _unheld(view: ClusterView, seen: Observation, high_watermark: int, epoch: int) -> Iterator[str]:
    """Why no majority of a set that can have counted held what lies below.

    That is the set in force at the last batch, the one before it, or the next one, whose record may lie above
    the high watermark: the leader counts by it, for older batches too, as soon as it has appended it.
    """
    last = Batch(high_watermark - 1, high_watermark - 1, epoch)
    voters = view.known.in_force.voters_at(epoch, last.base_offset)
    line = view.known.lineage.lines.get(epoch)
    if voters is None or line is None or not line.covers(last.base_offset):
        return
    following = _next_set(view, line, high_watermark)
    sets = [voters, *view.history_of(voters)[1:2], *([following] if following is not None else [])]
    holding, empty = ReplicaLog(batches=Batches((last,))), ReplicaLog()
    logs: dict[ReplicaKey, ReplicaLog] = {}
    for voter in (voter for counted in sets for voter in counted.voters):
        replicas = view.known.holdings.replicas_of(voter)
        lacking = bool(replicas) and all(_lacked(view, r, seen, last) for r in replicas)
        logs[voter.key] = empty if lacking else holding
    is_half = 2 * sum(logs[voter.key] is holding for voter in voters.voters) >= len(voters.voters)
    if is_half and not (_is_next(following, line, high_watermark) or _leader_shows(view, seen, voters, last)):
        return
    for found in majority_holds(logs, Committed(holding, high_watermark), tuple(s.voters for s in sets)):
        yield f"{found.detail}, of {voters.words}"


def _next_set(view: ClusterView, line: EpochLine, high_watermark: int) -> SetInForce | None:
    """The first set that captures show the epoch's leader to have appended above a high watermark."""
    for stretch in view.known.in_force.stretches(line):
        voters = stretch.voters
        if voters is None or voters.source != "record" or voters.leader_epoch != line.leader_epoch:
            continue
        if voters.batch_base_offset >= high_watermark:
            return voters
    return None


def _is_next(following: SetInForce | None, line: EpochLine, high_watermark: int) -> bool:
    """Whether no set that captures do not show can lie between a high watermark and the next known set.

    A leader appends no second change before the first is committed, so only the next set counts. Where it is
    not known, it may be any that one voter, added or removed, makes of the set in force: half the voters of
    an even set are a majority of such a one, less than half of them never are.
    """
    return following is not None and any(
        first < high_watermark and following.offset < end for first, end in line.covered
    )


def _leader_shows(view: ClusterView, seen: Observation, voters: SetInForce, last: Batch) -> bool:
    """Whether the leader was captured in its epoch after the output, with all that it had appended above."""
    epoch = last.leader_epoch
    leader = view.known.in_force.leader_among(voters.voters, epoch)
    return leader is not None and any(
        capture.captured_at >= seen.observed_to
        and capture.in_epoch == epoch
        and capture.known_end == capture.runs[-1].end_offset
        and holds(capture, epoch, last.base_offset)
        for replica in view.known.holdings.replicas_of(leader)
        for capture in view.known.holdings.captures[replica]
        if capture.runs
    )


def _lacked(view: ClusterView, replica: ReplicaKey, seen: Observation, last: Batch) -> bool:
    """Whether a replica never had the batch: a capture after the output lacks it, and none holds it."""
    held = view.known.holdings.by_epoch[last.leader_epoch].get(replica)
    if held is not None and any(first <= last.base_offset < end for first, end in held.stretches):
        return False
    captures = view.known.holdings.captures[replica]
    count = bisect_left(captures, seen.observed_to, key=lambda capture: capture.captured_at)
    return any(lacks(capture, last.leader_epoch, last.base_offset) for capture in captures[count:])


def _above_bound(view: ClusterView, seen: Observation, high_watermark: int, epoch: int) -> Iterator[str]:
    bound = view.upper_bound_at(seen.observed_to)
    if bound is not None and high_watermark > bound and not view.known.in_force.is_unlawful(epoch):
        yield f"is above {bound}, which captured log ends bound it by"


def _data_too_early(view: ClusterView) -> Iterator[Breach]:
    """A leader writes data once the log up to its epoch is committed; a bound below that is a breach."""
    for told in view.known.lower_bounds:
        if told.kind != "first_data_batch" or told.believed:
            continue
        data_end = view.known.lineage.lines[told.leader_epoch].first_data_end
        captures = view.holding(told.leader_epoch, told.offset if data_end is None else data_end - 1)
        bound = view.upper_bound_at(min((c.captured_at for c in captures), default=told.as_of))
        election = view.known.elections.get(told.leader_epoch)
        if bound is not None and told.bound > bound and election is not None:
            yield Breach(
                of_rule(8),
                "error",
                (told.leader_epoch, "first_data_batch"),
                f"Leader {election.leader_id} of epoch {told.leader_epoch} wrote data before a majority can "
                f"have held the log up to {told.bound}.",
                f"{told.words}; captured log ends bound the high watermark by {bound}",
                first_offset=told.offset,
                end_offset=told.bound,
                leader_epochs=(told.leader_epoch,),
                replicas=(view.replica_named(election.leader_id),),
                captures=captures,
            )


def high_watermark_in_epoch(view: ClusterView) -> Iterator[Breach]:
    """Rule 9: a high watermark lies above the start of the epoch whose leader told it."""
    for seen, high_watermark, epoch in told_watermarks(view):
        election = view.known.elections.get(epoch)
        if election is None:
            continue
        leader = ReplicaLog(known_high_watermark=high_watermark)
        for found in high_watermark_is_in_epoch(leader, election.offset):
            replica = view.replica_named(seen.node_id)
            yield Breach(
                of_rule(9),
                "error",
                (epoch, high_watermark),
                f"Leader {seen.node_id} of epoch {epoch} told a high watermark too low: {found.detail}.",
                seen.source,
                first_offset=high_watermark,
                end_offset=election.offset + 1,
                leader_epochs=(epoch,),
                replicas=(replica,),
                captures=of_leader(view, replica, epoch),
                observed_at=(seen.observed_from, seen.observed_to),
            )
