"""notebooks/who-led-when.ipynb: its cells run in order and show what it stores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.notebook import NOTEBOOK, outputs, stored


@pytest.mark.usefixtures("spark")
def test_the_notebook_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside a checkout's tests, in a folder of its own; the shared session is the one that it opens."""
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "tests").symlink_to(NOTEBOOK.parents[1] / "tests")
    monkeypatch.chdir(tmp_path / "notebooks")
    notebook = json.loads(NOTEBOOK.read_text())
    found = list(outputs(notebook))
    shown = stored(notebook)
    assert "5 sets" in printed(found[0])  # the rest of it has times of the run
    assert [printed(cell) for cell in found[1:]] == [printed(cell) for cell in shown[1:]]
    assert [kinds(cell) for cell in found] == [kinds(cell) for cell in shown]
    assert kinds(found[-1]) == ["display_data"]
    assert "|3           |2   |2026-11-21 09:15:31" in printed(found[1])


def printed(outputs_of_cell: list[dict[str, Any]]) -> str:
    return "".join(line for output in outputs_of_cell for line in output.get("text", ()))


def kinds(outputs_of_cell: list[dict[str, Any]]) -> list[str]:
    return [output["output_type"] for output in outputs_of_cell]
