"""BEHAVIOURS.md names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
FILES = ("requests", "waiting", "restarts")
NAMED = re.compile(rf"({'|'.join(FILES)})((?: Test\w+,?)+)")


def test_every_test_that_covers_a_behaviour_exists() -> None:
    rows = [line for line in (HERE / "BEHAVIOURS.md").read_text().splitlines() if line.startswith("| ")]
    named = [
        (file, name)
        for row in rows
        for file, names in NAMED.findall(row)
        for name in re.findall(r"Test\w+", names)
    ]
    sources = {file: (HERE / f"test_{file}.py").read_text() for file in FILES}
    assert {file for file, _ in named} == set(FILES)
    assert [(file, name) for file, name in named if f"class {name}:" not in sources[file]] == []
    assert [row for row in rows if not row.startswith("| **") and not row.split("|")[3].strip()] == []
