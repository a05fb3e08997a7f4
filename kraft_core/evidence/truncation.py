"""Which batches were truncated.

A committed batch is in every later leader's log (Raft 5.4, leader completeness). So a batch of a lower epoch
at or above a committed batch of a higher epoch is on no log that can ever lead: it is superseded; and so is
one at whose offset another epoch's batch is committed. That one replica held a batch in one capture and
another epoch's at its offset in another proves less: a leader whose log still has the batch may bring it back
(figure 8), also to that replica, whose log then ends in the lower epoch until it has fetched the rest. A
deleted prefix, a hole, another directory and a fetched snapshot are not truncations.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate

from kraft_core.evidence.lineage import Lineage
from kraft_core.evidence.proofs import CommittedPrefix, time_order


@dataclass(frozen=True, slots=True)
class Truncation:
    """Batches of an epoch from `offset` on are superseded by committed ones of by_epoch, by as_of (ms).

    as_of: None where the captures that prove it do not say when they were taken.
    """

    offset: int
    by_epoch: int
    as_of: int | None
    words: str

    @property
    def order(self) -> tuple[int, int, int, int, str]:
        return (self.offset, self.by_epoch, *time_order(self.as_of), self.words)


def truncations(lineage: Lineage, prefixes: dict[int, CommittedPrefix]) -> dict[int, Truncation]:
    """For each epoch whose line is superseded, from the lowest offset."""
    proven = (_superseded(lineage, prefixes), _displaced(lineage, prefixes))
    candidates = {epoch: [found[epoch] for found in proven if epoch in found] for epoch in lineage.lines}
    return {
        epoch: min(found, key=lambda truncation: truncation.order)
        for epoch, found in candidates.items()
        if found
    }


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
                found[epoch] = Truncation(offset, lower, proof.as_of, words)
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
            lowest = Truncation(first, epoch, proof.as_of, words)
    return found
