"""From bytes to the engine's values."""

from __future__ import annotations

import pytest

from kraft_core.format.batch import RawRecord, write_batch
from kraft_core.format.codec import write_control_value
from kraft_core.format.errors import DecodeError
from kraft_core.messages import control
from kraft_core.raft.batches import ControlRecord, KRaftVersion, LeaderChange
from kraft_core.raft.log import Snapshot
from kraft_core.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from tests.kraft_core.raft.reading import read_batches, read_snapshot

DIRECTORY = "PzXaLpMoebh11XCH8kiHoA"
VOTERS = VoterSet.of(
    (
        Voter(ReplicaKey(2), (), 0, 1),
        Voter(ReplicaKey(1, DIRECTORY), (Endpoint("CONTROLLER", "c1", 9093),), 0, 1),
    )
)


def key(control_type: int) -> bytes:
    return (0).to_bytes(2, "big") + control_type.to_bytes(2, "big")


def control_batch(*records: tuple[int, dict], base_offset: int = 4) -> bytes:
    raw = [
        RawRecord(base_offset + at, 1_000, key(kind), write_control_value(kind, value))
        for at, (kind, value) in enumerate(records)
    ]
    return write_batch(base_offset, 3, raw, is_control=True)


LEADER_CHANGE = {
    "version": 1,
    "leaderId": 1,
    "voters": [{"voterId": 1, "voterDirectoryId": DIRECTORY}, {"voterId": 2, "voterDirectoryId": "A" * 22}],
    "grantingVoters": [{"voterId": 1, "voterDirectoryId": DIRECTORY}],
}


def test_control_records_of_a_batch() -> None:
    buf = control_batch(
        (control.LEADER_CHANGE, LEADER_CHANGE),
        (control.KRAFT_VERSION, {"version": 0, "kRaftVersion": 1}),
        (control.KRAFT_VOTERS, VOTERS.to_record()),
    )
    (batch,) = read_batches(buf)
    assert (batch.base_offset, batch.last_offset, batch.leader_epoch, batch.size_bytes) == (4, 6, 3, len(buf))
    one = ReplicaKey(1, DIRECTORY)
    assert batch.control_records == (
        ControlRecord(4, LeaderChange(1, (one, ReplicaKey(2)), (one,))),
        ControlRecord(5, KRaftVersion(1)),
        ControlRecord(6, VOTERS),
    )


def test_a_snapshots_voters_and_version() -> None:
    buf = control_batch(
        (control.SNAPSHOT_HEADER, {"version": 0, "lastContainedLogTimestamp": 5}),
        (control.KRAFT_VERSION, {"version": 0, "kRaftVersion": 1}),
        (control.KRAFT_VOTERS, VOTERS.to_record()),
        base_offset=0,
    ) + control_batch((control.SNAPSHOT_FOOTER, {"version": 0}), base_offset=3)
    assert read_snapshot(9, 3, buf) == Snapshot(9, 3, 1, VOTERS)
    assert read_snapshot(9, 3, b"") == Snapshot(9, 3)


def test_data_batches_have_no_control_records() -> None:
    buf = write_batch(0, 1, [RawRecord(0, 1_000, key(control.KRAFT_VOTERS), b"data")])
    assert read_batches(buf)[0].control_records == ()


def test_a_control_record_of_a_later_kafka_is_skipped() -> None:
    buf = write_batch(0, 1, [RawRecord(0, 1_000, key(77), b"?")], is_control=True)
    assert read_batches(buf)[0].control_records == ()


@pytest.mark.parametrize(
    "record", [RawRecord(0, 1, None, b"v"), RawRecord(0, 1, b"k", b"v"), RawRecord(0, 1, key(6), None)]
)
def test_a_control_record_without_type_or_value_is_damage(record: RawRecord) -> None:
    with pytest.raises(DecodeError, match="without type or value"):
        read_batches(write_batch(0, 1, [record], is_control=True))


def test_damage_is_raised_with_its_position() -> None:
    whole = control_batch((control.KRAFT_VERSION, {"version": 0, "kRaftVersion": 1}))
    with pytest.raises(DecodeError) as raised:
        read_batches(whole + whole[:-1])
    assert raised.value.position == len(whole)


def test_voters_survive_the_record() -> None:
    assert VoterSet.from_record(VOTERS.to_record()) == VOTERS
    assert VOTERS.ids == (1, 2)
