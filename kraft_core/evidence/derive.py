"""A cluster's facts in, the rows of the derived tables out."""

from __future__ import annotations

from kraft_core.evidence.conclusions import Conclusions, conclude
from kraft_core.evidence.epochs import epochs
from kraft_core.evidence.facts import ClusterFacts
from kraft_core.evidence.ranges import log_ranges, replica_ranges
from kraft_core.evidence.rows import ClusterEvidence
from kraft_core.evidence.set_history import set_nodes
from kraft_core.evidence.voter_sets import voter_changes, voter_sets
from kraft_core.evidence.watermarks import high_watermarks


def derive(facts: ClusterFacts) -> ClusterEvidence:
    """What the captures of one cluster prove: the same for any order of the facts, and for duplicates."""
    return tables(conclude(facts))


def tables(known: Conclusions) -> ClusterEvidence:
    """The conclusions as rows."""
    sets = set_nodes(known)
    return ClusterEvidence(
        log_ranges(known),
        replica_ranges(known),
        epochs(known),
        voter_sets(known, sets),
        voter_changes(known, sets),
        high_watermarks(known, sets),
    )
