"""Which batches were truncated.

A committed batch is in every later leader's log (Raft 5.4, leader completeness). So a batch of a lower epoch
at or above a committed batch of a higher epoch is on no log that can ever lead: it is superseded; and so is
one at whose offset another epoch's batch is committed. Also, where one replica held a batch in one capture
and a higher epoch at or below it in another, a later leader overwrote it there. That is weaker: a leader
whose log still has the batch may bring it back (figure 8), so it does not count where a captured log holds
the batch below a still higher epoch, and a commit proof takes precedence. A deleted prefix, a hole, another
directory and a fetched snapshot are no truncation.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate

from kraft_core.evidence.facts import label
from kraft_core.evidence.holdings import Holdings
from kraft_core.evidence.lineage import Lineage
from kraft_core.evidence.proofs import CommittedPrefix, time_order
from kraft_core.raft.voters import ReplicaKey


@dataclass(frozen=True, slots=True)
class Truncation:
    """Batches of an epoch from `offset` on were replaced by batches of by_epoch, by as_of (ms).

    as_of: None where the captures that prove it do not say when they were taken.
    for_good: superseded by a committed batch; else one replica is known to have overwritten them.
    """

    offset: int
    by_epoch: int
    as_of: int | None
    words: str
    for_good: bool

    @property
    def order(self) -> tuple[int, int, int, int, str]:
        return (self.offset, self.by_epoch, *time_order(self.as_of), self.words)


def truncations(
    lineage: Lineage, holdings: Holdings, prefixes: dict[int, CommittedPrefix]
) -> dict[int, tuple[Truncation, ...]]:
    """For each epoch's line the lowest overwriting, if it is the lower, and the lowest one for good."""
    for_good = (_superseded(lineage, prefixes), _displaced(lineage, prefixes))
    overwritten = _overwritten(lineage, holdings)
    found: dict[int, tuple[Truncation, ...]] = {}
    for epoch in lineage.lines:
        last = _lowest(entries[epoch] for entries in for_good if epoch in entries)
        first = _lowest(overwritten.get(epoch, ()))
        if first is not None and (last is None or first.offset < last.offset):
            found[epoch] = (first, last) if last is not None else (first,)
        elif last is not None:
            found[epoch] = (last,)
    return found


def _lowest(candidates: Iterable[Truncation]) -> Truncation | None:
    return min(candidates, default=None, key=lambda truncation: truncation.order)


def committed_ranges(lineage: Lineage, prefixes: dict[int, CommittedPrefix]) -> list[tuple[int, int, int]]:
    """(first, end, epoch) of what is proven committed of each uncontested line, in the order of offsets."""
    return sorted(
        (first, min(end, prefixes[epoch].end_offset), epoch)
        for epoch, line in lineage.lines.items()
        if epoch in prefixes and not line.contested
        for first, end in line.covered
        if first < prefixes[epoch].end_offset
    )


def _displaced(lineage: Lineage, prefixes: dict[int, CommittedPrefix]) -> dict[int, Truncation]:
    """Lines of an epoch that continue where a lower epoch's batch is committed.

    A leader that lost its tail and led again brought its old batches back (figure 8, case e).
    """
    committed = committed_ranges(lineage, prefixes)
    # Committed ranges overlap only where a rule was broken: then the lower ones are skipped.
    ends = list(accumulate((end for _, end, _ in committed), max))
    found: dict[int, Truncation] = {}
    for epoch, line in lineage.lines.items():
        for nth in range(bisect_right(ends, line.first_offset), len(committed)):
            first, end, lower = committed[nth]
            offset = max(first, line.first_offset)
            if first >= line.end_offset or lower >= epoch:
                break
            proof = prefixes[lower].proof_of(offset + 1)
            if end > offset and proof is not None:
                words = f"a committed batch of epoch {lower} lies at {offset}: {proof.words}"
                found[epoch] = Truncation(offset, lower, proof.as_of, words, for_good=True)
                break
    return found


def _superseded(lineage: Lineage, prefixes: dict[int, CommittedPrefix]) -> dict[int, Truncation]:
    found: dict[int, Truncation] = {}
    lowest: Truncation | None = None
    for epoch in sorted({*lineage.lines, *prefixes}, reverse=True):
        if lowest is not None:
            found[epoch] = lowest
        line, prefix = lineage.lines.get(epoch), prefixes.get(epoch)
        if prefix is None or (line is not None and line.contested):
            continue
        # The lowest batch of the epoch that is seen and committed; a snapshot alone shows its last record.
        first = prefix.end_offset - 1 if line is None else min(line.first_offset, prefix.end_offset - 1)
        proof = prefix.proof_of(first + 1)
        if proof is not None and (lowest is None or first <= lowest.offset):
            words = f"a committed batch of epoch {epoch} lies at {first}: {proof.words}"
            lowest = Truncation(first, epoch, proof.as_of, words, for_good=True)
    return found


def _overwritten(lineage: Lineage, holdings: Holdings) -> defaultdict[int, list[Truncation]]:
    found: defaultdict[int, list[Truncation]] = defaultdict(list)
    newest_descendant = _newest_descendants(lineage)
    # Of each replica the lowest offset at which it held a higher epoch: (offset, epoch, by when).
    lowest: dict[ReplicaKey, tuple[int, int, int | None]] = {}
    for epoch in sorted(holdings.by_epoch, reverse=True):
        for replica, holding in holdings.by_epoch[epoch].items():
            if replica.directory_id is None:  # it may have been another disk of the node each time
                continue
            if replica in lowest and lowest[replica][0] < holding.end_offset:
                first, by_epoch, as_of = lowest[replica]
                survives = [
                    link.end_offset
                    for child, link in lineage.children.get(epoch, ())
                    if newest_descendant[child] > by_epoch
                ]
                offset = max([first, *survives])
                if offset < holding.end_offset and not lineage.lines[epoch].contested:
                    words = f"{label(replica)} held it and then epoch {by_epoch} from {first}"
                    found[epoch].append(Truncation(offset, by_epoch, as_of, words, for_good=False))
            if replica not in lowest or holding.first_offset <= lowest[replica][0]:
                lowest[replica] = (holding.first_offset, epoch, holding.held_by)
    return found


def _newest_descendants(lineage: Lineage) -> dict[int, int]:
    """For each epoch the highest epoch whose log holds batches of it, itself included."""
    newest: dict[int, int] = {}
    for epoch in sorted(lineage.lines, reverse=True):
        newest[epoch] = max([epoch, *(newest[child] for child, _ in lineage.children.get(epoch, ()))])
    return newest
