"""Trees behind pyarrow.fs: mirrored with holes, planned as if they were here, filled when they are read."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from jobs.captures.inputs import opened_inputs
from jobs.captures.planning import Selection, plan
from jobs.runtime.outcome import ExitCode, Failure
from kraft_core.format.capture import EDGE_BYTES
from transforms.ingest.inputs import WHOLE_BYTES

LOG = "node-1/__cluster_metadata-0/00000000000000000000.log"


@pytest.fixture
def tree(golden: Path, tmp_path: Path) -> Path:
    """Captures of which one has a segment that is too large to be fetched at once."""
    folder = Path(shutil.copytree(golden / "v4.4.0-mini", tmp_path / "tree"))
    (folder / LOG).write_bytes(os.urandom(3 * WHOLE_BYTES))
    return folder


def test_a_mirror_is_planned_like_the_tree_itself(tree: Path) -> None:
    here = plan(Selection((tree,)))
    with opened_inputs([tree.as_uri()], None) as inputs:
        there = plan(Selection(tuple(inputs.roots)))
        assert there.captures[0].directory.path.is_relative_to(inputs.roots[0])
    assert [(c.capture_id, c.captured_at, c.files) for c in there.captures] == [
        (c.capture_id, c.captured_at, c.files) for c in here.captures
    ]
    assert there.size_bytes > 3 * WHOLE_BYTES


def test_only_what_is_read_is_fetched(tree: Path) -> None:
    whole = (tree / LOG).read_bytes()
    with opened_inputs([tree.as_uri()], None) as inputs:
        mirrored = inputs.roots[0] / LOG
        hollow = mirrored.read_bytes()
        assert len(hollow) == len(whole)
        assert hollow[:EDGE_BYTES] == whole[:EDGE_BYTES]
        assert hollow[-EDGE_BYTES:] == whole[-EDGE_BYTES:]
        assert not any(hollow[EDGE_BYTES:-EDGE_BYTES])
        inputs.fetch([mirrored, inputs.roots[0] / "node-2/meta.properties"])
        assert mirrored.read_bytes() == whole
        assert mirrored.stat().st_mtime_ns == (tree / LOG).stat().st_mtime_ns


def test_a_file_that_changes_meanwhile(tree: Path) -> None:
    """It is mirrored anew, to be planned again; or is gone, or cannot be read."""
    with opened_inputs([tree.as_uri()], None) as inputs:
        mirrored = inputs.roots[0] / LOG
        with (tree / LOG).open("ab") as file:
            file.write(b"more")
        assert inputs.fetch([mirrored]) == {mirrored}
        assert mirrored.stat().st_size == (tree / LOG).stat().st_size
        assert inputs.fetch([mirrored]) == set()
        assert mirrored.read_bytes() == (tree / LOG).read_bytes()
    with opened_inputs([tree.as_uri()], None) as inputs:
        mirrored = inputs.roots[0] / LOG
        (tree / LOG).unlink()
        assert inputs.fetch([mirrored]) == {mirrored}
        assert not mirrored.exists()
        assert inputs.unreadable == {}


def test_an_archive_behind_pyarrow_fs(tree: Path, tmp_path: Path) -> None:
    archive = Path(shutil.make_archive(str(tmp_path / "packed"), "gztar", tree))
    with opened_inputs([archive.as_uri()], None) as inputs:
        found = plan(Selection(tuple(inputs.roots)))
    assert [c.capture_id for c in found.captures] == [c.capture_id for c in plan(Selection((tree,))).captures]


@pytest.mark.parametrize(
    ("name", "said"),
    [("file:///no/such/folder", "does not exist"), ("nofs://bucket/x", "nofs://bucket/x cannot be read: ")],
)
def test_what_cannot_be_read(name: str, said: str) -> None:
    with pytest.raises(Failure, match=said) as refused, opened_inputs([name], None):
        pass
    assert refused.value.exit_code == ExitCode.USAGE


def test_folders_need_no_scratch(tree: Path, tmp_path: Path) -> None:
    with opened_inputs([str(tree)], tmp_path / "nowhere") as inputs:
        assert inputs.roots == [tree]
