"""Which captures have a quorum-state that is older than their log.

A replica writes the epoch to quorum-state before it grants a vote or appends a batch in it (KIP-595). So a
quorum-state was copied before the log if the log holds a higher epoch, or if the replica had granted its vote
in a higher epoch, by that epoch's LEADER_CHANGE, before the capture was taken.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kraft_core.evidence.elections import Election
from kraft_core.evidence.facts import Capture
from kraft_core.evidence.in_force import InForce
from kraft_core.raft.voters import ReplicaKey


def with_consistency(captures: Iterable[Capture], in_force: InForce) -> tuple[Capture, ...]:
    """The captures; those whose quorum-state is shown to be older than the log are not consistent."""
    captures = tuple(captures)
    replicas = {capture.replica for capture in captures}
    return tuple(
        replace(capture, consistent=False) if _is_older(capture, in_force, replicas) else capture
        for capture in captures
    )


def _is_older(capture: Capture, in_force: InForce, replicas: set[ReplicaKey]) -> bool:
    epoch = capture.quorum_state_epoch
    if epoch is None:
        return False
    if capture.epoch_ranges and capture.epoch_ranges[-1].leader_epoch > epoch:
        return True
    later = (election for election in in_force.elections.values() if election.leader_epoch > epoch)
    return any(_had_granted(capture, election, in_force, replicas) for election in later)


def _had_granted(capture: Capture, election: Election, in_force: InForce, replicas: set[ReplicaKey]) -> bool:
    """A LEADER_CHANGE names its granting voters by id; the set in force there knows their directories.

    Where it does not, and the id has several, another one may have granted.
    """
    if capture.node_id not in election.granting_voters:
        return False
    taken = capture.captured_from
    if taken is None or taken <= election.elected_at:
        return False
    there = in_force.voters_at(election.leader_epoch, election.batch_end_offset - 1)
    granting = [voter for voter in there.voters if voter.matches(capture.replica)] if there else []
    return len(granting) == 1 and sum(granting[0].matches(replica) for replica in replicas) == 1
