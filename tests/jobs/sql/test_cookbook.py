"""The cookbook's queries give the answers that it shows, and a file of queries can be run."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobs.questions.row_text import show_table

COOKBOOK = Path(__file__).parents[3] / "docs" / "cookbook.md"
RECIPE = re.compile(r"^## \d+\. ([^\n]+)\n\n```sql\n(.*?)```\n\n```\n(.*?)```", re.DOTALL | re.MULTILINE)
RECIPES = RECIPE.findall(COOKBOOK.read_text())


def test_there_are_enough() -> None:
    assert len(RECIPES) >= 15
    assert len(RECIPES) == COOKBOOK.read_text().count("\n## ")


@pytest.mark.parametrize(("sql", "answer"), [r[1:] for r in RECIPES], ids=[r[0] for r in RECIPES])
def test_the_query_gives_the_answer_shown(ask: Callable[[str], Any], sql: str, answer: str) -> None:
    frame = ask(sql)
    out = io.StringIO()
    show_table(frame.columns, [tuple(row) for row in frame.collect()], out)
    assert out.getvalue() == answer
