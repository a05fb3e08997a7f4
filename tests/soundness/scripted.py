"""Replicas of the protocol engine that do what moves say: each move is timeouts, messages or appends.

Every message is answered at once or lost, and each replica's clock runs by itself; Raft allows both. So the
moments of a scripted quorum are states that a quorum can be in, except after the moves named unlawful.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from kraft_core.protocol import fetching, snapshots
from kraft_core.protocol.errors import ProtocolFault
from kraft_core.protocol.lifecycle import restart
from kraft_core.protocol.messages import (
    AddVoterRequest,
    BeginQuorumEpochRequest,
    RaftMessage,
    RemoveVoterRequest,
    UpdateFeaturesRequest,
    UpdateVoterRequest,
)
from kraft_core.protocol.replica import (
    Candidate,
    Follower,
    Leader,
    Prospective,
    Replica,
    Resigned,
    Step,
    Unattached,
)
from kraft_core.protocol.step import AppendRecords, Event, Received, TakeSnapshot, Tick, step
from kraft_core.raft.emulation import ControlReaderError
from kraft_core.raft.replay import OperationRefusedError, UpdateHighWatermark
from kraft_core.simulation.network import ADMIN
from kraft_core.simulation.setup import Setup, endpoints_of, formatted_replica
from tests.soundness.moves import (
    Append,
    ChangeVoters,
    Elect,
    EmptyDisk,
    EmptyStaticDisk,
    Move,
    Pull,
    Reboot,
    Restore,
    SecondDirectory,
    UpdateVoter,
    UpgradeKRaftVersion,
    WriteCheckpoint,
)

_TIMEOUTS = 4  # a replica reaches a new election by at most this many timeouts
_ROUNDS = 4  # of an election: pre-vote, vote, and what they need to settle
_SLICES = 4  # a snapshot is fetched in fewer
_ONE_BATCH, _ALL_BATCHES = 1, 1 << 20

Taken = tuple[Replica, int]
"""A leader and the high watermark that it reached."""


class Impossible(Exception):
    """The move has nothing to do, or would end the process."""


@dataclass(frozen=True, slots=True)
class Reached:
    """The replicas by slot after a move, and the high watermarks that leaders reached in it."""

    replicas: Mapping[int, Replica]
    commits: tuple[Taken, ...]


def first_replicas(setup: Setup) -> dict[int, Replica]:
    """Slot n holds node n at first."""
    return {node: formatted_replica(setup, node, 0, 0) for node in range(1, setup.size + 1)}


def perform(setup: Setup, before: list[Mapping[int, Replica]], move: Move) -> Reached:
    """The quorum after a move. before: all its moments up to now. Raises Impossible."""
    acting = _Acting(setup, dict(before[-1]))
    try:
        acting.act(move, before)
    except (ProtocolFault, OperationRefusedError, ControlReaderError, ValueError) as error:
        raise Impossible(str(error)) from error
    if acting.replicas == before[-1]:
        raise Impossible
    return Reached(acting.replicas, tuple(acting.commits))


class _Acting:
    """One move under way."""

    def __init__(self, setup: Setup, replicas: dict[int, Replica]) -> None:
        self.setup = setup
        self.replicas = replicas
        self.commits: list[Taken] = []

    def act(self, move: Move, before: list[Mapping[int, Replica]]) -> None:
        if move.__class__ is not ChangeVoters and getattr(move, "slot", 0) not in self.replicas:
            raise Impossible
        match move:
            case Elect():
                self._elect(move.slot, move.reaches)
            case Append():
                self._append(move)
            case Pull():
                self._pull(move)
            case ChangeVoters():
                self._change_voters(move)
            case UpdateVoter():
                self._update_voter(move, len(before))
            case UpgradeKRaftVersion():
                self._upgrade_kraft_version(move.slot)
            case WriteCheckpoint():
                self._event(move.slot, TakeSnapshot(move.delete_older))
            case Reboot():
                self._reboot(move)
            case EmptyDisk():
                self._empty_disk(move.slot, move.slot, before, static=move.static)
            case EmptyStaticDisk():
                self._empty_disk(move.slot, move.slot, before)
            case SecondDirectory():
                self._empty_disk(move.slot, max(self.replicas) + 1, before)
            case Restore():
                self._restore(move, before)

    def _event(self, slot: int, event: Event) -> Step:
        return self._take(slot, lambda replica: step(replica, event))

    def _take(self, slot: int, doing: Callable[[Replica], Step]) -> Step:
        before = self.replicas[slot]
        done = doing(before)
        self.replicas[slot] = done.replica
        if isinstance(before.state, Leader) or isinstance(done.replica.state, Leader):
            self.commits += [
                (done.replica, one.offset) for one in done.operations if isinstance(one, UpdateHighWatermark)
            ]
        return done

    # --- elections

    def _elect(self, slot: int, reaches: tuple[int, ...]) -> None:
        for other in reaches:
            if other != slot and other in self.replicas:
                self._stop_following(other)
        messages = self._stand(slot)
        reached = {slot, *reaches} & self.replicas.keys()
        for _ in range(_ROUNDS):
            self._exchange(slot, reached, messages)
            nominee = self.replicas[slot]
            if not isinstance(nominee.state, Prospective | Candidate):
                return
            messages = self._event(slot, Tick(nominee.now)).messages

    def _stop_following(self, slot: int) -> None:
        """Its fetches time out; a leader's check of the quorum fails."""
        replica = self.replicas[slot]
        match replica.state:
            case Follower(fetch_deadline=deadline) | Leader(check_quorum_deadline=deadline):
                self._event(slot, Tick(max(replica.now, deadline)))
            case _:
                pass

    def _stand(self, slot: int) -> Iterable[RaftMessage]:
        """Let timeouts pass until an election begins; what the nominee sends."""
        if isinstance(self.replicas[slot].state, Leader) or not self.replicas[slot].is_voter:
            raise Impossible
        for _ in range(_TIMEOUTS):
            replica = self.replicas[slot]
            state = replica.state
            deadline = state.fetch_deadline if isinstance(state, Follower) else _deadline(replica)
            done = self._event(slot, Tick(max(replica.now, deadline)))
            after = done.replica.state
            began = isinstance(after, Prospective | Candidate) and after != state
            if began or isinstance(after, Leader):
                return done.messages
        raise Impossible

    def _exchange(self, nominee: int, reached: set[int], messages: Iterable[RaftMessage]) -> None:
        under_way = list(messages)
        while under_way:
            message = under_way.pop(0)
            for slot in sorted(reached):
                if self.replicas[slot].key.id != message.destination:
                    continue
                done = self._event(slot, Received(message))
                if nominee == slot or message.source == self.replicas[nominee].key.id:
                    under_way += done.messages
                break

    # --- replication

    def _append(self, move: Append) -> None:
        """Kafka's controller writes once its own epoch's first batch is committed (since 3.6)."""
        state = self.replicas[move.slot].state
        if not isinstance(state, Leader) or state.progress.high_watermark is None:
            raise Impossible
        self._event(move.slot, AppendRecords(move.records))

    def _pull(self, move: Pull) -> None:
        self._make_follower(move.slot, move.source)
        for _ in range(move.rounds):
            if not self._fetch_once(move.slot, move.source, _ONE_BATCH if move.one else _ALL_BATCHES):
                return

    def _make_follower(self, slot: int, source: int) -> None:
        """By the answer to a Fetch, or by BeginQuorumEpoch where the replica sends no Fetch."""
        leader, follower = self.replicas.get(source), self.replicas[slot]
        if leader is None or not isinstance(leader.state, Leader) or follower.key.id == leader.key.id:
            raise Impossible
        if follower.epoch > leader.epoch:
            raise Impossible
        if self._follows(slot, source):
            return
        if isinstance(self.replicas[slot].state, Unattached | Follower):
            self._fetch_once(slot, source, _ONE_BATCH)
        else:
            entry = leader.voters.voter_for(self.replicas[slot].key)
            if entry is None:
                raise Impossible
            request = BeginQuorumEpochRequest(
                leader.cluster_id, entry.key, leader.key.id, leader.epoch, leader.endpoints
            )
            self._event(slot, Received(RaftMessage(leader.key.id, entry.key.id, 0, request)))
        if not self._follows(slot, source):
            raise Impossible

    def _follows(self, slot: int, source: int) -> bool:
        replica, leader = self.replicas[slot], self.replicas[source]
        state = replica.state
        return (
            isinstance(state, Follower) and state.epoch == leader.epoch and state.leader_id == leader.key.id
        )

    def _fetch_once(self, slot: int, source: int, max_bytes: int) -> bool:
        """A Fetch and its answer; False where the leader has nothing to say yet."""
        replica, leader = self.replicas[slot], self.replicas[source]
        settings = replace(replica.settings, max_fetch_bytes=max_bytes, fetch_max_wait=0)
        self.replicas[slot] = replace(replica, sent=(), settings=settings)
        done = self._take(slot, lambda follower: fetching.fetch(follower, leader.key.id))
        answered = self._ask(source, slot, done)
        state = self.replicas[slot].state
        for _ in range(_SLICES):
            if not isinstance(state, Follower) or state.fetching_snapshot is None:
                break
            wanted = state
            self.replicas[slot] = replace(self.replicas[slot], sent=())
            done = self._take(
                slot, lambda follower, wanted=wanted: snapshots.fetch_snapshot(follower, wanted)
            )
            self._ask(source, slot, done)
            state = self.replicas[slot].state
        return answered

    def _ask(self, source: int, slot: int, asked: Step) -> bool:
        """Deliver what a replica sends to another, and the answers."""
        answered = False
        for request in asked.messages:
            done = self._event(source, Received(request))
            for response in done.messages:
                if (
                    response.destination == self.replicas[slot].key.id
                    and response.source == request.destination
                ):
                    self._event(slot, Received(response))
                    answered = True
        return answered

    # --- operators

    def _change_voters(self, move: ChangeVoters) -> None:
        leader, replica = self.replicas.get(move.leader), self.replicas.get(move.slot)
        if leader is None or replica is None or not isinstance(leader.state, Leader):
            raise Impossible
        request: AddVoterRequest | RemoveVoterRequest
        if move.add:
            request = AddVoterRequest(leader.cluster_id, replica.key, replica.endpoints)
        else:
            request = RemoveVoterRequest(leader.cluster_id, replica.key)
        # What an earlier request waited for has timed out.
        idle = replace(leader, sent=(), state=replace(leader.state, pending=None))
        self.replicas[move.leader] = idle
        asked = self._event(move.leader, Received(RaftMessage(ADMIN, leader.key.id, 0, request)))
        for message in asked.messages:
            if message.destination == replica.key.id:
                for answer in self._event(move.slot, Received(message)).messages:
                    self._event(move.leader, Received(answer))
        if self.replicas[move.leader].log == leader.log:
            raise Impossible

    def _update_voter(self, move: UpdateVoter, nth: int) -> None:
        """A voter that began to listen elsewhere, on ports that no other moment gave it."""
        leader, voter = self.replicas.get(move.leader), self.replicas[move.slot]
        if leader is None or not isinstance(leader.state, Leader) or voter.key.id == leader.key.id:
            raise Impossible
        endpoints = endpoints_of(voter.key.id, port_offset=100 * nth)
        self.replicas[move.slot] = replace(voter, endpoints=endpoints)
        self._report_voter(move.leader, move.slot)
        if self.replicas[move.leader].log == leader.log and leader.kraft_version > 0:
            raise Impossible

    def _report_voter(self, to: int, slot: int) -> None:
        """A voter sends a leader its directory id, endpoints and versions."""
        leader, voter = self.replicas[to], self.replicas[slot]
        versions = voter.min_supported_version, voter.max_supported_version
        request = UpdateVoterRequest(leader.cluster_id, leader.epoch, voter.key, voter.endpoints, *versions)
        self._event(to, Received(RaftMessage(voter.key.id, leader.key.id, 0, request)))

    def _upgrade_kraft_version(self, slot: int) -> None:
        """The upgrade needs all voters' directories, which a follower reports once to each leader.

        KIP-853, UpdateVoter and UpdateFeatures; Kafka's KRaftVersionUpgrade.
        """
        leader = self.replicas[slot]
        if not isinstance(leader.state, Leader) or leader.state.volatile_voters is None:
            raise Impossible
        unknown = [v.key.id for v in leader.state.volatile_voters if v.key.directory_id is None]
        for other, replica in sorted(self.replicas.items()):
            if replica.key.id in unknown:
                self._make_follower(other, slot)
                self._report_voter(slot, other)
        asked = RaftMessage(ADMIN, leader.key.id, 0, UpdateFeaturesRequest(kraft_version=1))
        self._event(slot, Received(asked))
        if self.replicas[slot].kraft_version == 0:
            raise Impossible

    def _reboot(self, move: Reboot) -> None:
        replica = self.replicas[move.slot]
        first, end = replica.flushed_offset, replica.log.end_offset
        lost = None if move.keeps_unflushed or first >= end else first
        self._take(move.slot, lambda before: restart(before, lost))

    def _empty_disk(
        self, slot: int, into: int, before: list[Mapping[int, Replica]], *, static: bool = False
    ) -> None:
        """Once kraft.version is 1 a disk is formatted for a dynamic quorum, unless `static`: no voter."""
        old = self.replicas[slot]
        upgraded = any(replica.kraft_version > 0 for replica in self.replicas.values())
        setup = replace(self.setup, static=self.setup.static and (static or not upgraded))
        fresh = formatted_replica(setup, old.key.id, len(before), old.now)
        self.replicas[into] = replace(fresh, endpoints=old.endpoints)

    def _restore(self, move: Restore, before: list[Mapping[int, Replica]]) -> None:
        now = self.replicas[move.slot]
        then = before[max(0, len(before) - 1 - move.back)].get(move.slot)
        if then is None or then.key != now.key or then.log == now.log:
            raise Impossible
        begun = restart(then, None).replica
        if move.log_only:
            begun = restart(replace(now, store=begun.store), None).replica
        self.replicas[move.slot] = begun


def _deadline(replica: Replica) -> int:
    state = replica.state
    if isinstance(state, Unattached | Prospective | Candidate | Resigned):
        return state.election_deadline if state.election_deadline < 1 << 40 else replica.now
    return replica.now
