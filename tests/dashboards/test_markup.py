"""Whatever text goes into the page comes out as that text."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboards.report.markup import Markup, el, escape, visible


class Reader(HTMLParser):
    """The tags, attributes and text that a browser would see."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, list[str]]] = []
        self.attributes: dict[str, str | None] = {}
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, [name for name, _ in attrs]))
        self.attributes |= dict(attrs)

    def handle_data(self, data: str) -> None:
        self.text += data


def read(markup: str) -> Reader:
    reader = Reader()
    reader.feed(markup)
    reader.close()
    return reader


@given(st.text(alphabet=st.characters(exclude_characters="\r")))
def test_text_and_attributes_come_out_as_they_went_in(text: str) -> None:
    shown = "".join(visible(c) for c in text)
    seen = read(el("p", text, title=text))
    assert seen.tags == [("p", ["title"])]
    assert seen.text == shown
    assert seen.attributes["title"] == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("\" onload='x'", "&quot; onload=&#x27;x&#x27;"),
        ("txt.\u202egnp", "txt.\\u202egnp"),
        ("a\x00b\x1b[31m", "a\\u0000b\\u001b[31m"),
        ("\ud800", "\\ud800"),
        ("Größe ✓", "Größe ✓"),
    ],
)
def test_what_would_be_markup_or_unseen_is_written_out(text: str, shown: str) -> None:
    assert escape(text) == shown


def test_elements() -> None:
    assert el("td", 1, None, [" ", el("b", "x")], class_="n", hidden=False, open=True, data_l="a") == (
        '<td class="n" open data-l="a">1 <b>x</b></td>'
    )
    assert el("input", type="search", name="q") == '<input type="search" name="q">'
    assert isinstance(el("p"), Markup)
