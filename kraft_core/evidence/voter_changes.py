"""The differences between successive voter sets (KIP-853, Voter changes).

The first VotersRecord of a log takes over what formatting or configuration set up: its voters are
bootstrapped. Static sets change by configuration, not by the quorum, and give no changes. A set whose
predecessor is unknown gives none either.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.rows import VoterChangeRow
from kraft_core.evidence.set_history import SetNode
from kraft_core.messages.uuid_text import ZERO_UUID
from kraft_core.raft.voters import Voter, change_between

Kind = Literal["bootstrapped", "added", "removed", "updated"]


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
    return " ".join(f"{end.name}://{end.host}:{end.port}" for end in voter.endpoints) or "none"


def _versions(voter: Voter) -> str:
    return f"{voter.min_supported_version}-{voter.max_supported_version}"
