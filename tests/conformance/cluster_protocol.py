"""cluster and cluster-rewound: the replicas of whole quorums, driven by what was recorded.

The traces hold each node's log operations and its state after each event, but no messages. So for every
operation and every change of role the engine's replica is given the message or the tick that Kafka must have
had, made from the record, and must then do the same operation and come to the same role, epoch, leader, vote
and high watermark. What only chance decided is taken from the record, and counted: who stood and who granted,
which message came when, which offset the controller chose for its snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from kraft_core.protocol import messages
from kraft_core.protocol.errors import ErrorCode
from kraft_core.protocol.fetch_validation import fetch_response
from kraft_core.protocol.leading import fetched
from kraft_core.protocol.lifecycle import first_start, restart
from kraft_core.protocol.messages import CurrentLeader, Endpoints, RaftMessage, Request, Response
from kraft_core.protocol.replica import (
    Candidate,
    FetchTimes,
    Follower,
    Leader,
    Prospective,
    Replica,
    ReplicaConfig,
    Resigned,
    Sent,
    Step,
)
from kraft_core.protocol.step import (
    AppendRecords,
    Event,
    Received,
    TakeSnapshot,
    Tick,
    step,
)
from kraft_core.raft import replay
from kraft_core.raft.batches import Batch, KRaftVersion
from kraft_core.raft.emulation import EmulatedReplica
from kraft_core.raft.epochs import EpochEnd
from kraft_core.raft.voters import Endpoint, VoterSet, change_between
from tests.conformance.cluster import SimulatedQuorum, operation_lines
from tests.conformance.recorded import (
    alone,
    cases,
    comparable,
    deadline,
    epoch_below,
    granting_voters,
    is_all_of,
    is_at,
    known_high_watermark,
    leads,
    update_request,
    voted_id,
)
from tests.conformance.role_search import FAR, STRANGER, Surroundings, granted, nomination, reach
from tests.conformance.tally import Tally
from tests.conformance.trace import Line

ADMIN = -1
# No leader gives up by itself here: when it did is in the record.
SETTINGS = ReplicaConfig(caught_up_for=FAR)
ROUNDS = 12

CHOSEN = "taken from the record: "
OF_THE_CONTROLLER = (replay.CreateSnapshot, replay.DeleteBefore)


class ProtocolFollower:
    """The engine's replicas of one recorded quorum, beside the logs that SimulatedQuorum drives."""

    def __init__(self, head: Line, lines: Iterable[Line], tally: Tally, *, rewinds: bool) -> None:
        """`lines`: the case's own, from which it is known who granted which epoch."""
        self.tally = tally
        self.cluster_id = head.get("cluster", "")
        self.logs = SimulatedQuorum(head, Tally(), rewinds=rewinds, observe=self._operated)
        self.replicas: dict[str, Replica] = {}
        self.pending: dict[str, list[replay.Operation]] = {}
        self.leaders: dict[int, int] = {}
        self.granting = granting_voters(lines)
        self.reach: dict[str, int] = {}
        self.place = ""
        self.target: Line = {}
        self.to_do: list[Line] = []
        self.ports: dict[int, int] = {}

    def event(self, line: Line) -> None:
        """Every node's operations, those of new leaders first, then the states."""
        nodes: dict[str, Line] = line.get("nodes", {})
        if "new_directory" in line:
            self.replicas.pop(f"n{line['node']}", None)
        if "new_port" in line:
            self.ports[line["node"]] = line["new_port"]
        self._look_ahead(nodes)
        order = sorted(nodes, key=lambda node: (not leads(nodes[node]), node))
        for node in order:
            self.place = f"case {line['case']} event {line['i']} {node}"
            self.target = nodes[node].get("state", {})
            self.to_do = list(operation_lines(nodes[node].get("ops", ())))
            self.pending.setdefault(node, [])
            self.logs.event(
                line | {"nodes": {node: nodes[node]}} if node == order[0] else alone(line, nodes, node)
            )
            self._compare(node)

    def _look_ahead(self, nodes: dict[str, Line]) -> None:
        """How far each node's log came within the event, and who led which epoch."""
        for node, emulated in self.logs.replicas.items():
            self.reach[node] = emulated.log.end_offset
        for node, change in nodes.items():
            for operation in change.get("ops", ()):
                for batch in operation.get("batches", ()):
                    if operation["op"].startswith("append"):
                        self.reach[node] = max(self.reach[node], batch["l"] + 1)
                    for record in batch.get("c", ()):
                        if record["t"] == "LEADER_CHANGE":
                            self.leaders[batch["e"]] = record["d"]["leaderId"]
            state = change.get("state", {})
            if state.get("leader") is not None:
                self.leaders.setdefault(state["epoch"], state["leader"])

    # --- operations ------------------------------------------------------------------------------

    def _operated(
        self, node: str, before: EmulatedReplica, operation: replay.Operation, after: EmulatedReplica
    ) -> None:
        """One recorded operation: what the engine still owed, or what a message now makes it do."""
        self.tally.step(f"operation {type(operation).__name__}")
        self.to_do = self.to_do[1:]
        replica = self.replicas.get(node)
        if replica is None:
            self._start(node, operation, after)
            return
        owed = self.pending[node]
        if owed and isinstance(operation, replay.Restart):
            self.tally.leave_out("a new leader's first records, lost with its process")
            owed.clear()
        if owed and isinstance(operation, OF_THE_CONTROLLER) and not isinstance(owed[0], OF_THE_CONTROLLER):
            owed.insert(0, operation)  # in between, on its own
            self.tally.leave_out(f"{CHOSEN}{type(operation).__name__} of the controller")
        if not owed:
            replica = self._explain(node, replica, operation)
        found = owed.pop(0) if owed else None
        self.tally.compare(
            self.place, "operation", comparable(found, before.log), comparable(operation, before.log)
        )
        log = replace(after.log, known_high_watermark=known_high_watermark(replica, operation))
        self.replicas[node] = replace(replica, store=EmulatedReplica(log, after.reader))
        self._resign(node)

    def _resign(self, node: str) -> None:
        """What a leader forgets when it resigns is no operation that a trace records."""
        owed = self.pending.get(node, [])
        while owed and isinstance(owed[0], replay.Resign):
            owed.pop(0)
            replica = self.replicas[node]
            log = replace(replica.log, known_high_watermark=None)
            self.replicas[node] = replace(replica, store=replace(replica.store, log=log))

    def _start(self, node: str, operation: replay.Operation, after: EmulatedReplica) -> None:
        """A new directory: formatted by a snapshot, then started."""
        if isinstance(operation, replay.Restart):
            key = self.logs.keys[node]
            replica = first_start(self.cluster_id, key, self._endpoints(key.id), after, SETTINGS, seed=1)
            self.replicas[node] = replica

    def _explain(self, node: str, replica: Replica, operation: replay.Operation) -> Replica:
        """Give the replica what makes it do the operation; what it does is owed by the record."""
        match operation:
            case replay.BeginEpoch():
                return self._elected(node, replica, operation.leader_epoch)
            case replay.AppendAsLeader():
                return self._wrote(node, replica, operation.batches)
            case replay.AppendAsFollower():
                following = self._following(node, replica, operation.leader_epoch)
                return self._fetched(node, following, batches=operation.batches)
            case replay.TruncateTo():
                return self._truncated(node, replica, operation)
            case replay.UpdateHighWatermark():
                return self._advanced(node, replica, operation.offset)
            case replay.InstallSnapshot():
                return self._installed(node, replica, operation)
            case replay.CreateSnapshot() if operation.snapshot.end_offset == replica.log.known_high_watermark:
                return self._take(node, replica, TakeSnapshot(delete_older=False))
            case replay.Restart():
                moved = replace(replica, endpoints=self._endpoints(replica.key.id))
                return self._do(node, restart(moved, operation.lost_from))
            case _:
                self.tally.leave_out(f"{CHOSEN}{type(operation).__name__} of the controller")
                self.pending[node].append(operation)
                return replica

    def _take(self, node: str, replica: Replica, event: Event) -> Replica:
        """One step of the engine, which ends no process here: one that does is a mismatch."""
        try:
            return self._do(node, step(replica, event))
        except ValueError as error:
            self.tally.compare(self.place, "fault", repr(error), None)
            return replica

    def _do(self, node: str, done: Step) -> Replica:
        """Keep what a step did as owed. The log itself follows the record, operation by operation."""
        before = self.replicas[node].store
        self.pending[node] += done.operations
        self.replicas[node] = replace(done.replica, store=before)
        self._resign(node)
        return self.replicas[node]

    def _receive(self, node: str, replica: Replica, source: int, body: Request) -> Replica:
        return self._take(node, replica, Received(RaftMessage(source, replica.key.id, 0, body)))

    def _answered(self, node: str, replica: Replica, source: int, asked: Request, body: Response) -> Replica:
        """The response to a request that the replica has sent."""
        number = replica.next_correlation_id
        waiting = replace(
            replica, next_correlation_id=number + 1, sent=(Sent(source, number, asked, FAR * FAR),)
        )
        return self._take(node, waiting, Received(RaftMessage(source, replica.key.id, number, body)))

    def _endpoints(self, node_id: int) -> Endpoints:
        return (Endpoint("LISTENER", f"h{node_id}", self.ports.get(node_id, 9093)),)

    def _leader_of(self, epoch: int) -> CurrentLeader:
        leader_id = self.leaders.get(epoch)
        return CurrentLeader(leader_id, epoch, self._endpoints(leader_id) if leader_id is not None else ())

    def _following(self, node: str, replica: Replica, epoch: int) -> Replica:
        """The replica as follower of that epoch's leader."""
        leader_id = self.leaders.get(epoch)
        if leader_id is None or leader_id == replica.key.id:
            return replica
        around = self._around(epoch)
        way = reach(replica, around, lambda found: _follows(found, around) and self._is_as_in_the_end(found))
        way = way or reach(replica, around, lambda found: _follows(found, around))
        return replica if way is None or way.replica is replica else self._do(node, way)

    def _is_as_in_the_end(self, replica: Replica) -> bool:
        """Whether it has the vote, and has forgotten the high watermark, as the event's end has it."""
        forgot = self.target.get("hwm", 0) is None
        voted = self.target.get("voted") if self.target.get("epoch") == replica.epoch else voted_id(replica)
        return voted_id(replica) == voted and (not forgot or replica.log.known_high_watermark is None)

    def _fetch_of(self, replica: Replica) -> messages.FetchRequest:
        log = replica.log
        return messages.FetchRequest(
            self.cluster_id, replica.key, replica.epoch, log.end_offset, log.last_epoch
        )

    def _fetched(self, node: str, replica: Replica, **content: Any) -> Replica:
        """A Fetch of a follower answered with records, a divergence or a watermark."""
        if not isinstance(replica.state, Follower):
            return replica
        leader = self._leader_of(replica.epoch)
        body = messages.FetchResponse(ErrorCode.NONE, leader, **content)
        return self._answered(node, replica, replica.state.leader_id, self._fetch_of(replica), body)

    def _truncated(self, node: str, replica: Replica, operation: replay.TruncateTo) -> Replica:
        """The leader's engine itself says where the logs part, if it leads still."""
        epoch = self._epoch_followed(replica)
        replica = self._following(node, replica, epoch)
        leader = self.replicas.get(f"n{self.leaders.get(epoch)}")
        if leader is not None and isinstance(leader.state, Leader) and leader.epoch == epoch:
            answer = fetch_response(leader, self._fetch_of(replica))
            if answer.diverging_epoch is not None:
                return self._fetched(node, replica, diverging_epoch=answer.diverging_epoch)
        self.tally.leave_out(f"{CHOSEN}where a log parts from a leader that is gone")
        batch = replica.log.batches.holding(operation.offset - 1)
        end = EpochEnd(operation.offset, batch.leader_epoch if batch else 0)
        return self._fetched(node, replica, diverging_epoch=end)

    def _epoch_followed(self, replica: Replica) -> int:
        """The latest epoch in which a follower may act: the next operation, or the event's end, bounds it."""
        ahead = self._epoch_ahead(FAR)
        led = [
            epoch
            for epoch, leader_id in self.leaders.items()
            if replica.epoch <= epoch <= ahead and leader_id != replica.key.id
        ]
        if self.target.get("leader", FAR) is None:
            led = [epoch for epoch in led if epoch < self.target["epoch"]]
        return max(led, default=replica.epoch)

    def _epoch_ahead(self, default: int) -> int:
        """The epoch in which the node appends next within the event, else the one that the event ends in."""
        for line in self.to_do:
            if line["op"] == "append_follower":
                return line["epoch"]
            if line["op"] == "leader_epoch":
                return line["epoch"] - 1
        return self.target.get("epoch", default)

    def _advanced(self, node: str, replica: Replica, offset: int) -> Replica:
        if isinstance(replica.state, Leader):
            return self._fetched_from(node, replica, offset)
        if not isinstance(replica.state, Follower):
            replica = self._following(node, replica, self._epoch_followed(replica))
        if replica.log.known_high_watermark == offset:
            self.pending[node].append(replay.UpdateHighWatermark(offset))  # received again: unchanged
            return replica
        return self._fetched(node, replica, high_watermark=offset)

    def _fetched_from(self, node: str, replica: Replica, offset: int) -> Replica:
        """Voters whose logs reach that far fetch from there, one after the other, until it is committed."""
        for other, key in sorted(self.logs.keys.items()):
            if self.pending[node] or other == node or self.reach.get(other, 0) < offset:
                continue
            if replica.voters.voter_for(key) is None or not isinstance(replica.state, Leader):
                continue
            if not replica.is_voter and self.target.get("role") == "leader":
                self.tally.leave_out("a leader whose removal timed out and then committed: Kafka's goes on")
                replica = self._do(node, fetched(replica, key, offset))
                assert isinstance(replica.state, Leader)
                replica = replace(replica, state=replace(replica.state, resign_requested=False))
                continue
            request = messages.FetchRequest(
                self.cluster_id, key, replica.epoch, offset, epoch_below(replica.log, offset)
            )
            replica = self._receive(node, replica, key.id, request)
        return replica

    def _installed(self, node: str, replica: Replica, operation: replay.InstallSnapshot) -> Replica:
        replica = self._following(node, replica, self._epoch_followed(replica))
        if not isinstance(replica.state, Follower):
            return replica
        snapshot, leader = operation.snapshot, self._leader_of(replica.epoch)
        replica = self._fetched(node, replica, snapshot_id=snapshot.id)
        asked = messages.FetchSnapshotRequest(self.cluster_id, replica.key, replica.epoch, snapshot.id, 0)
        body = messages.FetchSnapshotResponse(
            ErrorCode.NONE, leader, snapshot.id, 100, 0, slice_bytes=100, snapshot=snapshot
        )
        return self._answered(node, replica, leader.leader_id or 0, asked, body)

    # --- elections -------------------------------------------------------------------------------

    def _learn(self, node: str, replica: Replica, epoch: int) -> Replica:
        """Somebody asks for a pre-vote in that epoch."""
        return self._receive(node, replica, STRANGER.id, nomination(replica, epoch))

    def _elected(self, node: str, replica: Replica, epoch: int) -> Replica:
        """The voters that the LEADER_CHANGE names grant it."""
        self.tally.leave_out(f"{CHOSEN}who stood in an election, and who granted")
        granted = self.granting.get(epoch, replica.voters.ids)
        others = [voter_id for voter_id in granted if voter_id != replica.key.id]
        return self._stand(node, replica, epoch, others)

    def _stand(self, node: str, replica: Replica, epoch: int, granting: list[int]) -> Replica:
        """Tick after tick until it leads the epoch, or is its candidate where nobody grants."""
        for _ in range(ROUNDS):
            state = replica.state
            match state:
                case Leader() if state.epoch == epoch:
                    return replica
                case Candidate() if state.epoch == epoch and not granting:
                    return replica
                case Candidate() if state.epoch == epoch:
                    replica = self._granted(node, replica, granting)
                case Prospective() if state.epoch == epoch - 1:
                    replica = self._granted(node, replica, granting or list(replica.voters.ids))
                case Leader():
                    replica = self._learn(node, replica, epoch - 1)
                case _ if state.epoch < epoch - 1 and not isinstance(
                    state, Resigned | Candidate | Prospective
                ):
                    replica = self._learn(node, replica, epoch - 1)
                case _ if state.epoch >= epoch:
                    return replica
                case _:
                    replica = self._take(node, replica, Tick(deadline(state)))
        return replica

    def _granted(self, node: str, replica: Replica, granting: list[int]) -> Replica:
        return self._do(node, granted(replica, granting))

    # --- what a leader writes --------------------------------------------------------------------

    def _wrote(self, node: str, replica: Replica, batches: tuple[Batch, ...]) -> Replica:
        """Records of the controller, or the control records that an admin request made."""
        if not isinstance(replica.state, Leader):
            return replica
        (batch,) = batches
        values = [record.value for record in batch.control_records]
        if not values:
            return self._take(node, replica, AppendRecords(batch.end_offset - batch.base_offset))
        voters = next((value for value in values if isinstance(value, VoterSet)), None)
        level = next((value.level for value in values if isinstance(value, KRaftVersion)), None)
        free = replace(replica, state=replace(replica.state, pending=None))  # its requester gave up
        if level is not None:
            return self._upgraded(node, free, voters, level)
        if voters is None:
            return replica  # the first records of an epoch that the engine does not lead
        return self._changed(node, free, voters)

    def _upgraded(self, node: str, replica: Replica, voters: VoterSet | None, level: int) -> Replica:
        """First, the voters sent the leader the directory ids and endpoints that a static set lacks."""
        if voters is not None:
            state = replica.state
            assert isinstance(state, Leader)
            for voter in voters:
                if state.volatile_voters is None or voter not in state.volatile_voters.voters:
                    replica = self._receive(node, replica, voter.key.id, update_request(replica, voter))
        return self._receive(node, replica, ADMIN, messages.UpdateFeaturesRequest(level))

    def _changed(self, node: str, replica: Replica, voters: VoterSet) -> Replica:
        change = change_between(replica.voters, voters)
        if voters == replica.voters:
            self.tally.leave_out(f"{CHOSEN}who sent an update that changes nothing")
            for same in [voter for voter in voters if voter.key.id != replica.key.id][:1]:
                replica = self._receive(node, replica, same.key.id, update_request(replica, same))
            return replica
        for voter in change.removed:
            replica = self._receive(
                node, replica, ADMIN, messages.RemoveVoterRequest(self.cluster_id, voter.key)
            )
        for voter in change.updated:
            replica = self._receive(node, replica, voter.key.id, update_request(replica, voter))
        for voter in change.added:
            state = replica.state
            if not isinstance(state, Leader):
                return replica
            self.tally.leave_out(f"{CHOSEN}that an added voter was caught up")
            times = (*state.fetch_times, (voter.key, FetchTimes(1, 1, replica.log.end_offset)))
            caught_up = replace(replica, state=replace(state, fetch_times=times), sent=())
            request = messages.AddVoterRequest(self.cluster_id, voter.key, voter.endpoints)
            replica = self._receive(node, caught_up, ADMIN, request)
            versions = messages.ApiVersionsResponse(
                ErrorCode.NONE, voter.min_supported_version, voter.max_supported_version
            )
            replica = self._answered(node, replica, voter.key.id, messages.ApiVersionsRequest(), versions)
        return replica

    # --- states ----------------------------------------------------------------------------------

    def _compare(self, node: str) -> None:
        """Come to the recorded role, and agree on all that the record says of it."""
        target = self.target
        if not target or target["role"] == "down" or node not in self.replicas:
            return
        self.tally.step("role")
        replica = self._settle(node, self.replicas[node], target)
        replica = self._drained(node, replica)
        watermark = replica.log.known_high_watermark
        if isinstance(replica.state, Leader) and not self.pending[node]:
            watermark = replica.state.progress.high_watermark
        found = {
            "role": replica.role.value,
            "epoch": replica.epoch,
            "leader": replica.leader.leader_id,
            "voted": voted_id(replica),
            "hwm": watermark,
            "voters": [voter.key.id for voter in replica.voters],
        }
        expected = {name: target.get(name) for name in found} | {
            "voters": [row[0] for row in target["voters"]]
        }
        self.tally.compare_all(self.place, found, expected)

    def _drained(self, node: str, replica: Replica) -> Replica:
        """What the engine did and the record has not: only a new leader's first records may come later."""
        owed = self.pending[node]
        begins = owed and isinstance(owed[0], replay.AppendAsLeader) and self.target["role"] == "leader"
        if begins and self.target["epoch"] == owed[0].leader_epoch:
            self.tally.leave_out("a new leader's first records, written in a later event")
            return replica
        for operation in owed:
            self.tally.compare(self.place, "operation", comparable(operation), None)
        owed.clear()
        return replica

    def _settle(self, node: str, replica: Replica, target: Line) -> Replica:
        """The ticks and messages that bring a replica to a role without an operation of its log."""
        if target["role"] == "leader":
            return replica
        around = self._around(target["epoch"])
        for accepts in (is_all_of, is_at):
            way = reach(replica, around, lambda found, accepts=accepts: accepts(found, target))
            if way is not None:
                return self._do(node, way) if way.replica is not replica else replica
        return replica

    def _around(self, epoch: int) -> Surroundings:
        """The recorded vote counts in the epoch that the event ends in."""
        voted = self.target.get("voted") if self.target.get("epoch") == epoch else None
        return Surroundings(self._leader_of(epoch), self.logs.keys.get(f"n{voted}"))


def _follows(replica: Replica, around: Surroundings) -> bool:
    known = replica.leader.leader_id, replica.epoch
    return isinstance(replica.state, Follower) and known == (
        around.leader.leader_id,
        around.leader.leader_epoch,
    )


def compare(lines: Iterable[Line], tally: Tally, *, rewinds: bool) -> Tally:
    """Every operation and every state of every node, up to the line that aborted a case."""
    for head, *events in cases(lines):
        quorum = ProtocolFollower(head, events, tally, rewinds=rewinds)
        for line in events:
            quorum.event(line)
    return tally
