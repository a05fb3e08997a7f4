"""The copies of voters that a plan is based on: only the person who made them knows how old they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.facts import label
from kraft_core.findings.recovery import counting_sets
from kraft_core.findings.recovery_case import newest_of


@dataclass(frozen=True, slots=True)
class VoterCopy:
    """The newest copy of a voter's log.

    node: as label() names it. end_offset: exclusive; last_appended_at (ms): of its last record. None: it has
    neither log nor checkpoint, or no record in its segments.
    """

    node: str
    end_offset: int | None
    last_appended_at: int | None


def voter_copies(known: Conclusions) -> Iterator[VoterCopy]:
    """Of each captured voter, in the order of the newest voter set."""
    newest = newest_of(known)
    voters = dict.fromkeys(v for counted in counting_sets(known) for v in counted.voters)
    found = dict.fromkeys(replica for voter in voters for replica in known.holdings.replicas_of(voter))
    for replica in found:
        for capture in newest[replica][-1:]:
            last = max((epoch_range.last_appended_at for epoch_range in capture.epoch_ranges), default=None)
            yield VoterCopy(label(replica), capture.log_end_offset, last)
