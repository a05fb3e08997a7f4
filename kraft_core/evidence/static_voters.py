"""Nodes of a static quorum that are configured with other voters than those of the newest election.

With kraft.version 0 every node has the voters from its configuration, and quorum-state of version 0 keeps
them (KIP-853, Quorum state), there to see that they do not change. Kafka 3.9 no longer compares the two: a
quorum may go over to other voters at any restart, and no record shows it before the next election.
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

    A node is a voter by that election or by its own configuration: other nodes decide nothing.
    """
    if election is None:
        return ()
    return tuple(
        capture
        for capture in captures
        if capture.current_voters
        and capture.quorum_state_epoch is not None
        and capture.quorum_state_epoch >= election.leader_epoch
        and tuple(sorted(set(capture.current_voters))) != election.voters
        and capture.node_id in (*capture.current_voters, *election.voters)
    )
