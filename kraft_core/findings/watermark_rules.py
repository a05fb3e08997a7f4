"""Rules 6, 8 and 9: the high watermarks that leaders told, against each other and against captured logs.

No file stores the high watermark; describe outputs are a moment's word of the leader (-1 = unknown says
nothing). A leader that was unlawfully elected errs in good faith: the finding names it, and no one else.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate, groupby
from typing import TypeAlias

from kraft_core.evidence.facts import Capture
from kraft_core.evidence.holdings import lacks
from kraft_core.evidence.lower_bounds import LowerBound
from kraft_core.evidence.states import SetInForce
from kraft_core.findings.facts import Observation
from kraft_core.findings.finding import Breach, of_rule
from kraft_core.findings.view import ClusterView
from kraft_core.raft.batches import Batch, Batches
from kraft_core.raft.log import ReplicaLog
from kraft_core.raft.quorum_invariants import Committed, high_watermark_is_in_epoch, majority_holds
from kraft_core.raft.voters import ReplicaKey

_Told: TypeAlias = tuple[Observation, int, int]  # an output, its high watermark, its epoch


def high_watermark_rises(view: ClusterView) -> Iterator[Breach]:
    """Rule 6, between outputs of one epoch, of which one had ended before the other began, and of two epochs.

    A leader's first high watermark lies above all that was committed before it, so what the leader of an
    older epoch tells, at any time, is lower; it may not know yet that it leads no more.
    """
    told = _told(view)
    ended = sorted(told, key=lambda entry: entry[0].observed_to)
    of_older = _highest_below(told)
    of_epoch: dict[int, _Told | None] = {}
    count = 0
    for seen, high_watermark, epoch in told:
        while count < len(ended) and ended[count][0].observed_to <= seen.observed_from:
            its_epoch = ended[count][2]
            of_epoch[its_epoch] = _higher_told(of_epoch.get(its_epoch), ended[count])
            count += 1
        highest = _higher_told(of_epoch.get(epoch), of_older[epoch])
        if highest is not None and highest[1] > high_watermark:
            first, was, its_epoch = highest
            blamed = _blamed(view, ((epoch, seen.node_id), (its_epoch, first.node_id)))
            yield Breach(
                of_rule(6),
                "error",
                (its_epoch, epoch),
                f"The high watermark fell from {was} (leader {first.node_id}, epoch {its_epoch}) to "
                f"{high_watermark} (leader {seen.node_id}, epoch {epoch}).",
                f"{first.source}: {was}; {seen.source}: {high_watermark}",
                first_offset=high_watermark,
                end_offset=was,
                leader_epochs=tuple(sorted({epoch, its_epoch})),
                replicas=tuple(replica for replica, _ in blamed),
                captures=tuple(c for replica, of in blamed for c in _of_leader(view, replica, of)),
                observed_at=(first.observed_from, seen.observed_to),
            )


def _highest_below(told: list[_Told]) -> dict[int, _Told | None]:
    """For each epoch the highest high watermark that a leader of an older one told."""
    found: dict[int, _Told | None] = {}
    highest: _Told | None = None
    for epoch, same in groupby(sorted(told, key=lambda entry: entry[2]), key=lambda entry: entry[2]):
        found[epoch] = highest
        for entry in same:
            highest = _higher_told(highest, entry)
    return found


def _higher_told(one: _Told | None, other: _Told | None) -> _Told | None:
    """The higher of two; of equal ones the earlier, then the first by name."""
    known = [entry for entry in (one, other) if entry is not None]
    return min(known, default=None, key=lambda e: (-e[1], e[0].observed_from, e[0].source))


def high_watermark_is_above_floor(view: ClusterView) -> Iterator[Breach]:
    """Rule 6, against what files prove of an older epoch, or of the same one earlier.

    The latter compares two machines' clocks: a warning.
    """
    bounds = sorted((b for b in view.known.lower_bounds if not b.believed), key=lambda bound: bound.as_of)
    of_epoch: defaultdict[int, list[LowerBound]] = defaultdict(list)
    for bound in bounds:
        of_epoch[bound.leader_epoch].append(bound)
    epochs = sorted(of_epoch)
    of_older = list(accumulate((max(of_epoch[e], key=_bound) for e in epochs), _higher))
    earlier = {epoch: list(accumulate(same, _higher)) for epoch, same in of_epoch.items()}
    for seen, high_watermark, epoch in _told(view):
        older = bisect_left(epochs, epoch)
        count = bisect_right(of_epoch[epoch], seen.observed_from, key=lambda bound: bound.as_of)
        floors = [*of_older[:older][-1:], *earlier.get(epoch, [])[:count][-1:]]
        for floor in (floor for floor in floors if floor.bound > high_watermark):
            yield Breach(
                of_rule(6),
                "warning" if floor.leader_epoch == epoch else "error",
                ("floor", epoch, floor.leader_epoch),
                f"Leader {seen.node_id} of epoch {epoch} told the high watermark {high_watermark}, though "
                f"{floor.bound} was reached before.",
                f"{seen.source}; {floor.words}",
                first_offset=high_watermark,
                end_offset=floor.bound,
                leader_epochs=tuple(sorted({epoch, floor.leader_epoch})),
                replicas=(view.replica_named(seen.node_id),),
                observed_at=(seen.observed_from, seen.observed_to),
            )


def _bound(bound: LowerBound) -> int:
    return bound.bound


def _higher(one: LowerBound, other: LowerBound) -> LowerBound:
    return other if other.bound > one.bound else one


def majority_holds_high_watermark(view: ClusterView) -> Iterator[Breach]:
    """Rule 8, of what leaders told; and of what a leader's first data batch shows it took for committed."""
    for seen, high_watermark, epoch in _told(view):
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
                captures=_of_leader(view, leader, epoch),
                observed_at=(seen.observed_from, seen.observed_to),
            )
    yield from _data_too_early(view)


def _unheld(view: ClusterView, seen: Observation, high_watermark: int, epoch: int) -> Iterator[str]:
    """Why no majority of the set in force, nor of the one before it, can have held what lies below."""
    last = Batch(high_watermark - 1, high_watermark - 1, epoch)
    voters = view.known.in_force.voters_at(epoch, last.base_offset)
    line = view.known.lineage.lines.get(epoch)
    if voters is None or line is None or not line.covers(last.base_offset):
        return
    sets = [voters, *_before(view, voters)]
    holding, empty = ReplicaLog(batches=Batches((last,))), ReplicaLog()
    logs: dict[ReplicaKey, ReplicaLog] = {}
    for voter in (voter for counted in sets for voter in counted.voters):
        replicas = view.known.holdings.replicas_of(voter)
        lacking = bool(replicas) and all(_lacked(view, r, seen, last) for r in replicas)
        logs[voter.key] = empty if lacking else holding
    for found in majority_holds(logs, Committed(holding, high_watermark), tuple(s.voters for s in sets)):
        yield f"{found.detail}, of {voters.words}"


def _lacked(view: ClusterView, replica: ReplicaKey, seen: Observation, last: Batch) -> bool:
    """Whether a replica never had the batch: a capture after the output lacks it, and none holds it."""
    held = view.known.holdings.by_epoch[last.leader_epoch].get(replica)
    if held is not None and any(first <= last.base_offset < end for first, end in held.stretches):
        return False
    captures = view.known.holdings.captures[replica]
    count = bisect_left(captures, seen.observed_to, key=lambda capture: capture.captured_at)
    return any(lacks(capture, last.leader_epoch, last.base_offset) for capture in captures[count:])


def _before(view: ClusterView, voters: SetInForce) -> list[SetInForce]:
    nodes = {node.key: node for node in view.sets}
    node = nodes.get((voters.offset, voters.leader_epoch, voters.source))
    before = nodes.get(node.before) if node is not None and node.before is not None else None
    return [before.voters] if before is not None else []


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
    for seen, high_watermark, epoch in _told(view):
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
                captures=_of_leader(view, replica, epoch),
                observed_at=(seen.observed_from, seen.observed_to),
            )


def _told(view: ClusterView) -> list[_Told]:
    """Each known high watermark that a leader told, with its epoch, by time."""
    found = [
        (seen, seen.high_watermark, seen.leader_epoch)
        for seen in view.facts.observations
        if seen.high_watermark is not None and seen.leader_epoch is not None
    ]
    return sorted(found, key=lambda entry: (entry[0].observed_from, entry[0].observed_to, entry[0].source))


def _blamed(view: ClusterView, leaders: tuple[tuple[int, int], ...]) -> list[tuple[ReplicaKey, int]]:
    """Of leaders that contradict each other, those unlawfully elected; all where none was."""
    unlawful = [entry for entry in leaders if view.known.in_force.is_unlawful(entry[0])]
    named = unlawful or leaders
    return list(dict.fromkeys((view.replica_named(leader), epoch) for epoch, leader in named))


def _of_leader(view: ClusterView, leader: ReplicaKey, epoch: int) -> tuple[Capture, ...]:
    """The captures of a leader that hold anything of its epoch."""
    captures = view.known.holdings.captures.get(leader, ())
    return tuple(c for c in captures if any(run.leader_epoch == epoch for run in c.runs))
