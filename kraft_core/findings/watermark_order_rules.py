"""Rule 6: the high watermarks that leaders report never decrease.

A finding blames only a leader that was unlawfully elected.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import accumulate, groupby

from kraft_core.evidence.lower_bounds import LowerBound
from kraft_core.findings.cluster_view import ClusterView
from kraft_core.findings.finding import Breach, of_rule
from kraft_core.findings.reported_watermarks import ReportedWatermark, of_leader, reported_watermarks
from kraft_core.raft.voters import ReplicaKey


def high_watermark_rises(view: ClusterView) -> Iterator[Breach]:
    """Rule 6, between outputs of one epoch, if one ended before the other began, and of two epochs.

    A leader's first high watermark lies above all that was committed before it, so what the leader of an
    older epoch reports, at any time, is lower; it may not know yet that it was replaced.
    """
    reports = reported_watermarks(view)
    ended = sorted(reports, key=lambda entry: entry[0].observed_to)
    of_older = _highest_below(reports)
    of_epoch: dict[int, ReportedWatermark | None] = {}
    count = 0
    for output, high_watermark, epoch in reports:
        while count < len(ended) and ended[count][0].observed_to <= output.observed_from:
            its_epoch = ended[count][2]
            of_epoch[its_epoch] = _higher_report(of_epoch.get(its_epoch), ended[count])
            count += 1
        highest = _higher_report(of_epoch.get(epoch), of_older[epoch])
        if highest is not None and highest[1] > high_watermark:
            first, was, its_epoch = highest
            blamed = _blamed(view, ((epoch, output.node_id), (its_epoch, first.node_id)))
            yield Breach(
                of_rule(6),
                "error",
                (its_epoch, epoch),
                f"The high watermark fell from {was} (leader {first.node_id}, epoch {its_epoch}) to "
                f"{high_watermark} (leader {output.node_id}, epoch {epoch}).",
                f"{first.source}: {was}; {output.source}: {high_watermark}",
                first_offset=high_watermark,
                end_offset=was,
                leader_epochs=tuple(sorted({epoch, its_epoch})),
                replicas=tuple(replica for replica, _ in blamed),
                captures=tuple(c for replica, of in blamed for c in of_leader(view, replica, of)),
                observed_at=(first.observed_from, output.observed_to),
            )


def _highest_below(reports: list[ReportedWatermark]) -> dict[int, ReportedWatermark | None]:
    """For each epoch the highest high watermark that a leader of an older one reported."""
    found: dict[int, ReportedWatermark | None] = {}
    highest: ReportedWatermark | None = None
    for epoch, same in groupby(sorted(reports, key=lambda entry: entry[2]), key=lambda entry: entry[2]):
        found[epoch] = highest
        for entry in same:
            highest = _higher_report(highest, entry)
    return found


def _higher_report(
    one: ReportedWatermark | None, other: ReportedWatermark | None
) -> ReportedWatermark | None:
    """The higher of two; of equal ones the earlier, then the first by name."""
    known = [entry for entry in (one, other) if entry is not None]
    return min(known, default=None, key=lambda e: (-e[1], e[0].observed_from, e[0].source))


def high_watermark_is_above_floor(view: ClusterView) -> Iterator[Breach]:
    """Rule 6, against what files prove was reached in an older epoch, or earlier in the same one.

    The latter compares two machines' clocks: a warning. A bound of unknown epoch is not used: a leader that
    does not know yet that it was replaced reports less than a later one reached.
    """
    bounds = sorted((b for b in view.known.lower_bounds if not b.believed), key=lambda bound: bound.as_of)
    of_epoch: defaultdict[int, list[LowerBound]] = defaultdict(list)
    for bound in bounds:
        if bound.committed_in is not None:
            of_epoch[bound.committed_in].append(bound)
    epochs = sorted(of_epoch)
    of_older = list(accumulate((max(of_epoch[e], key=lambda bound: bound.bound) for e in epochs), _higher))
    earlier = {epoch: list(accumulate(same, _higher)) for epoch, same in of_epoch.items()}
    for output, high_watermark, epoch in reported_watermarks(view):
        older = bisect_left(epochs, epoch)
        count = bisect_right(of_epoch[epoch], output.observed_from, key=lambda bound: bound.as_of)
        floors = [*of_older[:older][-1:], *earlier.get(epoch, [])[:count][-1:]]
        for floor in (floor for floor in floors if floor.bound > high_watermark):
            yield Breach(
                of_rule(6),
                "warning" if floor.committed_in == epoch else "error",
                ("floor", epoch, floor.committed_in),
                f"Leader {output.node_id} of epoch {epoch} reported the high watermark {high_watermark} "
                f"after {floor.bound} had been reached.",
                f"{output.source}; {floor.words}",
                first_offset=high_watermark,
                end_offset=floor.bound,
                leader_epochs=tuple(sorted({epoch, floor.leader_epoch})),
                replicas=(view.replica_named(output.node_id),),
                observed_at=(output.observed_from, output.observed_to),
            )


def _higher(one: LowerBound, other: LowerBound) -> LowerBound:
    return other if other.bound > one.bound else one


def _blamed(view: ClusterView, leaders: tuple[tuple[int, int], ...]) -> list[tuple[ReplicaKey, int]]:
    """Of leaders that contradict each other, those unlawfully elected; if there are none, all."""
    unlawful = [entry for entry in leaders if view.known.in_force.is_unlawful(entry[0])]
    named = unlawful or leaders
    return list(dict.fromkeys((view.replica_named(leader), epoch) for epoch, leader in named))
