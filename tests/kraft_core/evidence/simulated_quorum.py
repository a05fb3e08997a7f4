"""A quorum in memory that keeps KRaft's rules, to draw captures from whose truth is known.

Replicas elect, append, fetch, truncate, snapshot, change voters, lose disks and crash at random; one clock
ticks at every step. What the leaders committed is noted, and at the end everything settles into one log, so
that every verdict drawn from captures on the way can be held against what became of the batch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from kraft_core.evidence.facts import (
    Capture,
    CapturedControlRecord,
    ClusterFacts,
    EpochRange,
    FeatureLevel,
    SnapshotFacts,
)
from kraft_core.messages.uuid_text import ZERO_UUID

ReplicaName = tuple[int, str]
VoterIds = tuple[ReplicaName, ...]


@dataclass(frozen=True)
class Batch:
    """A batch of a log: offsets base (inclusive) to end (exclusive), and what of it changes a state."""

    base: int
    end: int
    epoch: int
    at: int
    records: tuple[CapturedControlRecord, ...] = field(default=(), compare=False)
    metadata_version: int | None = None


@dataclass(frozen=True)
class Checkpoint:
    end: int
    epoch: int
    at: int
    log_at: int
    voters: VoterIds | None
    metadata_version: int | None


@dataclass
class Replica:
    name: ReplicaName
    start: int = 0
    log: list[Batch] = field(default_factory=list)
    checkpoint: Checkpoint | None = None
    epoch: int = 0
    leader: ReplicaName | None = None
    high_watermark: int = 0
    # While leading: the epoch's start, its high watermark, and each replica's fetch offset.
    leads_from: int | None = None
    leader_high_watermark: int | None = None
    fetched: dict[ReplicaName, int] = field(default_factory=dict)

    @property
    def end(self) -> int:
        return self.log[-1].end if self.log else self.start

    @property
    def last_epoch(self) -> int:
        if self.log:
            return self.log[-1].epoch
        return self.checkpoint.epoch if self.checkpoint else 0

    def epoch_at(self, offset: int) -> int | None:
        """The epoch of the batch that holds an offset."""
        held = next((b.epoch for b in self.log if b.base <= offset < b.end), None)
        if held is None and self.checkpoint and offset == self.checkpoint.end - 1:
            return self.checkpoint.epoch
        return held

    def follow(self, epoch: int) -> None:
        if epoch > self.epoch:
            self.epoch, self.leader = epoch, None
            self.leads_from = self.leader_high_watermark = None


class Quorum:
    """dynamic: kraft.version 1 with VotersRecords, else static voters. old: software older than 3.6."""

    def __init__(self, random: Random, voters: int, observers: int, dynamic: bool, old: bool) -> None:
        self.random = random
        self.dynamic = dynamic
        self.old = old and not dynamic
        self.now = 1_000
        self.replicas: dict[ReplicaName, Replica] = {}
        for node in range(1, voters + observers + 1):
            self._add_replica(node, "a")
        self.configured: VoterIds = tuple(sorted(self.replicas))[:voters]
        # How often each step is taken: calm, or with many elections, changes of voters, snapshots.
        self.weights = random.choice(
            [
                (2, 6, 20, 2, 1, 0.5, 0.3),
                (10, 5, 10, 2, 0, 1, 0),
                (3, 3, 15, 12, 0, 1, 0.5),
                (1, 8, 20, 4, 8, 0, 1),
            ]
        )
        # (ms, high watermark) whenever a leader raised it.
        self.committed: list[tuple[int, int]] = [(0, 0)]

    def _add_replica(self, node: int, disk: str) -> None:
        name = (node, f"{node}{disk:->21}")
        self.replicas[name] = Replica(name)

    def high_watermark_at(self, moment: int) -> int:
        return max(offset for at, offset in self.committed if at <= moment)

    # --- what is in force

    def voters_of(self, replica: Replica) -> VoterIds:
        for batch in reversed(replica.log):
            for record in batch.records:
                if record.type == "KRaftVoters":
                    return names(record)
        if replica.checkpoint and replica.checkpoint.voters is not None:
            return replica.checkpoint.voters
        return self.configured

    def _changed_at(self, replica: Replica) -> int:
        """Where the newest VotersRecord of a log lies, -1 without one."""
        return max((b.base for b in replica.log for r in b.records if r.type == "KRaftVoters"), default=-1)

    def metadata_version_of(self, replica: Replica) -> int | None:
        levels = [b.metadata_version for b in replica.log if b.metadata_version is not None]
        if levels:
            return levels[-1]
        return replica.checkpoint.metadata_version if replica.checkpoint else None

    # --- steps

    def step(self) -> None:
        """One thing happens, and the clock ticks."""
        self.now += 1
        steps = [
            self.elect,
            self.append,
            self.fetch,
            self.change_voters,
            self.snapshot,
            self.crash,
            self.replace_disk,
        ]
        self.random.choices(steps, self.weights)[0]()

    def elect(self, reach: float = 0.7, removed_too: bool = False) -> None:
        """A replica stands for the next epoch; those of its voters that it reaches may grant it.

        One that its own log is about to remove stands only on request, where nobody else may be able to win.
        """
        candidate = self._any()
        voters = self.voters_of(candidate)
        leaving = self._changed_at(candidate) >= candidate.high_watermark
        if candidate.name not in voters and not (removed_too and leaving):
            return
        epoch = max([candidate.epoch, *(self.replicas[v].epoch for v in voters if v in self.replicas)]) + 1
        granted = [candidate.name] if candidate.name in voters else []
        candidate.follow(epoch)
        for name in voters:
            voter = self.replicas.get(name)
            if voter is None or voter is candidate or self.random.random() > reach:
                continue
            voter.follow(epoch)
            if (candidate.last_epoch, candidate.end) >= (voter.last_epoch, voter.end):
                granted.append(name)
        if len(granted) > len(voters) // 2:
            self._lead(candidate, voters, tuple(granted))

    def _lead(self, leader: Replica, voters: VoterIds, granted: VoterIds) -> None:
        leader.leader = leader.name
        leader.leads_from = base = leader.end
        leader.leader_high_watermark = None
        leader.fetched = {}
        value = {
            "leaderId": leader.name[0],
            "voters": [{"voterId": node} for node, _ in voters],
            "grantingVoters": [{"voterId": node} for node, _ in granted],
        }
        first = self.dynamic and not leader.log and leader.checkpoint is None
        end = base + (3 if first else 1)
        records = [self._record(leader, base, base, end, "LeaderChange", value)]
        if first:
            records += self._version_and_voters(leader, base + 1, base, end, voters)
        leader.log.append(Batch(base, end, leader.epoch, self.now, tuple(records)))
        self._advance(leader)

    def _version_and_voters(
        self, leader: Replica, offset: int, base: int, end: int, voters: VoterIds
    ) -> list[CapturedControlRecord]:
        return [
            self._record(leader, offset, base, end, "KRaftVersion", {"kRaftVersion": 1}),
            self._record(leader, offset + 1, base, end, "KRaftVoters", voters_record(voters)),
        ]

    def _record(
        self, leader: Replica, offset: int, base: int, end: int, kind: Any, value: dict[str, Any]
    ) -> CapturedControlRecord:
        return CapturedControlRecord(
            offset, leader.epoch, base, end, hash((base, leader.epoch)), self.now, kind, value
        )

    def _leader(self) -> Replica | None:
        leaders = [replica for replica in self.replicas.values() if replica.leads_from is not None]
        return self.random.choice(leaders) if leaders else None

    def _any(self) -> Replica:
        return self.replicas[self.random.choice(sorted(self.replicas))]

    def _is_active(self, leader: Replica) -> bool:
        """Whether the controller on the leader has taken over, and so may write."""
        assert leader.leads_from is not None
        if self.old:
            return leader.high_watermark >= leader.leads_from
        return leader.leader_high_watermark is not None

    def append(self) -> None:
        leader = self._leader()
        if leader is None or not self._is_active(leader):
            return
        base = leader.end
        end = base + self.random.randint(1, 4)
        level = None
        if self.metadata_version_of(leader) is None:
            level = 7 if self.old else 20
        leader.log.append(Batch(base, end, leader.epoch, self.now, metadata_version=level))
        self._advance(leader)

    def change_voters(self) -> None:
        leader = self._leader()
        if leader is None or not self.dynamic or leader.leader_high_watermark is None:
            return
        if self._changed_at(leader) >= leader.leader_high_watermark:
            return
        voters = self.voters_of(leader)
        ids = {node for node, _ in voters}
        others = [name for name in sorted(self.replicas) if name[0] not in ids]
        if others and (len(voters) == 1 or self.random.random() < 0.5):
            changed = tuple(sorted((*voters, self.random.choice(others))))
        elif len(voters) > 1:
            gone = self.random.choice(voters)
            changed = tuple(name for name in voters if name != gone)
        else:
            return
        base = leader.end
        record = self._record(leader, base, base, base + 1, "KRaftVoters", voters_record(changed))
        leader.log.append(Batch(base, base + 1, leader.epoch, self.now, (record,)))
        self._advance(leader)

    def fetch(self) -> None:
        leader, follower = self._leader(), self._any()
        if leader is not None and follower is not leader and follower.epoch <= leader.epoch:
            self.fetch_from(leader, follower, self.random.randint(0, 4))

    def fetch_from(self, leader: Replica, follower: Replica, batches: int) -> None:
        follower.follow(leader.epoch)
        follower.leader = leader.name
        if self._cut(leader, follower):
            return
        if not self._meets(leader, follower):
            self._install(leader, follower)
            return
        leader.fetched[follower.name] = follower.end
        self._advance(leader)
        follower.log += [batch for batch in leader.log if batch.base >= follower.end][:batches]
        known = leader.leader_high_watermark or 0
        follower.high_watermark = max(follower.high_watermark, min(known, follower.end))

    def _cut(self, leader: Replica, follower: Replica) -> bool:
        """Takes off the batches that the leader's log has not, as far as its log goes down; if any."""
        held = len(follower.log)
        while follower.log and follower.log[-1].base >= leader.start:
            last = follower.log[-1]
            if last.end <= leader.end and leader.epoch_at(last.base) == last.epoch:
                break
            follower.log.pop()
        return len(follower.log) < held

    def _meets(self, leader: Replica, follower: Replica) -> bool:
        """Whether the leader's log goes on where the follower's ends."""
        if follower.end == 0 or follower.end < leader.start:
            return follower.end == leader.start
        epoch = leader.epoch_at(follower.end - 1)
        return epoch is not None and epoch == follower.epoch_at(follower.end - 1)

    def _install(self, leader: Replica, follower: Replica) -> None:
        assert leader.checkpoint is not None
        follower.log = []
        follower.checkpoint = leader.checkpoint
        follower.start = leader.checkpoint.end
        follower.high_watermark = max(follower.high_watermark, leader.checkpoint.end)

    def _advance(self, leader: Replica) -> None:
        """The high watermark by the newest voter set, if it passes the epoch's start and does not fall."""
        assert leader.leads_from is not None
        voters = self.voters_of(leader)
        ends = [leader.end if name == leader.name else leader.fetched.get(name, -1) for name in voters]
        offset = sorted(ends, reverse=True)[len(ends) // 2]
        if offset > leader.leads_from and offset > (leader.leader_high_watermark or 0):
            leader.leader_high_watermark = offset
            leader.high_watermark = max(leader.high_watermark, offset)
            self.committed.append((self.now, offset))
            if leader.name not in voters and offset > self._changed_at(leader):
                leader.leads_from = leader.leader_high_watermark = None

    def snapshot(self) -> None:
        replica = self._any()
        known = [b for b in replica.log if b.end <= replica.high_watermark]
        kept = replica.checkpoint.end if replica.checkpoint else 0
        newer = [nth for nth, batch in enumerate(known) if batch.end > kept]
        if not newer:
            return
        cut = self.random.choice(newer)
        end = known[cut].end
        upto = Replica(replica.name, replica.start, replica.log[: cut + 1], replica.checkpoint)
        voters = self.voters_of(upto) if self.dynamic else None
        level = self.metadata_version_of(upto)
        replica.checkpoint = Checkpoint(end, known[cut].epoch, self.now, known[cut].at, voters, level)
        if self.random.random() < 0.5:
            keep = self.random.randint(0, cut + 1)
            replica.log = replica.log[keep:]
            replica.start = replica.log[0].base if replica.log else end

    def crash(self) -> None:
        replica = self._any()
        replica.leads_from = replica.leader_high_watermark = None

    def replace_disk(self) -> None:
        """A dead disk that is no voter any more, replaced by an empty one."""
        replica = self._any()
        node, disk = replica.name
        if self.dynamic and all(replica.name not in self.voters_of(r) for r in self.replicas.values()):
            del self.replicas[replica.name]
            self._add_replica(node, chr(ord(disk[-1]) + 1))

    def settle(self) -> Replica:
        """Everything heals: the one log that remains, at a leader whose batches are all committed."""
        self.now += 1
        for _ in range(500):
            self.elect(reach=1.0, removed_too=True)
            for leader in [r for r in self.replicas.values() if r.leads_from is not None]:
                if leader.epoch < max(r.epoch for r in self.replicas.values()):
                    continue
                for _ in range(12):
                    for follower in [r for r in self.replicas.values() if r is not leader]:
                        if leader.leads_from is not None:
                            self.fetch_from(leader, follower, len(leader.log) + 1)
                if leader.leader_high_watermark == leader.end:
                    return leader
        raise AssertionError("the quorum did not settle")

    # --- captures

    def capture(self, replica: Replica) -> ClusterFacts:
        """The facts of a copy of one replica's directory, taken now."""
        node, directory_id = replica.name
        epoch_ranges = runs_of(replica.log)
        capture = Capture(
            capture_id=f"{replica.name} {self.now}",
            node_id=node,
            directory_id=directory_id,
            captured_at=self.now,
            captured_from=self.now,
            captured_until=self.now,
            time_source="capture.json",
            log_start_offset=replica.start,
            log_end_offset=replica.end,
            epoch_ranges=epoch_ranges,
            quorum_state_epoch=replica.epoch,
            quorum_state_leader_id=replica.leader[0] if replica.leader else -1,
        )
        held = replica.checkpoint
        return ClusterFacts(
            "simulated",
            (capture,),
            tuple(record for batch in replica.log for record in batch.records),
            (self._snapshot_facts(replica, held),) if held else (),
            tuple(
                FeatureLevel(batch.base, batch.epoch, batch.metadata_version)
                for batch in replica.log
                if batch.metadata_version is not None
            ),
        )

    def _snapshot_facts(self, replica: Replica, held: Checkpoint) -> SnapshotFacts:
        voters = None if held.voters is None else voters_record(held.voters)["voters"]
        return SnapshotFacts(
            end_offset=held.end,
            leader_epoch=held.epoch,
            content_digest=f"{held.end} {held.epoch} {held.at}",
            complete=True,
            unfinished=False,
            header_timestamp=held.at,
            last_contained_log_timestamp=held.log_at,
            kraft_version=1 if self.dynamic else None,
            voters=voters,
            metadata_version=held.metadata_version,
            batch_end=held.end,
            held_by=(replica.name,),
            first_captured_at=self.now,
        )


def runs_of(log: list[Batch]) -> tuple[EpochRange, ...]:
    """The epoch ranges of a log, as a scan of its batches finds them."""
    epoch_ranges: list[EpochRange] = []
    start = 0
    for nth, batch in enumerate(log):
        if nth + 1 < len(log) and log[nth + 1].epoch == batch.epoch:
            continue
        epoch_range = log[start : nth + 1]
        begins = any(record.type == "LeaderChange" for record in epoch_range[0].records)
        data = next((b for b in epoch_range if not b.records), None) if begins else None
        epoch_ranges.append(
            EpochRange(
                batch.epoch,
                epoch_range[0].base,
                batch.end,
                str([(b.base, b.end, b.at) for b in epoch_range]),
                epoch_range[0].at,
                batch.at,
                epoch_range[0].end if begins else None,
                data.end if data else None,
                data.at if data else None,
            )
        )
        start = nth + 1
    return tuple(epoch_ranges)


def voters_record(voters: VoterIds) -> dict[str, Any]:
    return {
        "voters": [
            {
                "voterId": node,
                "voterDirectoryId": directory_id or ZERO_UUID,
                "endpoints": [],
                "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
            }
            for node, directory_id in voters
        ]
    }


def names(record: CapturedControlRecord) -> VoterIds:
    return tuple((voter["voterId"], voter["voterDirectoryId"]) for voter in record.value["voters"])
