"""Which captures have a quorum-state that is older than their log, or a log older than what others had heard.

A replica writes the epoch to quorum-state before it grants a vote or appends a batch in it (KIP-595). So a
quorum-state was copied before the log if the log holds a higher epoch, or if the replica had granted its vote
in a higher epoch, by that epoch's LEADER_CHANGE, before the capture was taken. A node that leads writes its
LEADER_CHANGE at once, and others hear of it afterwards.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import accumulate

from kraft_core.evidence.elections import Election
from kraft_core.evidence.facts import CLOCK_SKEW_MS, Capture
from kraft_core.evidence.in_force import InForce
from kraft_core.raft.voters import ReplicaKey


def with_consistency(captures: Iterable[Capture], in_force: InForce) -> tuple[Capture, ...]:
    """The captures as Capture has them after conclude()."""
    captures = tuple(_with_led_epochs(tuple(captures)))
    replicas = {capture.replica for capture in captures}
    return tuple(
        replace(capture, consistent=False) if _is_older(capture, in_force, replicas) else capture
        for capture in captures
    )


def _with_led_epochs(captures: tuple[Capture, ...]) -> Iterator[Capture]:
    """The captures with the newest epoch that their node had led before, by more than clocks differ."""
    heard: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for capture in captures:
        leader_id, epoch, until = (
            capture.quorum_state_leader_id,
            capture.quorum_state_epoch,
            capture.captured_until,
        )
        if leader_id is not None and leader_id != capture.node_id and epoch is not None and until is not None:
            heard[leader_id].append((until, epoch))
    newest = {leader_id: _rising(sorted(epochs)) for leader_id, epochs in heard.items()}
    for capture in captures:
        times, epochs = newest.get(capture.node_id, ([], []))
        since = 0 if capture.captured_from is None else capture.captured_from - CLOCK_SKEW_MS
        count = bisect_left(times, since)
        yield replace(capture, led_epoch=epochs[count - 1]) if count else capture


def _rising(heard: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Times, and the highest epoch up to each."""
    return [at for at, _ in heard], list(accumulate((epoch for _, epoch in heard), max))


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
