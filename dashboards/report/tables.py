"""The page's tables: numbers on the right, wide tables scroll within themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, repeat

from dashboards.report.formatting import duration, number
from dashboards.report.markup import Markup, el


@dataclass(frozen=True, slots=True)
class Col:
    """A column: its heading, and whether it holds numbers, sentences, or names of captured things."""

    title: str
    numeric: bool = False
    long: bool = False
    names: bool = False

    @property
    def kind(self) -> str | None:
        return "n" if self.numeric else "long" if self.long else "names" if self.names else None


def table(
    title: str,
    columns: Sequence[Col],
    rows: Iterable[Sequence[object]],
    more: str | None = None,
    ids: Iterable[str | None] = (),
) -> Markup:
    """A table in a scrollable, focusable container; `more` says what it leaves out, `ids` are the rows'."""
    head = el("tr", [el("th", c.title, scope="col", class_=c.kind) for c in columns])
    body = [
        el(
            "tr",
            [el("td", cell, class_=c.kind) for c, cell in zip(columns, row, strict=True)],
            id=row_id,
        )
        for row, row_id in zip(rows, chain(ids, repeat(None)), strict=False)
    ]
    whole = el("table", el("caption", title, class_="vh"), el("thead", head), el("tbody", body))
    return el(
        "div",
        el("div", whole, class_="scroll", tabindex=0, role="group", aria_label=title),
        el("p", more, class_="more") if more else None,
    )


def status_badge(status: str | None, truncated_by_epoch: int | None = None) -> Markup:
    """A commit status: a word, and a sign that does not depend on colour."""
    if status is None:
        return el("span", "not in the log", class_="status")
    words = f"{status} by epoch {truncated_by_epoch}" if truncated_by_epoch is not None else status
    return el("span", el("span", STATUS_SIGNS.get(status, ""), aria_hidden="true"), f" {words}",
              class_=f"status {status if status in STATUS_SIGNS else ''}")  # fmt: skip


STATUS_SIGNS = {"committed": "✓", "truncated": "✕", "uncommitted": "◌", "undecided": "?"}


def newest(shown: int, whole: int, noun: str) -> str | None:
    """The note under a table that has only the newest rows."""
    return f"The newest {shown:,} of {whole:,} {noun}." if whole > shown else None


def place(offset: int, epoch: int) -> str:
    return f"{number(offset)} / e{epoch}"


def offsets(first: int, end: int | None) -> str:
    """Offsets from first to before end: 5, 5 – 9; to the end of the file for None."""
    if end is None:
        return f"{number(first)} to the end"
    if end <= first:
        return "none"
    return number(first) if end == first + 1 else f"{number(first)} – {number(end - 1)}"


def span_words(ms: int | None) -> str:
    return "–" if ms is None else duration(ms)
