"""kraftlake plan topic as a user calls it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main
from kraft_core.plan.topic_configuration import ConfigureTopics
from kraft_core.plan.topic_creation import CreateTopics
from kraft_core.plan.topic_deletion import DeleteTopics
from kraft_core.plan.topic_election import ElectLeaders
from kraft_core.plan.topic_partitions import AddPartitions
from kraft_core.plan.topic_plan import TopicChange, TopicQuestion, plan_topics
from kraft_core.plan.topic_reassignment import ReassignPartitions
from kraft_core.topic_control.partition_change import ElectionType
from kraft_core.topic_control.reassignments import PartitionMove
from kraft_core.topic_control.requests import NewPartitions, NewTopic
from tests.jobs.plan_metadata import both_metadata
from transforms.lake.delta_rs import cluster_ids

# Broker 11 runs, and holds topic base of 60 partitions; two of three voters are down.
LOADED = ("--captures", "tests/golden/uncommitted-truncation/before", "--now", "2026-11-21T09:15:25Z")


@pytest.fixture(autouse=True)
def _in_the_checkout(golden: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(golden.parents[1])


def test_a_topic_that_exists(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "topic", "create", "base", *LOADED]) == 1
    out = capsys.readouterr().out
    assert out.startswith(
        "REFUSED: Kafka refuses to create topic base: TOPIC_ALREADY_EXISTS: Topic 'base' already exists\n"
    )
    assert "  Kafka's tool prints TopicExistsException: Topic 'base' already exists.\n" in out


def test_a_batch_with_records(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "controller.properties"
    file.write_text("num.partitions=2\n")
    words = ["create", "orders", "base", "clicks", "--replication-factor", "1", "--seed", "7"]
    more = ["--add-config", "retention.ms=60000", "--controller-config", str(file), "--format", "json"]
    assert main(["plan", "topic", *words, *LOADED, *more]) == 1
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert made["verdict"] == "refused"
    assert [each["error"] for each in made["results"]] == ["NONE", "TOPIC_ALREADY_EXISTS", "NONE"]
    types = [record["type"] for record in made["results"][0]["records"]]
    assert types == ["TOPIC_RECORD", "CONFIG_RECORD", "PARTITION_RECORD", "PARTITION_RECORD"]
    assert "orders-1: replicas 11, ISR 11, leader 11" in made["evidence"]


def test_what_no_log_shows_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "topic", "create", "orders", "--replication-factor", "1", *LOADED]) == 1
    out = capsys.readouterr().out
    assert out.startswith("NOT KNOWN: num.partitions, create.topic.policy.class.name: the controllers' files")
    assert "--create --topic orders --replication-factor 1\n" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "topic takes one of create"),
        (["crate", "t"], "did you mean create"),
        (["create"], "topic create takes names of topics"),
        (["delete", "t", "--seed", "3"], "--seed is of create and add-partitions, not of delete"),
        (["add-partitions", "t"], "takes --partitions N"),
        (["configure", "t"], "takes --add-config NAME=VALUE or --delete-config NAME"),
        (["elect", "t:x"], "neither a topic nor a partition"),
        (["reassign"], "reassign takes partitions such as orders:0=1,2,3"),
        (["reassign", "t:0"], "is not a partition with replicas, such as orders:0=1,2,3"),
        (["reassign", "t:0=1", "t:0=2"], "each partition once"),
        (["reassign", "--reassignment-json-file", "missing.json"], "is not a readable reassignment"),
        (["create", "t", "--replication-factor", "40000"], "does not fit into a request"),
        (["create", "t", "--controller-config", "missing.properties"], "cannot be read"),
    ],
)
def test_wrong_words(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "topic", *words, *LOADED]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "line",
    [
        "create.topic.policy.class.name=com.acme.Policy",
        "create.topic.policy.class.name: com.acme.Policy",
        "create.topic.policy.class.name com.acme.Policy",
        "create.topic.policy.class\\u002ename=com.acme.Policy",
        "create.topic.\\\n  policy.class.name=com.acme.Policy",
        "# a comment does not go on: \\\ncreate.topic.policy.class.name=com.acme.Policy",
        "a=\\\\\ncreate.topic.policy.class.name=com.acme.Policy",
    ],
)
def test_the_file_is_read_as_java_reads_it(
    line: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A policy that was overlooked made it SAFE."""
    file = tmp_path / "controller.properties"
    file.write_text(f"{line}\n")
    words = [
        "create",
        "t",
        "--partitions",
        "1",
        "--replication-factor",
        "1",
        "--controller-config",
        str(file),
    ]
    assert main(["plan", "topic", *words, *LOADED]) == 1
    assert capsys.readouterr().out.startswith("NOT KNOWN: create.topic.policy.class.name: ")


@pytest.mark.parametrize(("directory", "code"), [("any", 0), ("/data/kafka-2", 2)])
def test_log_directories_of_a_reassignment(
    directory: str, code: int, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """They were passed over, also in the commands of the steps."""
    entry = {"topic": "base", "partition": 0, "replicas": [11], "log_dirs": [directory]}
    file = tmp_path / "moves.json"
    file.write_text(json.dumps({"version": 1, "partitions": [entry]}))
    captures = ("--captures", "tests/golden/uncommitted-then-committed", "--now", "2026-11-21T09:19:58Z")
    words = ["plan", "topic", "reassign", "--reassignment-json-file", str(file), *captures]
    assert main(words) == code
    assert ("names log directories" in capsys.readouterr().err) == (code == 2)


def test_a_value_from_a_config_provider(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "controller.properties"
    file.write_text("unclean.leader.election.enable=${env:UNCLEAN}\n")
    assert main(["plan", "topic", "create", "t", "--controller-config", str(file), *LOADED]) == 2
    assert "is from a config provider: give a file with its value" in capsys.readouterr().err


def test_a_file_with_a_wrong_number(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "controller.properties"
    file.write_text("num.partitions=many\n")
    assert main(["plan", "topic", "create", "t", "--controller-config", str(file), *LOADED]) == 2
    assert f"num.partitions of {file} is not a number: 'many'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--replica-assignment", "1:x", "is not a list of replicas"),
        ("--add-config", "x", "is not NAME=VALUE"),
    ],
)
def test_wrong_options(option: str, value: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["plan", "topic", "create", "t", option, value, *LOADED])
    assert said in capsys.readouterr().err


def test_each_verb(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "moves.json"
    file.write_text('{"version":1,"partitions":[{"topic":"base","partition":1,"replicas":[11,12]}]}')
    for words, said in {
        "add-partitions base --partitions 60": "INVALID_PARTITIONS: Topic already has 60 partition(s)",
        "configure base --add-config retention.ms=x": "Not a number of type LONG",
        "delete missing": "UNKNOWN_TOPIC_OR_PARTITION",
        "elect base:99": "UNKNOWN_TOPIC_OR_PARTITION: No such partition as base-99",
        "reassign base:0=11,11": "includes the broker 11 more than once",
        "reassign base:0 --cancel": "NO_REASSIGNMENT_IN_PROGRESS",
        f"reassign --reassignment-json-file {file}": "includes broker 12, but no such broker is registered",
    }.items():
        assert main(["plan", "topic", *words.split(), *LOADED]) == 1
        first = capsys.readouterr().out.splitlines()[0]
        assert first.startswith("REFUSED: Kafka refuses to "), first
        assert said in first


CHANGES: tuple[TopicChange, ...] = (
    AddPartitions((NewPartitions("base", 62),)),
    ConfigureTopics(("base",), {"min.insync.replicas": "2"}),
    DeleteTopics(("base",)),
    ElectLeaders(ElectionType.PREFERRED, {}),
    ReassignPartitions((PartitionMove("base", 0, (11,)),)),
    CreateTopics((NewTopic("base"),)),
    CreateTopics((NewTopic("base.x", 3, 1), NewTopic("..", 1, 1))),
    CreateTopics((NewTopic("new", 3, 1),)),
    CreateTopics((NewTopic("new", assignments=((0, (11,)),)),)),
)


@pytest.mark.parametrize("names", [("base", "base:3"), ("base:3", "base")])
def test_a_topic_and_one_of_its_partitions_are_the_topic(
    names: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    """Only the partition was asked about."""
    assert main(["plan", "topic", "elect", *names, *LOADED, "--format", "json"]) == 0
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (made["question"], len(made["results"])) == ("elect the preferred leader of base", 60)


def test_what_is_missing_is_listed_once(capsys: pytest.CaptureFixture[str]) -> None:
    """The leader may have been down: neither its log nor what commits is known."""
    words = ["delete", "t-rf2", "--captures", "tests/golden/dynamic-membership", "--format", "json"]
    assert main(["plan", "topic", *words]) == 1
    missing: list[str] = json.loads(capsys.readouterr().out)["missing"]
    assert [line.split(":")[0] for line in missing] == ["leader 3", "delete.topic.enable"]


def test_steps_wait_for_new_captures(capsys: pytest.CaptureFixture[str]) -> None:
    file = "docs/server.properties"
    words = [
        "topic",
        "configure",
        "base",
        "--add-config",
        "retention.ms=2000000",
        "--controller-config",
        file,
    ]
    captures = ["--captures", "tests/golden/uncommitted-truncation/after"]
    assert main(["plan", *words, *captures, "--now", "2026-11-23T09:17:00Z"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("SAFE AS OF ")
    assert "\nsteps, once new captures say SAFE:\n" in out


def test_a_lake_gives_the_answers_of_its_captures(lake: Any, golden_captures: list[Path]) -> None:
    compared = set[str]()
    for cluster in cluster_ids(lake.path):
        by_captures, by_rows = both_metadata(lake.path, golden_captures, cluster)
        for change in CHANGES:
            asked = TopicQuestion(change, {}, seed=1)
            by_files, by_lake = plan_topics(by_captures, asked), plan_topics(by_rows, asked)
            assert by_lake.verdict == by_files.verdict, cluster
            if by_files.verdict != "not_known":
                assert by_lake == by_files
                compared.add(by_files.verdict)
    assert {"refused", "risky"} <= compared
