"""Rows as text: tables, JSON lines, CSV, Markdown, in which names from captures cannot act."""

from __future__ import annotations

import csv
import datetime
import math
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any, TextIO

from jobs.runtime.output import json_line, print_line, printable


def plain(value: Any) -> Any:
    """A cell as JSON can hold it: times as ISO 8601 in UTC, bytes as hex, structs as objects.

    What is not a number of JSON (NaN, infinity) is text.
    """
    if isinstance(value, datetime.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(datetime.UTC).replace(tzinfo=None)
        return value.isoformat(timespec="milliseconds") + "Z"
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, bytes | bytearray):
        return value.hex()
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if hasattr(value, "asDict"):
        return {k: plain(v) for k, v in value.asDict().items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def cell(value: Any) -> str:
    """A cell as printable text; nested values as JSON."""
    value = plain(value)
    if value is None:
        return ""
    if isinstance(value, list | dict):
        return json_line(value)
    if isinstance(value, bool):
        return str(value).lower()
    return printable(str(value))


def show_json(names: Sequence[str], rows: Iterable[tuple[Any, ...]], out: TextIO) -> None:
    for row in rows:
        print_line(json_line({n: plain(v) for n, v in zip(names, row, strict=True)}), out)


def show_csv(names: Sequence[str], rows: Iterable[tuple[Any, ...]], out: TextIO) -> None:
    _write_csv([printable(name) for name in names], ([cell(v) for v in row] for row in rows), out)


def show_safe_csv(names: Sequence[str], rows: Iterable[tuple[Any, ...]], out: TextIO) -> None:
    """CSV without a text that a spreadsheet would run as a formula."""
    cells = ([_inert(v) for v in row] for row in rows)
    _write_csv([_inert(name) for name in names], cells, out)


def _inert(value: Any) -> str:
    """A cell; text that would be a formula after a quotation mark. A number is none."""
    text = cell(value)
    is_number = isinstance(value, int | float | Decimal)
    return f"'{text}" if text.startswith(FORMULA_STARTS) and not is_number else text


def _write_csv(names: Sequence[str], rows: Iterable[Sequence[str]], out: TextIO) -> None:
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(rows)


def show_table(names: Sequence[str], rows: Iterable[tuple[Any, ...]], out: TextIO) -> None:
    """A table with column widths by the first 1,000 rows."""
    iterator = iter(rows)
    names = [printable(name) for name in names]
    first = [[cell(v) for v in row] for row, _ in zip(iterator, range(1000), strict=False)]
    widths = [max([len(n), *(len(r[i]) for r in first)]) for i, n in enumerate(names)]

    def line(cells: Sequence[str]) -> str:
        return "  ".join(c.ljust(w) for c, w in zip(cells, widths, strict=True)).rstrip()

    print(line(names), line(["-" * w for w in widths]), sep="\n", file=out)
    for row in first:
        print(line(row), file=out)
    for row in iterator:
        print(line([cell(v) for v in row]), file=out)


def show_markdown(names: Sequence[str], rows: Iterable[tuple[Any, ...]], out: TextIO) -> None:
    """A table of Markdown; a | in a cell is escaped."""

    def line(cells: Iterable[str]) -> str:
        return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"

    print(line(map(printable, names)), f"|{'---|' * len(names)}", sep="\n", file=out)
    for row in rows:
        print(line(map(cell, row)), file=out)


# What a spreadsheet takes for the beginning of a formula; a tab or a line end is escaped before.
FORMULA_STARTS = ("=", "+", "-", "@")
FORMATS = {"table": show_table, "json": show_json, "csv": show_csv, "markdown": show_markdown}
