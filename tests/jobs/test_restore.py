"""kraftlake restore as a user calls it: plan, apply and verify; nothing is written that was not planned."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.image.brokers import Broker
from kraft_core.image.tables import BROKERS
from kraft_core.restore.replay import replayed

WHOLE = "uncommitted-truncation/after"
VOTERS = ("--voters", "21@ctl-1:9093", "22@ctl-2:9093")


def _plan(captures: Path, out: Path, *words: str) -> tuple[int, dict[str, Any]]:
    code = main(["restore", "plan", "--captures", str(captures), *VOTERS, *words, "--out", str(out)])
    return code, json.loads(out.read_text())


@pytest.fixture
def captures(golden: Path, tmp_path: Path) -> Path:
    return shutil.copytree(golden / WHOLE, tmp_path / "captures")


@pytest.fixture
def safe(captures: Path, tmp_path: Path) -> Path:
    plan = tmp_path / "plan.json"
    assert _plan(captures, plan, "--controllers-stopped")[0] == 0
    return plan


def test_plan_apply_verify(capsys: pytest.CaptureFixture[str], safe: Path, tmp_path: Path) -> None:
    out = capsys.readouterr().out
    assert out.startswith("SAFE: cluster iWP35uOsShu1pFlBJh_E7w")
    assert "controller.quorum.bootstrap.servers=ctl-1:9093,ctl-2:9093" in out
    assert f"kraftlake restore apply {safe} --to NEWDIR\n" in out
    assert "add controllers: format each with --no-initial-controllers" in out
    target = tmp_path / "new"
    assert main(["restore", "apply", str(safe), "--to", str(target)]) == 0
    assert main(["restore", "verify", str(target), "--against", str(safe)]) == 0
    assert json.loads((target / "restore.json").read_text()) == json.loads(safe.read_text())
    again = tmp_path / "again"
    assert main(["restore", "apply", str(safe), "--to", str(again)]) == 0
    written = [
        {p.relative_to(f): p.read_bytes() for p in f.rglob("*") if p.is_file()} for f in (target, again)
    ]
    assert written[0] == written[1]
    found = find_controller_dirs([target]).directories
    assert [d.meta and (d.meta.node_id, d.meta.cluster_id) for d in found] == [
        (21, "iWP35uOsShu1pFlBJh_E7w"),
        (22, "iWP35uOsShu1pFlBJh_E7w"),
    ]


def test_how_far_each_copy_reaches_is_shown(
    golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No file says whether a copy is the disk as it was left, or a backup: whoever states it can see it."""
    shutil.copytree(golden / "uncommitted-truncation/before/node-1", tmp_path / "one/node-1")
    shutil.copytree(golden / WHOLE / "node-2", tmp_path / "two/node-2")
    stated = ("--gone", "3", "--controllers-stopped", "--brokers-stopped")
    _, plan = _plan(tmp_path, tmp_path / "plan.json", *stated)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  voter ")]
    assert [copy["end_offset"] for copy in plan["voters_captured"]] == [369, 507]
    assert lines[0].endswith("s before the newest: is this a backup?")
    assert lines[1].endswith("up to offset 507 (exclusive), last record at 2026-11-21T09:16:07.535Z")


def test_never_over_anything(safe: Path, captures: Path, tmp_path: Path) -> None:
    target = tmp_path / "new"
    target.mkdir()
    before = {p: p.read_bytes() for p in captures.rglob("*") if p.is_file()}
    for place in (target, captures / "new", captures / "node-1/new", tmp_path / "nowhere/new"):
        assert main(["restore", "apply", str(safe), "--to", str(place)]) == 2
    assert list(target.iterdir()) == []
    assert {p: p.read_bytes() for p in captures.rglob("*") if p.is_file()} == before
    assert main(["restore", "plan", "--captures", str(captures), *VOTERS, "--out", str(safe)]) == 2


def test_a_loss_must_be_repeated_by_name(
    captures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for node in (1, 2, 4):
        shutil.rmtree(captures / f"node-{node}")
    plan, target = tmp_path / "plan.json", tmp_path / "new"
    stated = ("--gone", "1", "2", "--controllers-stopped", "--brokers-stopped")
    code, made = _plan(captures, plan, *stated)
    assert (code, made["verdict"]) == (1, "LOSES")
    assert [loss["name"] for loss in made["losses"]] == ["unseen-records"]
    assert " may lead. Of voters {" in made["losses"][0]["sentence"]
    for node in (1, 2):
        assert made["losses"][0]["sentence"].count(f"Node {node}@") == 1
    apply = ["restore", "apply", str(plan), "--to", str(target)]
    assert main(apply) == 1
    assert "--accept-loss unseen-records" in capsys.readouterr().err
    assert main([*apply, "--accept-loss", "everything"]) == 2
    assert not target.exists()
    assert main([*apply, "--accept-loss", "unseen-records"]) == 0


def test_a_refused_plan_writes_nothing(captures: Path, tmp_path: Path) -> None:
    shutil.rmtree(captures / "node-1")
    shutil.rmtree(captures / "node-2")
    plan = tmp_path / "plan.json"
    code, made = _plan(captures, plan, "--controllers-stopped")
    assert (code, made["verdict"], made["restored"]) == (1, "REFUSED", None)
    assert main(["restore", "apply", str(plan), "--to", str(tmp_path / "new")]) == 1
    made["verdict"], made["refusals"] = "SAFE", []
    plan.write_text(json.dumps(made))
    assert main(["restore", "apply", str(plan), "--to", str(tmp_path / "new")]) == 1
    assert not (tmp_path / "new").exists()


def test_a_rehearsal_leaves_nothing(
    captures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    rehearse = ["restore", "rehearse", "--captures", str(captures)]
    assert main(rehearse) == 0
    out = capsys.readouterr().out
    restorable = "restorable as of 2026-11-21T09:16:07.934Z, up to offset 507 (exclusive): "
    assert out.startswith(
        f"{restorable}would lose no offset that was seen; 1 loss to accept: after-captures\n"
    )
    assert "LOSES: cluster iWP35uOsShu1pFlBJh_E7w, as of 2026-11-21T09:16" in out
    assert "may be lost: after-captures" in out
    assert "unseen-records" not in out
    for node in (1, 2):
        shutil.rmtree(captures / f"node-{node}")
    metrics = tmp_path / "restore.prom"
    assert main([*rehearse, "--format", "json", "--metrics", str(metrics)]) == 0
    written = metrics.read_text()
    of_cluster = 'cluster="iWP35uOsShu1pFlBJh_E7w",cluster_id="iWP35uOsShu1pFlBJh_E7w"'
    for line in (
        f"kraftlake_restorable{{{of_cluster}}} 1",
        f"kraftlake_restorable_end_offset{{{of_cluster}}} 507",
        f"kraftlake_restorable_lost_offsets{{{of_cluster}}} 0",
        f'kraftlake_restore_loss{{{of_cluster},loss="unseen-records"}} 1',
    ):
        assert f"{line}\n" in written
    made = json.loads(capsys.readouterr().out)
    assert [loss["name"] for loss in made["losses"]] == ["unseen-records", "after-captures"]
    segment = captures / "node-3/__cluster_metadata-0/00000000000000000000.log"
    segment.write_bytes(b"x" + segment.read_bytes())
    assert main([*rehearse, "--metrics", str(metrics)]) == 1
    assert capsys.readouterr().out.startswith("not restorable from these captures\n")
    assert f"kraftlake_restorable{{{of_cluster}}} 0" in metrics.read_text()
    assert "kraftlake_restorable_end_offset" not in metrics.read_text()
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_rehearsal_that_is_terminated_leaves_nothing(captures: Path, tmp_path: Path) -> None:
    """As by a timeout of the scheduler: the secrets of the cluster stayed in the folder of scratch files."""
    program = (
        "import os, signal, sys\n"
        "import jobs.restore_rehearsal as rehearsal\n"
        "rehearsal.check_written = lambda *_: os.kill(os.getpid(), signal.SIGTERM)\n"
        "from jobs.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    words = ["restore", "rehearse", "--captures", str(captures)]
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        check=False,
        capture_output=True,
        env={**os.environ, "TMPDIR": str(scratch)},
    )
    assert done.returncode == 130, done.stderr
    assert list(scratch.iterdir()) == []


def test_captures_that_changed_are_planned_again(safe: Path, captures: Path, tmp_path: Path) -> None:
    segment = captures / "node-1/__cluster_metadata-0/00000000000000000408.log"
    content = segment.read_bytes()
    segment.write_bytes(content[:-1])
    assert main(["restore", "apply", str(safe), "--to", str(tmp_path / "new")]) == 1
    segment.write_bytes(content)
    assert main(["restore", "apply", str(safe), "--to", str(tmp_path / "new")]) == 0


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every value below one of JSON, by its keys and indexes."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in items:
        yield (*path, key)
        yield from _places(below, (*path, key))


def test_no_plan_that_was_edited_is_applied(
    safe: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every value of it replaced by others: it ends with what is wrong, and nothing is written anywhere."""
    content = safe.read_text()
    plan = json.loads(content)
    # Where the captures make it SAFE, that brokers are stopped changes nothing.
    kept = ("captures", "brokers_stopped")
    places = [place for place in _places(plan["inputs"], ("inputs",)) if place[1] not in kept]
    assert len(places) > 20
    before = sorted(tmp_path.rglob("*"))
    for place in places:
        for value in (None, "../../x", -1, True, [], {}, [[1]], 1 << 70):
            edited = json.loads(content)
            held = edited
            for key in place[:-1]:
                held = held[key]
            if held[place[-1]] == value and type(held[place[-1]]) is type(value):
                continue
            held[place[-1]] = value
            safe.write_text(json.dumps(edited))
            code = main(["restore", "apply", str(safe), "--to", str(tmp_path / "new")])
            assert code in (1, 2), (place, value)
            assert "internal error" not in capsys.readouterr().err, (place, value)
    safe.write_text(content)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_plan_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["restore", "verify", str(tmp_path), "--against", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.endswith("/none cannot be read: No such file or directory\n")


def test_verify_sees_every_changed_byte(safe: Path, tmp_path: Path) -> None:
    target = tmp_path / "new"
    assert main(["restore", "apply", str(safe), "--to", str(target)]) == 0
    verify = ["restore", "verify", str(target), "--against", str(safe)]
    for file in sorted((target / "node-21").rglob("*")):
        if not file.is_file():
            continue
        content = file.read_bytes()
        for at in range(0, len(content), max(1, len(content) // 7)):
            file.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
            assert main(verify) == 1, (file, at)
        file.write_bytes(content)
        file.chmod(0o644)
        assert main(verify) == 1
        file.chmod(0o600)
    assert main(verify) == 0


@pytest.mark.parametrize(
    "name", ["bootstrap.checkpoint", "__cluster_metadata-0/quorum-state", "__cluster_metadata-0/link"]
)
def test_verify_sees_what_was_not_planned(
    safe: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kafka would read it: an empty quorum-state was as planned, and a dead link an internal error."""
    target = tmp_path / "new"
    assert main(["restore", "apply", str(safe), "--to", str(target)]) == 0
    file = target / "node-22" / name
    file.symlink_to("nowhere") if name.endswith("link") else file.touch(0o600)
    assert main(["restore", "verify", str(target), "--against", str(safe)]) == 1
    assert f"{file} is not planned" in capsys.readouterr().err


def test_verify_follows_no_link(safe: Path, tmp_path: Path) -> None:
    """A copy of it may be a link to what is not there."""
    target = tmp_path / "new"
    assert main(["restore", "apply", str(safe), "--to", str(target)]) == 0
    meta = target / "node-21/meta.properties"
    meta.rename(tmp_path / "meta.properties")
    meta.symlink_to(tmp_path / "meta.properties")
    assert main(["restore", "verify", str(target), "--against", str(safe)]) == 1


def test_a_kafka_that_is_none_vouches_for_nothing(safe: Path, tmp_path: Path) -> None:
    target = tmp_path / "new"
    assert main(["restore", "apply", str(safe), "--to", str(target)]) == 0
    words = ["restore", "verify", str(target), "--against", str(safe), "--kafka", str(tmp_path)]
    assert main(words) == 2


def test_unreadable_and_nameless_captures_refuse(captures: Path, tmp_path: Path) -> None:
    (captures / "node-4/meta.properties").unlink()
    code, made = _plan(captures, tmp_path / "plan.json", "--controllers-stopped")
    assert (code, made["verdict"]) == (1, "REFUSED")
    assert any("no cluster id and no node id" in refusal for refusal in made["refusals"])


@pytest.mark.parametrize(
    "voters", [("1@h",), ("x@h:1",), ("1@h:1", "1@g:2"), ("1@h:1", "2@h:1"), ("1@h:99999",)]
)
def test_voters_need_ids_and_addresses_of_their_own(captures: Path, voters: tuple[str, ...]) -> None:
    words = ["restore", "plan", "--captures", str(captures), "--voters", *voters]
    assert subprocess.run([sys.executable, "-m", "jobs.cli", *words], check=False).returncode == 2


def test_secrets_reach_no_plan_and_no_output(golden: Path, tmp_path: Path) -> None:
    """What the captures of a cluster with a SCRAM user, ACLs and password configs hold stays in the bytes."""
    plan = tmp_path / "plan.json"
    words = [
        sys.executable,
        "-m",
        "jobs.cli",
        "restore",
        "plan",
        "--captures",
        str(golden / "dynamic-membership"),
    ]
    stated = ["--controllers-stopped", "--brokers-stopped", "--out", str(plan)]
    done = subprocess.run([*words, *VOTERS, *stated], capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    made = json.loads(plan.read_text())
    assert [loss["name"] for loss in made["losses"]] == ["forgotten-by-kafka", "no-sure-replica"]
    shown = done.stdout + done.stderr + plan.read_text()
    assert not any(word in shown for word in ("golden-secret", "salt", "storedKey", "password="))


@pytest.mark.long
def test_a_killed_apply_leaves_no_directory(safe: Path, tmp_path: Path) -> None:
    """Killed at moments spread over its work, it leaves nothing that a search finds; again it works."""
    target, home = tmp_path / "out/new", tmp_path / "out"
    home.mkdir()
    program = (
        "import os, sys\n"
        "import kraft_core.restore.directories as written\n"
        "left = int(sys.argv.pop(1))\n"
        "def dying(call):\n"
        "    def made(*words, **named):\n"
        "        global left\n"
        "        left -= 1\n"
        "        if left < 0: os.kill(os.getpid(), 9)\n"
        "        return call(*words, **named)\n"
        "    return made\n"
        "for name in ('_make_dir', '_write_file', '_sync_dir', 'check_written'):\n"
        "    setattr(written, name, dying(getattr(written, name)))\n"
        "from jobs.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    words = ["restore", "apply", str(safe), "--to", str(target)]
    for left in range(0, 20, 2):
        done = subprocess.run(
            [sys.executable, "-c", program, str(left), *words], check=False, capture_output=True
        )
        assert done.returncode == -9, (left, done.stderr)
        assert not target.exists()
        for directory in find_controller_dirs([home]).directories:
            # Only what was compared with the plan, under a hidden name, bears the name of a log directory.
            assert ".new.unfinished-" in str(directory.path)
            assert len(directory.checkpoints) == 1
    assert main(words) == 0


def test_an_earlier_moment_names_what_it_undoes(
    captures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan, target = tmp_path / "plan.json", tmp_path / "new"
    stated = ("--controllers-stopped", "--brokers-stopped")
    code, made = _plan(captures, plan, *stated, "--at", "2026-11-21T09:15:05Z")
    out = capsys.readouterr().out
    assert (code, made["verdict"]) == (1, "LOSES")
    assert "as it was at 2026-11-21T09:15:04.988Z, epoch 1, up to offset 268 (exclusive)" in out
    assert "stray on broker 11, or deleted if it is running: after-truncation-0, " in out
    names = ["topics-unknown", "rights-missing", "settings-return"]
    assert [loss["name"] for loss in made["losses"]] == names
    assert {each["loss"] for each in made["restored"]["differences"]} == set(names)
    apply = ["restore", "apply", str(plan), "--to", str(target), "--accept-loss"]
    assert main([*apply, *names[1:]]) == 1
    assert main([*apply, *names]) == 0
    assert main(["restore", "verify", str(target), "--against", str(plan)]) == 0
    code, again = _plan(captures, tmp_path / "end.json", "--controllers-stopped", "--at", "end")
    assert (code, again["verdict"], again["restored"]["differences"]) == (0, "SAFE", [])
    words = ["restore", "plan", "--captures", str(captures), *VOTERS, "--at"]
    assert main([*words, "252"]) == 1
    assert "refused: The restored metadata may be older" in capsys.readouterr().out
    assert main([*words, "yesterday"]) == 2


def test_what_brokers_know_is_part_of_the_plan(captures: Path, tmp_path: Path) -> None:
    """A topic that no capture knows; apply reads the brokers' directories again."""
    log_dir = tmp_path / "broker"
    folder = log_dir / "newer-0"
    folder.mkdir(parents=True)
    (log_dir / "meta.properties").write_text("version=1\nnode.id=11\ncluster.id=iWP35uOsShu1pFlBJh_E7w\n")
    (folder / "partition.metadata").write_text("version: 0\ntopic_id: b0mw1Ru2SU-5jEzTbqgRFA")
    stated = ("--controllers-stopped", "--brokers-stopped", "--broker-dirs", str(log_dir))
    plan = tmp_path / "plan.json"
    code, made = _plan(captures, plan, *stated)
    assert (code, made["restored"]["stray"]) == (1, {"11": ["newer-0"]})
    names = [loss["name"] for loss in made["losses"]]
    assert names == ["unseen-records", "topics-unknown"]
    apply = ["restore", "apply", str(plan), "--to", str(tmp_path / "new"), "--accept-loss", *names]
    folder.rename(log_dir / "other-0")
    assert main(apply) == 1
    (log_dir / "other-0").rename(folder)
    assert main(apply) == 0


def test_a_broker_without_its_messages_is_not_to_be_started_first(
    captures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The steps said that it is sure to have all messages."""
    directory = find_controller_dirs([captures]).directories[0]
    broker: Broker | None = replayed(directory).image.tables.get(BROKERS, (11,))
    assert broker is not None
    given: list[str] = []
    for id_ in broker.log_dirs:
        log_dir = tmp_path / id_
        log_dir.mkdir()
        identity = f"version=1\nnode.id=11\ncluster.id=iWP35uOsShu1pFlBJh_E7w\ndirectory.id={id_}\n"
        (log_dir / "meta.properties").write_text(identity)
        given.append(str(log_dir))
    stated = ("--controllers-stopped", "--broker-dirs", *given)
    _, made = _plan(captures, tmp_path / "plan.json", *stated)
    assert [loss["name"] for loss in made["losses"]] == ["no-sure-replica"]
    assert made["restored"]["first_brokers"] == {}
    assert "start the brokers that are sure to have all messages: none;" in capsys.readouterr().out


def test_one_of_two_histories_is_restored_by_name(golden: Path, tmp_path: Path) -> None:
    captures = tmp_path / "split"
    for moment in ("two-of-five", "three-of-five"):
        shutil.copytree(golden / "stale-split" / moment, captures / moment)
    stated = ("--controllers-stopped", "--brokers-stopped")
    code, made = _plan(captures, tmp_path / "refused.json", *stated)
    assert (code, made["verdict"]) == (1, "REFUSED")
    assert "(--line): 5@5311 (node 2, 4, 5), 4@5230 (node 1, 3)." in made["refusals"][-1]
    plan = tmp_path / "plan.json"
    code, made = _plan(captures, plan, *stated, "--line", "4@5230")
    assert (code, made["verdict"], made["restored"]["source_end_offset"]) == (1, "LOSES", 5230)
    names = [loss["name"] for loss in made["losses"]]
    assert "other-line" in names
    apply = ["restore", "apply", str(plan), "--to", str(tmp_path / "new"), "--accept-loss"]
    assert main([*apply, *(name for name in names if name != "other-line")]) == 1
    assert main([*apply, *names]) == 0
    words = ["restore", "plan", "--captures", str(captures), *VOTERS, "--line", "5"]
    assert subprocess.run([sys.executable, "-m", "jobs.cli", *words], check=False).returncode == 2


def test_the_runbook_names_what_returns(
    captures: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An earlier moment was restored; the old log, restored again, brings back a topic and a right."""
    stated = ("--controllers-stopped", "--brokers-stopped")
    plan, target = tmp_path / "plan.json", tmp_path / "new"
    _, made = _plan(captures, plan, *stated, "--at", "2026-11-21T09:15:05Z")
    names = [loss["name"] for loss in made["losses"]]
    assert main(["restore", "apply", str(plan), "--to", str(target), "--accept-loss", *names]) == 0
    out = capsys.readouterr().out
    assert "revoke what rights-return lists" not in out
    assert "plan again from them and captures of the new quorum, with --line 3@507" in out
    words = ("--captures", str(target), "--line", "3@507", "--gone", "21", "22")
    _, made = _plan(captures, tmp_path / "undo.json", *stated, *words)
    assert {"topics-return", "rights-return"} <= {loss["name"] for loss in made["losses"]}
    out = capsys.readouterr().out
    assert "rename directories TOPIC-N.<uuid>-delete or -stray of their topic ids" in out
    assert "delete *.index and *.timeindex in them" in out
    assert "revoke what rights-return lists before you let clients in" in out
