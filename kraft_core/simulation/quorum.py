"""A quorum in memory: replicas, the network between them, and the actions of its operators.

Changes with every action. After every step of a replica the rules of kraft_core.raft are judged (judge.py).
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from kraft_core.protocol.errors import ProtocolFault, UnknownEndpoints
from kraft_core.protocol.lifecycle import restart
from kraft_core.protocol.messages import (
    AddVoterRequest,
    RaftMessage,
    RemoveVoterRequest,
    Request,
    UpdateFeaturesRequest,
)
from kraft_core.protocol.replica import Leader, Replica, Step
from kraft_core.protocol.step import (
    AppendRecords,
    Event,
    Received,
    ShutDown,
    TakeSnapshot,
    Tick,
    step,
)
from kraft_core.raft.emulation import ControlReaderError
from kraft_core.raft.replay import OperationRefusedError
from kraft_core.simulation.actions import (
    Action,
    AddVoter,
    Crash,
    Elapse,
    Loss,
    NetworkPartition,
    RemoveVoter,
    ReplaceDisk,
    SnapshotLog,
    Start,
    Stop,
    Upgrade,
    Write,
)
from kraft_core.simulation.judge import BrokenRule, Judge
from kraft_core.simulation.network import ADMIN, Network
from kraft_core.simulation.setup import Setup, endpoints_of, formatted_replica

POLL_EVERY = 10
HISTORY_LINES = 400


class SimulatedQuorum:
    """The replicas of a run and the messages between them.

    now: the tick. steps: calls of the step function. history: the latest events, as text. failure: the first
    broken rule that is not `tolerated`. appended_at, snapshotted_at: the tick of each batch by (base offset,
    leader epoch), of each snapshot by (end offset, leader epoch).
    """

    def __init__(self, setup: Setup, *, tolerated: frozenset[int] = frozenset()) -> None:
        self.setup = setup
        self.now = 0
        self.steps = 0
        self.moves = 0
        self.down: set[int] = set()
        self.network = Network(setup.seed)
        self.history: deque[str] = deque(maxlen=HISTORY_LINES)
        self.failure: BrokenRule | None = None
        self.appended_at: dict[tuple[int, int], int] = {}
        self.snapshotted_at: dict[tuple[int, int], int] = {}
        self.replicas = {node: formatted_replica(setup, node, 0, 0) for node in range(1, setup.size + 1)}
        self.judge = Judge(tolerated)

    def act(self, action: Action) -> None:
        """Do one action, unless a rule is broken already."""
        if self.failure:
            return
        self._note(f"-- {action}")
        match action:
            case Elapse():
                self._elapse(action.ticks)
            case Write():
                self._write(action.batches)
            case SnapshotLog():
                self._event(self._node(action.node), TakeSnapshot(action.delete_older))
            case NetworkPartition():
                self.network.partition = action
            case Loss():
                self.network.loss = action
            case Crash():
                self.down.add(self._node(action.node))
                self._lose_unflushed(self._node(action.node), action.keeps)
            case Start():
                self._start(action)
            case ReplaceDisk():
                self._replace_disk(self._node(action.node))
            case Stop():
                self._event(self._node(action.node), ShutDown())
            case AddVoter() | RemoveVoter():
                self._change_voters(action)
            case Upgrade():
                self._ask_leader(UpdateFeaturesRequest(1))

    def _node(self, number: int) -> int:
        return number % self.setup.size + 1

    def _elapse(self, ticks: int) -> None:
        """Deliver messages as they arrive; every POLL_EVERY ticks each replica polls its timers."""
        end = self.now + ticks
        next_poll = self.now - self.now % POLL_EVERY + POLL_EVERY
        while not self.failure:
            arrival = self.network.next_arrival
            due = next_poll if arrival is None else min(arrival, next_poll)
            if due > end:
                break
            self.now = due
            if due == next_poll:
                for node in self.replicas:
                    self._event(node, Tick(self.now))
                next_poll += POLL_EVERY
            elif message := self.network.receive():
                self._event(message.destination, Received(message))
        self.now = end

    def _event(self, node: int, event: Event) -> None:
        """One step of one replica, judged; its messages go to the network."""
        before = self.replicas.get(node)
        if before is None or node in self.down or self.failure:
            return
        self.steps += 1
        if isinstance(event, Received):
            before = replace(before, now=max(self.now, before.now))
        try:
            outcome = step(before, event)
        except UnknownEndpoints as error:
            self._note(f"{self.now:>6} {node} DIED {error}")
            self.down.add(node)
            return
        except (ProtocolFault, OperationRefusedError, ControlReaderError) as error:
            self._note(f"{self.now:>6} {node} {event}")
            self._died(node, str(error))
            return
        self._take(node, before, outcome, event)

    def _take(self, node: int, before: Replica, outcome: Step, event: Event | str) -> None:
        after = outcome.replica
        self.replicas[node] = after
        self._note_step(node, before, outcome, event)
        for batch in after.log.batches.starting_at(before.log.end_offset):
            self.appended_at.setdefault((batch.base_offset, batch.leader_epoch), self.now)
        for snapshot in after.log.snapshots:
            self.snapshotted_at.setdefault((snapshot.end_offset, snapshot.leader_epoch), self.now)
        for message in outcome.messages:
            self.network.send(message, self.now)
        failure = self.judge.judge(self.steps, node, before, outcome, self.replicas)
        if failure:
            self._note(f"{self.now:>6} {node} BROKEN {failure}")
            self.failure = failure

    def _died(self, node: int, why: str) -> None:
        """The process ends, which only a stale voter set can cause."""
        self._note(f"{self.now:>6} {node} DIED {why}")
        self.down.add(node)
        failure = BrokenRule(self.steps, node, 0, why)
        if 0 not in self.judge.tolerated:
            self.failure = failure

    def _write(self, batches: int) -> None:
        for node, replica in tuple(self.replicas.items()):
            for index in range(batches if self.may_write(replica) else 0):
                self._event(node, AppendRecords(1 + (self.network.number + index) % 3))

    def may_write(self, replica: Replica) -> bool:
        """Any leader may; Kafka's controller waits until its own epoch's start is committed."""
        return isinstance(replica.state, Leader)

    def _start(self, action: Start) -> None:
        if not self.down:
            return
        node = sorted(self.down)[action.node % len(self.down)]
        self.down.discard(node)
        replica = self.replicas[node]
        if action.new_port:
            self.moves += 1
            self.replicas[node] = replace(replica, endpoints=endpoints_of(node, 100 * self.moves))

    def _lose_unflushed(self, node: int, keeps: int) -> None:
        """The process ends at once; of what it had not flushed, `keeps` percent survives."""
        before = replace(self.replicas[node], now=self.now)
        first, end = before.flushed_offset, before.log.end_offset
        wanted = first + (end - first) * keeps // 100
        batch = before.log.batches.holding(wanted)
        lost_from = batch.base_offset if batch else wanted
        self._take(node, before, restart(before, None if lost_from >= end else lost_from), "crashes")

    def _replace_disk(self, node: int) -> None:
        """Does nothing if voters are known by id alone, or if any replica takes the node for the leader.

        In the first case committed records would be lost, as the new disk cannot be distinguished from the
        old; in the second, Kafka's process ends until another leader is elected. Nor where the node's own
        configuration has no other voter: it would lead a quorum of its own.
        """
        old = self.replicas[node]
        named = any(replica.leader.leader_id == node for replica in self.replicas.values())
        if named or any(replica.kraft_version == 0 and replica.voters for replica in self.replicas.values()):
            return
        fresh = formatted_replica(self.setup, node, self.network.next_number(), self.now)
        if fresh.is_only_voter:
            return
        self.replicas[node] = replace(
            fresh, endpoints=old.endpoints, next_correlation_id=old.next_correlation_id + 1
        )
        self.judge.lose_disk(old)
        self.down.discard(node)

    def _change_voters(self, action: AddVoter | RemoveVoter) -> None:
        replica = self.replicas[self._node(action.node)]
        if isinstance(action, AddVoter):
            if replica.can_become_voter:
                self._ask_leader(AddVoterRequest(self.setup.cluster_id, replica.key, replica.endpoints))
            return
        leader = self.leader()
        entry = [voter.key for voter in leader.voters if voter.key.id == replica.key.id] if leader else []
        for key in entry:
            self._ask_leader(RemoveVoterRequest(self.setup.cluster_id, key))

    def leader(self) -> Replica | None:
        """The running leader of the highest epoch."""
        leaders = [
            replica
            for node, replica in self.replicas.items()
            if isinstance(replica.state, Leader) and node not in self.down
        ]
        return max(leaders, key=lambda replica: replica.epoch, default=None)

    def _ask_leader(self, request: Request) -> None:
        leader = self.leader()
        if leader:
            message = RaftMessage(ADMIN, leader.key.id, self.network.next_number(), request)
            self._event(leader.key.id, Received(message))

    def _note_step(self, node: int, before: Replica, outcome: Step, event: Event | str) -> None:
        """Note an event that changed the role, the epoch or the log."""
        after = outcome.replica
        same = (before.role, before.epoch, before.log) == (after.role, after.epoch, after.log)
        if same and not isinstance(event, str):
            return
        what = type(event.message.body).__name__ if isinstance(event, Received) else event
        operations = ", ".join(type(one).__name__ for one in outcome.operations)
        self._note(
            f"{self.now:>6} {node} {what}: {after.role.value} e{after.epoch} log {after.log.start_offset}"
            f"..{after.log.end_offset} hwm {after.log.known_high_watermark} voters {list(after.voters.ids)}"
            f" [{operations}]"
        )

    def _note(self, line: str) -> None:
        self.history.append(line)
