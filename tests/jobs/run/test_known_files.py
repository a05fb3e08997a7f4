"""What of captured files is not read again: unchanged ones, and grown ones up to where they ended."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from jobs.captures.ingest import read_files
from jobs.captures.planning import Selection, plan
from jobs.runtime.progress import Progress
from jobs.runtime.run_record import RunRecord
from kraft_core.format.batch import BatchHeader
from kraft_core.format.log_dirs import LOG_DIR_NAME
from kraft_core.format.mapped_file import mapped
from kraft_core.format.segment import scan
from tests.jobs.lakes import versions
from tests.kraft_core.batches import no_op_batch
from transforms.ingest.capture_rows import segment_rows
from transforms.ingest.captured_files import CapturedSegment, checkpoints_of, segments_of
from transforms.ingest.known_files import known_checkpoints, select_files, with_known
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import CAPTURES

NODE = "dynamic-membership/node-2"


def segments(*paths: Path) -> list[CapturedSegment]:
    return segments_of(plan(Selection(paths)).captures)


def active(folder: Path) -> Path:
    """The segment that the replica was appending to."""
    return max((folder / LOG_DIR_NAME).glob("*.log"))


@pytest.fixture
def copy(golden: Path, tmp_path: Path) -> Path:
    """A copy of a captured directory that the lake knows."""
    return Path(shutil.copytree(golden / NODE, tmp_path / "node-2"))


def newest(lake: Any, copy: Path) -> CapturedSegment:
    return max(with_known(lake.path, segments(copy)), key=lambda s: s.file.base_offset)


def test_known_captures_are_not_opened(lake: Any, golden_captures: list[Path]) -> None:
    found = with_known(lake.path, segments(*golden_captures))
    assert len(found) > 55
    assert {s.size_bytes for s in found} == {0}


def test_a_grown_segment_is_read_from_where_it_ended(lake: Any, copy: Path) -> None:
    before = newest(lake, copy)
    size, end_offset = before.file.size_bytes, before.known.ranges[-1].end_offset
    added = no_op_batch(end_offset, epoch=99)
    with active(copy).open("ab") as file:
        file.write(added)
    grown = newest(lake, copy)
    assert (grown.known, grown.size_bytes) == (before.known, len(added))
    assert grown.row() == {
        "path": str(active(copy)),
        "start": size,
        "first_offset": end_offset,
        "size_bytes": size + len(added),
    }


def last_batch(path: Path) -> BatchHeader:
    with mapped(path) as buf:
        return [item for item in scan(buf) if isinstance(item, BatchHeader)][-1]


def test_a_truncated_segment_is_read_whole(lake: Any, copy: Path) -> None:
    cut = last_batch(active(copy)).position
    active(copy).write_bytes(active(copy).read_bytes()[:cut])
    assert newest(lake, copy).size_bytes == cut > 0


def test_a_segment_that_was_truncated_and_grew_longer_is_read_whole(lake: Any, copy: Path) -> None:
    lost = last_batch(active(copy))
    other = b"".join(no_op_batch(lost.base_offset + n, epoch=lost.leader_epoch + 1) for n in range(20))
    active(copy).write_bytes(active(copy).read_bytes()[: lost.position] + other)
    assert newest(lake, copy).size_bytes == lost.position + len(other) > lost.end


def test_of_another_replica_nothing_is_known(lake: Any, copy: Path) -> None:
    meta = copy / "meta.properties"
    meta.write_text(meta.read_text().replace("node.id=2", "node.id=7"))
    assert all(s.size_bytes == s.file.size_bytes for s in with_known(lake.path, segments(copy)))


def test_a_segment_that_lost_something_is_not_known(lake: Any, copy: Path) -> None:
    read = [(s, list(s.known.ranges)) for s in with_known(lake.path, segments(copy))]
    whole = segment_rows(read, damaged=set())
    assert all(row["epoch_ranges"] and row["bytes_read"] == row["size_bytes"] for row in whole)
    lost_value = segment_rows(read, damaged={(0, read[0][0].name)})
    assert [row["epoch_ranges"] for row in lost_value] == [None, *(row["epoch_ranges"] for row in whole[1:])]
    lost_bytes = segment_rows([(s, ranges[:-1]) for s, ranges in read], damaged=set())
    assert {row["epoch_ranges"] for row in lost_bytes} == {None}


def test_known_checkpoints_are_not_opened(lake: Any, copy: Path) -> None:
    checkpoints = checkpoints_of(plan(Selection((copy,))).captures)
    known = known_checkpoints(lake.path, checkpoints)
    assert sorted(known) == list(range(len(checkpoints)))
    assert all(row["complete"] and len(row["content_digest"]) == 64 for row in known.values())
    torn = max((copy / LOG_DIR_NAME).glob("*.checkpoint"))
    torn.write_bytes(torn.read_bytes()[:-1])
    checkpoints = checkpoints_of(plan(Selection((copy,))).captures)
    opened = [c for n, c in enumerate(checkpoints) if n not in known_checkpoints(lake.path, checkpoints)]
    assert [c.path for c in opened] == [torn]


def test_where_only_the_vote_is_new_no_file_is_opened(lake: Any, copy: Path) -> None:
    (known,) = rows_with(lake.path, CAPTURES, capture_id=[newest(lake, copy).capture.capture_id])
    state = copy / LOG_DIR_NAME / "quorum-state"
    state.write_text(json.dumps(json.loads(state.read_text()) | {"leaderEpoch": 1000}))
    before = versions(lake)
    (capture,) = plan(Selection((copy,))).captures
    assert capture.capture_id != known["capture_id"]
    files = select_files(lake.path, [capture])
    captures, _, counts = read_files(lake, files, RunRecord("run", Progress()))
    assert (counts["files"], counts["bytes"]) == (0, 0)
    (row,) = captures
    of_log = (
        "epoch_ranges",
        "batches",
        "snapshots",
        "damage",
        "kraft_version",
        "log_end_offset",
        "last_leader_epoch",
    )
    assert {name: row[name] for name in of_log} == {name: known[name] for name in of_log}
    assert row["quorum_state"]["leader_epoch"] == 1000
    assert versions(lake) == before


def test_a_verifying_run_opens_everything(lake: Any, golden: Path) -> None:
    copies = plan(Selection((golden / NODE,))).captures
    assert select_files(lake.path, copies).paths == []
    every = {f.path for c in copies for f in (*c.directory.segments, *c.directory.checkpoints)}
    assert every < set(select_files(lake.path, copies, verify=True).paths)
