"""The tables of voter sets and of the differences between successive ones (KIP-853, Voter changes).

A set is in force from its record on, until the next one on the same line of the log; when it is truncated,
the one before it is in force again.

The first VotersRecord of a log takes over what formatting or configuration set up: its voters are
bootstrapped. Static sets change by configuration, not by the quorum, and give no changes. A set whose
predecessor is unknown gives none either.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Literal

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.rows import EndpointRow, SetSource, VoterChangeRow, VoterRow, VoterSetRow
from kraft_core.evidence.set_history import Key, SetNode
from kraft_core.messages.uuid_text import ZERO_UUID
from kraft_core.raft.voters import Voter, change_between

Kind = Literal["bootstrapped", "added", "removed", "updated"]


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


def voter_changes(known: Conclusions, nodes: list[SetNode]) -> list[VoterChangeRow]:
    """Every change, by the set that made it."""
    by_key = {node.key: node for node in nodes}
    rows = [
        VoterChangeRow(
            known.facts.cluster_id,
            node.voters.offset,
            node.voters.leader_epoch,
            kind,
            voter.key.id,
            voter.key.directory_id or ZERO_UUID,
            detail,
            node.since,
            node.verdict.status if node.verdict else None,
            node.is_exact,
        )
        for node in nodes
        if node.source in ("record", "snapshot")
        for kind, voter, detail in _changes(node, by_key.get(node.before) if node.before else None)
    ]
    # A record that names a voter twice changes it once.
    return sorted(set(rows), key=lambda r: (r.offset, r.leader_epoch, r.kind, r.voter_id, r.directory_id))


def _changes(node: SetNode, before: SetNode | None) -> Iterator[tuple[Kind, Voter, str | None]]:
    if node.is_first:
        for voter in node.voters.voters:
            yield "bootstrapped", voter, None
    elif before is not None:
        change = change_between(before.voters.voters, node.voters.voters)
        for voter in change.added:
            yield "added", voter, None
        for voter in change.removed:
            yield "removed", voter, None
        for voter in change.updated:
            old = next(v for v in before.voters.voters if v.matches(voter.key))
            yield "updated", voter, _difference(old, voter)


def _difference(old: Voter, new: Voter) -> str:
    """What of a voter was updated, in words."""
    parts = [
        ("directory id", old.key.directory_id or "none", new.key.directory_id or "none"),
        ("endpoints", _endpoints(old), _endpoints(new)),
        ("kraft.version", _versions(old), _versions(new)),
    ]
    return "; ".join(f"{name} {before} -> {after}" for name, before, after in parts if before != after)


def _endpoints(voter: Voter) -> str:
    return " ".join(map(str, voter.endpoints)) or "none"


def _versions(voter: Voter) -> str:
    return f"{voter.min_supported_version}-{voter.max_supported_version}"
