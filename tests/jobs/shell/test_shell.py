"""The shell over golden captures: Kafka's commands answered as Kafka does, and those that it lacks."""

from __future__ import annotations

import argparse
import io
import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from jobs import shell
from jobs.runtime.outcome import ExitCode, Failure
from jobs.runtime.settings import Settings
from jobs.time_travel.open_source import open_captured
from jobs.time_travel.shell_commands import COMMANDS, Session, in_columns

GOLDEN = Path(__file__).parents[2] / "golden"
NODE = GOLDEN / "dynamic-membership/node-3"
CHECKPOINT = NODE / "__cluster_metadata-0/00000000000000003692-0000000009.checkpoint"
KAFKAS = Path(__file__).parents[2] / "kraft_core/image/metadata_shell/4.3.1/commands.txt"


def run(*words: str | Path) -> int:
    parser = argparse.ArgumentParser()
    shell.add_arguments(parser)
    parser.set_defaults(settings=Settings())
    return shell.run(parser.parse_args([str(word) for word in words]))


@pytest.fixture
def say(capsys):
    """Runs the shell once; what it printed, and on stderr."""

    def run_shell(*words: str | Path) -> tuple[str, str, int]:
        capsys.readouterr()
        code = run(*words)
        captured = capsys.readouterr()
        return captured.out, captured.err, code

    return run_shell


@pytest.fixture
def talk(capsys, monkeypatch):
    """An interactive shell that is typed lines."""

    def run_shell(
        *lines: str,
        node: Path = NODE,
        code: int = ExitCode.FINE,
        stdin: Callable[[str], io.StringIO] = io.StringIO,
    ) -> tuple[str, str]:
        monkeypatch.setattr("sys.stdin", stdin("".join(f"{line}\n" for line in lines)))
        capsys.readouterr()
        assert run(node) == code
        captured = capsys.readouterr()
        return captured.out, captured.err

    return run_shell


KAFKAS_COMMANDS = {
    block.partition("\n")[0]: block.partition("\n")[2] for block in KAFKAS.read_text().split("$ ") if block
}

# Kafka's shell prints errors among the answers and exits with 0; ours go to stderr, and the exit code is 2.
# The directory itself stands where Kafka repeats the pattern: its paths could not be used again.
MEANT = {
    "find '/image/clus*'": KAFKAS_COMMANDS["find '/image/clus*'"].replace("/image/clus*", "/image/cluster"),
}


@pytest.mark.parametrize("line", KAFKAS_COMMANDS)
def test_kafkas_commands_are_answered_as_kafka_does(say, line):
    out, err, code = say(CHECKPOINT, *shlex.split(line))
    kafkas = MEANT.get(line, KAFKAS_COMMANDS[line]).splitlines()
    command = line.split()[0]
    wrong = [each for each in kafkas if each.startswith(f"{command}: ")]
    assert out.splitlines() == [each for each in kafkas if each not in wrong]
    assert [each.lower() for each in err.splitlines()] == [each.lower() for each in wrong]
    assert code == (ExitCode.USAGE if wrong else ExitCode.FINE)


def test_what_it_was_then(say):
    now, _, _ = say(NODE, "ls", "/image/topics/byName")
    then, _, _ = say("--at-offset", "1000", NODE, "ls", "/image/topics/byName")
    assert now.split() == ["t-after-kill1", "t-last", "t-rf2", "t-small", "t-wide", "t-x"]
    assert then.split() == ["t-assign", "t-rf2", "t-small", "t-wide"]
    by_time, _, _ = say("--at-time", "2026-11-21T09:41:40", NODE, "ls", "/image/topics/byName")
    assert by_time == then


def test_options_may_follow_the_path(say):
    before = say("--at-offset", "1000", "--format", "json", NODE, "at")
    assert say(NODE, "--at-offset", "1000", "--format", "json", "at") == before
    assert json.loads(before[0])["offset"] == 1000


def test_history_of_a_path(say):
    out, _, _ = say(NODE, "log", "/image/topics/byName/t-x/0")
    printed = [line.split()[:4] for line in out.splitlines()]
    assert [(offset, epoch) for offset, _, epoch, _ in printed] == [
        ("1935", "4"),
        ("1936", "4"),
        ("1971", "4"),
        ("2085", "6"),
    ]
    assert "PARTITION_CHANGE_RECORD  /image/topics/byName/t-x/0  isr [12] -> [], " in out
    until, _, _ = say("--at-offset", "1936", NODE, "log", "/image/topics/byName/t-x/0")
    assert until.splitlines() == out.splitlines()[:2]


def test_history_of_what_is_gone(say):
    out, _, code = say("--format", "json", NODE, "log", "/image/topics/byName/t-assign")
    printed = json.loads(out)
    assert (printed[0]["record_type"], printed[-1]["record_type"]) == ("TOPIC_RECORD", "REMOVE_TOPIC_RECORD")
    assert (printed[-1]["after"], printed[-1]["before"]["topic_name"], code) == (None, "t-assign", 0)


def test_history_where_the_log_begins_with_a_checkpoint(say):
    out, _, _ = say("--format", "json", GOLDEN / "static-upgrade/node-4", "log", "/image/topics/byName/old1")
    printed = json.loads(out)
    kinds = [(event["offset"], event["record_type"]) for event in printed]
    assert set(kinds) == {(355, "checkpoint"), (381, "REMOVE_TOPIC_RECORD")}


def test_voters_and_epochs(say):
    out, _, _ = say("--format", "json", NODE, "voters")
    assert [(one["offset"], [voter["id"] for voter in one["voters"]]) for one in json.loads(out)] == [
        (2, [1]),
        (61, [1, 2]),
        (72, [1, 2, 3]),
        (1878, [1, 2]),
        (1885, [1, 2, 3]),
        (1894, [1, 3]),
        (1979, [1, 2, 3]),
        (1999, [1, 2, 3]),
        (2022, [1, 2, 3]),
    ]
    out, _, _ = say("--format", "json", GOLDEN / "dynamic-membership/node-1", "voters")
    assert [(one["offset"], one["source"]) for one in json.loads(out)[:2]] == [
        (-1, "bootstrap"),
        (2, "record"),
    ]
    out, _, _ = say("--at-offset", "1893", NODE, "voters")
    (in_force,) = [line for line in out.splitlines() if line.startswith("*")]
    assert in_force.startswith("* offset 1885, epoch 3, ")
    assert in_force.endswith("(added 3)")
    out, _, _ = say("--format", "json", NODE, "epochs")
    printed = [(each["leader_epoch"], each["start_offset"], each["leader_id"]) for each in json.loads(out)]
    assert printed == [(1, 0, 1), (3, 1005, 2), (4, 1895, 3), (6, 2013, 2), (7, 2943, 3), (9, 2944, 3)]


def test_static_voters(say):
    out, _, _ = say(GOLDEN / "static-upgrade/at-3.9.2/node-1", "voters")
    (line,) = out.splitlines()
    assert line.startswith("* offset 0, ")
    assert line.endswith("static: {1, 2, 3}")


def test_a_moment_before_the_proof_is_undecided(say):
    """The log of node 4 begins with a checkpoint at 356; its first LEADER_CHANGE is that of 529."""
    node = GOLDEN / "static-upgrade/node-4"
    with pytest.raises(Failure, match=r"undecided: offset 100 is gone; the oldest known state .* offset 355"):
        run("--at-offset", "100", node, "ls")
    out, _, _ = say("--at-offset", "500", node, "voters")
    first, static, *others = out.splitlines()
    assert first.startswith("undecided: the captures do not show who could vote at offset 500")
    assert static.startswith("  at or before offset 529, epoch 10, ")
    assert [line[:13] for line in others] == ["  offset 659,", "  offset 766,", "  offset 782,"]
    out, _, _ = say("--at-offset", "600", node, "voters")
    assert out.startswith("* at or before offset 529, ")


def test_what_only_a_checkpoint_shows_happened_at_or_before(say):
    node = GOLDEN / "static-upgrade/node-4"
    out, _, _ = say(node, "log", "/image/topics/byName/old1")
    assert out.splitlines()[0].startswith(
        "     355  epoch 8  at or before 2026-11-21T09:37:16.583Z  checkpoint"
    )
    printed = json.loads(say("--format", "json", node, "log", "/image/topics/byName/old1")[0])
    assert {(event["offset"], event["is_exact"]) for event in printed} == {(355, False), (381, True)}


def test_a_conversation(talk):
    out, err = talk(
        "pwd",
        "cd /image/topics/byName",
        "pwd",
        "cat t-x/id ../byName/t-x/name",
        "at 1000",
        "ls",
        "cd ../../cluster/brokers/11",
        "cd nowhere",
        "cd",
        "pwd",
        "at end",
        "history 2",
        "exit",
        "pwd",
        code=ExitCode.USAGE,
    )
    lines = out.splitlines()
    assert lines[:4] == ["/", "/image/topics/byName", "1J03I7EuTeK8TGzu_22NnQ", "t-x"]
    assert lines[4].startswith("offset 1000, epoch 1, 2026-11-21T09:41:39.734Z")
    assert lines[5:9] == ["t-assign", "t-rf2", "t-small", "t-wide"]
    assert lines[9] == "/"
    assert lines[10].startswith("offset 3697")
    assert lines[11:] == ["   10  at end", "   11  history 2"]
    assert err.splitlines() == [
        "cd: /image/cluster/brokers/11: not a directory.",
        "cd: nowhere: no such file or directory.",
    ]


def test_mistakes_do_not_end_a_conversation(talk):
    mistakes = ("frobnicate", "cat", "ls 'open", "at noon", "at 99999", "man nope", "history x", "")
    out, err = talk(*mistakes, "pwd", code=ExitCode.USAGE)
    assert out == "/\n"
    assert err.splitlines() == [
        "Unknown command specified: frobnicate. Type help to get a list of commands.",
        "usage: cat PATH...",
        "No closing quotation",
        "at: 'noon' is not a moment: give an offset, a time such as 2026-11-21T09:42:33Z or 09:42"
        ", @ms since the epoch, or end",
        "at: offset 99999 is beyond the end of the log; its last offset is 3697",
        "man: unknown command nope. Type help to get a list of commands.",
        "history: 'x' is not a number of entries",
    ]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_has_shown_what_failed(talk):
    """A script learns it from the exit code alone: there, one of several commands that fails is an error."""
    out, _ = talk("cat /nowhere", "pwd", code=ExitCode.USAGE)
    assert out == "/\n"
    talk("pwd", code=ExitCode.FINE)
    talk("cat /nowhere", "pwd", code=ExitCode.FINE, stdin=Terminal)


def test_help_and_man_know_every_command(talk):
    out, _ = talk("help", *(f"man {name}" for name in COMMANDS))
    for name, command in COMMANDS.items():
        assert f"{command.usage:<24}{command.summary}" in out
        assert f"{name}: {command.summary}\n\nusage: {command.usage}\n" in out


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ("history", "man")])
def test_every_command_answers_in_json(say, name):
    needed = ["/image/producerIds/nextProducerId"] if COMMANDS[name].arguments[0] else []
    out, err, code = say("--format", "json", CHECKPOINT, name, *needed)
    json.loads(out)
    assert (err, code) == ("", ExitCode.FINE)


def test_json_of_a_tree(say):
    out, _, _ = say("--format", "json", CHECKPOINT, "tree", "/image/cluster/brokers", "/image/features")
    printed = json.loads(out)
    assert printed["/image/cluster/brokers"]["11"]["fenced"] is False
    assert printed["/image/features"]["metadataVersion"] == {"name": "metadata.version", "level": 30}


def test_no_secret_is_shown(say):
    out, _, _ = say(NODE, "tree", "/")
    json_out, _, _ = say("--format", "json", NODE, "tree", "/")
    log_out, _, _ = say("--format", "json", NODE, "log", "/image/scram", "/image/delegationToken")
    for shown in (out, json_out, log_out):
        assert "kLpBpqjCRL-oyRDZNj-EuQ" not in shown
        assert "6e6d733676756b6737647a7a6b617335" not in shown
        assert "storedKey=[redacted]" in shown or shown is not out


def test_completion():
    source = open_captured(CHECKPOINT)
    session = Session(source, source.image_at())

    def complete(line: str) -> list[str]:
        return shell.completions(session, line, line.rpartition(" ")[2])

    assert complete("") == [f"{name} " for name in COMMANDS]
    assert complete("e") == ["epochs ", "exit "]
    assert complete("man vo") == ["voters"]
    assert complete("ls /im") == ["/image/"]
    assert complete("cat /image/p") == ["/image/producerIds/", "/image/provenance"]
    assert complete("cat x /image/topics/byName/t-w") == ["/image/topics/byName/t-wide/"]
    assert complete("pwd /") == []
    assert complete("ls /nope/") == []
    session.directory = ("image",)
    assert complete("ls to") == ["topics/"]
    assert complete("ls ../im") == ["../image/"]


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        (["/nowhere"], "no such file or directory: /nowhere", ExitCode.USAGE),
        (
            [GOLDEN / "disk-failure"],
            "controller directories in .*; choose one: .*node-1",
            ExitCode.USAGE,
        ),
        ([GOLDEN / "corrupt"], "no controller directory in ", ExitCode.NOTHING_READABLE),
        (
            [GOLDEN / "README.md"],
            "nothing readable in .*: README.md is not a complete checkpoint",
            ExitCode.NOTHING_READABLE,
        ),
        (["--at-offset", "9999", NODE], "offset 9999 is beyond the end of the log", ExitCode.USAGE),
        (["--at-time", "tomorrow", NODE], "'tomorrow' is not a moment", ExitCode.USAGE),
        (
            ["--at-time", "2020-01-01", GOLDEN / "static-upgrade/node-4"],
            "before the oldest known state",
            ExitCode.USAGE,
        ),
        ([NODE, "frobnicate"], "Unknown command specified", ExitCode.USAGE),
        ([NODE, "history"], "only an interactive shell", ExitCode.USAGE),
    ],
)
def test_failures_say_what_is_wrong(words, message, code):
    with pytest.raises(Failure, match=message) as failure:
        run(*words)
    assert failure.value.exit_code == code


def test_unreadable_parts_are_reported_and_the_rest_shown(say, tmp_path):
    log = tmp_path / "00000000000000000408.log"
    log.write_bytes((GOLDEN / "corrupt/crc-flip-middle/00000000000000000408.log").read_bytes())
    out, err, code = say(log, "ls", "/image")
    assert "cannot be read: bad_crc" in err
    assert "no checkpoint covers the log before offset 408" in err
    assert out.startswith("acls\n")
    assert code == ExitCode.FINE


CORRUPT = [path for path in sorted((GOLDEN / "corrupt").glob("*/*")) if ".txt" not in path.name]
NOTHING_IN_THEM = {"all-zero", "checkpoint-empty", "empty-segment"}


@pytest.mark.parametrize("file", CORRUPT, ids=lambda path: path.parent.name)
def test_corrupt_files_are_shown_as_far_as_they_go(file, capsys):
    if file.parent.name in NOTHING_IN_THEM:
        with pytest.raises(Failure, match=f"nothing readable in .*{file.name}") as failure:
            run(file, "tree", "/image")
        assert failure.value.exit_code == ExitCode.NOTHING_READABLE
    else:
        assert run(file, "tree", "/image") == ExitCode.FINE
        whole = file.parent.name == "good" and file.suffix == ".checkpoint"
        assert (capsys.readouterr().err == "") == whole


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (None, ["a", "bb", "ccc", "dddd"]),
        (80, ["a  bb  ccc  dddd"]),
        (12, ["a   ccc", "bb  dddd"]),
        (3, ["a", "bb", "ccc", "dddd"]),
    ],
)
def test_columns(width, lines):
    assert list(in_columns(["a", "bb", "ccc", "dddd"], width)) == lines


def test_no_names_are_no_lines():
    assert list(in_columns([], 80)) == []
