"""Captures of the quorums that Kafka's own KafkaRaftClient ran in simulations (tests/traces).

The trace holds every operation of every node's log and the high watermarks the leaders reached. Data batches
are written there without a controller, at once after the election, so they prove nothing of the leader's
epoch.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from kraft_core.evidence.facts import Capture, CapturedControlRecord, ClusterFacts, EpochRange, SnapshotFacts
from kraft_core.format.batch import BatchHeader
from kraft_core.format.record import Record, read_batch
from kraft_core.format.segment import scan
from kraft_core.format.snapshot import read_snapshot
from kraft_core.messages.uuid_text import ZERO_UUID
from tests.conformance.trace import Line, raw, read_trace

# The simulations' clock begins here; an event's ms count from it.
CLOCK_BEGINS = 1_700_000_000_000


@dataclass
class Node:
    node_id: int
    directory_id: str
    start: int = 0
    log: list[tuple[BatchHeader, list[Record]]] = field(default_factory=list)
    checkpoints: dict[tuple[int, int], bytes] = field(default_factory=dict)
    epoch: int | None = None
    role: str = ""
    high_watermark: int = 0

    @property
    def end(self) -> int:
        return self.log[-1][0].next_offset if self.log else self.start

    def operate(self, line: Line) -> None:
        match line["op"]:
            case "append_leader" | "append_follower":
                buf = raw(line)
                for header in scan(buf):
                    assert isinstance(header, BatchHeader)
                    self.log.append((header, list(read_batch(buf, header)) if header.is_control else []))
            case "truncate":
                self._keep(end=line["offset"])
            case "truncate_to_snapshot":
                self.log, self.start = [], line["id"][0]
            case "snapshot" if "raw" in line:
                self.checkpoints[tuple(line["id"])] = raw(line)
            case "delete_before":
                self.start = line["id"][0]
                self.log = [entry for entry in self.log if entry[0].base_offset >= self.start]
                self.checkpoints = {k: held for k, held in self.checkpoints.items() if k[0] >= self.start}
            case "restart" if line["lost_from"] is not None:
                self._keep(end=line["lost_from"])
            case _:
                pass

    def _keep(self, end: int) -> None:
        self.log = [entry for entry in self.log if entry[0].next_offset <= end]

    def capture(self, at: int) -> ClusterFacts:
        """The facts of a copy of its directory, taken after an event."""
        snapshots = tuple(self._snapshot(*key, content, at) for key, content in self.checkpoints.items())
        capture = Capture(
            capture_id=f"{self.node_id} {self.directory_id} {at}",
            node_id=self.node_id,
            directory_id=self.directory_id,
            captured_at=at,
            captured_from=at,
            captured_until=at,
            time_source="capture.json",
            log_start_offset=self.start,
            log_end_offset=max([self.end, *(s.end_offset for s in snapshots if s.proves)]),
            epoch_ranges=tuple(self._ranges()),
            quorum_state_epoch=self.epoch,
        )
        return ClusterFacts("recorded", (capture,), tuple(self._control_records()), snapshots)

    def _ranges(self) -> Iterator[EpochRange]:
        first = 0
        for nth, (header, _) in enumerate(self.log, start=1):
            if nth < len(self.log) and self.log[nth][0].leader_epoch == header.leader_epoch:
                continue
            headers = [entry[0] for entry in self.log[first:nth]]
            begins = any(record.type == "LeaderChange" for record in self.log[first][1])
            yield EpochRange(
                header.leader_epoch,
                headers[0].base_offset,
                header.next_offset,
                hashlib.sha256(repr([h._replace(position=0) for h in headers]).encode()).hexdigest(),
                headers[0].max_timestamp,
                header.max_timestamp,
                headers[0].next_offset if begins else None,
            )
            first = nth

    def _control_records(self) -> Iterator[CapturedControlRecord]:
        for header, records in self.log:
            for record in records:
                if (
                    record.type in ("LeaderChange", "KRaftVersion", "KRaftVoters")
                    and record.value is not None
                ):
                    bounds = (header.base_offset, header.next_offset, header.crc)
                    place = (record.offset, record.leader_epoch)
                    yield CapturedControlRecord(*place, *bounds, record.timestamp, record.type, record.value)

    def _snapshot(self, end: int, epoch: int, content: bytes, at: int) -> SnapshotFacts:
        snapshot = read_snapshot(content)
        values = {
            record.type: record.value for record in snapshot.control_records if record.value is not None
        }
        return SnapshotFacts(
            end_offset=end,
            leader_epoch=epoch,
            content_digest=hashlib.sha256(content).hexdigest(),
            complete=snapshot.complete,
            unfinished=False,
            header_timestamp=snapshot.header.timestamp if snapshot.header else None,
            last_contained_log_timestamp=snapshot.last_contained_log_timestamp,
            kraft_version=values["KRaftVersion"]["kRaftVersion"] if "KRaftVersion" in values else None,
            voters=values["KRaftVoters"]["voters"] if "KRaftVoters" in values else None,
            metadata_version=None,
            batch_end=None,
            held_by=((self.node_id, self.directory_id),),
            first_captured_at=at,
        )


@dataclass
class RecordedQuorum:
    """One simulation, event by event. reached: (ms, high watermark) whenever a leader passed all before."""

    case: int
    nodes: dict[str, Node]
    now: int = CLOCK_BEGINS
    reached: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])

    def event(self, line: Line) -> None:
        self.now = CLOCK_BEGINS + line["ms"]
        if "new_directory" in line:
            self.nodes[f"n{line['node']}"] = Node(line["node"], line["new_directory"])
        for name, change in line.get("nodes", {}).items():
            node, state = self.nodes[name], change.get("state", {})
            for operation in change.get("ops", ()):
                node.operate(operation)
            node.epoch = state.get("epoch", node.epoch)
            node.role = state.get("role", node.role)
            node.high_watermark = state.get("hwm", node.high_watermark) or 0
        led = max((n.high_watermark for n in self.nodes.values() if n.role == "leader"), default=0)
        if led > self.reached[-1][1]:
            self.reached.append((self.now, led))

    def high_watermark_at(self, moment: int) -> int:
        return max(offset for at, offset in self.reached if at <= moment)

    def high_watermark_after(self, moment: int) -> int:
        """The next one: a state is recorded at the end of an event, but was reached within it."""
        return min((offset for at, offset in self.reached if at > moment), default=self.reached[-1][1])

    def committed(self) -> dict[int, int]:
        """The epoch at each offset that is committed at the end, as far as a log still holds it."""
        best = max(self.nodes.values(), key=lambda n: (n.role == "leader", n.high_watermark, n.end))
        return {
            offset: header.leader_epoch
            for header, _ in best.log
            for offset in range(header.base_offset, header.next_offset)
            if offset < self.reached[-1][1]
        }


def recorded_quorums(path: Path) -> Iterator[Iterator[RecordedQuorum]]:
    """The quorums of a trace, each as its states event by event; what follows an abort is left out."""
    lines: list[Line] = []
    for line in read_trace(path):
        if "ev" not in line and lines:
            yield _states(lines)
            lines = []
        lines.append(line)
    yield _states(lines)


def _states(lines: list[Line]) -> Iterator[RecordedQuorum]:
    head, *events = lines
    nodes = {f"n{node}": Node(node, directory or ZERO_UUID) for node, directory, _ in head["nodes"]}
    quorum = RecordedQuorum(head["case"], nodes)
    for line in events:
        if line["ev"] == "aborted":
            return
        quorum.event(line)
        yield quorum
