"""Lines of text and of JSON for a terminal, in which names from captures cannot act.

A name may hold any character that Kafka's log can: escape sequences that move the cursor, line ends that
forge a line, characters that reverse the direction of text. They are printed as JSON escapes them (\\u001b,
\\n), which is also what they are in a line of JSON.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, TextIO

LINES_AT_ONCE = 1000


def printable(text: str) -> str:
    """The text with every character that is not printable (Python's definition) as JSON escapes it."""
    if text.isprintable():
        return text
    # Not imported before it is needed: see jobs.cli.
    import json

    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


def print_line(line: object = "", file: TextIO | None = None) -> None:
    """Print one line, printable, on stdout or the file."""
    print(printable(str(line)), file=file)


def print_lines(lines: Iterable[object]) -> None:
    """Print each line, printable, on stdout."""
    for line in lines:
        print_line(line)


def print_tabbed(lines: Iterable[str]) -> None:
    """Print each line on stdout as a tool of Kafka does: tabs stay, what is between them is printable."""
    left = iter(lines)
    while some := list(islice(left, LINES_AT_ONCE)):
        if not "".join(some).replace("\t", "").isprintable():
            some = ["\t".join(map(printable, line.split("\t"))) for line in some]
        print("\n".join(some))


def json_line(value: Any, **options: Any) -> str:
    """One printable line of JSON."""
    import json

    return printable(json.dumps(value, ensure_ascii=False, **options))


def print_answer(form: str, data: Callable[[], Any], lines: Iterable[object]) -> None:
    """Print an answer in the form of --format: as one line of JSON, or as lines of text."""
    print_lines([json_line(data())] if form == "json" else lines)


def warn_line(line: object) -> None:
    """Print one line, printable, on stderr."""
    print_line(line, sys.stderr)
