"""The receiver of an rpc line as the engine's replica: what is recorded of it, and what could be besides.

A line records role, epoch, leader, vote, log bounds, watermark and voters, but not the log, the leader's
endpoints, the followers' fetch offsets or whether a follower has fetched. The log comes from the cluster
trace beside, where there is one; endpoints from the leader's BeginQuorumEpoch requests. For the rest every
receiver has several completions, and only where all answer alike does the state determine the response.
"""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import product

from kraft_core.protocol.messages import ApiVersionsRequest, BeginQuorumEpochRequest, Endpoints
from kraft_core.protocol.replica import (
    Candidate,
    Follower,
    Leader,
    PendingAdd,
    PendingRemove,
    Prospective,
    Replica,
    Resigned,
    Sent,
    State,
    Unattached,
    Votes,
)
from kraft_core.raft.emulation import ControlReader, EmulatedReplica
from kraft_core.raft.epochs import EpochCache, EpochEnd
from kraft_core.raft.history import OffsetHistory
from kraft_core.raft.log import Controls, ReplicaLog
from kraft_core.raft.voters import Endpoint, ReplicaKey, Voter, VoterHistory, VoterSet
from kraft_core.raft.watermark import LeaderProgress, ReplicaProgress
from tests.conformance.cluster import SimulatedQuorum
from tests.conformance.rpc_json import endpoints_of, request_of
from tests.conformance.tally import Tally
from tests.conformance.trace import Line

LISTENER = Endpoint("LISTENER", "", 0)  # an address that no line tells
SOMEWHERE_ELSE = "////////////////////_w"  # a directory id that no replica of the traces has
LONG = 1 << 40
CHANGES = ("AddRaftVoter", "RemoveRaftVoter", "UpdateRaftVoter")


@dataclass(slots=True)
class RecordedLog:
    """The states of one node's log within one event, in order, and its snapshots' sizes in bytes."""

    states: list[EmulatedReplica]
    sizes: tuple[tuple[EpochEnd, int], ...]
    key: ReplicaKey
    port: int
    final: Line | None
    position: int = 0

    def matching(self, receiver: Line) -> ReplicaLog | None:
        """The next state that has the receiver's bounds; requests come in order, so it never goes back."""
        for index in range(self.position, len(self.states)):
            log = self.states[index].log
            bounds = (log.end_offset, log.start_offset, log.last_epoch)
            if bounds == (receiver["leo"], receiver["start"], receiver["last_epoch"]):
                self.position = index
                return log
        return None


Logs = dict[tuple[int, int, int], RecordedLog]


def recorded_logs(lines: Iterable[Line]) -> Logs:
    """The logs of a cluster trace, by case, event and node."""
    logs: Logs = {}
    quorum = SimulatedQuorum({}, Tally(), rewinds=False)
    states: dict[str, list[EmulatedReplica]] = defaultdict(list)
    sizes: dict[str, dict[EpochEnd, int]] = defaultdict(dict)
    ports: dict[int, int] = {}
    aborted = False
    for line in lines:
        if "ev" not in line:
            quorum = SimulatedQuorum(
                line,
                Tally(),
                rewinds=False,
                observe=lambda node, _, __, after: states[node].append(after),
            )
            aborted = False
            sizes.clear()
            ports.clear()
            continue
        aborted = aborted or line["ev"] == "aborted"
        if aborted:
            continue
        if "new_port" in line:
            ports[line["node"]] = line["new_port"]
        states.clear()
        before = dict(quorum.replicas)
        quorum.event(line)
        for node, change in line.get("nodes", {}).items():
            for operation in change.get("ops", ()):
                if operation["op"] == "snapshot" and "raw" in operation:
                    size_bytes = len(base64.b64decode(operation["raw"]))
                    sizes[node][EpochEnd(*operation["id"])] = size_bytes
        for node, emulated in before.items():
            number = int(node[1:])
            key = (line["case"], line["i"], number)
            final = line["nodes"].get(node, {}).get("state")
            held = tuple(sizes[node].items())
            logs[key] = RecordedLog(
                [emulated, *states[node]], held, quorum.keys[node], ports.get(number, 9093), final
            )
    return logs


@dataclass(slots=True)
class Receivers:
    """Builds receivers of one rpc trace, which is read once before for cluster ids and endpoints."""

    logs: Logs
    cluster_ids: dict[int, str] = field(default_factory=dict)
    addresses: dict[tuple[int, int], set[Endpoint]] = field(default_factory=lambda: defaultdict(set))
    announced: dict[tuple[int, int, int], Endpoint] = field(default_factory=dict)
    later: dict[tuple[int, int, int], list[Line]] = field(default_factory=lambda: defaultdict(list))

    def __post_init__(self) -> None:
        """Every port that a node began to listen on is one that it may be known by."""
        for (case, _, node), recorded in self.logs.items():
            self.addresses[case, node].add(Endpoint("LISTENER", f"h{node}", recorded.port))

    def learn(self, line: Line) -> None:
        """A node's own requests bear the cluster id; a new leader's, and changes of voters, addresses."""
        case, request = line["case"], line["req"]
        if line["from"] != "admin":
            self.cluster_ids[case] = request["clusterId"]
        if line["api"] == "BeginQuorumEpoch":
            begun = request_of(line["api"], request)
            assert isinstance(begun, BeginQuorumEpochRequest)
            self.addresses[case, begun.leader_id].update(begun.leader_endpoints)
            self.announced[case, begun.leader_id, begun.leader_epoch] = begun.leader_endpoints[0]
        if line["api"] in ("AddRaftVoter", "UpdateRaftVoter"):
            self.addresses[case, request["voterId"]].update(endpoints_of(request["listeners"]))
        self.later[case, line["i"], line["to"]].append(line["receiver"])

    def states_within_event(self, line: Line) -> Iterator[Line]:
        """The line with each state that its receiver is recorded in later in the event, and after it.

        The state is recorded as a request arrives; requests that arrived before, and the clock, may change
        it before the request is handled.
        """
        case, event, node = line["case"], line["i"], line["to"]
        recorded = self.logs.get((case, event, node))
        states = [*self.later[case, event, node], *self.later[case, event + 1, node][:1]]
        if recorded is not None:
            states += [_with_store(line["receiver"], emulated) for emulated in recorded.states]
            states += [_receiver_of(recorded.final, recorded.states[-1].log)] if recorded.final else []
        if line["api"] in CHANGES:
            leaders = [receiver for receiver in (line["receiver"], *states) if receiver["role"] == "leader"]
            states += [
                receiver | {"pending": change} for receiver in leaders for change in ("add", "remove", None)
            ]
        for receiver in states:
            if receiver != line["receiver"] and receiver["role"] != "down":
                yield line | {"receiver": receiver}

    def completions(self, line: Line) -> Iterator[Replica]:
        """Every replica that the line's receiver may have been, as far as it matters to the answer."""
        receiver = line["receiver"]
        recorded = self.logs.get((line["case"], line["i"], line["to"]))
        log = recorded.matching(receiver) if recorded else None
        addresses = self._addresses(line)
        if recorded and receiver["leader"] == line["to"]:
            addresses = [Endpoint("LISTENER", f"h{line['to']}", recorded.port)]
        for own_key, address in product(_own_keys(line, recorded), addresses):
            endpoints = (address,)
            for state, sent in product(_states(line, endpoints, own_key), _sent(line)):
                yield Replica(
                    self.cluster_ids.get(line["case"], ""),
                    own_key,
                    endpoints if receiver["leader"] == line["to"] else (LISTENER,),
                    _store(receiver, log or _log_of_bounds(receiver)),
                    state,
                    sent=sent,
                    snapshot_sizes=recorded.sizes if recorded else (),
                    now=1,
                )

    def _addresses(self, line: Line) -> list[Endpoint]:
        """The address that the leader announced in its epoch, else every one that it is known by."""
        leader = line["receiver"]["leader"]
        announced = self.announced.get((line["case"], leader, line["receiver"]["epoch"]))
        return [announced] if announced else self.addresses_of(line["case"], leader)

    def addresses_of(self, case: int, node: int | None) -> list[Endpoint]:
        """Every address that the node is known by in the case, the one that a node begins with among them."""
        known = {Endpoint("LISTENER", f"h{node}", 9093)}
        return sorted(known | self.addresses.get((case, node or 0), set()), key=lambda end: end.port)

    def has_log(self, line: Line) -> bool:
        recorded = self.logs.get((line["case"], line["i"], line["to"]))
        return recorded is not None and recorded.matching(line["receiver"]) is not None


def _with_store(receiver: Line, emulated: EmulatedReplica) -> Line:
    """The receiver, its log having come to another state; only a log that was read has voters."""
    log, controls = emulated.log, emulated.reader.controls
    voters = controls.voters.last
    read = {
        "kv": controls.kraft_version,
        "voters_at": controls.voters.last_offset,
        "voter_keys": [[voter.key.id, voter.key.directory_id] for voter in voters or ()],
    }
    return (
        receiver
        | (read if voters else {})
        | {
            "leo": log.end_offset,
            "start": log.start_offset,
            "last_epoch": log.last_epoch,
            "hwm": log.known_high_watermark,
        }
    )


def _receiver_of(state: Line, log: ReplicaLog) -> Line:
    """A node's state in the cluster trace as the rpc trace writes it."""
    if state["role"] == "down":
        return state
    same = ("role", "epoch", "leader", "leo", "start", "hwm", "kv", "voters_at")
    receiver = {name: state[name] for name in same}
    receiver["last_epoch"] = log.last_epoch
    receiver["voter_keys"] = [row[:2] for row in state["voters"]]
    if "voted" in state:
        receiver["voted"] = [state["voted"], None]
    if state["role"] == "leader":
        receiver |= {"pending": None, "epoch_start": log.epochs.entries[-1][1] if log.epochs.entries else 0}
    return receiver


def _own_keys(line: Line, recorded: RecordedLog | None) -> list[ReplicaKey]:
    """The receiver's key: from the cluster trace, else the voter's of its id or the one it is called by.

    An observer with a voter's id has another directory than that voter.
    """
    if recorded is not None:
        return [recorded.key]
    node = line["to"]
    voter = next((row[1] for row in line["receiver"]["voter_keys"] if row[0] == node), None)
    if voter is not None and line["receiver"]["role"] != "observer":
        return [ReplicaKey(node, voter)]
    meant = getattr(request_of(line["api"], line["req"]), "voter", None)
    called = [meant] if meant and meant.id == node and meant.directory_id not in (None, voter) else []
    return [*called, ReplicaKey(node, SOMEWHERE_ELSE)]


def _voters(receiver: Line) -> VoterSet:
    return VoterSet.of(Voter(ReplicaKey(*row), (LISTENER,), 0, 1) for row in receiver["voter_keys"])


def _store(receiver: Line, log: ReplicaLog) -> EmulatedReplica:
    voters, offset = _voters(receiver), receiver["voters_at"]
    history = VoterHistory(voters) if offset is None else VoterHistory().add(offset, voters)
    versions = OffsetHistory().add(-1, receiver["kv"])
    reader = ControlReader(Controls(history, versions), max(receiver["leo"], (offset or 0) + 1))
    return EmulatedReplica(replace(log, known_high_watermark=receiver["hwm"]), reader)


def _log_of_bounds(receiver: Line) -> ReplicaLog:
    """A log with the recorded bounds and no batches; of its epochs the last one's start may be known."""
    start = receiver["start"]
    epochs = EpochCache()
    if receiver["last_epoch"]:
        own = receiver.get("epoch_start", start) if receiver["last_epoch"] == receiver["epoch"] else start
        epochs = EpochCache(((receiver["last_epoch"], own),))
    return ReplicaLog(
        start_offset=start, end_offset=receiver["leo"], high_watermark=receiver["hwm"] or start, epochs=epochs
    )


def _states(line: Line, endpoints: Endpoints, own_key: ReplicaKey) -> Iterator[State]:
    receiver = line["receiver"]
    epoch, leader_id = receiver["epoch"], receiver["leader"]
    voted = ReplicaKey(*receiver["voted"]) if "voted" in receiver else None
    votes = Votes(_voters(receiver))
    match receiver["role"]:
        case "unattached":
            yield Unattached(epoch, LONG, leader_id, voted)
        case "prospective":
            yield Prospective(
                epoch, LONG, votes, leader_id, endpoints if leader_id is not None else (), voted
            )
            if leader_id is not None:
                yield Prospective(epoch, LONG, votes, leader_id, (), voted)
        case "candidate":
            yield Candidate(epoch, LONG, votes)
        case "resigned":
            yield Resigned(epoch, LONG, frozenset())
        case "leader":
            yield from _leaders(line, own_key)
        case _:
            for has_fetched in (False, True):
                yield Follower(epoch, leader_id, endpoints, LONG, LONG, voted, has_fetched)


def _sent(line: Line) -> Iterator[tuple[Sent, ...]]:
    """What is in flight is not recorded; it matters to who is asked to add a voter."""
    yield ()
    if line["api"] == "AddRaftVoter":
        yield (Sent(line["req"]["voterId"], 0, ApiVersionsRequest(), LONG),)


def _leaders(line: Line, own: ReplicaKey) -> Iterator[Leader]:
    receiver = line["receiver"]
    pending = {
        "add": PendingAdd(0, 0, ReplicaKey(0), (), ack_when_committed=True, deadline=LONG),
        "remove": PendingRemove(0, 0, LONG, LONG),
        None: None,
    }[receiver["pending"]]
    for progress in _progresses(line, own):
        yield Leader(receiver["epoch"], progress, frozenset(), LONG, LONG, pending=pending)


def _progresses(line: Line, own: ReplicaKey) -> Iterator[LeaderProgress]:
    """The followers as far back, and as far on, as the recorded watermark allows.

    At most floor(n/2) voters, the leader counted, are beyond it; the sender's own offset is in its request.
    """
    receiver = line["receiver"]
    keys = [ReplicaKey(*row) for row in receiver["voter_keys"]]
    watermark = receiver["hwm"]
    reached = receiver["epoch_start"] if watermark is None else watermark
    others = [key for key in keys if key.id not in (line["to"], _sender(line))]
    leads_as_voter = any(Voter(key).matches(own) for key in keys)
    ahead = len(keys) // 2 - (1 if leads_as_voter else 0)
    for beyond in (0, max(0, ahead)):
        ends = {key: receiver["leo"] if at < beyond else reached for at, key in enumerate(others)}
        ends |= {key: receiver["leo"] for key in keys if Voter(key).matches(own)}
        entries = tuple(ReplicaProgress(key, ends.get(key)) for key in keys)
        yield LeaderProgress(own, receiver["epoch_start"], entries, (), watermark)
    if watermark is None and leads_as_voter and len(keys) == 1:
        # A sole voter commits by itself, as soon as its clock comes to it.
        entries = (ReplicaProgress(keys[0], receiver["leo"]),)
        yield LeaderProgress(own, receiver["epoch_start"], entries, (), receiver["leo"])


def _sender(line: Line) -> int | None:
    return int(line["from"][1:]) if line["from"] != "admin" else None
