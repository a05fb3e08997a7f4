"""The prompt of kraftlake sql: multi-line statements, with a history that persists between sessions."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from jobs.runtime.interrupt import interrupt_each_time
from jobs.runtime.outcome import Failure
from jobs.runtime.output import warn_line

HISTORY = Path.home() / ".kraftlake_history"
HISTORY_LINES = 1000
HELP = "End a statement with ; and leave with Ctrl-D. Try SHOW TABLES; SHOW VIEWS; DESCRIBE TABLE voter_sets;"


def prompt(answer: Callable[[str], None], history: Path = HISTORY) -> None:
    """Run statements until the end of input or `quit`; a failing statement prints one line."""
    save_history = _load_history(history)
    warn_line(HELP)
    try:
        with interrupt_each_time():
            _ask_and_run(answer)
    finally:  # also where the JVM ends
        save_history()


def _ask_and_run(answer: Callable[[str], None]) -> None:
    """Ctrl-C drops what is typed, or ends the query that runs."""
    typed = ""
    while True:
        try:
            line = input("     ...> " if typed else "kraftlake> ")
        except EOFError:
            warn_line("")
            return
        except KeyboardInterrupt:
            warn_line("")
            typed = ""
            continue
        if not typed and line.strip().rstrip(";").lower() in ("quit", "exit"):
            return
        typed = f"{typed}\n{line}".strip()
        if typed.endswith(";"):
            _run_statement(answer, typed.rstrip("; \n"))
            typed = ""


def _run_statement(answer: Callable[[str], None], statement: str) -> None:
    """Run one statement; a failure ends neither the session nor its history."""
    if not statement:
        return
    try:
        answer(statement)
    except Failure as failure:
        warn_line(failure)
    except KeyboardInterrupt:
        warn_line("interrupted")


def _load_history(history: Path) -> Callable[[], None]:
    """Enable line editing with the history of earlier sessions, if this Python has readline.

    Returns the function that saves the history.
    """
    try:
        import readline
    except ImportError:
        return lambda: None
    with suppress(OSError):  # there is none yet, or it is not readable
        readline.read_history_file(history)
    readline.set_history_length(HISTORY_LINES)

    def save() -> None:
        with suppress(OSError):
            readline.write_history_file(history)

    return save
