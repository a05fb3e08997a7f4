"""The page of the time machine: its commands answer what stands below them, its views exist."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from dashboards import definitions
from jobs.cli import main
from transforms.lake.tables import TABLES

CHECKOUT = Path(__file__).parents[3]
PAGE = (CHECKOUT / "docs/time-machine.md").read_text()
# A block with a command, and the block behind it.
SHOWN = re.findall(r"```\n(kraftlake [^\n]*)\n```\n\n```\n(.*?)```", PAGE, flags=re.DOTALL)


@pytest.mark.parametrize(("command", "shown"), SHOWN)
def test_a_command_answers_as_shown(
    command: str, shown: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CHECKOUT)
    assert main(shlex.split(command)[1:]) == 0
    assert capsys.readouterr().out == shown


def test_the_page_shows_every_view() -> None:
    assert [command.split()[1] for command, _ in SHOWN] == ["shell", "diff", "describe", "describe"]
    views = {s.split()[4] for s in definitions.statements("histories.sql")}
    listed = {
        name for row in re.findall(r"^\| (`.*?) \|", PAGE, re.M) for name in re.findall("`([a-z_]+)`", row)
    }
    assert listed - {table.name for table in TABLES} == views - {"partition_changes", "min_isr_periods"}


def test_its_query(ask: Any) -> None:
    (query,) = re.findall(r"```sql\n(.*?)```", PAGE, flags=re.DOTALL)
    assert [tuple(row) for row in ask(query).collect()] == [(0, -1, []), (1, 11, [11])]
