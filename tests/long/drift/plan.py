"""Plans for ReplayLog.java: random operations on a log, lawful and not, with their bytes and questions.

The engine runs along so that the operations fit the log (an offset to truncate to, a snapshot to delete
before); what it says of them is not written down.
"""

from __future__ import annotations

import base64
import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kraft_core.format.batch import RawRecord, write_batch
from kraft_core.format.codec import write_control_value, write_message
from kraft_core.messages import control
from kraft_core.messages.uuid_text import uuid_text
from kraft_core.raft import replay
from kraft_core.raft.emulation import (
    ControlReaderError,
    EmulatedReplica,
    emulate,
    snapshot_kafka_would_write,
    start,
)
from kraft_core.raft.log import BrokenLogError, ReplicaLog
from kraft_core.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from tests.conformance.log_replay import SEGMENT_BYTES
from tests.conformance.trace import voter_rows
from tests.kraft_core.raft.reading import read_batches, read_snapshot

Line = dict[str, Any]

# How often each operation is tried, of 100.
WEIGHTS = {
    "append_follower": 48,
    "hwm": 16,
    "diverging": 11,
    "new_epoch": 10,
    "snapshot": 6,
    "install_snapshot": 3,
    "delete_before": 3,
    "restart": 3,
}
TIMESTAMP = 1_700_000_000_000  # ms


def plan(seed: int, cases: int, steps: int) -> Iterator[Line]:
    """The lines of a plan: each case's head, then its operations. The last case is not random."""
    for case in range(cases):
        yield from Case(random.Random(f"{seed}/{case}"), case, steps).lines()
    yield from Case(random.Random(seed), cases, 6).reader_that_ends()


class Case:
    """One log from its beginning."""

    def __init__(self, rnd: random.Random, case: int, steps: int) -> None:
        self.rnd = rnd
        self.case = case
        self.steps = steps
        self.epoch = 0
        self.leads = False
        self.pool = [self._voter(replica) for replica in range(1, 10)]
        self.replica: EmulatedReplica

    @property
    def log(self) -> ReplicaLog:
        return self.replica.log

    @property
    def _last_epoch(self) -> int:
        return self.log.epochs.last_epoch or 0

    def reader_that_ends(self) -> Iterator[Line]:
        """A fetched snapshot cuts the log below a set that the reader remembers, and another set follows."""
        yield self._bootstrapped(VoterSet.of(self.pool[:3]))
        data = [RawRecord(at, TIMESTAMP, None, b"data") for at in range(10)]
        added = [(control.KRAFT_VOTERS, VoterSet.of(self.pool[:4]).to_record())]
        later = [
            (control.KRAFT_VOTERS, VoterSet.of(self.pool[:2]).to_record()),
            (control.KRAFT_VERSION, {"kRaftVersion": 1}),
        ]
        content = {"snap_kv": 1, "snap_voters": voter_rows(VoterSet.of(self.pool[:2]))}
        checkpoint = _text(_checkpoint(3, 1, VoterSet.of(self.pool[:2])))
        lines: list[Line] = [
            {"op": "append_follower", "epoch": 1, "raw": _text(write_batch(0, 1, data))},
            {"op": "append_follower", "epoch": 1, "raw": _text(_control_batch(10, 1, added))},
            {"op": "install_snapshot", "id": [5, 3], "raw": checkpoint} | content,
            {"op": "append_follower", "epoch": 3, "raw": _text(write_batch(5, 3, data[5:]))},
            {"op": "append_follower", "epoch": 3, "raw": _text(_control_batch(10, 3, later))},
        ]
        for step, line in enumerate([{"op": "start"}, *lines]):
            self._run_along(line)
            yield self._line(line, step)

    def lines(self) -> Iterator[Line]:
        yield self._head()
        yield self._line({"op": "start"}, 0)
        step = 1
        while step < self.steps:
            (operation,) = self.rnd.choices(list(WEIGHTS), list(WEIGHTS.values()))
            line = getattr(self, f"_{operation}")()
            if line is not None:
                self._run_along(line)
                yield self._line(line, step)
                step += 1

    def _head(self) -> Line:
        voters = VoterSet.of(self.rnd.sample(self.pool, self.rnd.randint(1, 5)))
        if self.rnd.random() < 0.25:
            static = VoterSet.of(Voter(ReplicaKey(voter.key.id), voter.endpoints, 0, 1) for voter in voters)
            self.replica = start(ReplicaLog(static_voters=static, segment_bytes=SEGMENT_BYTES))
            raw = write_message(control.CONTROL_RECORDS[control.KRAFT_VOTERS], 0, static.to_record())
            head = {"kind": "static-voters", "static_voters": voter_rows(static), "static_raw": _text(raw)}
            return {"case": self.case, "segment_bytes": SEGMENT_BYTES} | head
        return self._bootstrapped(voters)

    def _bootstrapped(self, voters: VoterSet) -> Line:
        raw = _checkpoint(0, 1, voters)
        self.replica = start(ReplicaLog(snapshots=(read_snapshot(0, 0, raw),), segment_bytes=SEGMENT_BYTES))
        head = {"case": self.case, "segment_bytes": SEGMENT_BYTES, "kind": "bootstrap-checkpoint"}
        return head | {"bootstrap_raw": _text(raw)}

    def _line(self, line: Line, step: int) -> Line:
        newest = max(self._last_epoch, self.epoch)
        valid = [
            [self.rnd.randint(0, self.log.end_offset + 3), self.rnd.randint(0, newest + 2)] for _ in range(3)
        ]
        vat = [self.rnd.randint(-1, self.replica.reader.next_offset + 1) for _ in range(2)]
        probes = {"eoe": self._last_epoch + 2, "valid": valid, "vat": vat}
        return line | {"case": self.case, "i": step, "probes": probes}

    def _run_along(self, line: Line) -> None:
        operation = _operation(line, self.replica)
        if operation is None:
            return
        try:
            self.replica = emulate(self.replica, operation)
        except ControlReaderError as ended:
            self.replica = ended.replica
        except replay.OperationRefusedError as refused:
            self.replica = replace(self.replica, log=refused.log or self.log)
        except BrokenLogError:
            pass

    def _append_follower(self) -> Line:
        if self.leads and self.rnd.random() < 0.7:
            return self._append_leader()
        self.leads = False
        base = self.log.end_offset - (self.log.end_offset > 2 and self.rnd.random() < 0.04)
        epoch = self.epoch = max(1, self.epoch)
        own = self.rnd.randint(max(1, self._last_epoch), max(epoch, self._last_epoch))
        chunks: list[bytes] = []
        for _ in range(self.rnd.randint(1, 3)):
            own = min(own + (self.rnd.random() < 0.2), epoch + (self.rnd.random() < 0.02))
            chunk = self._batch(base, max(1, own))
            base = read_batches(chunk)[-1].end_offset
            chunks.append(chunk)
        return {"op": "append_follower", "epoch": epoch, "raw": _text(b"".join(chunks))}

    def _append_leader(self) -> Line:
        raw = self._batch(self.log.end_offset, self.epoch)
        return {"op": "append_leader", "epoch": self.epoch, "raw": _text(raw)}

    def _hwm(self) -> Line:
        ends = [batch.end_offset for batch in self.log.batches if batch.end_offset >= self.log.high_watermark]
        return {"op": "hwm", "offset": self.rnd.choice(ends or [self.log.high_watermark])}

    def _diverging(self) -> Line:
        ends = [batch.end_offset for batch in self.log.batches] or [0]
        self.leads = False
        return {"op": "diverging", "offset": self.rnd.choice(ends[-6:]), "epoch": self._some_epoch()}

    def _new_epoch(self) -> Line:
        self.epoch += self.rnd.randint(1, 2)
        self.leads = self.rnd.random() < 0.5 and self.epoch >= self._last_epoch
        return {"op": "new_epoch", "epoch": self.epoch, "leader": self.leads}

    def _snapshot(self) -> Line | None:
        batches = [batch for batch in self.log.batches if batch.end_offset <= self.log.high_watermark]
        if not batches or self.rnd.random() < 0.2:
            # Mostly unlawful.
            return {
                "op": "snapshot",
                "id": [self.rnd.randint(0, self.log.end_offset + 1), self._some_epoch()],
            }
        batch = self.rnd.choice(batches)
        controls = self.replica.reader.controls
        if controls.voters.at(batch.last_offset) and not controls.kraft_version_at(batch.last_offset):
            return None  # Kafka's snapshot writer throws on voters under kraft.version 0
        return {"op": "snapshot", "id": [batch.end_offset, batch.leader_epoch]}

    def _install_snapshot(self) -> Line:
        """Ahead of the log, or, of a newer epoch, in the midst of it."""
        self.leads = False
        self.epoch += 1
        end = self.log.end_offset + self.rnd.randint(1, 12)
        if self.rnd.random() < 0.4:
            end = self.rnd.randint(max(1, self.log.high_watermark), max(1, self.log.end_offset))
        voters = self._voters()
        level = 0 if self.log.static_voters and self.rnd.random() < 0.5 else 1
        content = {"snap_kv": level} | ({"snap_voters": voter_rows(voters)} if level else {})
        raw = _text(_checkpoint(self.epoch, level, voters))
        return {"op": "install_snapshot", "id": [end, self.epoch], "raw": raw} | content

    def _delete_before(self) -> Line | None:
        if not self.log.snapshots:
            return None
        snapshot = self.rnd.choice(self.log.snapshots)
        return {"op": "delete_before", "id": [snapshot.end_offset, snapshot.leader_epoch]}

    def _restart(self) -> Line:
        self.leads = False
        return {"op": "restart"}

    def _some_epoch(self) -> int:
        return self.rnd.randint(0, max(self._last_epoch, self.epoch) + 1)

    def _batch(self, base: int, epoch: int) -> bytes:
        """Data, a new set of voters, or a LEADER_CHANGE with what may stand beside it."""
        kind = self.rnd.random()
        if kind < 0.6:
            # One in thirty is larger than a segment.
            data = b"data" * (1 if self.rnd.random() < 0.97 else SEGMENT_BYTES // 4)
            records = [RawRecord(base + at, TIMESTAMP, None, data) for at in range(self.rnd.randint(1, 6))]
            return write_batch(base, epoch, records)
        values: list[tuple[int, Line]] = []
        if kind < 0.75:
            ids = [{"voterId": voter.key.id} for voter in self._voters()]
            values.append((control.LEADER_CHANGE, {"leaderId": 1, "voters": ids, "grantingVoters": ids[:1]}))
        if kind < 0.65 or kind > 0.95:
            values.append((control.KRAFT_VERSION, {"kRaftVersion": 1}))
        if kind < 0.65 or kind > 0.75:
            values.append((control.KRAFT_VOTERS, self._voters().to_record()))
        return _control_batch(base, epoch, values)

    def _voters(self) -> VoterSet:
        """Any set: one step from the last or not, the replay takes both."""
        last = self.replica.reader.controls.voters.last
        voters = {voter.key.id: voter for voter in last or ()}
        picked = self.rnd.choice(self.pool)
        if picked.key.id in voters and len(voters) > 1:
            del voters[picked.key.id]
        else:
            voters[picked.key.id] = picked
        if self.rnd.random() < 0.2:
            return VoterSet.of(self.rnd.sample(self.pool, self.rnd.randint(1, 6)))
        return VoterSet.of(voters.values())

    def _voter(self, replica: int) -> Voter:
        directory_id = uuid_text(self.rnd.randbytes(16))
        return Voter(ReplicaKey(replica, directory_id), (Endpoint("LISTENER", f"h{replica}", 9093),), 0, 1)


def _operation(line: Line, replica: EmulatedReplica) -> replay.Operation | None:
    raw = base64.b64decode(line.get("raw", ""))
    match line["op"]:
        case "append_leader":
            return replay.AppendAsLeader(line["epoch"], read_batches(raw))
        case "append_follower":
            return replay.AppendAsFollower(line["epoch"], read_batches(raw))
        case "new_epoch":
            return replay.BeginEpoch(line["epoch"]) if line["leader"] else None
        case "hwm":
            return replay.UpdateHighWatermark(line["offset"])
        case "diverging":
            return replay.TruncateToDivergence(line["offset"], line["epoch"])
        case "snapshot":
            end, epoch = line["id"]
            within = min(end, replica.reader.next_offset)
            return replay.CreateSnapshot(snapshot_kafka_would_write(replica, within, epoch))
        case "install_snapshot":
            return replay.InstallSnapshot(read_snapshot(*line["id"], raw))
        case "delete_before":
            return replay.DeleteBefore(*line["id"])
        case "start":
            return None
        case _:
            return replay.Restart()


def _checkpoint(epoch: int, level: int, voters: VoterSet) -> bytes:
    """A snapshot without data, as Kafka writes one."""
    head: list[tuple[int, Line]] = [(control.SNAPSHOT_HEADER, {"lastContainedLogTimestamp": TIMESTAMP})]
    if level:
        head += [(control.KRAFT_VERSION, {"kRaftVersion": level}), (control.KRAFT_VOTERS, voters.to_record())]
    foot: list[tuple[int, Line]] = [(control.SNAPSHOT_FOOTER, {})]
    return _control_batch(0, epoch, head) + _control_batch(len(head), epoch, foot)


def _control_batch(base: int, epoch: int, values: list[tuple[int, Line]]) -> bytes:
    records = [
        RawRecord(
            base + at, TIMESTAMP, bytes((0, 0, 0, kind)), write_control_value(kind, {"version": 0} | value)
        )
        for at, (kind, value) in enumerate(values)
    ]
    return write_batch(base, epoch, records, is_control=True)


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
