"""What cannot be read is never taken for empty, and heals: several nights of one lake."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import tarfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from jobs.captures.inputs import opened_inputs
from jobs.captures.planning import ReadPlan, Selection, plan
from jobs.cli import main
from jobs.runtime.outcome import ExitCode, Failure
from kraft_core.format.log_dirs import LOG_DIR_NAME
from tests.jobs.lakes import content, opened, report, run
from tests.unprivileged import public_folder, unprivileged
from transforms.ingest import inputs as inputs_module
from transforms.ingest.inputs import lay_out
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import CAPTURES, FINDINGS, QUARANTINE

CLUSTER = "iWP35uOsShu1pFlBJh_E7w"
SCENARIO = "uncommitted-truncation/after"
# What an unreadable capture must add nothing to.
EVIDENCE = ("epochs", "voter_sets", "high_watermarks", "log_ranges", "replica_ranges", "records")
NIGHTS = ["2026-11-22T02:00:00Z", "2026-11-23T02:00:00Z", "2026-11-24T02:00:00Z"]


def night(golden: Path, to: Path, number: int, *unreadable: str) -> Path:
    """What was copied in that night: the same bytes each time, the log of some nodes not."""
    for node in sorted((golden / SCENARIO).iterdir()):
        copied = Path(shutil.copytree(node, to / f"{number}" / node.name))
        (copied / "capture.json").write_text(json.dumps({"captured_at": NIGHTS[number]}))
        if node.name in unreadable:
            shutil.rmtree(copied / LOG_DIR_NAME)
            (copied / LOG_DIR_NAME).symlink_to("/nowhere/kafka")  # root may read every folder
    return to / f"{number}"


def open_errors(lake: Path) -> set[tuple[int, str]]:
    rows = rows_with(lake, FINDINGS)
    return {(r["rule"], r["sentence"]) for r in rows if (r["severity"], r["state"]) == ("error", "open")}


def captured(lake: Path) -> dict[tuple[int, bool], tuple[str, str]]:
    """captured_at and last_captured_at by node and whether the log was readable."""
    return {
        (r["node_id"], r["log_readable"]): (_day(r["captured_at"]), _day(r["last_captured_at"]))
        for r in rows_with(lake, CAPTURES)
    }


def _day(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%d")


def test_three_nights(spark: Any, golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Node 3 cannot be read in the second night; in the third it can, its bytes are those of the first."""
    lake, nights = tmp_path / "lake", tmp_path / "nights"
    nights.mkdir()
    night(golden, nights, 0)
    assert run(lake, nights) == ExitCode.FINE
    before = content(opened(spark, lake), CLUSTER)

    night(golden, nights, 1, "node-3")
    capsys.readouterr()
    assert run(lake, nights) == ExitCode.FOUND
    said = capsys.readouterr()
    assert f"unreadable: {nights}/1/node-3/{LOG_DIR_NAME}: No such file or directory" in said.err
    ((rule, sentence),) = open_errors(lake)
    assert rule == 0
    assert sentence.startswith(f"{LOG_DIR_NAME} of 3@")
    assert sentence.endswith("(unreadable: No such file or directory): its content is not known.")
    assert [r["file"] for r in rows_with(lake, QUARANTINE)] == [LOG_DIR_NAME]
    (lost,) = (r for r in rows_with(lake, CAPTURES) if r["log_readable"] is False)
    assert (lost["log_end_offset"], lost["last_leader_epoch"], lost["epoch_ranges"]) == (None, None, [])
    assert captured(lake)[1, True] == captured(lake)[2, True] == ("22", "23")
    assert captured(lake)[3, True] == ("22", "22")
    after = content(opened(spark, lake), CLUSTER)
    for table in ("records", "epochs", "voter_sets", "log_ranges"):
        assert len(after[table]) == len(before[table])

    night(golden, nights, 2)
    assert run(lake, nights) == ExitCode.FINE
    assert open_errors(lake) == set()
    (healed,) = (r for r in rows_with(lake, FINDINGS) if r["sentence"] == sentence)
    assert healed["state"] == "resolved"
    assert rows_with(lake, QUARANTINE) == []
    assert {last for (_, readable), (_, last) in captured(lake).items() if readable} == {"24"}

    at_once = tmp_path / "at once"
    run(at_once, nights)
    assert content(opened(spark, at_once), CLUSTER) == content(opened(spark, lake), CLUSTER)


def test_an_unreadable_log_is_no_evidence(spark: Any, golden: Path, tmp_path: Path) -> None:
    """All that is derived is what the other logs prove alone."""
    unreadable = night(golden, tmp_path, 0, "node-1", "node-3")
    alone = Path(shutil.copytree(unreadable, tmp_path / "alone", symlinks=True))
    for node in ("node-1", "node-3"):
        shutil.rmtree(alone / node)
    assert run(tmp_path / "lake", unreadable) == ExitCode.FOUND
    run(tmp_path / "lake of two", alone)
    shown = content(opened(spark, tmp_path / "lake"), CLUSTER)
    proven = content(opened(spark, tmp_path / "lake of two"), CLUSTER)
    assert {name: shown[name] for name in EVIDENCE} == {name: proven[name] for name in EVIDENCE}
    assert proven["log_ranges"]


def test_the_commonest_mistake(golden: Path) -> None:
    """A user who may not list the log, 0750 as Kafka's packages create it: --dry-run says so."""
    with public_folder() as folder:
        night(golden, folder, 0)
        folders = (folder / "0", *(folder / "0").iterdir())
        for path in folders:
            path.chmod(0o755)
        (folder / "0/node-3" / LOG_DIR_NAME).chmod(0o750)
        (folder / "lakes").mkdir()
        (folder / "lakes").chmod(0o777)  # where the user may create a lake
        code, out, err = unprivileged(lambda: _dry_run(folder))
        assert code == ExitCode.FOUND
        assert f"unreadable: {folder}/0/node-3/{LOG_DIR_NAME}: Permission denied" in err
        (line,) = (line for line in out.splitlines() if "node 3" in line)
        assert "0 files, 0 bytes, log not readable" in line
        for node in ("node-1", "node-2", "node-4"):
            shutil.rmtree(folder / "0" / node)
        code, out, err = unprivileged(lambda: _dry_run(folder))
        assert code == ExitCode.NOTHING_READABLE
        assert "Permission denied" in err


@pytest.mark.long
def test_a_folder_that_cannot_be_listed_makes_every_run_fail(
    spark: Any, golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of which cluster its captures are is not known: no table can hold them. Once it can be listed, they
    are loaded as if they always could.
    """
    lake, captures = tmp_path / "lake", night(golden, tmp_path, 0)
    hidden = captures / "hidden"
    hidden.symlink_to("n" * 300)  # root may list every folder, but not one whose name is too long
    whole = tmp_path / "whole"
    shutil.move(captures / "node-3", whole)
    for expected in ("captures_read", "nothing new"):
        capsys.readouterr()
        assert run(lake, captures) == ExitCode.FOUND
        said = capsys.readouterr()
        assert expected in said.out
        assert f"left out: {hidden}: File name too long" in said.err
        assert "run: 1 path left out could not be read: what it holds is not loaded until" in said.err
        assert (report(said.out)["unreadable"], report(said.out)["exit_code"]) == (1, 1)
    assert open_errors(lake) == set()
    assert run(lake, captures, verb="ingest") == ExitCode.FOUND
    capsys.readouterr()
    assert main(["validate", "--lake", str(lake)]) == ExitCode.FOUND
    assert "runs.newest_run_read_every_path" in capsys.readouterr().out

    hidden.unlink()
    shutil.move(whole, hidden)
    assert run(lake, captures, flags=("--validate", "--now", NIGHTS[0])) == ExitCode.FINE
    assert report(capsys.readouterr().out)["unreadable"] == 0
    at_once = tmp_path / "at once"
    assert run(at_once, captures) == ExitCode.FINE
    now, then = (content(opened(spark, path), CLUSTER) for path in (lake, at_once))
    assert now.pop("expectation_results")
    assert then.pop("expectation_results") == []
    assert now == then


def unlisted(captures: Path) -> str:
    (captures / "node-3").chmod(0o700)
    return "node-3: Permission denied"


def unidentified(captures: Path) -> str:
    (captures / "node-3/meta.properties").chmod(0o600)
    return "no cluster id and no node id in meta.properties (Permission denied)"


def closed_output(captures: Path) -> str:
    output = captures / "1795252524497.txt"
    output.write_text("ClusterId: x")
    output.chmod(0o600)
    return f"{output}: Permission denied"


def closed_copy_of_a_broker(captures: Path) -> str:
    broker = captures / "broker-11"
    (broker / "t-0").mkdir(parents=True)
    (broker / "capture.json").write_text(json.dumps({"captured_at": NIGHTS[0]}))
    properties = f"version=1\ncluster.id={CLUSTER}\nnode.id=11\ndirectory.id=EEEEEEEEEEEEEEEEEEEEEE\n"
    (broker / "meta.properties").write_text(properties)
    (broker / "t-0/partition.metadata").write_text("version: 0\n")
    (broker / "t-0/partition.metadata").chmod(0o600)
    return "t-0/partition.metadata cannot be read: Permission denied"


@pytest.mark.parametrize("close", [unlisted, unidentified, closed_output, closed_copy_of_a_broker])
def test_what_may_not_be_read(golden: Path, close: Callable[[Path], str]) -> None:
    """By permissions; lost+found at the root of a disk is no captures that anybody put there."""
    with public_folder() as folder:
        captures = night(golden, folder, 0)
        (captures / "lost+found").mkdir(mode=0o700)
        (folder / "lakes").mkdir()
        (folder / "lakes").chmod(0o777)
        code, _, err = unprivileged(lambda: _dry_run(folder))
        assert (code, err) == (ExitCode.FINE, f"left out: {captures}/lost+found: Permission denied\n")
        said = close(captures)
        code, _, err = unprivileged(lambda: _dry_run(folder))
        assert code == ExitCode.FOUND
        assert said in err
        assert "run: 1 path left out could not be read" in err


def test_a_damaged_archive_among_captures(
    golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = tmp_path / "night.tar.gz"
    archive.write_bytes(b"not an archive")
    words = ["run", "--lake", str(tmp_path / "lake"), "--dry-run", "--captures", str(archive)]
    assert main([*words, str(golden / SCENARIO)]) == ExitCode.FOUND
    assert f"left out: {archive}: damaged" in capsys.readouterr().err


def _dry_run(folder: Path) -> tuple[int, str, str]:
    return _main("run", "--lake", str(folder / "lakes" / "lake"), "--captures", str(folder), "--dry-run")


def _main(*arguments: str) -> tuple[int, str, str]:
    """Exit code, output and error output of a command."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(arguments))
    return code, out.getvalue(), err.getvalue()


@pytest.mark.parametrize("missing", [LOG_DIR_NAME, f"{LOG_DIR_NAME}/00000000000000000000.log"])
def test_a_member_that_an_archive_lacks(golden: Path, tmp_path: Path, missing: str) -> None:
    """tar stores a link for a mounted log, and for a second name of a file, as cp -al makes them."""
    archive = tmp_path / "packed.tar"
    with tarfile.open(archive, "w") as tar:
        for node in sorted((golden / SCENARIO).iterdir()):
            for path in sorted(p for p in node.rglob("*") if p.is_file()):
                name = str(path.relative_to(node))
                if node.name != "node-3" or not name.startswith(missing):
                    tar.add(path, f"{node.name}/{name}")
        link = tarfile.TarInfo(f"node-3/{missing}")
        link.type, link.linkname = tarfile.SYMTYPE, "/mnt/disk"
        tar.addfile(link)
    with opened_inputs([str(archive)], None) as inputs:
        found = plan(Selection(tuple(inputs.roots), unreadable=inputs.unreadable))
        said = [inputs.named(line) for line in found.faults]
    readable = {copy.who.node_id: copy.directory.log_readable for copy in found.captures}
    assert readable == {1: True, 2: True, 3: False, 4: True}
    assert said == [f"unreadable: {archive}/node-3/{missing}: not a regular file in its archive"]


def test_an_object_that_cannot_be_fetched(
    golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = Path(shutil.copytree(golden / SCENARIO, tmp_path / "tree"))
    gone = tree / "node-3" / LOG_DIR_NAME / "00000000000000000000.log"
    found, name = _planned_without(tree, gone, monkeypatch)
    (said,) = map(name, found.faults)
    assert said.startswith(f"unreadable: {tree.as_uri()}/node-3/{LOG_DIR_NAME}/{gone.name}: ")
    assert {c.who.node_id: c.directory.log_readable for c in found.captures}[3] is False
    assert found.unreadable == 0


@pytest.mark.parametrize(
    "lost",
    ["quorum/1795253608171-status.txt", "broker/t-0/leader-epoch-checkpoint", "broker/capture.json"],
)
def test_an_object_beside_the_controllers_that_cannot_be_fetched(
    golden: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    """No partition's log is taken for one without messages."""
    tree = Path(shutil.copytree(golden / SCENARIO, tmp_path / "tree"))
    (tree / "quorum").mkdir()
    described = next((golden / "election-storm/quorum").glob("*-status-*.txt"))
    shutil.copy(described, tree / "quorum/1795253608171-status.txt")
    (tree / "broker/t-0").mkdir(parents=True)
    (tree / "broker/meta.properties").write_text(f"version=1\nnode.id=11\ncluster.id={CLUSTER}\n")
    (tree / "broker/capture.json").write_text(json.dumps({"captured_at": NIGHTS[0]}))
    (tree / "broker/t-0/partition.metadata").write_text(f"version: 0\ntopic_id: {'t' * 21}A")
    (tree / "broker/t-0/leader-epoch-checkpoint").write_text("0\n1\n3 0\n")
    whole = plan(Selection((tree,)))
    assert (len(whole.described), len(whole.broker_dirs), whole.unreadable) == (1, 1, 0)
    found, name = _planned_without(tree, tree / lost, monkeypatch)
    (said,) = (name(str(each)) for each in found.left_out if each.is_unreadable)
    assert said.startswith(f"{tree.as_uri()}/{lost}: ")
    assert found.unreadable == 1
    assert len(found.described) == int("broker" in lost)
    assert len(found.broker_dirs) == int("broker" not in lost)


def _planned_without(
    tree: Path, gone: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[ReadPlan, Callable[[str], str]]:
    """The plan of a remote tree whose file goes between the listing and the reading, and what names it."""

    def fetched(path: Path, files: Any, info: Any) -> None:
        gone.unlink(missing_ok=True)
        lay_out(path, files, info)

    monkeypatch.setattr(inputs_module, "lay_out", fetched)
    with opened_inputs([tree.as_uri()], None) as inputs:
        selection = Selection(tuple(inputs.roots), unreadable=inputs.unreadable)
        return plan(selection, inputs.left_out), inputs.named


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "Expecting property name"),
        ('{"captured_at": "1970-01-01T00:00:00Z"}', "is not a time at which KRaft existed"),
        ('{"captured_at": "2026-13-01T00:00:00Z"}', "is not an ISO 8601 time"),
    ],
)
def test_a_capture_json_that_says_nothing(
    golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str, reason: str
) -> None:
    """run and plan name it; the time of the capture is not known then."""
    nodes = night(golden, tmp_path, 0)
    (nodes / "node-3/capture.json").write_text(content)
    arguments = ["--captures", str(nodes)]
    assert main(["run", "--lake", str(tmp_path / "lake"), *arguments, "--dry-run"]) == ExitCode.FINE
    said = capsys.readouterr()
    assert f"invalid: {nodes}/node-3/capture.json: " in said.err
    assert reason in said.err
    (line,) = (line for line in said.out.splitlines() if "node 3" in line)
    assert "(file_time)" in line
    main(["plan", "lose", "4", *arguments])
    assert reason in capsys.readouterr().out


def test_no_copy_is_made_of_what_cannot_be_read(golden: Path) -> None:
    """Else the copy of an unreadable log would be an empty one."""
    with public_folder() as folder:
        source = night(golden, folder, 0) / "node-3"
        for path in (folder / "0", source):
            path.chmod(0o755)
        to = folder / "to"
        to.mkdir(mode=0o777)
        to.chmod(0o777)
        for mode in (0o750, 0o711):
            (source / LOG_DIR_NAME).chmod(mode)
            code, _, err = unprivileged(lambda: _main("capture", str(source), "--to", str(to)))
            assert code == ExitCode.NOTHING_READABLE
            assert f"{LOG_DIR_NAME}: Permission denied" in err
        assert list(to.iterdir()) == []


def test_nothing_but_unreadable_logs(golden: Path, tmp_path: Path) -> None:
    nodes = night(golden, tmp_path, 0, "node-1", "node-2", "node-3", "node-4")
    with pytest.raises(Failure) as refused:
        plan(Selection((nodes,)))
    assert refused.value.exit_code == ExitCode.NOTHING_READABLE
