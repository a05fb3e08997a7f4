"""A quorum in memory: replicas, a network that loses and delays, and operators who change everything at once.

A run is a seed and a list of actions, and nothing else decides it: the same run again takes the same steps,
and any part of the list is a run, too (shrinking.py). Every action means something in every state.
After every step the rules of raft/invariants are judged (judging.py).
"""

from __future__ import annotations

import random
import zlib
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace
from heapq import heappop, heappush

from kraft_core.messages.uuid_text import uuid_text
from kraft_core.protocol.errors import ProtocolFault, UnknownEndpoints
from kraft_core.protocol.lifecycle import first_start, formatted_store, restart
from kraft_core.protocol.messages import (
    AddVoterRequest,
    Endpoints,
    RaftMessage,
    RemoveVoterRequest,
    Request,
    UpdateFeaturesRequest,
)
from kraft_core.protocol.replica import Leader, Replica, ReplicaConfig, Step
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
from kraft_core.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from kraft_core.simulation.judge import BrokenRule, Judge

CLUSTER_ID = "c2ltdWxhdGVkLXF1b3J1bQ"
ADMIN = -1
POLL_EVERY = 10
HISTORY_LINES = 400
SETTINGS = ReplicaConfig(
    election_timeout=100,
    fetch_timeout=200,
    request_timeout=100,
    fetch_max_wait=30,
    election_backoff_max=100,
    caught_up_for=10_000,
    observer_session=3_000,
    max_fetch_bytes=400,
    max_snapshot_fetch_bytes=256,
)


@dataclass(frozen=True, slots=True)
class Setup:
    """What a quorum is made of. `stale_voters` switches Kafka's fault on; `static`: kraft.version 0."""

    seed: int
    voters: int = 3
    observers: int = 1
    brokers: int = 0
    static: bool = False
    auto_join: bool = False
    stale_voters: bool = False


@dataclass(frozen=True, slots=True)
class Elapse:
    ticks: int


@dataclass(frozen=True, slots=True)
class Write:
    """The leader, or each of several that think so, writes `batches` batches."""

    batches: int


@dataclass(frozen=True, slots=True)
class SnapshotLog:
    node: int
    delete_older: bool


@dataclass(frozen=True, slots=True)
class NetworkPartition:
    """The nodes whose bit is set hear only each other, and so do the others."""

    mask: int


@dataclass(frozen=True, slots=True)
class Loss:
    """From now on so many of a hundred messages are lost, and so many arrive twice."""

    lost: int
    doubled: int


@dataclass(frozen=True, slots=True)
class Crash:
    """`keeps` of a hundred parts of what was not flushed survive."""

    node: int
    keeps: int


@dataclass(frozen=True, slots=True)
class Start:
    """Start one of the stopped nodes; a `new_port` changes its endpoints."""

    node: int
    new_port: bool = False


@dataclass(frozen=True, slots=True)
class ReplaceDisk:
    """The node comes back with nothing, under another directory id."""

    node: int


@dataclass(frozen=True, slots=True)
class Stop:
    """A leader that is told to stop hands over."""

    node: int


@dataclass(frozen=True, slots=True)
class AddVoter:
    node: int


@dataclass(frozen=True, slots=True)
class RemoveVoter:
    node: int


@dataclass(frozen=True, slots=True)
class Upgrade:
    """Finalize kraft.version 1."""


Action = (
    Elapse
    | Write
    | SnapshotLog
    | NetworkPartition
    | Loss
    | Crash
    | Start
    | ReplaceDisk
    | Stop
    | AddVoter
    | RemoveVoter
    | Upgrade
)


@dataclass(frozen=True, slots=True)
class SimulatedRun:
    """A seeded quorum and what happens to it."""

    setup: Setup
    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """`steps` counts calls of the step function; `failure` is None where no rule was broken."""

    steps: int
    failure: BrokenRule | None
    history: tuple[str, ...]
    quorum: SimulatedQuorum


class SimulatedQuorum:
    """The replicas of a run and what is under way between them. Changes with every action."""

    def __init__(self, setup: Setup, *, tolerated: frozenset[int] = frozenset()) -> None:
        self.setup = setup
        self.now = 0
        self.steps = 0
        self.counter = 0
        self.moves = 0
        self.partition = 0
        self.loss = Loss(0, 0)
        self.down: set[int] = set()
        self.network: list[tuple[int, int, RaftMessage]] = []
        self.history: deque[str] = deque(maxlen=HISTORY_LINES)
        self.failure: BrokenRule | None = None
        self.appended_at: dict[tuple[int, int], int] = {}
        self.snapshotted_at: dict[tuple[int, int], int] = {}
        self.replicas = {node: self._formatted(node, 0) for node in range(1, self.size + 1)}
        self.judge = Judge(tolerated)

    @property
    def size(self) -> int:
        return self.setup.voters + self.setup.observers + self.setup.brokers

    def _formatted(self, node: int, generation: int) -> Replica:
        """A voter knows the first set; an observer has only whom to ask."""
        setup = self.setup
        is_first_voter = node <= setup.voters and generation == 0
        voters = self._first_voters()
        store = formatted_store(
            bootstrap_voters=voters if is_first_voter and not setup.static else None,
            static_voters=voters if setup.static else None,
            rewinds=not setup.stale_voters,
        )
        key = ReplicaKey(node, self._directory_id(node, generation))
        seed = zlib.crc32(f"{setup.seed} {node} {generation}".encode())
        replica = first_start(CLUSTER_ID, key, _endpoints(node, 0), store, SETTINGS, seed=seed)
        return replace(
            replica,
            can_become_voter=node <= setup.voters + setup.observers,
            auto_join=setup.auto_join,
            bootstrap=tuple(range(1, setup.voters + 1)),
            now=self.now,
        )

    def _first_voters(self) -> VoterSet:
        """A static set has no directory ids, and Kafka knows no versions of its voters."""
        nodes = range(1, self.setup.voters + 1)
        if self.setup.static:
            return VoterSet.of(Voter(ReplicaKey(node), _endpoints(node, 0)) for node in nodes)
        return VoterSet.of(
            Voter(ReplicaKey(node, self._directory_id(node, 0)), _endpoints(node, 0), 0, 1) for node in nodes
        )

    def _directory_id(self, node: int, generation: int) -> str:
        return uuid_text(random.Random(f"{self.setup.seed} {node} {generation}").randbytes(16))

    def act(self, action: Action) -> None:
        """One action, unless a rule is broken already."""
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
                self.partition = action.mask
            case Loss():
                self.loss = action
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
        return number % self.size + 1

    def _elapse(self, ticks: int) -> None:
        """Messages arrive in the order of their delays; in between every replica looks at its clock."""
        end = self.now + ticks
        next_poll = self.now - self.now % POLL_EVERY + POLL_EVERY
        while not self.failure:
            due = min(self.network[0][0] if self.network else end + 1, next_poll)
            if due > end:
                break
            self.now = due
            if due == next_poll:
                for node in self.replicas:
                    self._event(node, Tick(self.now))
                next_poll += POLL_EVERY
            else:
                self._deliver(heappop(self.network)[2])
        self.now = end

    def _deliver(self, message: RaftMessage) -> None:
        if self._are_apart(message.source, message.destination):
            return
        self._event(message.destination, Received(message))

    def _are_apart(self, one: int, other: int) -> bool:
        if ADMIN in (one, other):
            return False
        return (self.partition >> one & 1) != (self.partition >> other & 1)

    def _event(self, node: int, event: Event) -> None:
        """One step of one replica, judged; its messages go to the network."""
        before = self.replicas.get(node)
        if before is None or node in self.down or self.failure:
            return
        self.steps += 1
        if isinstance(event, Received):
            event = Received(event.message)
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
        self._describe(node, before, outcome, event)
        for batch in after.log.batches.starting_at(before.log.end_offset):
            self.appended_at.setdefault((batch.base_offset, batch.leader_epoch), self.now)
        for snapshot in after.log.snapshots:
            self.snapshotted_at.setdefault((snapshot.end_offset, snapshot.leader_epoch), self.now)
        for message in outcome.messages:
            self._send(message)
        failure = self.judge.judge(self.steps, node, before, outcome, self.replicas)
        if failure:
            self._note(f"{self.now:>6} {node} BROKEN {failure}")
            self.failure = failure

    def _died(self, node: int, why: str) -> None:
        """The process ends. In a quorum without the stale voter set that must not happen."""
        self._note(f"{self.now:>6} {node} DIED {why}")
        self.down.add(node)
        failure = BrokenRule(self.steps, node, 0, why)
        if 0 not in self.judge.tolerated:
            self.failure = failure

    def _send(self, message: RaftMessage) -> None:
        if message.destination == ADMIN:
            return
        for copy in range(2):
            self.counter += 1
            drawn = zlib.crc32(f"{self.setup.seed} {self.counter}".encode())
            lost, doubled, delay = drawn % 100, drawn // 100 % 100, 1 + drawn // 10_000 % 12
            if drawn // 1_000_000 % 50 == 0:
                delay *= 10
            if lost >= self.loss.lost:
                heappush(self.network, (self.now + delay, self.counter, message))
            if copy or doubled >= self.loss.doubled:
                return

    def _write(self, batches: int) -> None:
        for node, replica in tuple(self.replicas.items()):
            for index in range(batches if self.may_write(replica) else 0):
                self._event(node, AppendRecords(1 + (self.counter + index) % 3))

    def may_write(self, replica: Replica) -> bool:
        """Any leader; Kafka's controller waits until something of its own epoch is committed."""
        return isinstance(replica.state, Leader)

    def _start(self, action: Start) -> None:
        if not self.down:
            return
        node = sorted(self.down)[action.node % len(self.down)]
        self.down.discard(node)
        replica = self.replicas[node]
        if action.new_port:
            self.moves += 1
            self.replicas[node] = replace(replica, endpoints=_endpoints(node, 100 * self.moves))

    def _lose_unflushed(self, node: int, keeps: int) -> None:
        """The process is gone at once; what it had not flushed is gone when it looks again."""
        before = replace(self.replicas[node], now=self.now)
        first, end = before.flushed_offset, before.log.end_offset
        wanted = first + (end - first) * keeps // 100
        batch = before.log.batches.holding(wanted)
        lost_from = batch.base_offset if batch else wanted
        self._take(node, before, restart(before, None if lost_from >= end else lost_from), "crashes")

    def _replace_disk(self, node: int) -> None:
        """Not of a voter that is known by its id alone, nor while anybody calls the node leader.

        The first loses what was committed, as nothing tells the new disk from the old; in the second case
        Kafka's process ends until another leader is elected.
        """
        old = self.replicas[node]
        named = any(replica.leader.leader_id == node for replica in self.replicas.values())
        if named or any(replica.kraft_version == 0 and replica.voters for replica in self.replicas.values()):
            return
        generation = self.counter = self.counter + 1
        fresh = self._formatted(node, generation)
        self.replicas[node] = replace(
            fresh, endpoints=old.endpoints, next_correlation_id=old.next_correlation_id + 1
        )
        self.judge.lose_disk(old)
        self.down.discard(node)

    def _change_voters(self, action: AddVoter | RemoveVoter) -> None:
        replica = self.replicas[self._node(action.node)]
        if isinstance(action, AddVoter):
            if replica.can_become_voter:
                self._ask_leader(AddVoterRequest(CLUSTER_ID, replica.key, replica.endpoints))
            return
        leader = self.leader()
        entry = [voter.key for voter in leader.voters if voter.key.id == replica.key.id] if leader else []
        for key in entry:
            self._ask_leader(RemoveVoterRequest(CLUSTER_ID, key))

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
            self.counter += 1
            self._event(leader.key.id, Received(RaftMessage(ADMIN, leader.key.id, self.counter, request)))

    def _describe(self, node: int, before: Replica, outcome: Step, event: Event | str) -> None:
        """A line where something but a timer changed."""
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


def _endpoints(node: int, moved: int) -> Endpoints:
    return (Endpoint("CONTROLLER", f"host-{node}", 9000 + node + moved),)


def simulate(run: SimulatedRun, *, tolerated: frozenset[int] = frozenset()) -> Result:
    """Take the run to its end, or to the first broken rule that is not `tolerated`."""
    quorum = SimulatedQuorum(run.setup, tolerated=tolerated)
    for action in run.actions:
        quorum.act(action)
        if quorum.failure:
            break
    return Result(quorum.steps, quorum.failure, tuple(quorum.history), quorum)


def random_run(setup: Setup, action_count: int) -> SimulatedRun:
    """Trouble for a quorum: mostly time and writes, now and then everything else, and peace at the end."""
    source = random.Random(setup.seed)
    trouble = (_random_action(source) for _ in range(action_count))
    peace = [
        NetworkPartition(0),
        Loss(0, 0),
        *(Start(0) for _ in range(16)),
        Elapse(1000),
        Write(1),
        Elapse(500),
    ]
    return SimulatedRun(setup, (Elapse(400), *_interleaved(source, trouble), *peace))


def _interleaved(source: random.Random, actions: Iterable[Action]) -> Iterable[Action]:
    for action in actions:
        yield action
        if not isinstance(action, Elapse):
            yield Elapse(source.choice((5, 20, 60)))


def _random_action(source: random.Random) -> Action:
    node, odds = source.randrange(16), source.randrange(100)
    if odds < 26:
        return Elapse(source.choice((20, 80, 200, 500)))
    if odds < 46:
        return Write(source.randrange(1, 4))
    if odds < 54:
        return NetworkPartition(source.choice((0, 0, 0, source.randrange(1 << 10))))
    if odds < 58:
        return Loss(source.choice((0, 0, 5, 20)), source.choice((0, 5, 20)))
    if odds < 64:
        return Crash(node, source.choice((0, 50, 100)))
    if odds < 74:
        return Start(node, new_port=source.random() < 0.2)
    if odds < 76:
        return ReplaceDisk(node)
    if odds < 79:
        return Stop(node)
    if odds < 87:
        return AddVoter(node)
    if odds < 93:
        return RemoveVoter(node)
    if odds < 98:
        return SnapshotLog(node, delete_older=source.random() < 0.5)
    return Upgrade()
