"""What a user types: misspelt words, help and versions, moments and folders that cannot be."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import shutil
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from jobs.cli import VERBS, build_parser, main
from jobs.runtime import finding_text
from jobs.runtime.settings import Settings
from kraft_core.wording import did_you_mean
from tests.jobs.test_cli import kraftlake

NODE = Path(__file__).parents[1] / "golden" / "dynamic-membership" / "node-1"


def usage(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""
    try:
        code = main([str(word) for word in words])
    except SystemExit as end:
        code = int(end.code or 0)
    return code, *capsys.readouterr()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["rum"], "kraftlake: unknown verb rum; did you mean run?"),
        (["helpp"], "kraftlake: unknown verb helpp; did you mean help?"),
        (["--verison"], "kraftlake: unknown option --verison; did you mean --version?"),
        (["help", "shel"], "kraftlake: unknown verb shel; did you mean shell?"),
        (["fly"], "kraftlake: unknown verb fly: it is one of run, ingest, "),
        (["findings", "lst"], "kraftlake findings: unknown verb lst; did you mean list?"),
        (
            ["dump", "--fromat", "text", "x"],
            "kraftlake dump: unknown option --fromat; did you mean --format?",
        ),
        (["dump", "--verbose=1", "x"], "kraftlake dump: unknown option --verbose"),
        (["dump", "-v", "x"], "kraftlake dump: unknown option -v"),
        (
            ["explain", "--lkae", "x", "--recovery"],
            "kraftlake explain: unknown option --lkae; did you mean --lake?",
        ),
        (
            ["explain", "--recovery"],
            "kraftlake explain: the following arguments are required: --lake PATH, or "
            'lake = "PATH" in kraftlake.toml',
        ),
        (
            ["findings", "list", "--lake", "x", "--sate", "all"],
            "findings list: unknown option --sate; did you mean --state?",
        ),
        (["sql", "--lake", "x", "--format", "jsn"], "argument --format: jsn is unknown; did you mean json?"),
        (
            ["sql", "SELECT 1", "--lake", "x", "--out", "no/such/folder/a.csv"],
            "argument --out: there is no folder no/such/folder for a.csv",
        ),
        (
            ["maintain", "--lake", "x", "--keep-days", "-1"],
            "'-1' is not a number of days, 0 or more",
        ),
        (["maintain", "--lake", "x", "--keep-days", "nan"], "--keep-days: 'nan' is not a number of days"),
        (["maintain", "--lake", "x", "--keep-days", "1e9"], "--keep-days: '1e9' is not a number of days"),
        (
            ["maintain", "--lake", "x", "--wait", "soon"],
            "'soon' is not a number of seconds, 0 or more",
        ),
        (["sql", "SELECT 1", "--lake", "x", "--out", "/"], "argument --out: / is a folder"),
        (
            ["run", "--captures", "x", "--lake", "x", "--log", "no/such/log"],
            "argument --log: there is no folder",
        ),
        (["metrics", "--lake", "x", "--out", "no/such/a.prom"], "argument --out: there is no folder no/such"),
        (
            ["restore", "plan", "--captures", "x", "--voters", "1@h:1", "--out", "no/plan.json"],
            "argument --out: there is no folder no for plan.json",
        ),
        (
            ["restore", "rehearse", "--captures", "x", "--metrics", "no/a.prom"],
            "argument --metrics: there is no folder no for a.prom",
        ),
        (["clusters", "a", "--lake", "x"], "kraftlake clusters: too many arguments: a"),
        (
            ["explain", "--lake", "x", "--offset", "-5"],
            "argument --offset: -5 is not an offset: the log begins at 0",
        ),
    ],
)
def test_one_line_says_what_is_wrong_and_another_where_to_look(capsys, words, says):
    code, out, err = usage(capsys, *words)
    assert (code, out) == (2, "")
    first, second = err.splitlines()
    assert says in first
    assert second.endswith(" --help lists the options")


@pytest.mark.parametrize(
    "words",
    [
        ["--partitions", "3", "a", "b"],
        ["a", "--partitions", "3", "b"],
        ["a", "--partitions", "3", "--", "b"],
    ],
)
def test_words_may_follow_options(words):
    parser = build_parser("plan", Settings())
    assert parser.parse_args(["plan", "topic", "create", *words]).words == ["create", "a", "b"]


def test_words_behind_two_dashes_may_begin_with_one(capsys):
    words = ["plan", "topic", "delete", "--captures", "x", "--", "--help", "-rf"]
    assert build_parser("plan", Settings()).parse_args(words).words == ["delete", "--help", "-rf"]
    code, _, err = usage(capsys, "plan", "topic", "delete", "a", "-rf", "--captures", "x")
    assert code == 2
    assert err.startswith("kraftlake plan: unknown option -rf\n")


def test_a_word_near_nothing_suggests_nothing():
    assert did_you_mean("xyzzy", VERBS) == ""
    assert did_you_mean("MYTOPIC", ["mytopics"]) == "; did you mean mytopics?"
    assert did_you_mean("x", []) == ""
    assert did_you_mean("add-controller", ["add", "remove"]) == "; did you mean add?"


def test_help_of_a_verb(capsys):
    assert usage(capsys, "help", "dump") == usage(capsys, "dump", "--help")
    assert usage(capsys, "help", "help") == usage(capsys, "--help")
    assert usage(capsys, "help", "findings", "list") == usage(capsys, "findings", "list", "--help")
    code, out, err = usage(capsys, "help")
    assert (code, err) == (0, "")
    assert out == usage(capsys, "--help")[1]
    assert "kraftlake help VERB" in out


def test_versions(capsys):
    code, out, _ = usage(capsys, "--version")
    assert code == 0
    assert out.startswith("kraftlake ")
    code, lines, _ = usage(capsys, "version")
    assert code == 0
    assert lines.splitlines()[0] == out.strip()
    assert f"Python {sys.version.split()[0]}" in lines
    assert [line.split()[0] for line in lines.splitlines()[3:]] == ["PySpark", "Delta", "delta-rs", "Java"]


def test_a_cluster_that_is_not_captured(capsys, golden, tmp_path):
    mini = golden / "v4.4.0-mini"
    near = ("run", "--captures", mini, "--lake", tmp_path / "lake", "--cluster", "roWi3HLRRCuDirielH5nwn")
    code, _, err = usage(capsys, *near)
    assert code == 2
    assert "did you mean roWi3HLRRCuDirielH5nnw?" in err
    code, _, err = usage(capsys, "plan", "remove", 1, "--captures", mini, "--cluster", "roWi3HLRRCuDirielH5n")
    assert code == 2
    assert "did you mean roWi3HLRRCuDirielH5nnw?" in err


@pytest.mark.parametrize(
    "dashed", ["-oWi3HLRRCuDirielH5nnw", "--Wi3HLRRCuDirielH5nnw", "-oWi3HLRRCuDirielH5nnw/a"]
)
def test_the_id_of_a_cluster_may_begin_with_a_dash(dashed):
    for words in (["--cluster", dashed], [f"--cluster={dashed}"]):
        assert build_parser("validate", Settings()).parse_args(
            ["validate", "--lake", "x", *words]
        ).cluster == [dashed]
    words = ["plan", "remove", "1", "--cluster-id", dashed, "--cluster", dashed, "--captures", "x"]
    made = build_parser("plan", Settings()).parse_args(words)
    assert (made.cluster_id, made.cluster, made.captures) == ([dashed], dashed, [Path("x")])


def test_an_option_is_no_id(capsys):
    for words in (["--cluster", "--format", "json"], ["--cluster", "--cluster-id", "x"], ["--cluster", "-x"]):
        code, _, err = usage(capsys, "plan", "remove", 1, "--captures", "x", *words)
        assert code == 2
        assert "argument --cluster: expected one argument" in err
    words = ["plan", "topic", "delete", "--captures", "x", "--", "--cluster", "-oWi3HLRRCuDirielH5nnw"]
    assert build_parser("plan", Settings()).parse_args(words).words[1:] == words[-2:]


REACHES = "is before this history, which covers 2026-11-21T09:40:31.847Z to 2026-11-21T09:44:03.041Z\n"


@pytest.mark.parametrize(
    "words",
    [
        ["shell", "--at-time", "2020-01-01", NODE, "ls", "/image"],
        ["shell", NODE, "at", "2020-01-01"],
        ["diff", "--from", "2020-01-01", "--to", "2020-01-02", NODE],
        ["diff", "--from", "2026-11-21T09:40:31.846Z", "--to", "end", NODE],
    ],
)
def test_a_time_before_the_history_says_how_far_it_reaches(capsys, words):
    code, out, err = usage(capsys, *words)
    assert code != 0
    assert out == ""
    assert err.endswith(REACHES)


def test_a_time_after_the_history_is_warned_of(capsys):
    code, out, err = usage(capsys, "shell", "--at-time", "2030-01-01", NODE, "ls", "/image")
    assert code == 0
    assert out
    assert "2030-01-01T00:00:00.000Z is after the newest record, which is of 2026-11-21T09:44:03.041Z" in err
    assert usage(capsys, "shell", "--at-time", "2026-11-21T09:44:03.041Z", NODE, "ls", "/image")[2] == ""


@pytest.fixture
def broker(tmp_path):
    """A broker's log directory, that of a topic in it."""
    folder = tmp_path / "captures" / "broker"
    (folder / "topic-0").mkdir(parents=True)
    shutil.copy(NODE / "meta.properties", folder)
    (folder / "topic-0" / "00000000000000000000.log").write_bytes(b"")
    return folder


def test_a_brokers_directory_among_captures_is_named(capsys, broker, tmp_path):
    shutil.copytree(NODE, broker.parent / "node-1")
    words = ("run", "--captures", broker.parent, "--lake", tmp_path / "lake", "--dry-run")
    code, out, err = usage(capsys, *words)
    assert code == 0
    assert len(out.splitlines()) == 1
    assert "  2026-11-21T09:44:09.058Z (capture.json)  " in out
    assert err == (
        f"left out: {broker}: a log directory of Kafka, perhaps a broker's, without __cluster_metadata-0: a "
        "controller has that in its metadata.log.dir\n"
    )


@pytest.mark.parametrize(
    "words",
    [("shell", "BROKER", "ls", "/"), ("capture", "BROKER", "--to", "TO"), ("run", "--captures", "BROKER")],
)
def test_a_brokers_directory_alone(capsys, broker, tmp_path, words):
    named = {"BROKER": broker, "TO": tmp_path / "to"}
    words = [named.get(word, word) for word in words]
    code, out, err = usage(capsys, *words, *(["--lake", tmp_path / "lake"] if words[0] == "run" else []))
    assert code == 3
    assert out == "" if words[0] != "run" else json.loads(out)["exit_code"] == 3
    assert f"{broker}: a log directory of Kafka, perhaps a broker's, without __cluster_metadata-0" in err
    assert not (tmp_path / "to").exists()
    assert not (tmp_path / "lake").exists()


def test_a_metadata_log_without_a_file_is_no_log_to_copy(capsys, tmp_path):
    (tmp_path / "node/__cluster_metadata-0").mkdir(parents=True)
    shutil.copy(NODE / "meta.properties", tmp_path / "node")
    code, out, err = usage(capsys, "capture", tmp_path / "node", "--to", tmp_path / "to")
    assert (code, out) == (3, "")
    assert (
        "its __cluster_metadata-0 contains neither a segment nor a checkpoint: there is no log to copy" in err
    )
    assert not (tmp_path / "to").exists()


def test_paragraphs_are_as_wide_as_the_terminal(monkeypatch):
    text = "word " * 60
    assert max(map(len, finding_text.wrapped(text))) > 90
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, finding_text.wrapped(text))) < 60
    monkeypatch.setenv("COLUMNS", "300")
    assert 90 < max(map(len, finding_text.wrapped(text))) <= 100


def test_help_is_as_wide_as_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    lines = kraftlake("help", "dump").stdout.split("examples:")[0].splitlines()
    assert max(map(len, lines[:40])) <= max(60, len(lines[-2]))
    assert "\x1b" not in os.linesep.join(lines)


@pytest.mark.parametrize("columns", [None, "", "0", "-3", "x", "100"])
def test_help_asks_for_the_width_as_shutil_does(columns):
    """On a terminal of 57 columns, on one that does not know how wide it is, and without a terminal."""
    script = (
        "import shutil, sys; from jobs.runtime.command_parser import _terminal_columns;"
        "print(_terminal_columns(), shutil.get_terminal_size().columns, file=sys.stderr)"
    )
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    env |= {} if columns is None else {"COLUMNS": columns}
    wide, unknown = pty.openpty(), pty.openpty()
    fcntl.ioctl(wide[0], termios.TIOCSWINSZ, struct.pack("4H", 20, 57, 0, 0))
    found = []
    for stdout in (wide[1], unknown[1], subprocess.DEVNULL):
        done = subprocess.run(
            [sys.executable, "-c", script], stdout=stdout, stderr=subprocess.PIPE, env=env, check=True
        )
        ours, theirs = done.stderr.split()
        assert ours == theirs
        found.append(int(ours))
    for each in (*wide, *unknown):
        os.close(each)
    assert found == ([100] * 3 if columns == "100" else [57, 80, 80])
