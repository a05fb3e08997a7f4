"""The prompt of kraftlake sql, typed into by a terminal of its own."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[3]
PROGRAM = """
import sys
from pathlib import Path
from jobs.runtime.outcome import Failure
from jobs.runtime.prompt import prompt

def answer(statement):
    if statement == "wrong":
        raise Failure("that was wrong")
    print("asked", repr(statement))

prompt(answer, Path(sys.argv[1]))
"""


def typed(history: Path, text: str) -> str:
    """What the terminal shows when this is typed into the prompt."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(history)],
        cwd=CHECKOUT,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    shown = b""
    while b"kraftlake> " not in shown:
        shown += os.read(ours, 4096)
    os.write(ours, text.encode())
    try:
        while chunk := os.read(ours, 4096):
            shown += chunk
    except OSError:  # how a terminal says that the other side is gone
        pass
    os.close(ours)
    assert process.wait(20) == 0
    return shown.decode()


def test_statements_over_lines_errors_and_history(tmp_path: Path) -> None:
    history = tmp_path / "history"
    shown = typed(history, "SELECT 1;\nwrong;\nSELECT\n2;\nquit\n")
    asked = [line.strip() for line in shown.splitlines() if line.startswith(("asked", "that"))]
    assert asked == ["asked 'SELECT 1'", "that was wrong", r"asked 'SELECT\n2'"]
    assert history.read_text().splitlines() == ["SELECT 1;", "wrong;", "SELECT", "2;", "quit"]
    # Arrow up, up brings back what was typed in the session before.
    assert "asked '2'" in typed(history, "\x1b[A\x1b[A\n\x04")


def test_the_end_of_input_leaves(tmp_path: Path) -> None:
    assert "asked" not in typed(tmp_path / "history", "\x04")
