"""The prompt of kraftlake sql, typed into by a terminal of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

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
    ours, process = terminal("-c", PROGRAM, str(history))
    shown = until(ours, b"kraftlake> ")
    os.write(ours, text.encode())
    try:
        while chunk := os.read(ours, 4096):
            shown += chunk
    except OSError:  # how a terminal says that the other side is gone
        pass
    os.close(ours)
    assert process.wait(20) == 0
    return shown.decode()


def terminal(*words: str, **environment: str) -> tuple[int, subprocess.Popen[bytes]]:
    """Python with these words in a terminal of its own, where Ctrl-C is a key: our side of it."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, *words],
        cwd=CHECKOUT,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=os.environ | environment,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    return ours, process


def until(ours: int, awaited: bytes) -> bytes:
    """What the terminal shows up to there."""
    shown = b""
    while awaited not in shown:
        shown += os.read(ours, 4096)
    return shown


def test_ctrl_c_ends_the_query_and_not_the_prompt(lake: Any, tmp_path: Path) -> None:
    words = ("-m", "jobs.cli", "sql", "--lake", str(lake.path), "--format", "csv")
    ours, process = terminal(*words, HOME=str(tmp_path))
    until(ours, b"kraftlake> ")
    began = time.monotonic()
    os.write(ours, b"SELECT SUM(HASH(a.id, b.id)) FROM RANGE(10000000) a CROSS JOIN RANGE(10000000) b;\n")
    until(ours, b"b;\r\n")
    time.sleep(5)
    os.write(ours, b"\x03")
    until(ours, b"interrupted")
    os.write(ours, b"SELECT 'still' || ' here' AS answer;\n")
    until(ours, b"still here\r\n")
    assert time.monotonic() - began < 60
    os.write(ours, b"unfinished\x03quit\n")
    until(ours, b"quit")
    assert process.wait(60) == 0
    os.close(ours)
    assert "SELECT 'still' || ' here' AS answer;" in (tmp_path / ".kraftlake_history").read_text()


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
