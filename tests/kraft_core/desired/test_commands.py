"""The commands that make a state: what bash passes to the tools, and what no command can make."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_core.desired.commands import Commands, format_flags, preamble, properties_lines, shell_word
from kraft_core.desired.state import AclBinding, ConfigValue, DesiredState, TopicState

HOSTILE = (
    "$(touch owned)",
    "`id`",
    "a b",
    "it's",
    'say "x"',
    "back\\slash\\",
    "line\nend",
    "escape\x1b[31m7",
    "Jörg-好-🦊",
    "-dash",
    "a;b|c&d>e",
    "#no comment",
    "!history",
    "~",
    "*",
    "{a,b}",
    "\u202ereversed",
    "EOF",
)
TOOLS = ("kafka-topics.sh", "kafka-configs.sh", "kafka-acls.sh")
RECORDER = """#!/usr/bin/env python3
import json, sys
given = sys.stdin.read() if "/dev/stdin" in sys.argv else ""
with open({log!r}, "a") as log:
    print(json.dumps([{name!r}, sys.argv[1:], given]), file=log)
"""


def run(state: DesiredState, folder: Path, **how: bool) -> list[tuple[str, list[str], str]]:
    """The tools that a script calls, with their arguments but the servers, and standard input."""
    log = folder / "calls.jsonl"
    for name in TOOLS:
        (folder / name).write_text(RECORDER.format(log=str(log), name=name))
        (folder / name).chmod(0o755)
    lines = list(Commands(state, **how).lines())
    script = "\n".join([*preamble(lines), *lines])
    assert all(line.isascii() and line.isprintable() for line in script.split("\n"))
    path = f"{folder}:/usr/bin:/bin"
    settings = {"PATH": path, "BOOTSTRAP_SERVER": "h:1", "COMMAND_CONFIG": "c"}
    subprocess.run(["bash", "-c", script], cwd=folder, env=settings, check=True, capture_output=True)
    calls = [json.loads(line) for line in log.read_text().splitlines()]
    assert all(words[:4] == ["--bootstrap-server", "h:1", "--command-config", "c"] for _, words, _ in calls)
    return [(name, words[4:], given) for name, words, given in calls]


def test_every_kind_of_thing(tmp_path: Path) -> None:
    acl = ("TOPIC", "orders", "PREFIXED", "User:alice", "*", "ALLOW")
    state = DesiredState(
        topics={
            "orders": TopicState("orders", 2, 2, {"cleanup.policy": ConfigValue("a,b")}, ((1, 2), (2, 1)))
        },
        configs={("BROKER", ""): {"log.retention.ms": ConfigValue("1"), "x": ConfigValue("2")}},
        quotas={(("client-id", None), ("user", "alice")): {"producer_byte_rate": 1e7}},
        acls={AclBinding(*acl, "READ"), AclBinding(*acl, "DESCRIBE_CONFIGS")},
    )
    made = {" ".join(words): name for name, words, _ in run(state, tmp_path)}
    topic = "--create --if-not-exists --topic orders --partitions 2 --replication-factor 2"
    brokers = "--alter --entity-type brokers --entity-default"
    quotas = "--alter --entity-type users --entity-name alice --entity-type clients --entity-default"
    allow = "--add --allow-principal User:alice --allow-host * --operation DescribeConfigs --operation Read"
    assert made == {
        f"{topic} --config cleanup.policy=a,b": "kafka-topics.sh",
        f"{brokers} --add-config log.retention.ms=1,x=2": "kafka-configs.sh",
        f"{quotas} --add-config producer_byte_rate=1.0E7": "kafka-configs.sh",
        f"{allow} --topic orders --resource-pattern-type prefixed": "kafka-acls.sh",
    }
    (placed, *_) = run(DesiredState(topics=state.topics), tmp_path, placement=True)[4:]
    assert "--replica-assignment 1:2,2:1" in " ".join(placed[1])


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_acts_in_the_shell(name: str, tmp_path: Path) -> None:
    state = DesiredState(
        topics={name: TopicState(name, 1, 1, {"retention.ms": ConfigValue(name)})},
        configs={("GROUP", name): {"consumer.session.timeout.ms": ConfigValue(name)}},
        quotas={(("user", name),): {"producer_byte_rate": 1.0}},
        acls={AclBinding("GROUP", name, "LITERAL", f"User:{name}", "*", "DENY", "READ")},
        users={(name, "SCRAM-SHA-256"): 4096},
    )
    calls = run(state, tmp_path)
    assert len(calls) >= 4
    assert all(name in words or f"User:{name}" in words for _, words, _ in calls)
    assert sorted(each.name for each in tmp_path.iterdir()) == sorted([*TOOLS, "calls.jsonl"])


@settings(deadline=None, max_examples=30)
@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=20))
def test_a_word_of_bash_is_the_text(texts: Sequence[str]) -> None:
    words = " ".join(map(shell_word, texts))
    assert words.isascii()
    done = subprocess.run(["bash", "-c", f"printf '%s\\0' {words}"], capture_output=True, check=True)
    assert done.stdout.split(b"\0")[:-1] == [text.encode() for text in texts]


def test_no_argument_holds_nul() -> None:
    with pytest.raises(ValueError, match="NUL"):
        shell_word("a\0b")


def test_properties_are_escaped_as_java_reads_them() -> None:
    given = {"a": " x y ", "b": "1\\2=3:4#5!6", "c": "", "d": "é\n🦊\t"}
    assert properties_lines(given) == [
        "a=\\ x y ",
        "b=1\\\\2=3:4#5!6",
        "c=",
        "d=\\u00e9\\u000a\\ud83e\\udd8a\\u0009",
    ]


def test_a_value_that_a_list_would_split_comes_as_a_file(tmp_path: Path) -> None:
    topic = TopicState("t", 1, 1, {"leader.replication.throttled.replicas": ConfigValue("")})
    match = {"match": ConfigValue("client_id=[ab].*"), "interval.ms": ConfigValue("1")}
    state = DesiredState(topics={"t": topic}, configs={("CLIENT_METRICS", "s"): match})
    _, of_topic, of_metrics = run(state, tmp_path)
    words = ["--alter", "--entity-type", "topics", "--entity-name", "t", "--add-config-file", "/dev/stdin"]
    assert of_topic[1:] == (words, "leader.replication.throttled.replicas=\n")
    assert of_metrics[2] == "match=client_id=[ab].*\ninterval.ms=1\n"


TOPIC_ACL = ("TOPIC", "t", "LITERAL", "User:a", "*", "ALLOW")


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (DesiredState(topics={" t": TopicState(" t", 1, 1, {})}), "topic  t: Kafka's tools trim names"),
        (DesiredState(topics={"t": TopicState("t", 0, None, {})}), "topic t: it has no partitions"),
        (DesiredState(quotas={(("user", ""),): {"x": 1.0}}), "an empty name is the default"),
        (DesiredState(quotas={(("team", "a"),): {"x": 1.0}}), "does not support entities of type team"),
        (
            DesiredState(configs={("BROKER_LOGGER", "1"): {"a": ConfigValue("b")}}),
            "no command sets configs of BROKER_LOGGER",
        ),
        (
            DesiredState(configs={("BROKER", "1"): {"a b": ConfigValue("c")}}),
            "config a b: kafka-configs does not accept this name",
        ),
        (
            DesiredState(configs={("BROKER", "1"): {"a": ConfigValue("c", is_secret=True)}}),
            "config a: its value may be a secret",
        ),
        (
            DesiredState(acls={AclBinding(*TOPIC_ACL, "CLUSTER_ACTION")}),
            "does not support CLUSTER_ACTION on a TOPIC",
        ),
        (
            DesiredState(acls={AclBinding("TOPIC", "t", "LITERAL", "nobody", "*", "ALLOW", "READ")}),
            "'nobody' is not a principal",
        ),
        (
            DesiredState(acls={AclBinding("CLUSTER", "c", "LITERAL", "User:a", "*", "ALLOW", "ALL")}),
            "names the cluster kafka-cluster alone",
        ),
        (DesiredState(acls={AclBinding(*TOPIC_ACL[:4], "h\0h", "ALLOW", "READ")}), "can hold NUL"),
    ],
)
def test_what_no_command_makes_is_said(state: DesiredState, words: str) -> None:
    commands = Commands(state)
    assert list(commands.lines()) == []
    (said,) = commands.left_out
    assert words in said


def test_a_topic_whose_partitions_differ_is_made_and_it_is_said() -> None:
    commands = Commands(DesiredState(topics={"t": TopicState("t", 2, None, {}, ((1,), (1, 2)))}))
    (line,) = commands.lines()
    assert line.endswith("--partitions 2 --replication-factor 2")
    assert "made with 2 replicas of each partition, which differ in that" in commands.left_out[0]


def test_a_user_is_a_comment_without_a_password() -> None:
    commands = Commands(DesiredState(users={("al\nice", "SCRAM-SHA-256"): 4096}))
    (line,) = commands.lines()
    assert line.startswith("# kafka-configs.sh ")
    assert "$'al\\012ice'" in line
    assert "'SCRAM-SHA-256=[iterations=4096,password=...]'" in line


def test_the_feature_levels_are_flags_of_format() -> None:
    state = DesiredState(features={"metadata.version": 30, "share.version": 1})
    assert format_flags(state) == "--release-version 4.3-IV0 --feature share.version=1"


@pytest.mark.parametrize(
    ("resource_type", "pattern_type", "permission_type"),
    [
        ("UNKNOWN(9)", "LITERAL", "ALLOW"),
        ("TOPIC", "MATCH", "ALLOW"),
        ("TOPIC", "LITERAL", "ANY"),
    ],
)
def test_an_acl_of_a_type_that_no_command_makes_is_left_out(
    resource_type: str, pattern_type: str, permission_type: str
) -> None:
    """A newer Kafka may have written it; ALL on an unknown resource was an internal error."""
    acl = AclBinding(resource_type, "t", pattern_type, "User:a", "*", permission_type, "ALL")
    made = Commands(DesiredState(acls={acl}))
    assert list(made.lines()) == []
    (words,) = made.left_out
    assert "kafka-acls does not support" in words
