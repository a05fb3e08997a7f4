"""The pages on plan, protocol and metrics: each command in them is run and prints what the page shows."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from jobs.cli import main
from jobs.metrics import HELP
from kraft_core.protocol.roles import mermaid

CHECKOUT = Path(__file__).parents[2]
PAGE = (CHECKOUT / "docs/plan.md").read_text()
# A block with a command, and the block after it.
SHOWN = re.findall(r"```\n(kraftlake (?:plan|features) [^\n]*)\n```\n\n```\n(.*?)```", PAGE, flags=re.DOTALL)


def test_the_page_shows_commands() -> None:
    assert len(SHOWN) == PAGE.count("```\nkraftlake ") == 20


@pytest.mark.parametrize(("command", "shown"), SHOWN)
def test_a_command_answers_as_shown(
    command: str, shown: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CHECKOUT)
    code = main(shlex.split(command)[1:])
    refused = 5 if " plan load " in command else 1
    is_fine = shown.startswith("SAFE") or command.startswith("kraftlake features ")
    assert code == (0 if is_fine else refused)
    assert capsys.readouterr().out.startswith(shown)


def test_the_diagram_is_the_table() -> None:
    drawn = re.search(r"```mermaid\n(.*?)\n```", (CHECKOUT / "docs/protocol.md").read_text(), flags=re.DOTALL)
    assert drawn is not None
    assert drawn[1] == mermaid()


def test_every_metric_is_on_its_page() -> None:
    listed = re.findall(
        r"^\| `(kraftlake_\w+)` \| (.*) \|$", (CHECKOUT / "docs/metrics.md").read_text(), re.M
    )
    assert dict(listed) == HELP
