"""Names in as many columns as fit the terminal, sorted down the columns, as in ls."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

_GAP = 2


def in_columns(names: Sequence[str], width: int | None) -> Iterator[str]:
    """width: in characters; None: one name per line."""
    if not names:
        return
    for height in range(1, len(names) + 1):
        columns = [names[start : start + height] for start in range(0, len(names), height)]
        widths = [max(map(len, column)) + _GAP for column in columns]
        if height == len(names) or (width is not None and sum(widths) <= width):
            for row in zip_longest(*columns, fillvalue=""):
                yield "".join(name.ljust(room) for name, room in zip(row, widths, strict=True)).rstrip()
            return
