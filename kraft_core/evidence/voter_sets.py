"""The table of voter sets: each with its voters, its status, and the interval in which it was in force.

A set is in force from its record on, until the next one on the same line of the log; when it is truncated,
the one before it is in force again.
"""

from __future__ import annotations

from collections import defaultdict

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.rows import EndpointRow, SetSource, VoterRow, VoterSetRow
from kraft_core.evidence.set_history import Key, SetNode
from kraft_core.messages.uuid_text import ZERO_UUID
from kraft_core.raft.voters import Voter


def voter_sets(known: Conclusions, nodes: list[SetNode]) -> list[VoterSetRow]:
    """The table's rows, in the order of the nodes."""
    successors: defaultdict[Key, list[SetNode]] = defaultdict(list)
    for node in nodes:
        if node.before is not None:
            successors[node.before].append(node)
    return [_row(known, node, _successor(node, successors[node.key])) for node in nodes]


def _status(node: SetNode) -> str | None:
    return node.verdict.status if node.verdict else None


def _successor(node: SetNode, candidates: list[SetNode]) -> SetNode | None:
    """The set that replaced it; one that was truncated replaced only a set truncated with it."""
    lasting = [c for c in candidates if _status(c) != "truncated" or _status(node) == "truncated"]
    return min(lasting, default=None, key=lambda c: (_status(c) != "committed", c.key))


def _row(known: Conclusions, node: SetNode, successor: SetNode | None) -> VoterSetRow:
    to_offset, to = _until(known, node, successor)
    place, verdict = node.voters, node.verdict
    return VoterSetRow(
        known.facts.cluster_id,
        place.offset,
        place.leader_epoch,
        node.source,
        tuple(_voter_row(voter, node.source) for voter in place.voters),
        place.voters.ids,
        place.voters.majority,
        verdict.status if verdict else None,
        node.evidence,
        verdict.as_of if verdict else None,
        place.appended_at,
        place.offset,
        to_offset,
        node.since,
        to,
        node.is_exact,
        None if to_offset is None else successor is None or successor.is_exact,
        verdict.truncated_by_epoch if verdict else None,
    )


def _until(known: Conclusions, node: SetNode, successor: SetNode | None) -> tuple[int | None, int | None]:
    """Until which offset and time a set was in force.

    A truncated one was in force until the election of the epoch that overruled it, as far as files show; a
    leader that did not know of that election may have appended it later.
    """
    if successor is not None:
        return successor.voters.offset, successor.since
    verdict = node.verdict
    if verdict is None or verdict.truncated_by_epoch is None:
        return None, None
    line = known.lineage.lines.get(node.voters.leader_epoch)
    election = known.elections.get(verdict.truncated_by_epoch)
    overruled = election is not None and election.leader_epoch > node.voters.leader_epoch
    ended = election.elected_at if election is not None and overruled else verdict.as_of
    return (line.end_offset if line else None), max(
        (t for t in (ended, node.since) if t is not None), default=None
    )


def _voter_row(voter: Voter, source: SetSource) -> VoterRow:
    static = source == "static"
    return VoterRow(
        voter.key.id,
        voter.key.directory_id or ZERO_UUID,
        tuple(EndpointRow(end.name, end.host, end.port) for end in voter.endpoints),
        None if static else voter.min_supported_version,
        None if static else voter.max_supported_version,
    )
