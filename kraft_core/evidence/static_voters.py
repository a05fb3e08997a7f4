"""Nodes of a static quorum that are configured with other voters than those of the newest election.

With kraft.version 0 every node has the voters from its configuration, and quorum-state of version 0 keeps
them (KIP-853, Quorum state), there to see that they do not change. Kafka 3.9 no longer compares the two: a
quorum may go over to other voters at any restart, and no record shows it before the next election. Where the
log of a voter does not show the upgrade to kraft.version 1, its quorum-state may.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kraft_core.evidence.elections import Election
from kraft_core.evidence.facts import Capture
from kraft_core.evidence.in_force import InForce


def static_elections(elections: Mapping[int, Election], in_force: InForce) -> list[Election]:
    """The elections in which the voters were configured, by epoch."""
    return [
        elections[epoch]
        for epoch in sorted(elections)
        if in_force.at(epoch, elections[epoch].batch_end_offset - 1).is_static
    ]


def newest_static_election(elections: Mapping[int, Election], in_force: InForce) -> Election | None:
    """The one of the highest epoch; None where none is captured."""
    return (static_elections(elections, in_force) or [None])[-1]


def reconfigured(captures: Iterable[Capture], election: Election | None) -> tuple[Capture, ...]:
    """The captures of voters whose quorum-state, of that election's epoch or a later one, names other voters.

    A node is a voter by that election or by its own configuration: other nodes decide nothing. One that names
    no voters does so in any epoch: it is of kraft.version 1, or a new disk that was formatted for it.
    """
    if election is None:
        return ()
    return tuple(capture for capture in captures if _names_others(capture, election))


def _names_others(capture: Capture, election: Election) -> bool:
    # Version 1 has the directory voted for, and no voters.
    named = () if capture.voted_directory_id is not None else capture.current_voters
    if capture.quorum_state_epoch is None or named is None:
        return False
    others = tuple(sorted(set(named)))
    is_later = not others or capture.quorum_state_epoch >= election.leader_epoch
    return is_later and others != election.voters and capture.node_id in (*others, *election.voters)
