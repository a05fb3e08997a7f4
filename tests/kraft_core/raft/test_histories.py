"""The histories in tests/histories, replayed by the engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kraft_core.raft.history_text import play

HISTORIES = Path(__file__).parents[2] / "histories"


@pytest.mark.parametrize("path", sorted(HISTORIES.glob("*.txt")), ids=lambda path: path.stem)
def test_history(path: Path) -> None:
    assert play(path) >= 3


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("bootstrapped log with 1:A\n  log 0 to 1\n", "found: log 0 to 0"),
        ("bootstrapped log with 1:A\n  voters 1:B bootstrap\n", "found: voters 1:A bootstrap"),
        ("delete everything\n", "no such operation"),
        ("empty log\n  weather fine\n", "no such fact"),
    ],
)
def test_what_the_engine_does_not_say_fails(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "history.txt"
    path.write_text(text)
    with pytest.raises(AssertionError, match=complaint):
        play(path)
