"""Facts read from directories on disk."""

from __future__ import annotations

import shutil
from pathlib import Path

from kraft_core.columnar.timestamps import LAST_MS
from kraft_core.evidence.collect import collect
from kraft_core.evidence.conclusions import conclude
from kraft_core.evidence.derive import derive
from kraft_core.evidence.facts import Capture, ClusterFacts
from kraft_core.findings.judge import judge
from kraft_core.format.batch import write_batch
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.format.segment import Damage, scan
from kraft_core.messages.control import LEADER_CHANGE
from tests.kraft_core.batches import NO_OP, control_batch, raw
from tests.kraft_core.evidence.golden import GOLDEN, moment

LOG = "__cluster_metadata-0"


def facts_of(path: Path) -> ClusterFacts:
    (facts,) = collect(find_controller_dirs([path]).directories)
    return facts


def copy_of(name: str, tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN / name, tmp_path / "copy"))


def the_capture(facts: ClusterFacts) -> Capture:
    (capture,) = facts.captures
    return capture


def test_a_directory_as_facts() -> None:
    facts = facts_of(GOLDEN / "uncommitted-truncation/after/node-1")
    capture = the_capture(facts)
    assert (capture.node_id, capture.log_start_offset, capture.log_end_offset) == (1, 0, 507)
    assert [(r.leader_epoch, r.first_offset, r.end_offset) for r in capture.epoch_ranges] == [
        (1, 0, 352),
        (3, 352, 507),
    ]
    assert [(r.first_batch_end, r.first_data_end is not None) for r in capture.epoch_ranges] == [
        (3, True),
        (353, True),
    ]
    assert (capture.quorum_state_epoch, capture.quorum_state_leader_id, capture.voted_id) == (3, 2, -1)
    assert capture.leader_epoch_checkpoint == ((1, 0), (3, 352))
    assert [(r.type, r.offset) for r in facts.control_records] == [
        ("LeaderChange", 0),
        ("KRaftVersion", 1),
        ("KRaftVoters", 2),
        ("KRaftVoters", 25),
        ("KRaftVoters", 28),
        ("LeaderChange", 352),
    ]
    assert [(s.end_offset, s.leader_epoch, s.batch_end, s.metadata_version) for s in facts.snapshots] == [
        (0, 0, None, None),
        (321, 1, 321, 30),
    ]
    assert [level.level for level in facts.feature_levels] == [30]


def test_where_a_segment_was_rolled_makes_no_difference() -> None:
    """Node 1 rolled its log at 408, in the middle of epoch 3; its epoch range equals the other replica."""
    one, other = (the_capture(facts_of(GOLDEN / f"uncommitted-truncation/after/node-{n}")) for n in (1, 2))
    assert one.epoch_ranges == other.epoch_ranges


def test_batches_in_another_order_are_those_of_the_log(tmp_path: Path) -> None:
    """As in a lake: a log of swapped batches ended where its last offset is, not its last batch."""
    directory = "uncommitted-truncation/after/node-1"
    copied = copy_of(directory, tmp_path)
    segment = copied / LOG / "00000000000000000408.log"
    content = segment.read_bytes()
    *rest, one, other = (header for header in scan(content) if not isinstance(header, Damage))
    swapped = content[other.position : other.end] + content[one.position : one.end]
    segment.write_bytes(content[: one.position] + swapped + content[other.end :])
    capture = the_capture(facts_of(copied))
    assert [(r.first_offset, r.end_offset) for r in capture.epoch_ranges] == [
        (0, 352),
        (352, rest[-1].next_offset),
        (one.base_offset, one.next_offset),
        (other.base_offset, other.next_offset),
    ]
    assert (capture.log_end_offset, capture.known_end, capture.is_contiguous) == (507, 507, True)
    # A batch of the middle once more, at the end: the end is no longer known.
    again = content[rest[3].position : rest[3].end]
    segment.write_bytes(content + again)
    capture = the_capture(facts_of(copied))
    assert (capture.log_end_offset, capture.known_end, capture.is_contiguous) == (507, None, False)


def test_a_copy_elsewhere_is_the_same_capture(tmp_path: Path) -> None:
    copied = copy_of("uncommitted-truncation/after/node-1", tmp_path)
    assert facts_of(copied) == facts_of(GOLDEN / "uncommitted-truncation/after/node-1")


def test_a_deleted_segment_is_no_part_of_the_log(tmp_path: Path) -> None:
    copied = copy_of("uncommitted-truncation/after/node-1", tmp_path)
    segment = copied / LOG / "00000000000000000408.log"
    segment.rename(segment.with_name(segment.name + ".deleted"))
    assert the_capture(facts_of(copied)).log_end_offset == 408
    before = moment("uncommitted-truncation/before")
    evidence = derive(ClusterFacts(before.cluster_id, (*before.captures, *facts_of(copied).captures)))
    assert all(row.end_offset <= 408 for row in evidence.log_ranges)


def test_an_unfinished_snapshot_proves_nothing(tmp_path: Path) -> None:
    copied = copy_of("uncommitted-truncation/after/node-1", tmp_path)
    snapshot = copied / LOG / "00000000000000000321-0000000001.checkpoint"
    snapshot.rename(snapshot.with_name("00000000000000000321-0000000001-123.checkpoint.part"))
    (held,) = [s for s in facts_of(copied).snapshots if s.end_offset == 321]
    assert held.unfinished
    assert not held.proves


def test_a_damaged_batch_leaves_a_hole(tmp_path: Path) -> None:
    copied = copy_of("uncommitted-truncation/after/node-1", tmp_path)
    segment = copied / LOG / "00000000000000000000.log"
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 0xFF
    segment.write_bytes(content)
    capture = the_capture(facts_of(copied))
    assert len(capture.epoch_ranges) == 3
    assert capture.epoch_ranges[0].end_offset < capture.epoch_ranges[1].first_offset
    assert not capture.tail_damaged
    assert [epoch_range.first_batch_end for epoch_range in capture.epoch_ranges] == [3, None, 353]


def test_neither_a_torn_tail_nor_a_damaged_one_shows_where_the_log_ended(tmp_path: Path) -> None:
    copied = copy_of("uncommitted-truncation/before/node-1", tmp_path)
    segment = copied / LOG / "00000000000000000000.log"
    content = segment.read_bytes()
    segment.write_bytes(content[:-10])
    torn = the_capture(facts_of(copied))
    assert (torn.log_end_offset, torn.tail_damaged, torn.ends_inside_batch) == (368, False, True)
    assert torn.known_end is None
    segment.write_bytes(content + bytes(1000))
    damaged = the_capture(facts_of(copied))
    assert (damaged.log_end_offset, damaged.tail_damaged, damaged.known_end) == (369, True, None)
    assert not damaged.ends_inside_batch


def test_a_log_without_batches_ends_at_its_snapshot(tmp_path: Path) -> None:
    copied = copy_of("static-upgrade/node-4", tmp_path)
    end = max(s.end_offset for s in facts_of(copied).snapshots)
    for segment in (copied / LOG).glob("*.log"):
        segment.unlink()
    (copied / LOG / f"{end:020}.log").touch()
    capture = the_capture(facts_of(copied))
    assert capture.epoch_ranges == ()
    assert (capture.log_start_offset, capture.log_end_offset, capture.known_end) == (end, end, end)


def test_checkpoints_without_a_segment_show_no_log_end(tmp_path: Path) -> None:
    """A partial copy: a log always has a segment, so its end was not captured."""
    copied = copy_of("static-upgrade/node-4", tmp_path)
    for segment in (copied / LOG).glob("*.log"):
        segment.unlink()
    capture = the_capture(facts_of(copied))
    assert (capture.epoch_ranges, capture.log_start_offset, capture.known_end) == ((), None, None)
    assert capture.log_end_offset == max(s.end_offset for s in facts_of(copied).snapshots)
    assert capture.older_log is not None


def test_directories_of_no_known_cluster_are_left_out(tmp_path: Path) -> None:
    copied = copy_of("uncommitted-truncation/after/node-1", tmp_path)
    (copied / "meta.properties").unlink()
    assert collect(find_controller_dirs([copied]).directories) == []


def test_clusters_do_not_mix() -> None:
    roots = [GOLDEN / "v4.4.0-mini", GOLDEN / "election-storm"]
    found = collect(find_controller_dirs(roots).directories)
    assert [len(facts.captures) for facts in found] == [3, 2]
    assert [facts.cluster_id for facts in found] == sorted(facts.cluster_id for facts in found)


def test_the_caller_may_know_when_all_was_copied() -> None:
    directories = find_controller_dirs([GOLDEN / "v4.4.0-mini"]).directories
    (facts,) = collect(directories, captured_at_ms=7)
    assert {capture.captured_at for capture in facts.captures} == {7}


def test_a_time_beyond_the_year_9999_is_clamped(tmp_path: Path) -> None:
    """As in the tables; a stated time before it is wrong, and every finding and plan can still be written."""
    leader = {"version": 0, "leaderId": 1, "voters": [{"voterId": 1}], "grantingVoters": [{"voterId": 1}]}
    late = raw(1, NO_OP)._replace(timestamp=2**62)
    log = control_batch(0, 1, LEADER_CHANGE, leader) + write_batch(1, 1, [late])
    (tmp_path / LOG).mkdir()
    (tmp_path / LOG / f"{0:020d}.log").write_bytes(log)
    (tmp_path / "meta.properties").write_text("version=1\ncluster.id=c\nnode.id=1\n")
    (facts,) = collect(find_controller_dirs([tmp_path]).directories, 1_760_000_000_000)
    capture = the_capture(facts)
    assert capture.epoch_ranges[-1].last_appended_at == capture.captured_from == LAST_MS
    assert [finding.rule for finding in judge(conclude(facts))] == [48]
