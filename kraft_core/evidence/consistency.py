"""Which captures have a quorum-state older than their log, or a log older than what other captures show.

A replica writes the epoch to quorum-state before it grants a vote or appends a batch in it (KIP-595). So a
quorum-state was copied before the log if the log holds a higher epoch, or if the replica had granted its vote
in a higher epoch, by that epoch's LEADER_CHANGE, before the capture was taken. A node that leads writes its
LEADER_CHANGE at once, and others hear of it afterwards.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace

from kraft_core.evidence.elections import Election
from kraft_core.evidence.facts import CLOCK_SKEW_MS, Capture
from kraft_core.evidence.holdings import highest, rising
from kraft_core.evidence.in_force import InForce
from kraft_core.evidence.shared_parts import distinct_ranges
from kraft_core.raft.voters import ReplicaKey

# So long may copying a directory take, as is assumed: quorum-state comes last, the stated time is the first.
COPY_MS = 600_000


def with_consistency(
    captures: Iterable[Capture], in_force: InForce, contested: Collection[int]
) -> tuple[Capture, ...]:
    """The captures as Capture has them after conclude(). contested: epochs of two contents."""
    elections = {epoch: each for epoch, each in in_force.elections.items() if epoch not in contested}
    captures = tuple(_by_others(tuple(captures), elections))
    replicas = {capture.replica for capture in captures}
    return tuple(
        replace(capture, consistent=False) if _is_older(capture, in_force, replicas) else capture
        for capture in captures
    )


def _by_others(captures: tuple[Capture, ...], elections: Mapping[int, Election]) -> Iterator[Capture]:
    """The captures with what they lack of what their nodes had led and written before, by more than clocks
    differ.
    """
    heard: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    written: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for capture in captures:
        leader_id, epoch, until = (
            capture.quorum_state_leader_id,
            capture.quorum_state_epoch,
            capture.captured_until,
        )
        if leader_id is not None and leader_id != capture.node_id and epoch is not None and until is not None:
            heard[leader_id].append((until + COPY_MS, epoch))
    for epoch_range in distinct_ranges(captures):
        at, end = epoch_range.last_appended_at, epoch_range.end_offset
        written[epoch_range.leader_epoch].append((at, end))
    led = {leader_id: rising(epochs) for leader_id, epochs in heard.items()}
    ends = {epoch: rising(each) for epoch, each in written.items() if epoch in elections}
    for capture in captures:
        before = 0 if capture.captured_from is None else capture.captured_from - CLOCK_SKEW_MS
        own = elections.get(capture.quorum_state_epoch or 0)
        leads = own is not None and own.leader_id == capture.node_id
        led_epoch = highest(led.get(capture.node_id), before)
        if led_epoch is not None and led_epoch <= max(capture.quorum_state_epoch or 0, capture.last_epoch):
            led_epoch = None
        wrote_end = highest(ends.get(own.leader_epoch), before) if own is not None and leads else None
        if wrote_end is not None and wrote_end <= capture.segments_end:
            wrote_end = None
        is_known = (led_epoch, wrote_end) == (capture.led_epoch, capture.wrote_end)
        yield capture if is_known else replace(capture, led_epoch=led_epoch, wrote_end=wrote_end)


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
