"""kraftlake capture: copies of directories that change while they are copied."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobs.captures import copying
from jobs.captures.broker_dirs import UNFINISHED
from jobs.captures.planning import Selection, plan
from jobs.cli import main
from transforms.ingest.captured_files import CaptureCopy

SEGMENT = "00000000000000000408.log"
FIRST = "00000000000000000000.log"


@pytest.fixture
def controller(golden: Path, tmp_path: Path) -> Path:
    """A controller's directory with several segments, as it lies on its disk."""
    path = tmp_path / "controller"
    shutil.copytree(golden / "uncommitted-truncation/after/node-1", path)
    (path / "capture.json").unlink()
    assert (path / "__cluster_metadata-0" / SEGMENT).is_file()
    return path


def captured(controller: Path, to: Path) -> CaptureCopy:
    """Capture it, and what a run would read of that."""
    assert main(["capture", str(controller), "--to", str(to), "--host", "c1.example.org"]) == 0
    planned = plan(Selection((to,)))
    assert planned.left_out == ()
    return planned.captures[0]


def test_a_copy_is_the_same_capture_with_its_time(
    controller: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = captured(controller, tmp_path / "to")
    said = json.loads(capsys.readouterr().out)
    assert copy.capture_id == plan(Selection((controller,))).captures[0].capture_id
    assert copy.captured_at_source == "capture.json"
    assert Path(said["path"]) == copy.directory.path
    assert (said["host"], said["source"], said["tries"]) == ("c1.example.org", str(controller), 1)
    assert copy.directory.path.parent.name == "node-1"
    assert sorted(p.name for p in copy.directory.path.parent.iterdir()) == [copy.directory.path.name]


def test_a_copy_is_on_disk_before_it_is_complete(
    controller: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forced: dict[int, int] = {}
    real, to = os.fsync, tmp_path / "to"

    def force(handle: int) -> None:
        real(handle)
        assert list(to.glob("*/node-1/.copying-*"))
        forced[os.fstat(handle).st_ino] = os.fstat(handle).st_size

    monkeypatch.setattr(os, "fsync", force)
    path = captured(controller, to).directory.path
    files = [file for file in path.rglob("*") if file.is_file()]
    assert forced == {file.stat().st_ino: file.stat().st_size for file in files}


def test_a_copy_that_was_killed_is_no_capture(
    controller: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not of a broker either: one in the same process would have lost all its partitions."""
    to, real = tmp_path / "to", copying.write_capture_json

    def killed(folder: Path, *args: Any, **more: Any) -> Any:
        real(folder, *args, **more)
        raise ChildProcessError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(copying, "write_capture_json", killed)
        patched.setattr(shutil, "rmtree", lambda *_, **__: None)
        assert main(["capture", str(controller), "--to", str(to)]) == 3
    capsys.readouterr()
    (partial,) = to.glob("*/node-1/.copying-*")
    assert (partial / "capture.json").is_file()
    planned = plan(Selection((to, controller)))
    assert planned.broker_dirs == ()
    assert len(planned.captures) == 1
    assert list(map(str, planned.left_out)) == [f"{partial}: {UNFINISHED}"]


def while_copying(
    monkeypatch: pytest.MonkeyPatch, name: str, change: Callable[[Path], None], times: int = 1
) -> None:
    """Let the controller change the log directory after it has been copied up to the named file."""
    real, left = copying.copy, [times]

    def changing(source: Path, folder: Path) -> Path:
        target = real(source, folder)
        if source.name == name and left[0]:
            left[0] -= 1
            change(source.parent)
        return target

    monkeypatch.setattr(copying, "copy", changing)


def test_a_disk_that_is_replaced_meanwhile_is_copied_again(
    controller: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another log under the directory id of the former disk would be one that lost its records."""
    facts = controller / "meta.properties"
    written = facts.read_text()
    new = "".join(f"{line}\n" for line in written.splitlines() if not line.startswith("directory.id="))
    while_copying(
        monkeypatch, SEGMENT, lambda _: facts.write_text(f"{new}directory.id={'B' * 22}\n") and None
    )
    copy = captured(controller, tmp_path / "to")
    assert json.loads(capsys.readouterr().out)["tries"] == 2
    assert copy.directory.meta is not None
    assert copy.directory.meta.directory_id == "B" * 22


def test_appends_leave_a_prefix(controller: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches and segments that come after a file was copied are left to the next capture."""
    before = (controller / "__cluster_metadata-0" / SEGMENT).read_bytes()

    def append(log: Path) -> None:
        with (log / SEGMENT).open("ab") as file:
            file.write(before[:80])
        (log / "00000000000000009999.log").write_bytes(before)

    while_copying(monkeypatch, SEGMENT, append)
    copy = captured(controller, tmp_path / "to")
    assert [s.path.name for s in copy.directory.segments][-1] == SEGMENT
    assert (copy.directory.log_dir / SEGMENT).read_bytes() == before


def truncate(log: Path) -> None:
    """Another leader's log differs: what was there is cut off, other batches take its place."""
    with (log / SEGMENT).open("r+b") as file:
        file.truncate(1000)
        file.seek(0, 2)
        file.write(os.urandom(90_000))


def delete_first(log: Path) -> None:
    (log / FIRST).rename(log / f"{FIRST}.deleted")


@pytest.mark.parametrize("change", [truncate, delete_first])
def test_what_does_not_fit_together_is_copied_anew(
    controller: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    while_copying(monkeypatch, SEGMENT, change)
    copy = captured(controller, tmp_path / "to")
    now = plan(Selection((controller,))).captures[0]
    assert copy.capture_id == now.capture_id
    assert json.loads((copy.directory.path / "capture.json").read_text())["tries"] == 2


def test_a_checkpoint_that_goes_before_it_is_copied(
    controller: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its listing is stale then, and so may be that of the segments."""
    checkpoint = max((controller / "__cluster_metadata-0").glob("*.checkpoint"))
    while_copying(monkeypatch, "meta.properties", lambda _: checkpoint.unlink())
    copy = captured(controller, tmp_path / "to")
    assert checkpoint.name not in {c.path.name for c in copy.directory.checkpoints}
    assert json.loads((copy.directory.path / "capture.json").read_text())["tries"] == 2


EPOCHS = "leader-epoch-checkpoint"


def test_epochs_that_begin_above_the_log(
    controller: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka raises the log's start in the epochs first and deletes the files below it a moment later."""
    epochs = controller / "__cluster_metadata-0" / EPOCHS
    right, raised = epochs.read_text(), "0\n1\n1 600\n"

    def put_right(_: Path) -> None:
        epochs.write_text(right)

    epochs.write_text(raised)
    while_copying(monkeypatch, EPOCHS, put_right)
    copy = captured(controller, tmp_path / "to")
    assert (copy.directory.log_dir / EPOCHS).read_text() == right
    assert json.loads((copy.directory.path / "capture.json").read_text())["tries"] == 2
    epochs.write_text(raised)  # and a controller that stays so is copied as it is
    copy = captured(controller, tmp_path / "again")
    assert (copy.directory.log_dir / EPOCHS).read_text() == raised


def test_a_log_that_never_rests_is_given_up(
    controller: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    while_copying(monkeypatch, SEGMENT, truncate, times=copying.TRIES + 1)
    assert main(["capture", str(controller), "--to", str(tmp_path / "to")]) == 3
    assert f"changed during each of {copying.TRIES} attempts" in capsys.readouterr().err
    assert not [p for p in (tmp_path / "to").rglob("*") if p.is_file()]


def test_one_of_two(controller: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other"
    shutil.copytree(controller, other)
    (other / "meta.properties").unlink()
    assert main(["capture", str(controller), str(other), "--to", str(tmp_path / "to")]) == 1
    assert "meta.properties has no cluster id" in capsys.readouterr().err


@pytest.mark.parametrize("formatted", [False, True])
def test_a_controller_that_lost_its_disk_is_reported(
    controller: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], formatted: bool
) -> None:
    """The others are copied, and the exit code says that one was not."""
    lost = tmp_path / "lost"
    lost.mkdir()
    if formatted:
        shutil.copy(controller / "meta.properties", lost)
    assert main(["capture", str(controller), str(lost), "--to", str(tmp_path / "to")]) == 1
    said = capsys.readouterr()
    assert f"no __cluster_metadata-0 at or below {lost}: give" in said.err
    assert len(said.out.splitlines()) == 1


def test_a_directory_that_is_given_twice_is_copied_once(
    controller: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    below = controller / "__cluster_metadata-0"
    link = tmp_path / "link"
    link.symlink_to(controller)
    words = ["capture", str(controller), str(below), str(link), "--to", str(tmp_path / "to")]
    assert main(words) == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 1
    assert not said.err


@pytest.mark.parametrize(
    ("source", "to", "code", "said"),
    [
        ("nowhere", "to", 2, "nowhere is not a folder"),
        ("controller", "controller/copies", 2, "copies must be outside"),
        ("empty", "to", 3, "no __cluster_metadata-0"),
        ("controller", "controller/meta.properties", 2, "meta.properties is not a folder"),
        ("controller", "file/to", 3, "file/to/iWP35uOsShu1pFlBJh_E7w/node-1"),
    ],
)
def test_wrong_paths(
    controller: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    source: str,
    to: str,
    code: int,
    said: str,
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    assert main(["capture", str(controller.parent / source), "--to", str(tmp_path / to)]) == code
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("cluster_id", "said"),
    [
        ("../../outside", "cluster.id '../../outside' contains a slash"),
        ("..", "its cluster id cannot be a folder name"),
        (".", "its cluster id cannot be a folder name"),
        ("a/b", "cluster.id 'a/b' contains a slash"),
        ("/", "cluster.id '/' contains a slash"),
        ("{absolute}", "contains a slash"),
        (r"a\u0000b", "its cluster id cannot be a folder name"),
        ("n" * 256, "its cluster id cannot be a folder name"),
    ],
)
def test_a_cluster_id_leads_nowhere_else(
    controller: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], cluster_id: str, said: str
) -> None:
    """It becomes a folder's name, and comes from the directory that is copied."""
    named = cluster_id.format(absolute=tmp_path / "outside")
    (controller / "meta.properties").write_text(f"version=1\nnode.id=1\ncluster.id={named}\n")
    assert main(["capture", str(controller), "--to", str(tmp_path / "a/b/to")]) == 3
    assert said in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["controller"]
