"""cluster and cluster-rewound: the logs of whole quorums of KafkaRaftClient, each from its own operations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

from kraft_core.raft import replay
from kraft_core.raft.emulation import (
    EmulatedReplica,
    emulate,
    snapshot_kafka_would_write,
    start,
    voters_kafka_would_use,
)
from kraft_core.raft.log import ReplicaLog, controls_of_log
from kraft_core.raft.voters import ReplicaKey, VoterSet
from tests.conformance.tally import Tally
from tests.conformance.trace import (
    Line,
    batches_of,
    described,
    fresh,
    pairs,
    snapshot_id,
    snapshot_of,
    voter_rows,
    voter_set,
)

# Of a recorded state, what is no log's: the role in the protocol. Named and counted, not compared here.
PROTOCOL = ("role", "epoch", "leader", "voted")
# The simulation's log keeps epochs that Kafka's own cache drops; log-replay has the truth about them.
MOCK_EPOCHS = ("epochs", "eoe")


Observer = Callable[[str, EmulatedReplica, replay.Operation, EmulatedReplica], None]


def compare(lines: Iterable[Line], *, rewinds: bool) -> Tally:
    """Every operation and recorded state of every node. `rewinds`: a Kafka without the stale fault."""
    tally = Tally()
    case = SimulatedQuorum({}, tally, rewinds=rewinds)
    aborted = False
    for line in lines:
        if "ev" not in line:
            case, aborted = SimulatedQuorum(line, tally, rewinds=rewinds), False
        elif line["ev"] == "aborted":
            tally.leave_out("event that aborted the simulation")
            aborted = True
        elif aborted:
            tally.leave_out("event after the simulation was aborted")
        else:
            tally.step(f"event {line['ev']}")
            case.event(line)
    return tally


class SimulatedQuorum:
    """One simulated quorum: its nodes' logs as the engine has them, driven by the trace's events.

    `observe` is called with each operation: node, state before it, the operation, state after it.
    """

    def __init__(self, head: Line, tally: Tally, *, rewinds: bool, observe: Observer | None = None) -> None:
        self.observe = observe
        self.tally = tally
        self.rewinds = rewinds
        self.static = _static_voters(head) if head.get("kind") == "static-voters" else None
        self.keys = {f"n{node}": ReplicaKey(node, directory) for node, directory, _ in head.get("nodes", ())}
        self.roles: dict[str, str] = {}
        self.replicas = {node: self._formatted() for node in self.keys}

    def _formatted(self) -> EmulatedReplica:
        return start(ReplicaLog(static_voters=self.static), rewinds=self.rewinds)

    def event(self, line: Line) -> None:
        if "new_directory" in line:
            node = f"n{line['node']}"
            self.keys[node] = ReplicaKey(line["node"], line["new_directory"])
            self.replicas[node] = self._formatted()
        for node, change in line.get("nodes", {}).items():
            place = f"case {line['case']} event {line['i']} {node}"
            operations = change.get("ops", ())
            for operation in operations:
                self.tally.step(f"operation {operation['op']}")
            for operation in operation_lines(operations):
                self._operate(place, node, operation)
            if "state" in change:
                self._compare_state(place, node, change["state"])

    def _operate(self, place: str, node: str, line: Line) -> None:
        if "batches" in line:
            self.tally.compare(place, "batches", described(line), line["batches"])
        before = self.replicas[node]
        operation = _operation(line)
        try:
            after = emulate(before, operation)
        except replay.OperationRefusedError as refused:
            self.tally.compare(place, "refused", str(refused), None)
            return
        if isinstance(operation, replay.Restart):
            after = replace(after, log=_restarted_mock_log(before.log, after.log))
        self.replicas[node] = after
        if self.observe:
            self.observe(node, before, operation, after)
        if isinstance(operation, replay.CreateSnapshot) and operation.snapshot.order != (0, 0):
            written = snapshot_kafka_would_write(before, *line["id"])
            self.tally.compare(place, "snapshot content", written, operation.snapshot)

    def _compare_state(self, place: str, node: str, expected: Line) -> None:
        if expected["role"] == "down":
            self.tally.step("state of a stopped node")
            return
        self.tally.step("state")
        if self._resigned(node, expected):
            self.replicas[node] = emulate(self.replicas[node], replay.Resign())
        self.roles[node] = expected["role"]
        for names, reason in ((PROTOCOL, "protocol state, no log's: "), (MOCK_EPOCHS, "MockLog's: ")):
            for name in names:
                if name in expected:
                    self.tally.leave_out(reason + name)
        compared = {name: value for name, value in expected.items() if name not in PROTOCOL + MOCK_EPOCHS}
        self.tally.compare_all(place, _state(self.replicas[node], self.keys[node]), compared)

    def _resigned(self, node: str, expected: Line) -> bool:
        """Whether the leader resigned: no operation of its log, so the recorded role tells.

        Where it went on to another role within the event, only the high watermark that it forgot does.
        """
        if expected["role"] == "resigned":
            return True
        left = self.roles.get(node) == "leader" and expected["role"] != "leader" and expected["hwm"] is None
        if left:
            self.tally.step("resignation within an event")
        return left


def _static_voters(head: Line) -> VoterSet:
    """The configured set: Kafka knows no version range of a voter that it has only from its configuration."""
    voters = voter_set(head["voters"])
    return VoterSet.of(replace(voter, max_supported_version=0) for voter in voters)


def _restarted_mock_log(before: ReplicaLog, after: ReplicaLog) -> ReplicaLog:
    """The simulation's log over a restart: it holds no segments, so it keeps its start, and its own high
    watermark begins at 0 (KafkaRaftLog's, in log-replay, begins at the start offset)."""
    return replace(after, start_offset=before.start_offset, high_watermark=0)


def operation_lines(lines: Iterable[Line]) -> Iterator[Line]:
    """The lines with a fetched snapshot and the truncation to it as one operation, install_snapshot."""
    rest = list(lines)
    truncated_to = {tuple(line["id"]) for line in rest if line["op"] == "truncate_to_snapshot"}
    for line in rest:
        if line["op"] == "snapshot" and tuple(line["id"]) in truncated_to:
            yield line | {"op": "install_snapshot"}
        elif line["op"] != "truncate_to_snapshot":
            yield line


def _operation(line: Line) -> replay.Operation:
    match line["op"]:
        case "append_leader":
            return replay.AppendAsLeader(line["epoch"], batches_of(line))
        case "append_follower":
            return replay.AppendAsFollower(line["epoch"], batches_of(line))
        case "leader_epoch":
            return replay.BeginEpoch(line["epoch"])
        case "hwm":
            return replay.UpdateHighWatermark(line["offset"])
        case "truncate":
            return replay.TruncateTo(line["offset"])
        case "snapshot":
            return replay.CreateSnapshot(snapshot_of(line))
        case "install_snapshot":
            return replay.InstallSnapshot(snapshot_of(line))
        case "delete_before":
            return replay.DeleteBefore(*line["id"])
        case "restart":
            return replay.Restart(line["lost_from"])
        case other:
            raise ValueError(f"unknown operation {other!r}")


def _state(replica: EmulatedReplica, key: ReplicaKey) -> dict[str, Any]:
    log, live = replica.log, replica.reader.controls
    voters = voters_kafka_would_use(replica)
    known = log.known_high_watermark
    unknown = known is None or live.voters.last_offset is None
    state = {
        "voter": voters is not None and voters.voter_for(key) is not None,
        "leo": log.end_offset,
        "start": log.start_offset,
        "hwm": known,
        "log_hwm": log.high_watermark,
        "snap_first": snapshot_id(log.earliest_snapshot),
        "snap_last": snapshot_id(log.latest_snapshot),
        "voters": voter_rows(voters),
        "voters_at": live.voters.last_offset,
        "uncommitted": None if unknown else live.voters.is_uncommitted(known or 0),
        "vh": [offset for offset, _ in live.voters.sets.entries],
        "kvh": pairs(live.kraft_versions),
        "kv": live.kraft_version,
        "next": replica.reader.next_offset,
    }
    return state | fresh(live, controls_of_log(log))
