"""docs/tutorial.md: every command is understood; blocks marked sh run in order, in one folder."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from jobs.cli import build_parser, main
from jobs.runtime.settings import Settings

CHECKOUT = Path(__file__).parents[2]
PAGE = (CHECKOUT / "docs/tutorial.md").read_text()
COMMANDS = [shlex.split(line)[1:] for line in re.findall(r"^kraftlake .*$", PAGE, re.MULTILINE)]
BLOCKS = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
OWN = next(block for block in re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL) if "expectations" in block)


def test_there_are_ten_tasks() -> None:
    headings = re.findall(r"^## (\d+)\. ", PAGE, re.MULTILINE)
    assert headings == [str(number) for number in range(1, 11)]


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_each_command_is_understood(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [word.replace("/data/", "").replace("/srv/www/", "") for word in words]
    assert build_parser(words[0], Settings()).parse_args(words).verb == words[0]


@pytest.mark.usefixtures("spark")
def test_the_blocks_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One after the other as a reader runs them, with what the page says of their answers."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tests").symlink_to(CHECKOUT / "tests")
    said: list[str] = []
    for line in "".join(BLOCKS).splitlines():
        assert main(shlex.split(line)[1:]) == 0, line
        said.append(capsys.readouterr().out)
    answers = "\n".join(said)
    assert "It is truncated, replaced by epoch 3" in answers
    assert "SAFE: nothing committed is lost" in answers
    assert "metadata.version" in answers
    assert (tmp_path / "quorum.html").is_file()
    assert "kraftlake_open_findings" in (tmp_path / "kraftlake.prom").read_text()


def test_the_settings_take_the_expectation_of_task_five(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kraftlake.toml").write_text(OWN)
    assert main(["config"]) == 0
    assert "two_replicas_at_least" in capsys.readouterr().out
