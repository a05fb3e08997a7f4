"""Bounds of the high watermark over time: lower ones by what files prove, upper ones by captured log ends.

The high watermark is the offset that a majority of the voters has stored (KIP-595): of their log ends, in
descending order, the one at index floor(n/2). What is committed is never truncated, so a log end captured at
or after t is no lower than what its replica contributed to the high watermark at t; a voter that was not
captured may have stored anything. The set that counted at t is the newest that was committed by then, or any
later one that a leader had appended by then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from math import inf

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.log_ends import LogEnds
from kraft_core.evidence.rows import HighWatermarkRow
from kraft_core.evidence.set_history import Key, SetNode


def high_watermarks(known: Conclusions, sets: list[SetNode]) -> list[HighWatermarkRow]:
    """Every proof that no other one of its kind implies; none where captures may be of two histories."""
    if known.lineage.contested_epochs:
        return []
    rows = [*_lower(known), *_upper(known, sets)]
    return sorted(rows, key=lambda row: (row.evidence, row.source, row.as_of))


def _lower(known: Conclusions) -> Iterator[HighWatermarkRow]:
    for bound in known.lower_bounds:
        if bound.kind == "answer":  # findings.describe has it, with what other tools were answered
            continue
        yield HighWatermarkRow(
            known.facts.cluster_id,
            bound.kind,
            bound.words,
            bound.as_of,
            bound.leader_epoch,
            None if bound.believed else bound.bound,
            None,
            bound.bound if bound.believed else None,
        )


def _upper(known: Conclusions, sets: list[SetNode]) -> Iterator[HighWatermarkRow]:
    """One row for each moment of a capture that no later moment with an equal or lower bound covers."""
    ends = LogEnds.of(known)
    lowest = inf
    since = {c.captured_from for c in known.facts.captures if c.captured_from is not None}
    possible = {as_of: _possible(sets, as_of) for as_of in sorted(since, reverse=True)}
    bounds = _bounds(ends, possible)
    for as_of, nodes in possible.items():
        if not nodes or (known.reconfigured and any(node.source == "static" for node in nodes)):
            continue
        highest, voters = max(
            ((bounds[node.key, as_of], node.voters) for node in nodes), key=lambda entry: entry[0]
        )
        if highest < lowest:
            lowest = highest
            words = f"log ends of {voters.words}: {ends.words(voters, as_of)}"
            bound = int(highest)
            yield HighWatermarkRow(known.facts.cluster_id, "log_ends", words, as_of, None, None, bound, None)


def _bounds(ends: LogEnds, possible: Mapping[int, list[SetNode]]) -> dict[tuple[Key, int], float]:
    """The bound by each set at each moment at which it may have counted. possible: the sets by the moment."""
    nodes: dict[Key, SetNode] = {}
    moments: defaultdict[Key, list[int]] = defaultdict(list)
    for as_of, some in possible.items():
        for node in some:
            nodes[node.key] = node
            moments[node.key].append(as_of)
    return {
        (key, as_of): bound
        for key, node in nodes.items()
        for as_of, bound in zip(moments[key], ends.bounds(node.voters, moments[key]), strict=True)
    }


def _possible(sets: list[SetNode], as_of: int) -> list[SetNode]:
    """The sets that may have counted at a moment, oldest first; none if an unknown one may have."""
    by_then = [node for node in sets if node.may_count_at(as_of)]
    for nth in range(len(by_then) - 1, -1, -1):
        committed_at = by_then[nth].committed_at
        if committed_at is not None and committed_at <= as_of:
            by_then = by_then[nth:]
            break
    else:
        if not by_then or not by_then[0].is_first:
            return []
    # A set whose predecessor is unknown may have followed other unknown sets.
    return by_then if all(node.is_next for node in by_then[1:]) else []
