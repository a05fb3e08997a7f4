"""The trace format: gzip JSON lines, and Kafka's values in it as the engine's, both ways."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kraft_core.format.batch import BatchHeader, RawRecord, iter_records
from kraft_core.format.codec import read_control_value
from kraft_core.format.segment import Damage, scan
from kraft_core.raft.batches import Batch
from kraft_core.raft.epochs import EpochEnd
from kraft_core.raft.history import OffsetHistory
from kraft_core.raft.log import Controls, Snapshot
from kraft_core.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from tests.kraft_core.raft.reading import read_batches, read_snapshot

Line = dict[str, Any]


def read_trace(path: Path) -> Iterator[Line]:
    """The lines of a .jsonl or .jsonl.gz file."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        for line in lines:
            yield json.loads(line)


def raw(line: Line, field: str = "raw") -> bytes:
    return base64.b64decode(line[field])


def voter_set(rows: list[Any]) -> VoterSet:
    return VoterSet.of(
        Voter(ReplicaKey(voter_id, directory_id), tuple(Endpoint(*end) for end in endpoints), low, high)
        for voter_id, directory_id, endpoints, low, high in rows
    )


def voter_rows(voters: VoterSet | None) -> list[Any]:
    return [
        [
            voter.key.id,
            voter.key.directory_id,
            [[end.name, end.host, end.port] for end in voter.endpoints],
            voter.min_supported_version,
            voter.max_supported_version,
        ]
        for voter in voters or ()
    ]


def snapshot_id(snapshot: Snapshot | None) -> list[int] | None:
    return [snapshot.end_offset, snapshot.leader_epoch] if snapshot else None


def offset_and_epoch(end: EpochEnd) -> list[int]:
    return [end.end_offset, end.leader_epoch]


def batches_of(line: Line) -> tuple[Batch, ...]:
    return read_batches(raw(line))


def snapshot_of(line: Line) -> Snapshot:
    """The snapshot of a line that bears one's bytes, or just its id where Kafka wrote none."""
    end_offset, leader_epoch = line["id"]
    if "raw" not in line:
        return Snapshot(end_offset, leader_epoch)
    return read_snapshot(end_offset, leader_epoch, raw(line))


def described(line: Line) -> list[Line]:
    """The line's bytes, decoded, as the trace describes them beside: every record is read."""
    buf = raw(line)
    return [_described_batch(buf, header) for header in scan(buf)]


def _described_batch(buf: bytes, header: BatchHeader | Damage) -> Line:
    if isinstance(header, Damage):
        return {"damage": header.reason}
    line = {"b": header.base_offset, "l": header.last_offset, "e": header.leader_epoch}
    records = list(iter_records(buf, header))
    return line | {"c": [_described_record(record) for record in records]} if header.is_control else line


def _described_record(record: RawRecord) -> Line:
    control = read_control_value(int.from_bytes((record.key or b"")[2:4], "big"), record.value or b"")
    if control.message.column == "kraft_voters":
        voters = voter_rows(VoterSet.from_record(control.value))
        return {"t": "KRAFT_VOTERS", "o": record.offset, "v": control.version, "d": voters}
    if control.message.column == "kraft_version":
        return {"t": "KRAFT_VERSION", "o": record.offset, "d": control.value["kRaftVersion"]}
    return {"t": control.message.column.upper(), "o": record.offset, "d": control.value}


def fresh(live: Controls, truth: Controls) -> Line:
    """The log's truth, written as the traces write it: only where the running Kafka's reading differs."""
    line: Line = {}
    if (truth.voters.last, truth.kraft_version) != (live.voters.last, live.kraft_version):
        line["fresh"] = {
            "voters": voter_rows(truth.voters.last),
            "voters_at": truth.voters.last_offset,
            "kv": truth.kraft_version,
        }
    if truth.voters.last_offset != live.voters.last_offset:
        line["fresh_at"] = truth.voters.last_offset
    return line


def sizes(history: OffsetHistory[VoterSet]) -> list[list[int]]:
    return [[offset, len(voters)] for offset, voters in history.entries]


def pairs(history: OffsetHistory[int]) -> list[list[int]]:
    return [list(entry) for entry in history.entries]
