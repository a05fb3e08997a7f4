"""The statements that a user gives kraftlake sql, each with the line on which it begins."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from jobs.runtime.outcome import Failure, reason_of

# A comment or its beginning, a semicolon, something in quotes, in which a backslash escapes but for r before
# them, a word, or what lies between.
PIECES = re.compile(
    r"""--[^\n]*|/\*|;"""
    r"""|[rR]'[^']*'?|[rR]"[^"]*"?|'[^'\\]*(?:\\.[^'\\]*)*'?|"[^"\\]*(?:\\.[^"\\]*)*"?|`[^`]*`?"""
    r"""|(?:\w++(?!['"])|[^-/;'"`\w]|-(?!-)|/(?!\*))+|\w+|.""",
    re.DOTALL,
)
COMMENT_EDGES = re.compile(r"/\*|\*/")


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
    for piece in (*_pieces(text), ";"):
        if piece == ";":
            if current:
                yield Statement("".join(current).strip(), begun)
            current.clear()
        elif current or not (piece == "" or piece.isspace()):
            if not current:
                blank = len(piece) - len(piece.lstrip())
                begun = line + piece.count("\n", 0, blank)
            current.append(piece)
        line += piece.count("\n")


def _pieces(text: str) -> Iterator[str]:
    """The pieces of a text; of a comment its line ends alone. A hint, and a comment without an end, stay."""
    at = 0
    while match := PIECES.match(text, at):
        begin, at = match.span()
        is_comment = match[0].startswith("--")
        if match[0] == "/*":
            end = _end_of_comment(text, at)
            is_comment = end is not None and not text.startswith("+", at)
            at = len(text) if end is None else end
        piece = text[begin:at]
        yield ("\n" * piece.count("\n") or " ") if is_comment else piece


def _end_of_comment(text: str, begin: int) -> int | None:
    """Where a comment ends, whose content begins there: comments nest. None if it does not end."""
    depth = 1
    for edge in COMMENT_EDGES.finditer(text, begin):
        depth += 1 if edge[0] == "/*" else -1
        if depth == 0:
            return edge.end()
    return None
