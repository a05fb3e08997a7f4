"""The prompt of kraftlake sql, typed into by a terminal of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).parents[3]
PROGRAM = """
import sys
import time
from pathlib import Path
from jobs.runtime.outcome import Failure
from jobs.runtime.prompt import prompt

def answer(statement):
    if statement == "wrong":
        raise Failure("that was wrong")
    if statement == "slow":
        print("asking", flush=True)
        time.sleep(100)
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


def terminal(*words: str) -> tuple[int, subprocess.Popen[bytes]]:
    """Python with these words in a terminal of its own, where Ctrl-C is a key: our side of it."""
    ours, theirs = pty.openpty()

    def take_terminal() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # jobs of a shell's background ignore it
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    process = subprocess.Popen(
        [sys.executable, *words],
        cwd=CHECKOUT,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=take_terminal,
    )
    os.close(theirs)
    return ours, process


def until(ours: int, awaited: bytes) -> bytes:
    """What the terminal shows up to there."""
    shown = b""
    while awaited not in shown:
        assert select.select([ours], [], [], 60)[0], shown
        try:
            shown += os.read(ours, 1)  # no more than was awaited
        except OSError:
            raise AssertionError(f"it ended: {shown.decode()}") from None
    return shown


def until_asleep(process: subprocess.Popen[bytes]) -> None:
    """Wait until it waits for a key: a signal between a key and that is not seen before the next key."""
    while Path(f"/proc/{process.pid}/stat").read_text().rpartition(") ")[2][0] != "S":
        time.sleep(0.01)


def java_of(process: subprocess.Popen[bytes]) -> Path:
    """The folder in /proc of Spark's JVM."""
    (task,) = Path(f"/proc/{process.pid}/task").glob(str(process.pid))
    children = [Path("/proc", pid) for pid in (task / "children").read_text().split()]
    (java,) = (child for child in children if (child / "comm").read_text() == "java\n")
    return java


def seconds_computed(java: Path) -> float:
    """The CPU time of Spark's tasks."""
    ticks = 0
    for thread in (java / "task").iterdir():
        name, _, rest = (thread / "stat").read_text().partition("(")[2].rpartition(") ")
        if name.startswith("Executor task"):
            ticks += sum(map(int, rest.split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def until_computing(java: Path) -> None:
    """Wait until a task of Spark has run for longer than any of a short query."""
    before = seconds_computed(java)
    while seconds_computed(java) < before + 0.5:
        time.sleep(0.05)


def test_ctrl_c_ends_the_query_and_not_the_prompt(tmp_path: Path) -> None:
    ours, process = terminal("-c", PROGRAM, str(tmp_path / "history"))
    until(ours, b"kraftlake> ")
    os.write(ours, b"slow;\n")
    until(ours, b"asking")
    os.write(ours, b"\x03")
    until(ours, b"interrupted")
    os.write(ours, b"still here;\n")
    until(ours, b"asked 'still here'")
    until(ours, b"kraftlake> ")  # before it, Ctrl-C would not find the line that is typed
    os.write(ours, b"unfinished")
    until(ours, b"unfinished")
    until_asleep(process)
    os.write(ours, b"\x03")
    until(ours, b"kraftlake> ")
    os.write(ours, b"quit\n")
    assert process.wait(20) == 0
    os.close(ours)


# What a query is compared with, the seconds until Ctrl-C (None: until it runs), and those after it.
PLANNED, RUNNING = ("0", 0.3, 0), ("0", None, 0)
# Known when the query is planned, which it is by then.
SLOWLY_PLANNED = ("levenshtein(repeat('a', 30000), repeat('b', 30000))", 1, 8)


@pytest.mark.parametrize(
    "interruptions",
    [
        pytest.param((PLANNED, RUNNING), id="twice"),
        pytest.param(
            (PLANNED, RUNNING, SLOWLY_PLANNED, RUNNING), id="again and again", marks=pytest.mark.long
        ),
    ],
)
def test_ctrl_c_ends_a_query_of_spark(
    lake: Any, tmp_path: Path, interruptions: tuple[tuple[str, float | None, float], ...]
) -> None:
    """And what it computed, or would have once it is planned: the next one has the only core for itself.

    Before, the terminal shows the waits for Spark, and for the view of a statement, which is registered.
    """
    settings = tmp_path / "kraftlake.toml"
    settings.write_text('[spark]\n"spark.master" = "local[1]"\n')
    ours, process = terminal("-m", "jobs.cli", "sql", "--lake", str(lake.path), "--config", str(settings))
    until(ours, b"session")
    until(ours, b"\r\033[K")
    until(ours, b"kraftlake> ")
    os.write(ours, b"DESCRIBE TABLE zk_migrations;\n")
    until(ours, b"tables, views and plan of the statement")
    until(ours, b"\r\033[K")
    until(ours, b"brokers_in_zk_mode")
    java = java_of(process)
    for least, seconds, more in interruptions:
        until(ours, b"kraftlake> ")
        os.write(ours, f"SELECT SUM(HASH(id)) FROM RANGE(1000000000000) WHERE id > {least};\n".encode())
        if seconds is None:
            until_computing(java)  # for minutes
        else:
            time.sleep(seconds)  # it is being planned
        os.write(ours, b"\x03")
        until(ours, b"interrupted")
        until(ours, b"kraftlake> ")
        time.sleep(more)
        os.write(ours, b"SELECT 6 * COUNT(*) AS answer FROM RANGE(7);\n")
        until(ours, b"42")
    until(ours, b"kraftlake> ")
    os.write(ours, b"quit\n")
    assert process.wait(30) == 0
    os.close(ours)


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
