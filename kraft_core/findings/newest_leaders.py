"""Until when the leader of an epoch is shown to have been the newest one.

A leader that was replaced answers DescribeQuorum until it learns of the next epoch; before Kafka 3.7, an
isolated one never did. So its answer says nothing of what the quorum has committed since. What was committed
in an epoch, every leader of a later epoch had in its log when it was elected (KIP-595, Leader Election): so
all of those were elected after it had been appended.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from math import inf

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.findings.facts import Observation
from kraft_core.format.capture import is_live


def newest_until(known: Conclusions, outputs: Collection[Observation]) -> Mapping[int, float]:
    """By epoch a time (ms) before which no leader of a later epoch had been elected; -inf for none.

    outputs: those of the captured quorum (reports.Reports). It is the time of an append that was committed in
    the epoch; or the election of the next leader, if anything was committed in the epoch of that.
    """
    committed = _committed_ends(known, outputs)
    own = _own_appends(known, outputs, committed)
    found: defaultdict[int, float] = defaultdict(lambda: -inf)
    for epoch in sorted({*known.lineage.lines, *committed}, reverse=True):
        times = [own[epoch]]
        for child, _ in known.lineage.children.get(epoch, ()):
            election = known.elections.get(child)
            if election is not None:
                lasted = inf if child in committed else found[child]
                times.append(min(election.elected_at, lasted))
        found[epoch] = max(times)
    return found


def _committed_ends(known: Conclusions, outputs: Collection[Observation]) -> dict[int, int]:
    """By epoch the highest offset that its own leader had committed; epochs without a known one are absent.

    The epoch in which a snapshot's end was committed is not known, only that it was no later one.
    """
    found: dict[int, int] = {}
    proven = (
        (proof.committed_in, end)
        for prefix in known.committed_in.values()
        for end, proof in zip(prefix.ends, prefix.by_end, strict=True)
        if proof.kind != "snapshot"
    )
    bounds = (
        (bound.committed_in, end)
        for bound in known.lower_bounds
        for _, end in bound.commits
        if bound.kind != "snapshot"
    )
    for epoch, end in (*proven, *bounds, *_reported(outputs)):
        if epoch is not None and not known.in_force.is_unlawful(epoch):
            found[epoch] = max(end, found.get(epoch, 0))
    return found


def _reported(outputs: Collection[Observation]) -> Iterator[tuple[int, int]]:
    for output in outputs:
        if output.leader_epoch is not None and output.high_watermark is not None:
            yield output.leader_epoch, output.high_watermark


def _own_appends(
    known: Conclusions, outputs: Collection[Observation], committed: Mapping[int, int]
) -> Mapping[int, float]:
    """By epoch the time of its newest append that its own leader committed; -inf for none."""
    found: defaultdict[int, float] = defaultdict(lambda: -inf)
    for epoch, line in known.lineage.lines.items():
        times = [at for end, at in line.appended_by if end <= committed.get(epoch, 0)]
        found[epoch] = max(times, default=-inf)
    ends = {
        (output.observed_from, output.observed_to, output.node_id): output.log_end_offset
        for output in outputs
        if output.kind == "replication" and output.status == "Leader" and is_live(output.source)
    }
    for output in outputs:
        end = ends.get((output.observed_from, output.observed_to, output.node_id))
        epoch = output.leader_epoch
        if epoch is None or end is None or not is_live(output.source):
            continue
        # What lies above the log's end of then was appended later. Both are of one answer.
        if end < committed.get(epoch, 0):
            found[epoch] = max(found[epoch], output.observed_from + 1)
    return found
