from pathlib import Path

import pytest

from kraft_core.format.mapped_file import mapped
from kraft_core.format.snapshot import SnapshotId, cut_off, parse_name, read_snapshot
from kraft_core.messages.control import KRAFT_VERSION, SNAPSHOT_FOOTER, SNAPSHOT_HEADER
from tests.kraft_core.batches import control_batch, log_of, no_op_batch

GOLDEN = Path(__file__).parents[2] / "golden"
CHECKPOINTS = sorted(p for p in GOLDEN.rglob("*.checkpoint") if "corrupt" not in p.parts)

HEADER = control_batch(0, 1, SNAPSHOT_HEADER, {"version": 0, "lastContainedLogTimestamp": 1234})
RECORDS = no_op_batch(1, records=4)
FOOTER = control_batch(5, 1, SNAPSHOT_FOOTER, {"version": 0})


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("00000000000000000321-0000000001.checkpoint", SnapshotId(321, 1, "")),
        ("00000000000000000000-0000000000.checkpoint", SnapshotId(0, 0, "")),
        ("00000000000000000321-0000000001-8846.checkpoint.part", SnapshotId(321, 1, ".part")),
        ("00000000000000000321-0000000001--7.checkpoint.part", SnapshotId(321, 1, ".part")),
        ("00000000000000000321-0000000001.checkpoint.part", SnapshotId(321, 1, ".part")),
        ("00000000000000000321-0000000001.checkpoint.deleted", SnapshotId(321, 1, ".deleted")),
        ("09223372036854775807-2147483647.checkpoint", SnapshotId((1 << 63) - 1, (1 << 31) - 1, "")),
        ("09223372036854775808-0000000001.checkpoint", None),
        ("00000000000000000321-2147483648.checkpoint", None),
        ("321-1.checkpoint", None),
        ("00000000000000000321-0000000001.checkpoint.tmp", None),
        ("00000000000000000321-0000000001.checkpoint\n", None),
        ("bootstrap.checkpoint", None),
        ("00000000000000000321.log", None),
    ],
)
def test_names(name, expected):
    assert parse_name(name) == expected


@pytest.mark.parametrize("path", CHECKPOINTS, ids=lambda p: "/".join(p.parts[-5:]))
def test_every_checkpoint_by_kafka_is_complete(path):
    with mapped(path) as buf:
        snapshot = read_snapshot(buf)
    assert snapshot.incomplete == ""
    assert snapshot.complete
    assert snapshot.header.type == "SnapshotHeader"
    assert snapshot.footer.type == "SnapshotFooter"
    assert snapshot.last_contained_log_timestamp >= 0
    assert snapshot.control_records[0] is snapshot.header
    assert snapshot.control_records[-1] is snapshot.footer


@pytest.mark.parametrize(
    ("content", "is_cut_off"),
    [
        (HEADER + RECORDS + FOOTER, False),
        (HEADER + FOOTER, False),
        (HEADER + RECORDS + FOOTER + no_op_batch(6), False),
        (b"", True),
        (HEADER, True),
        (HEADER + RECORDS, True),
        (RECORDS + FOOTER, True),
        (FOOTER, True),
        # What cannot be read is the damage.
        (HEADER[:-1], False),
        (HEADER + RECORDS + FOOTER[:-1], False),
        (HEADER + control_batch(1, 1, SNAPSHOT_FOOTER, {"version": 0})[:70], False),
    ],
)
def test_a_checkpoint_that_was_cut_off_between_batches(content, is_cut_off):
    found = cut_off(read_snapshot(content), len(content))
    assert (found is not None) == is_cut_off
    if found is not None:
        assert (found.position, found.size_bytes, found.reason) == (len(content), 0, "incomplete")


def test_there_are_checkpoints_to_test():
    assert len(CHECKPOINTS) == 187


def test_a_snapshot_of_kraft_version_1():
    node = GOLDEN / "dynamic-membership/node-1/__cluster_metadata-0"
    with mapped(node / "00000000000000003692-0000000009.checkpoint") as buf:
        snapshot = read_snapshot(buf)
    types = [record.type for record in snapshot.control_records]
    assert types == ["SnapshotHeader", "KRaftVersion", "KRaftVoters", "SnapshotFooter"]


@pytest.mark.parametrize(
    ("batches", "incomplete"),
    [
        ([HEADER, RECORDS, FOOTER], ""),
        ([HEADER, control_batch(1, 1, SNAPSHOT_FOOTER, {"version": 0})], ""),
        ([], "no header at the start, no footer at the end"),
        ([HEADER], "no footer at the end"),
        ([HEADER, RECORDS], "no footer at the end"),
        ([HEADER, RECORDS, FOOTER, no_op_batch(6)], "no footer at the end"),
        ([HEADER, RECORDS, FOOTER, b"\x00" * 20], "no footer at the end, zero_tail at "),
        ([no_op_batch(0), HEADER], "no header at the start, no footer at the end, overlap at "),
        ([HEADER, FOOTER], "gap at "),
        ([HEADER, RECORDS, control_batch(5, 1, KRAFT_VERSION, {"kRaftVersion": 1})], "no footer at the end"),
        ([HEADER, RECORDS, FOOTER[:-1]], "no footer at the end, torn_tail at "),
    ],
)  # fmt: skip
def test_what_is_missing(batches, incomplete):
    snapshot = read_snapshot(log_of(*batches))
    assert snapshot.incomplete.rstrip("0123456789") == incomplete
    assert snapshot.complete == (incomplete == "")


def test_the_time_of_the_newest_batch_in_it():
    assert read_snapshot(log_of(HEADER, RECORDS, FOOTER)).last_contained_log_timestamp == 1234
    assert read_snapshot(b"").last_contained_log_timestamp is None
