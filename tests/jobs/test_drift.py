"""diff --desired and export as a user calls them; docs/drift.md answers what it shows."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from jobs.cli import main

CHECKOUT = Path(__file__).parents[2]
NODE = "tests/golden/dynamic-membership/node-1"
DYNAMIC = "rPoTXydvQsK3Nv6AA77Cqg"
SHOWN = re.findall(
    r"```\n(kraftlake [^\n]*)\n```\n\n```\n(.*?)```",
    (CHECKOUT / "docs/drift.md").read_text(),
    flags=re.DOTALL,
)


@pytest.fixture(autouse=True)
def _in_the_checkout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CHECKOUT)


def asked(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""
    capsys.readouterr()
    code = main([str(word) for word in words])
    return code, *capsys.readouterr()


@pytest.mark.parametrize(("command", "shown"), SHOWN)
def test_the_page_shows_what_is_answered(
    command: str, shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = asked(capsys, *shlex.split(command)[1:])
    assert (code, out) == (1 if "--desired" in command else 0, shown)


def test_the_page_has_an_example_of_both() -> None:
    assert [command.split()[1] for command, _ in SHOWN] == ["diff", "export"]


@pytest.mark.parametrize("placement", [[], ["--placement"]])
def test_a_moment_is_as_its_export_desires_and_another_is_not(
    placement: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, text, said = asked(capsys, "export", *placement, "--at", "1894", NODE)
    assert code == 0
    assert said.splitlines() == [
        "not exported: the passwords of 3 SCRAM credentials: the log contains none",
        "not exported: 1 delegation token: the log does not contain their secrets",
    ]
    file = tmp_path / "desired.yaml"
    file.write_text(text)
    code, out, _ = asked(capsys, "diff", "--desired", file, "--at", "1894", NODE)
    assert (code, out.splitlines()[2:]) == (0, ["no difference"])
    code, out, _ = asked(capsys, "diff", "--desired", file, "--format", "json", NODE)
    found = json.loads(out)
    assert (code, found["at"]["offset"], found["not_named"]) == (1, 3696, {})
    assert {
        "section": "topics",
        "subject": "topic t-small",
        "change": "changed",
        "attribute": "config retention.ms",
        "actual": "1000019",
        "desired": "1000029",
    } in found["differences"]


def test_a_lake_is_in_the_same_state(lake: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    of_lake = ("--lake", lake.path, "--cluster", DYNAMIC)
    _, text, _ = asked(capsys, "export", "--at", "1894", *of_lake)
    _, of_node, _ = asked(capsys, "export", "--at", "1894", NODE)
    assert text.splitlines()[1:] == of_node.splitlines()[1:]
    (tmp_path / "desired.yaml").write_text(text)
    code, out, _ = asked(capsys, "diff", "--desired", tmp_path, "--at", "1894", *of_lake)
    assert (code, out.splitlines()[2:]) == (0, ["no difference"])


def test_evidence_that_is_taken_away_is_no_state(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A log without its beginning reaches only so far back; a gap is said."""
    log = tmp_path / "00000000000000000408.log"
    log.write_bytes(Path("tests/golden/corrupt/crc-flip-middle/00000000000000000408.log").read_bytes())
    code, _, said = asked(capsys, "export", "--at", "100", log)
    assert (code, "100 is gone; the oldest known state is the one after offset 407" in said) == (2, True)
    code, out, said = asked(capsys, "export", log)
    assert (code, "cannot be read: bad_crc" in said) == (1, True)
    assert "no checkpoint covers the log before offset 408" in said
    (tmp_path / "desired.yaml").write_text(out)
    code, out, _ = asked(capsys, "diff", "--desired", tmp_path, log)
    assert (code, "not known: no checkpoint covers the log before offset 408" in out) == (1, True)
    assert out.endswith("no difference in what is known\n")
    checkpoint = Path(NODE) / "__cluster_metadata-0/00000000000000000453-0000000001.checkpoint"
    code, _, said = asked(capsys, "export", "--at", "2020-01-01", checkpoint)
    assert code == 2
    assert "covers 2026-11-21T09:41:25.880Z to 2026-11-21T09:41:25.880Z" in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["diff", NODE], "give --from and --to, or --desired FILE"),
        (["diff", "--from", "1", NODE], "give --from and --to, or --desired FILE"),
        (["diff", "--from", "1", "--to", "2", "--at", "3", NODE], "--at belongs to --desired"),
        (["diff", "--desired", "x", "--to", "3", NODE], "--desired replaces --from and --to"),
        (["diff", "--desired", "nope.yaml", NODE], "nope.yaml: No such file or directory"),
        (["diff", "--desired", "docs/quorum.png", NODE], "docs/quorum.png is not UTF-8"),
        (["diff", "--desired", "docs/drift.md", NODE], "docs/drift.md, line 3: "),
        (["diff", "--desired", "kraft_core", NODE], "kraft_core contains no *.yaml or *.yml"),
        (["diff", "--desired", "docs/desired-example.yaml"], "give a controller directory"),
        (["diff", "--desired", "docs/desired-example.yaml", "--at", "soon", NODE], "'soon' is not a moment"),
        (["export"], "give a controller directory"),
        (["export", "--at", "2020-01-01", NODE], "history, which covers 2026-11-21T09:40:31.847Z"),
        (["export", "--at", "99999", NODE], "offset 99999 is beyond the end of the log"),
    ],
)
def test_wrong_usage_says_what_is_wrong(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, said = asked(capsys, *words)
    assert (code, out) == (2, "")
    assert message in said


def test_files_that_state_nothing_are_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other.yaml").write_text("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n")
    code, _, said = asked(capsys, "diff", "--desired", tmp_path, NODE)
    assert (code, said.splitlines()[0]) == (2, "not compared: Pod p")
    assert "the desired files contain no desired state" in said
