"""The prompt of kraftlake sql: statements over several lines, remembered between sessions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from jobs.runtime.outcome import Failure

HISTORY = Path.home() / ".kraftlake_history"
HISTORY_LINES = 1000
HELP = "End a statement by ; and leave by Ctrl-D or quit. SHOW TABLES; SHOW VIEWS; DESCRIBE TABLE voter_sets;"


def prompt(answer: Callable[[str], None], history: Path = HISTORY) -> None:
    """Answer statements until the end of input or `quit`; what is wrong with one is said in a line."""
    remember = remembering(history)
    print(HELP, file=sys.stderr)
    typed = ""
    while True:
        try:
            line = input("     ...> " if typed else "kraftlake> ")
        except EOFError:
            print(file=sys.stderr)
            break
        except KeyboardInterrupt:
            print(file=sys.stderr)
            typed = ""
            continue
        if not typed and line.strip().rstrip(";").lower() in ("quit", "exit"):
            break
        typed = f"{typed}\n{line}".strip()
        if typed.endswith(";"):
            told(answer, typed.rstrip("; \n"))
            typed = ""
    remember()


def told(answer: Callable[[str], None], statement: str) -> None:
    """Answer one statement; what is wrong with it ends neither the session nor its history."""
    if not statement:
        return
    try:
        answer(statement)
    except Failure as failure:
        print(failure, file=sys.stderr)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)


def remembering(history: Path) -> Callable[[], None]:
    """Line editing with the history of earlier sessions, where this Python has it. Returns what keeps it."""
    try:
        import readline
    except ImportError:
        return lambda: None
    with suppress(OSError):  # none yet, or not ours to read
        readline.read_history_file(history)
    readline.set_history_length(HISTORY_LINES)

    def remember() -> None:
        with suppress(OSError):
            readline.write_history_file(history)

    return remember
