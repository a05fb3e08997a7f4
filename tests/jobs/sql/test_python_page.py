"""docs/python.md: its blocks run in order, in one program, and print what the page shows."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parents[3] / "docs/python.md").read_text()
BLOCK = re.compile(r"```python\n(.*?)```(?:\n\n```\n(.*?)```)?", re.DOTALL)


def test_the_page_runs(lake: Any, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = BLOCK.findall(PAGE)
    assert len(blocks) == PAGE.count("```python") >= 6
    program: dict[str, Any] = {}
    for code, shown in blocks:
        capsys.readouterr()
        exec(code.replace('".lake', f'"{lake.path}'), program)
        if shown:
            assert capsys.readouterr().out == shown
    assert program["code"] == 0
    assert program["unmet"].count() == 0
    assert len(program["sets"]) > 10
