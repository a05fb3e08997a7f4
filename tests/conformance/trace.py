"""The trace format: gzip JSON lines, and Kafka's values in it as the engine's, both ways."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kraft_core.raft.batches import Batch, ControlRecord, KRaftVersion, LeaderChange
from kraft_core.raft.epochs import EpochEnd
from kraft_core.raft.history import OffsetHistory
from kraft_core.raft.log import Snapshot
from kraft_core.raft.reading import read_batches, read_snapshot
from kraft_core.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet

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


def described(batches: tuple[Batch, ...]) -> list[Line]:
    """Batches as the trace describes them beside the bytes, so that the decoding is compared too."""
    return [
        {"b": batch.base_offset, "l": batch.last_offset, "e": batch.leader_epoch}
        | ({"c": [_described(record) for record in batch.control_records]} if batch.control_records else {})
        for batch in batches
    ]


def _described(record: ControlRecord) -> Line:
    match record.value:
        case VoterSet():
            return {"t": "KRAFT_VOTERS", "o": record.offset, "v": 0, "d": voter_rows(record.value)}
        case KRaftVersion():
            return {"t": "KRAFT_VERSION", "o": record.offset, "d": record.value.level}
        case LeaderChange():
            data = {
                "version": 0,
                "leaderId": record.value.leader_id,
                "voters": [{"voterId": voter.id} for voter in record.value.voters],
                "grantingVoters": [{"voterId": voter.id} for voter in record.value.granting_voters],
            }
            return {"t": "LEADER_CHANGE", "o": record.offset, "d": data}


def sizes(history: OffsetHistory[VoterSet]) -> list[list[int]]:
    return [[offset, len(voters)] for offset, voters in history.entries]


def pairs(history: OffsetHistory[int]) -> list[list[int]]:
    return [list(entry) for entry in history.entries]
