"""`python -m kraft_core.simulation`: the examples of docs/protocol.md, its files and its usage errors."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.simulation.__main__ import main

PAGE = (Path(__file__).parents[3] / "docs/protocol.md").read_text()
COMMAND = "python -m kraft_core.simulation "
EXAMPLES = re.findall(rf"```\n{COMMAND}([^\n]*)\n```\n\n```\n(.*?)```", PAGE, flags=re.DOTALL)


def test_the_page_has_two_examples() -> None:
    assert len(EXAMPLES) == PAGE.count(f"\n{COMMAND}") == 2


@pytest.mark.parametrize(("arguments", "output"), EXAMPLES)
def test_an_example_prints_what_the_page_shows(
    arguments: str,
    output: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    code = main(shlex.split(arguments))
    assert capsys.readouterr().out == output
    assert code == (1 if "breaks rule" in output else 0)


def test_the_replicas_are_written_as_controller_directories(tmp_path: Path) -> None:
    path = tmp_path / "captures"
    assert main(["--seed", "3", "--actions", "10", "--directories", str(path)]) == 0
    found = find_controller_dirs([path])
    assert found.refused == ()
    assert [directory.meta.node_id for directory in found.directories if directory.meta] == [1, 2, 3, 4]
    assert all(directory.captured_at and directory.faults == () for directory in found.directories)


@pytest.mark.parametrize(
    "arguments", [[], ["--seed", "1", "--voters", "0"], ["--seed", "1", "--brokers", "-1"]]
)
def test_impossible_quorums_are_usage_errors(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)
    assert exit_.value.code == 2


def test_an_existing_directory_is_not_overwritten(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        main(["--seed", "1", "--directories", str(tmp_path)])
