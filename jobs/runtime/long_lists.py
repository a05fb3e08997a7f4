"""Long lists: on a terminal the first of them, and how many more there are and how to see them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import TextIO, TypeVar

from jobs.runtime.output import warn_line

Item = TypeVar("Item")


def add_limit(parser: argparse.ArgumentParser, what: str, most: int) -> None:
    """--limit; most: how many of them a terminal shows unless it is given."""
    parser.add_argument(
        "--limit",
        type=_limit,
        metavar="N",
        help=f"at most N {what}, 0 for all (default: {most:,} on a terminal, else all)",
    )
    parser.set_defaults(terminal_limit=most)


def _limit(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text} is not a number of lines: give 0 for all")
    return int(text)


def limit_of(args: argparse.Namespace, out: TextIO | None = None) -> int:
    """How many to show on stdout, or the file; 0: all."""
    if args.limit is not None:
        return args.limit
    return args.terminal_limit if (out or sys.stdout).isatty() else 0


@contextmanager
def first_of(
    items: Iterable[Item], limit: int, what: str, total: Callable[[], int]
) -> Iterator[Iterator[Item]]:
    """The first items, all if the limit is 0; after the block says on stderr how many more there are.

    total: how many there are; it is asked only if there are more than the limit.
    """
    left = iter(items)
    yield islice(left, limit or None)
    if limit and next(left, None) is not None:
        say_more(total() - limit, what)


def say_more(more: int, what: str) -> None:
    """After the first of a list: how many more there are, and how to see them; nothing if there are none."""
    if more > 0:
        sys.stdout.flush()
        warn_line(f"... {more:,} more: --limit 0 shows all {what}")
