"""The statements that a user gives kraftlake sql, each with the line on which it begins."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from jobs.runtime.outcome import Failure, reason_of

# A comment, a semicolon, something in quotes, or what lies between.
PIECES = re.compile(r"""--[^\n]*|;|'[^']*'?|"[^"]*"?|`[^`]*`?|-|[^-;'"`]+""")


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement without its comments. line: of its first word in the text, from 1."""

    text: str
    line: int


def read_statements(args: argparse.Namespace) -> list[Statement] | None:
    """The statements to run; None if the user will type them. Raises Failure if there are none."""
    if args.query is not None and args.file is not None:
        raise Failure('give one statement, as in kraftlake sql "SELECT ...", or --file FILE, not both')
    if args.query is not None:
        text = args.query
    elif args.file is not None:
        try:
            text = args.file.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise Failure(f"{args.file} cannot be read: {reason_of(error)}") from None
    elif sys.stdin.isatty():
        return None
    else:
        text = sys.stdin.read()
    found = list(statements_of(text))
    if not found:
        raise Failure("there is no statement to run")
    return found


def place_of(args: argparse.Namespace, statement: Statement) -> str:
    """Where the statement is: "morning.sql, line 3: "; "" for the one on the command line."""
    if args.query is not None:
        return ""
    return f"{args.file or 'standard input'}, line {statement.line}: "


def statements_of(text: str) -> Iterator[Statement]:
    """Statements separated by semicolons, apart from those inside quotes and comments."""
    current: list[str] = []
    line = begun = 1
    for piece in [*PIECES.findall(text), ";"]:
        if piece == ";":
            if stripped := "".join(current).strip():
                yield Statement(stripped, begun)
            current.clear()
        elif not piece.startswith("--"):
            if not current or current[-1].isspace():
                blank = len(piece) - len(piece.lstrip())
                begun = line + piece.count("\n", 0, blank)
            current.append(piece)
        line += piece.count("\n")
