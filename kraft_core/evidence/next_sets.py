"""The voter sets that came next on the lines that hold a batch.

A leader counts by a new set as soon as it has appended it, for older batches too (KIP-853, High watermark).
So whether a batch can have been committed depends on the set in force at it and on the next one of every
line. Static sets are configuration: one of a later epoch may share no majority with that of the batch's.
"""

from __future__ import annotations

from kraft_core.evidence.in_force import InForce
from kraft_core.evidence.lineage import EpochLine, Lineage
from kraft_core.evidence.states import SetInForce, static_set
from kraft_core.evidence.static_voters import static_elections


class NextSets:
    """The next sets of every batch of a cluster's lines."""

    def __init__(self, lineage: Lineage, in_force: InForce) -> None:
        self._lineage = lineage
        self._in_force = in_force
        # Each static set, as the newest election has it.
        static = (static_set(each) for each in static_elections(in_force.elections, in_force))
        self._configured = list({each.voters: each for each in static}.values())
        # By epoch, the first VotersRecords at or above its start, on its line and those that begin on it.
        self._firsts: dict[int, frozenset[SetInForce]] = {}
        for epoch in sorted(lineage.lines, reverse=True):
            line = lineage.lines[epoch]
            self._firsts[epoch] = self.after(line, line.first_offset)

    def after(self, line: EpochLine, end_offset: int) -> frozenset[SetInForce]:
        """The first set at or above an offset on each line that holds this epoch's batches up to there."""
        own = self._own(line, end_offset)
        upto = own.batch_base_offset if own is not None else None
        found = frozenset[SetInForce]() if own is None else frozenset((own,))
        for child, link in self._lineage.children.get(line.leader_epoch, ()):
            if link.end_offset >= end_offset and (upto is None or link.end_offset <= upto):
                found = found | self._firsts[child] if found else self._firsts[child]
        return found

    def configured_after(self, leader_epoch: int) -> list[SetInForce]:
        """The static sets by which leaders of later epochs were elected."""
        return [each for each in self._configured if each.leader_epoch > leader_epoch]

    def _own(self, line: EpochLine, end_offset: int) -> SetInForce | None:
        epoch = line.leader_epoch
        for part in self._in_force.voter_set_ranges(line):
            voters = part.voters
            written_here = voters is not None and voters.source == "record" and voters.leader_epoch == epoch
            if written_here and part.first_offset >= end_offset:
                return voters
        return None
