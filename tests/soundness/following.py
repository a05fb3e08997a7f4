"""What kraftlake follow holds of an execution: copies of leaders' logs, and their answers to DescribeQuorum.

A follower asks whoever believes to lead, also a leader that was replaced and does not know it yet. It takes
batches below the high watermark that comes with them, in whole batches and in their order; where the leader
has deleted what was not read yet, its latest snapshot replaces that, and another copy begins. The facts are
those that transforms.evidence.fact_values makes of what transforms.live.spool writes.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from kraft_core.evidence.facts import (
    AnsweredWatermark,
    Capture,
    CapturedControlRecord,
    ClusterFacts,
    SnapshotFacts,
    copied_between,
)
from kraft_core.findings.facts import Observation
from kraft_core.format.capture import FOLLOWED_NODE_ID, LIVE, is_live
from kraft_core.messages.uuid_text import ZERO_UUID, uuid_text
from kraft_core.protocol.replica import Leader, Replica
from kraft_core.raft.batches import Batch
from kraft_core.raft.log import Snapshot
from kraft_core.raft.voters import ReplicaKey
from tests.soundness.captures import control_records_of, epoch_ranges_of, snapshot_of
from tests.soundness.clocks import TRUE, Clock
from tests.soundness.execution import Execution

MOST_FOLLOWERS = 2
MOST_ASKS = 6
_ALL = 1 << 20


@dataclass(frozen=True, slots=True)
class Ask:
    """What a follower asks a leader once. at, begun, ended: moments: of the answer, of both ends of the wait.

    samples: it asks for the quorum; live: by kraftlake follow, else by describe. batches: so many are read,
    at most. restarts: it was started again before, and remembers no more than its last batch. is_full: its
    copy was full, and another one begins. is_killed: before it noted the time, if what it read is later than
    the time that it noted last.
    """

    slot: int
    at: int
    begun: int
    ended: int
    samples: bool = True
    live: bool = True
    batches: int = _ALL
    restarts: bool = False
    is_full: bool = False
    is_killed: bool = False


@dataclass(frozen=True, slots=True)
class Follower:
    """What one spool was filled by. asks: by moment. clock: its machine's."""

    number: int
    asks: tuple[Ask, ...]
    clock: Clock = TRUE

    @property
    def directory_id(self) -> str:
        return uuid_text(random.Random(f"followed {self.number}").randbytes(16))

    def told(self, execution: Execution, moment: int) -> int:
        """What its clock tells at a moment (ms)."""
        return execution.at[moment] + self.clock.fast_at(moment)


@dataclass(slots=True)
class FollowedLog:
    """One copy that a follower wrote. noted: when (ms) it last said that this was committed.

    first_noted: the earliest time at which it said so of the same batches; None: of others before.
    """

    snapshot: Snapshot | None
    batches: list[Batch] = field(default_factory=list[Batch])
    noted: int = 0
    first_noted: int | None = None

    def note(self, at: int) -> None:
        self.noted = at
        self.first_noted = at if self.first_noted is None else min(self.first_noted, at)


def followed_logs(execution: Execution, follower: Follower) -> list[FollowedLog]:
    """The copies that a follower has after its asks; those without a batch are never begun."""
    copies: list[FollowedLog] = []
    position, led_in = 0, 0
    for ask in follower.asks:
        leader = execution.moments[ask.at].get(ask.slot)
        if leader is None or not isinstance(leader.state, Leader):
            continue
        if ask.restarts:
            kept = [copy for copy in copies if copy.batches]
            copies = kept
            position, led_in = (kept[-1].batches[-1].end_offset, _epoch(kept[-1])) if kept else (0, 0)
        high_watermark = leader.state.progress.high_watermark
        if leader.epoch < led_in or high_watermark is None or not ask.batches:
            continue
        led_in, log = leader.epoch, leader.log
        if copies and copies[-1].batches and _has_lost(leader, copies[-1].batches[-1]):
            break
        snapshot, start = log.latest_snapshot, log.start_offset
        if position < start and snapshot is not None:
            copies.append(FollowedLog(snapshot))
            # At its log start a leader answers only by the epoch of its earliest snapshot.
            position = start if snapshot.end_offset == start else start + 1
        elif position == 0 and snapshot is not None and snapshot.end_offset:
            position = 1  # at 0 it offers the snapshot
        read = [b for b in log.batches if position < b.end_offset <= high_watermark][: ask.batches]
        if read:
            if not copies or (ask.is_full and copies[-1].batches):
                copies.append(FollowedLog(None))
            copies[-1].batches += read
            copies[-1].first_noted = None
            position = read[-1].end_offset
        if copies and copies[-1].batches:
            newest, noted = execution.batch_timestamp(_place(copies[-1].batches[-1])), copies[-1].noted
            if not (ask.is_killed and 0 < noted < newest):
                copies[-1].note(max(follower.told(execution, ask.ended), newest))
    return [copy for copy in copies if copy.batches]


def _has_lost(leader: Replica, last: Batch) -> bool:
    """Whether its log has no or another batch where this one was read: then it is not followed any more."""
    held = leader.log.batches.holding(last.base_offset)
    return leader.log.end_offset < last.end_offset or (held is not None and held != last)


def _epoch(copy: FollowedLog) -> int:
    return copy.batches[-1].leader_epoch


def _place(batch: Batch) -> tuple[int, int]:
    return batch.base_offset, batch.leader_epoch


# --- facts


def with_followed(facts: ClusterFacts, execution: Execution, followers: Sequence[Follower]) -> ClusterFacts:
    """The facts of captures, and what followers hold."""
    logs = ((follower, log) for follower in followers for log in followed_logs(execution, follower))
    facts = with_logs(facts, execution, logs)
    return replace(facts, answered=tuple(answered(observations_of(execution, followers))))


def with_logs(
    facts: ClusterFacts, execution: Execution, logs: Iterable[tuple[Follower, FollowedLog]]
) -> ClusterFacts:
    """The facts of captures, and copies that followers wrote."""
    followed: list[Capture] = []
    records: list[CapturedControlRecord] = []
    snapshots: list[SnapshotFacts] = []
    ends: set[tuple[int, int]] = set()
    for follower, log in logs:
        capture = followed_capture(execution, follower, log)
        first = log.noted if log.first_noted is None else log.first_noted
        earlier = (
            [followed_capture(execution, follower, replace(log, noted=first))] if first < log.noted else []
        )
        followed += (*earlier, capture)
        records += control_records_of(execution, log.batches)
        snapshots += [snapshot_of(execution, log.snapshot, capture)] if log.snapshot else []
        ends |= {(batch.leader_epoch, batch.end_offset) for batch in log.batches}
    every = (*facts.snapshots, *snapshots)
    known = {(s.leader_epoch, s.end_offset) for s in facts.snapshots if s.batch_end is not None} | ends
    return replace(
        facts,
        control_records=(*facts.control_records, *records),
        snapshots=tuple(
            replace(s, batch_end=s.end_offset if (s.leader_epoch, s.end_offset) in known else None)
            for s in every
        ),
        followed=tuple(followed),
    )


def followed_capture(execution: Execution, follower: Follower, log: FollowedLog) -> Capture:
    """A copy that only says what was committed: without quorum-state and leader-epoch-checkpoint."""
    epoch_ranges = epoch_ranges_of(execution, tuple(log.batches))
    ends = [epoch_ranges[-1].end_offset, *([log.snapshot.end_offset] if log.snapshot else [])]
    headers = [execution.header_timestamp((s.end_offset, s.leader_epoch)) for s in (log.snapshot,) if s]
    start = log.batches[0].base_offset
    captured_from, captured_until, time_source = copied_between(
        log.noted, "capture.json", epoch_ranges, headers
    )
    return Capture(
        capture_id=f"{hash((follower.directory_id, start, epoch_ranges, log.snapshot)):x}",
        node_id=FOLLOWED_NODE_ID,
        directory_id=follower.directory_id,
        captured_at=log.noted,
        log_start_offset=start,
        log_end_offset=max(ends),
        epoch_ranges=epoch_ranges,
        captured_from=captured_from,
        captured_until=captured_until,
        time_source=time_source,
        captured_at_source="capture.json",
    )


def observations_of(execution: Execution, followers: Iterable[Follower]) -> list[Observation]:
    """The answers to DescribeQuorum, as kraft_core.findings.describe reads them; of replicas the leader."""
    found: list[Observation] = []
    for follower in followers:
        for ask in follower.asks:
            leader = execution.moments[ask.at].get(ask.slot)
            if ask.samples and leader is not None and isinstance(leader.state, Leader):
                status = _status(execution, follower, ask, leader, leader.state)
                found += (status, _replication(status, leader))
    return found


def _status(
    execution: Execution, follower: Follower, ask: Ask, leader: Replica, state: Leader
) -> Observation:
    begun, ended = (follower.told(execution, at) for at in (ask.begun, ask.ended))
    ended = max(begun, ended)
    voters = tuple(_named(voter.key) for voter in leader.voters)
    return Observation(
        execution.script.setup.cluster_id,
        f"{begun}-{ended}-{follower.number}-status" + (LIVE if ask.live else ".txt"),
        begun,
        ended,
        "status",
        leader.key.id,
        next((directory for node, directory in voters if node == leader.key.id), ZERO_UUID),
        "Leader",
        leader_epoch=leader.epoch,
        high_watermark=state.progress.high_watermark,
        voters=voters,
        observers=tuple(_named(each.key) for each in state.progress.observers),
    )


def _replication(status: Observation, leader: Replica) -> Observation:
    """The leader's row of --replication, which prints no epoch."""
    return replace(
        status,
        source=status.source.replace("status", "replication"),
        kind="replication",
        leader_epoch=None,
        high_watermark=None,
        log_end_offset=leader.log.end_offset,
        lag_records=0,
        voters=(),
        observers=(),
    )


def _named(key: ReplicaKey) -> tuple[int, str]:
    return key.id, key.directory_id or ZERO_UUID


def answered(outputs: Iterable[Observation]) -> Iterator[AnsweredWatermark]:
    for output in outputs:
        watermark, epoch = output.high_watermark, output.leader_epoch
        if is_live(output.source) and watermark is not None and epoch is not None:
            yield AnsweredWatermark(epoch, output.node_id, watermark, output.observed_to, output.voters)


# --- drawing


def random_followers(
    source: random.Random, execution: Execution, clock: Clock = TRUE
) -> tuple[Follower, ...]:
    """Of half of the executions none; else one, or two spools of one machine."""
    leading = [
        (moment, slot)
        for moment, replicas in enumerate(execution.moments)
        for slot in sorted(replicas)
        if isinstance(replicas[slot].state, Leader)
    ]
    if not leading or source.random() < 0.5:
        return ()
    weights = [_weight(execution.moments[moment], slot) for moment, slot in leading]
    last = len(execution.moments) - 1
    return tuple(
        Follower(number, _asks(source, leading, weights, last), clock)
        for number in range(1, 1 + source.choice((1, 1, MOST_FOLLOWERS)))
    )


def _weight(replicas: Mapping[int, Replica], slot: int) -> int:
    """Leaders that were replaced, or that have deleted the beginning of the log, are few and ask for more."""
    leader = replicas[slot]
    others = (replica.epoch for replica in replicas.values() if isinstance(replica.state, Leader))
    return 1 + 20 * (leader.epoch < max(others)) + 20 * (leader.log.start_offset > 0)


def _asks(
    source: random.Random, leading: Sequence[tuple[int, int]], weights: Sequence[int], last: int
) -> tuple[Ask, ...]:
    """Up to a moment, most often a late one; mostly of all batches."""
    until = max(source.choice(leading)[0], source.choice(leading)[0])
    drawn = source.choices(leading, weights, k=source.randint(1, MOST_ASKS))
    return tuple(
        Ask(
            slot,
            at,
            max(0, at - source.choice((0, 0, 0, 1, 2))),
            min(last, at + source.choice((0, 0, 0, 1))),
            samples=source.random() < 0.7,
            live=source.random() < 0.8,
            batches=source.choice((_ALL, _ALL, 1, 2, 0)),
            restarts=source.random() < 0.2,
            is_full=source.random() < 0.2,
            is_killed=source.random() < 0.1,
        )
        for at, slot in sorted(set(drawn))
        if at <= until
    )


def fewer_asks(followers: tuple[Follower, ...]) -> Iterator[tuple[Follower, ...]]:
    """The followers without one of their asks."""
    for nth, follower in enumerate(followers):
        for gone in range(len(follower.asks)):
            asks = (*follower.asks[:gone], *follower.asks[gone + 1 :])
            rest = (replace(follower, asks=asks),) if asks else ()
            yield (*followers[:nth], *rest, *followers[nth + 1 :])


def asking_at(followers: tuple[Follower, ...], places: Sequence[int]) -> tuple[Follower, ...]:
    """The followers with their asks at other moments, by a map of the old ones."""
    return tuple(
        replace(
            follower,
            asks=tuple(
                replace(ask, at=places[ask.at], begun=places[ask.begun], ended=places[ask.ended])
                for ask in follower.asks
            ),
        )
        for follower in followers
    )
