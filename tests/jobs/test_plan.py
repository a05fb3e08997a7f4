"""kraftlake plan as a user calls it; the plan from a lake equals the plan from its captures."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main
from jobs.plan import as_json
from jobs.quorum.quorum_facts import errors_of, facts_of, registered_in
from kraft_core.evidence.collect import collect
from kraft_core.evidence.conclusions import conclude
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.plan.actions import Add, Lose, Remove, Replace, UpgradeKRaftVersion
from kraft_core.plan.captured_quorum import quorum_of
from kraft_core.plan.plan import plan
from kraft_core.plan.registrations import registered
from tests.jobs.lakes import run
from tests.long.load_mutations import LOG, MutableLog, written
from transforms.lake.delta_rs import cluster_ids

HEALTHY = ("--captures", "tests/golden/disk-failure/before-wipe")
# Its captures were taken at 09:21:04.
SOON = "2026-11-21T09:31:05Z"


@pytest.fixture(autouse=True)
def _in_the_checkout(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(golden.parents[1])


def test_a_refusal_as_text(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "remove", "3", "--captures", str(golden / "uncommitted-truncation/before")]
    assert main(words) == 1
    out = capsys.readouterr().out
    assert out.startswith("REFUSED: Kafka refuses to remove 3@kf8ghIj_xoS34ea-4yIRQg: REQUEST_TIMED_OUT")
    assert "Kafka's tool prints TimeoutException: Request timed out waiting for voters to commit" in out
    assert "2@JJnBYSCjLKkJ5gRPQ1FZ7g voter, behind: lacks the last 17 records, for 8.0 s" in out
    assert "1. bring back 2, 3, so that the pending change commits; then plan again" in out


def test_a_directory_without_meta_properties_is_named_by_flags(
    golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = golden / "disk-failure/before-wipe"
    shutil.copytree(before, tmp_path, dirs_exist_ok=True)
    (tmp_path / "node-1/meta.properties").unlink()
    words = ["plan", "lose", "3", "--captures", str(tmp_path), "--now", SOON]
    assert main(words) == 1
    assert "node-1: no cluster id and no node id in meta.properties" in capsys.readouterr().out
    (cluster,) = (c.cluster_id for c in collect(find_controller_dirs([before]).directories))
    main([*words, "--cluster-id", cluster, "--node-id", "1"])
    named = capsys.readouterr().out
    assert "no cluster id" not in named
    main(["plan", "lose", "3", "--captures", str(before), "--now", SOON])
    assert named != capsys.readouterr().out  # its directory id is not known: 1 is no proven voter
    shutil.rmtree(tmp_path / "node-2")
    shutil.rmtree(tmp_path / "node-3")
    (tmp_path / "node-1/meta.properties").write_text("version=1\ncluster.id=\nnode.id=1\n")
    assert main(words) == 3
    err = capsys.readouterr().err
    assert "node-1: no cluster id in meta.properties" in err
    assert "--cluster-id and --node-id" in err


def test_a_safe_plan_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "replace", "2", *HEALTHY, "--format", "json", "--now", SOON]
    assert main(words) == 0
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (made["verdict"], made["error"], made["is_evidence_old"]) == ("safe", None, False)
    assert made["evidence_from"] == made["as_of"]
    assert "10 min ago" in made["evidence_age"]
    assert {each["time_source"] for each in made["replicas"]} == {"capture.json"}
    assert made["action"] == {"name": "Replace", "node_id": 2, "successor": None}
    assert made["before"]["tolerated_failures"] == 1
    assert [stage["verdict"] for stage in made["stages"]] == ["safe"] * 3
    assert any(step["command"] and "--no-initial-controllers" in step["command"] for step in made["steps"])


def test_what_was_safe_a_day_ago_is_safe_as_of_then(capsys: pytest.CaptureFixture[str]) -> None:
    def told(now: str, *more: str) -> str:
        assert main(["plan", "lose", "1", *HEALTHY, "--now", now, *more]) == 1
        return capsys.readouterr().out

    old = told("2026-11-22T09:21:05Z")
    assert old.startswith("SAFE AS OF 2026-11-21T09:21:04.315Z: ")
    assert "1 d ago, more than 24 h: capture the controllers again" in old
    assert "steps, once new captures say SAFE:" in old
    assert told(SOON, "--max-evidence-age-hours", "0.1").startswith("SAFE AS OF ")
    early = told("2026-11-21T09:21:04Z")
    otherwise = "the captures were taken after the reference time; otherwise, by the captures: safe, nothing"
    assert early.startswith(f"NOT KNOWN: {otherwise} committed is lost; ")
    assert "steps, once new captures say SAFE:" in early
    made = json.loads(told("2026-11-21T09:21:04Z", "--format", "json"))
    assert made["reason"].startswith(f"{otherwise} committed is lost; ")
    made = json.loads(told("2026-11-22T09:21:05Z", "--format", "json"))
    assert (made["verdict"], made["is_evidence_old"]) == ("safe_as_of", True)


def test_a_voter_that_was_not_captured_is_not_counted(capsys: pytest.CaptureFixture[str]) -> None:
    captures = [f"{HEALTHY[1]}/node-{node}" for node in (1, 2)]
    assert main(["plan", "lose", "1", "--captures", *captures, "--now", SOON]) == 1
    out = capsys.readouterr().out
    assert out.startswith("NOT KNOWN: leader 3 was not captured; ")
    assert "missing:\n  leader 3 was not captured\n" in out
    assert "leader 3, log end at least 54, high watermark at least 3\n" in out


def test_what_does_not_count_has_a_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No capture counts, but each states when it was taken."""
    shutil.copytree(f"{HEALTHY[1]}/node-3", tmp_path / "node-3")
    (tmp_path / "node-3/__cluster_metadata-0/quorum-state").unlink()
    assert main(["plan", "lose", "1", "--captures", str(tmp_path), "--now", SOON]) == 1
    out = capsys.readouterr().out
    assert "The evidence ends at 2026-11-21 09:21:04Z, 10 min ago. " in out
    (tmp_path / "node-3/capture.json").unlink()
    assert main(["plan", "lose", "1", "--captures", str(tmp_path), "--now", SOON]) == 1
    out = capsys.readouterr().out
    assert "(newest timestamp in the log) or later: state when each capture was taken " in out


def test_one_failure_is_a_singular(capsys: pytest.CaptureFixture[str]) -> None:
    main(["plan", "replace", "2", *HEALTHY, "--now", SOON])
    out = capsys.readouterr().out
    assert "majority 2, tolerates 1 failure; 3 in sync" in out
    assert "between the removal and the addition 2 voters tolerate no failure" in out


def test_a_lost_node_does_not_keep_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "lose", "1", *HEALTHY, "--now", SOON]) == 0
    out = capsys.readouterr().out
    assert "1@d5efUia_RsKg158_0afzxQ voter, lost: before: in sync, has the whole log" in out
    assert main(["plan", "lose", "3", *HEALTHY, "--now", SOON]) == 0
    assert "leader 3, log end 54, high watermark 54\n" in capsys.readouterr().out
    assert main(["plan", "replace", "999", *HEALTHY]) == 1
    assert capsys.readouterr().out.startswith("REFUSED: 999 is not a voter of {1,2,3}")


SIDE_FILES = ("quorum-state", "leader-epoch-checkpoint", "00000000000000000000.log")


@pytest.mark.parametrize("node", [1, 2, 3])
@pytest.mark.parametrize("file", SIDE_FILES)
@pytest.mark.parametrize("fault", ["removed", "torn"])
def test_each_file_of_a_counted_voter_is_needed(
    node: int, file: str, fault: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of three voters, `lose` counts all but the lost one: it is safe only without its own files."""
    shutil.copytree(HEALTHY[1], tmp_path / "copy")
    harmed = tmp_path / f"copy/node-{node}/__cluster_metadata-0/{file}"
    content = harmed.read_bytes()
    harmed.unlink()
    if fault == "torn":
        harmed.write_bytes(content[: len(content) // 2])
    for lost in (1, 2, 3):
        words = ["plan", "lose", str(lost), "--captures", str(tmp_path / "copy"), "--now", SOON]
        code = main(words)
        out = capsys.readouterr().out
        assert code == (0 if lost == node != 3 else 1), out
        assert code == 0 or out.startswith(("NOT KNOWN", "UNSAFE")), out


def test_a_file_time_is_nowhere_given_as_the_time_of_a_capture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(HEALTHY[1], tmp_path / "copy")
    for stated in (tmp_path / "copy").glob("node-*/capture.json"):
        stated.unlink()
    words = ["plan", "lose", "1", "--captures", str(tmp_path / "copy")]
    assert main(words) == 1
    out = capsys.readouterr().out
    assert out.startswith("NOT KNOWN: ")
    assert (
        "missing:\n  leader 3: the time of its capture is not stated (capture.json or --captured-at)\n" in out
    )
    assert "Z (newest timestamp in the log) or later: epoch 1, leader 3" in out
    assert main([*words, "--format", "json"]) == 1
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (made["as_of_source"], made["evidence_from"]) == ("newest timestamp in the log", None)
    assert {each["captured_at"] for each in made["replicas"]} == {None}


@pytest.mark.parametrize("content", ["", "{", "[]", '{"captured_at": 7}', '{"captured_at": "yesterday"}'])
def test_a_time_that_cannot_be_read_is_told(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(HEALTHY[1], tmp_path / "copy")
    (tmp_path / "copy/node-2/capture.json").write_text(content)
    assert main(["plan", "lose", "1", "--captures", str(tmp_path / "copy"), "--now", SOON]) == 1
    out = capsys.readouterr().out
    assert out.startswith("NOT KNOWN"), out
    assert f"not read:\n  invalid: {tmp_path}/copy/node-2/capture.json: " in out


def test_a_log_that_controllers_cannot_replay_is_not_safe(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A lake says so, too: an error finding is open (rule 49). By captures it was SAFE."""
    shutil.copytree(HEALTHY[1], tmp_path / "copy")
    for node in (1, 2, 3):
        log = MutableLog.of(tmp_path / f"copy/node-{node}" / LOG / "00000000000000000000.log")
        log.append(written(5, 0, topicId=f"{'A' * 21}Q", partitionId=0))
        log.write()
    words = ["plan", "lose", "1", "--captures", str(tmp_path / "copy"), "--now", SOON, "--format", "json"]
    assert main(words) == 1
    made = json.loads(capsys.readouterr().out)
    assert made["verdict"] == "not_known"
    assert "PARTITION_CHANGE_RECORD at offset 54 of epoch 1 cannot be replayed: " in made["missing"][0]
    assert " that replays it terminates (ReplicationControlManager)" in made["missing"][0]


@pytest.mark.parametrize("last", ["a", "z"])
def test_of_two_copies_of_a_capture_the_damaged_one_counts(
    last: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whichever is given first: the damage may be of the disk."""
    for copy in ("a", "m", "z"):
        shutil.copytree(f"{HEALTHY[1]}/node-1", tmp_path / copy)
    (tmp_path / last / "bootstrap.checkpoint").write_text("junk")
    others = [f"{HEALTHY[1]}/node-{node}" for node in (2, 3)]
    words = ["plan", "lose", "2", "--captures", *map(str, sorted(tmp_path.iterdir())), *others, "--now", SOON]
    assert main(words) == 1
    assert "4 bytes of bootstrap.checkpoint of 1@" in capsys.readouterr().out


@pytest.mark.parametrize("is_cut", [False, True])
def test_two_checkpoint_files_of_one_id_are_told_apart(
    is_cut: bool, golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A name may go on behind the epoch. Plans by captures ended with exit code 70."""
    words = ["plan", "lose", "1", "--now", "2026-11-21T09:31:05Z", "--captures"]
    code = main([*words, str(golden / "dynamic-membership")])
    before = capsys.readouterr().out
    shutil.copytree(golden / "dynamic-membership", tmp_path / "copy")
    file = max((tmp_path / "copy/node-1" / LOG).glob("*.checkpoint"))
    content = file.read_bytes()
    file.with_stem(f"{file.stem}-2").write_bytes(content)
    if is_cut:
        file.write_bytes(content[:500])
    assert main([*words, str(tmp_path / "copy")]) == code
    after = capsys.readouterr().out
    assert "is incomplete: its header or footer is missing" in after if is_cut else after == before


@pytest.mark.parametrize("name", ["*.log", "*.checkpoint"])
@pytest.mark.parametrize("words", [["lose", "1"], ["load", "4.3.1"], ["restart-broker", "1"]])
def test_a_file_that_is_gone_meanwhile_is_named(
    words: list[str],
    name: str,
    golden: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was an internal error."""
    shutil.copytree(golden / "dynamic-membership", tmp_path / "copy")
    files = list((tmp_path / "copy").rglob(name))

    def concluded(facts: Any) -> Any:
        for file in files:
            file.unlink()
        return conclude(facts)

    monkeypatch.setattr("kraft_core.evidence.conclusions.conclude", concluded)
    assert main(["plan", *words, "--captures", str(tmp_path / "copy")]) == 75
    words_of_end = "was moved or deleted while it was in use: run the same command again"
    said = capsys.readouterr().err.splitlines()[-1]
    assert said in {f"kraftlake plan: {file} {words_of_end}" for file in files}


def test_a_lake_gives_the_plan_of_its_captures(lake: Any, golden_captures: list[Path]) -> None:
    directories = find_controller_dirs(golden_captures).directories
    assert sorted(cluster_ids(lake.path)) == sorted({d.meta.cluster_id for d in directories if d.meta})
    for facts in collect(directories):
        of_cluster = [d for d in directories if d.meta and d.meta.cluster_id == facts.cluster_id]
        from_files, from_lake = conclude(facts), conclude(facts_of(lake.path, facts.cluster_id))
        assert from_lake.lower_bounds == from_files.lower_bounds
        by_files = quorum_of(from_files, registered(of_cluster))
        errors = errors_of(lake.path, facts.cluster_id)
        by_lake = quorum_of(from_lake, registered_in(lake.path, facts.cluster_id), errors)
        assert by_files is not None
        assert by_lake is not None
        assert by_lake.registrations == by_files.registrations
        for action in (Remove(3), Add(4), Replace(2), Lose((1,)), UpgradeKRaftVersion()):
            assert as_json(plan(by_lake, action)) == as_json(plan(by_files, action))


STATUS = """ClusterId:              cdUcB7OYQSW2BEWmIRzmkg
LeaderId:               {leader}
LeaderEpoch:            {epoch}
HighWatermark:          54
MaxFollowerLag:         0
MaxFollowerLagTimeMs:   0
CurrentVoters:          [{voters}]
CurrentObservers:       []
"""


@pytest.mark.parametrize(
    ("output", "why"),
    [
        ({"leader": 3, "epoch": 1, "voters": (1, 2, 3)}, None),
        ({"leader": 1, "epoch": 2, "voters": (1, 2, 3)}, "a describe output shows leader 1 of epoch 2, "),
        (
            {"leader": 3, "epoch": 1, "voters": (1, 2, 3, 4)},
            "a describe output lists the voters 1, 2, 3, 4, ",
        ),
    ],
)
@pytest.mark.usefixtures("spark")
def test_what_an_output_of_describe_shows_beyond_the_captures(
    output: dict[str, Any], why: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The captures are of 09:21:04, the output of a minute later: a lake knows both."""
    shutil.copytree(HEALTHY[1], tmp_path / "captures")
    voters = ", ".join(f'{{"id": {n}}}' for n in output["voters"])
    (tmp_path / "captures/1795252924000-status.txt").write_text(STATUS.format(**output | {"voters": voters}))
    assert run(tmp_path / "lake", tmp_path / "captures") == 0
    capsys.readouterr()
    code = main(["plan", "lose", "1", "--lake", str(tmp_path / "lake"), "--now", SOON])
    out = capsys.readouterr().out
    if why is None:
        assert (code, out.split(":")[0]) == (0, "SAFE")
        return
    assert (code, out.startswith(f"NOT KNOWN: {why}")) == (1, True), out
    assert f"missing:\n  {why}" in out
    assert main(["explain", "--lake", str(tmp_path / "lake"), "--recovery"]) == 0
    assert f"highest epoch seen: {output['epoch']}\n" in capsys.readouterr().out


def test_wrong_usage(golden: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    captures = str(golden / "disk-failure/before-wipe")

    def refused(code: int, message: str, *words: str) -> None:
        assert main(["plan", *words]) == code
        err = capsys.readouterr().err
        assert message in err
        assert len(err.splitlines()) == 1

    refused(2, "nowhere does not exist", "remove", "3", "--captures", str(tmp_path / "nowhere"))
    refused(3, "no controller directory", "remove", "3", "--captures", str(tmp_path))
    refused(2, "clusters: choose one with --cluster", "remove", "3", "--captures", str(golden))
    refused(2, "no cluster x", "remove", "3", "--captures", captures, "--cluster", "x")
    refused(2, "is not a lake", "remove", "3", "--lake", str(tmp_path))
    refused(2, "remove takes one node", "remove", "--captures", captures)
    refused(2, "lose takes one node or more", "lose", "--captures", captures)
    refused(2, "upgrade-kraft-version takes no node", "upgrade-kraft-version", "1", "--captures", captures)
    refused(2, "update takes the new --endpoint", "update", "1", "--captures", captures)
    refused(2, "give --captures PATH..., --lake PATH or --live HOST:PORT", "remove", "3")
    both = ("--captures", captures, "--lake", str(tmp_path))
    refused(2, "--lake or --live, not two of them", "remove", "3", *both)
    refused(2, "--lake or --live, not two of them", "load", "4.3", *both)
    for option, value in (("--cluster-id", "x"), ("--node-id", "1"), ("--captured-at", "2026-11-21")):
        words = f"{option} is about --captures that do not have it"
        refused(2, words, "remove", "3", "--live", "h:9093", option, value)
        refused(2, words, "remove", "3", "--lake", str(tmp_path), option, value)
    refused(2, "--lake or --live, not two of them", "lose", "3", "--live", "h:9093", "--captures", captures)
    refused(2, "registrations, which --live does not read", "release", "4.4", "--live", "h:9093")
    refused(2, "'one' is not a node id", "remove", "one", "--captures", captures)
    for words in (("update", "2", "--endpoint", "host"), ("fly", "1")):
        with pytest.raises(SystemExit, match="2"):
            main(["plan", *words, "--captures", captures])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["remove", "2", "--by", "4"], "--by is an option of replace, not of remove"),
        (["replace", "2", "--directory-id", "x"], "--directory-id is an option of add and remove, not of r"),
        (["lose", "1", "--level", "0"], "--level is an option of upgrade-kraft-version, not of lose"),
        (["restart-broker", "11", "--partitions", "3"], "--partitions is an option of topic, not of rest"),
        (["load", "4.4.0", "--standalone"], "--standalone is an option of format, not of load"),
        (["topic", "create", "t", "--tool", "4.4"], "--tool is an option of format, not of topic"),
        (["random-uuid", "--broker-dirs", "/x"], "--broker-dirs is an option of start-broker, not of ran"),
    ],
)
def test_an_option_of_another_action(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The answer would not be about it."""
    assert main(["plan", *words, *HEALTHY]) == 2
    assert f"kraftlake plan: {said}" in capsys.readouterr().err


def test_a_cluster_of_captures_by_its_name_in_the_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = tmp_path / "kraftlake.toml"
    settings.write_text('[clusters.shop]\nid = "cdUcB7OYQSW2BEWmIRzmkg"\n')
    asked = ["plan", "lose", "1", "--config", str(settings), *HEALTHY, "--cluster"]
    main([*asked, "shop"])
    assert "cluster cdUcB7OYQSW2BEWmIRzmkg at " in capsys.readouterr().out
    assert main([*asked, "sopp"]) == 2
    assert capsys.readouterr().err.endswith(
        "no cluster sopp; found: cdUcB7OYQSW2BEWmIRzmkg; did you mean shop?\n"
    )
