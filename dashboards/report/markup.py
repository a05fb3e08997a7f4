"""HTML and SVG as values: text is escaped wherever it enters, so that nothing captured becomes markup."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from html import escape as html_escape

# Elements that have no content and no end tag in HTML.
VOID = frozenset(("meta", "input", "br", "wbr", "link"))


class Markup(str):
    """Text that is markup already; only this module and packaged files make it."""

    __slots__ = ()


def el(name: str, /, *children: object, **attributes: object) -> Markup:
    """An element. In names of attributes a last _ is dropped, others are -; None and False leave one out."""
    words = "".join(attribute(key, value) for key, value in attributes.items())
    if name in VOID:
        return Markup(f"<{name}{words}>")
    return Markup(f"<{name}{words}>{join(children)}</{name}>")


def attribute(key: str, value: object) -> str:
    """One attribute with its leading space, or nothing."""
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(value)}"'


def join(children: Iterable[object]) -> Markup:
    """Children one after the other; text is escaped, None is nothing, lists are flattened."""
    parts: list[str] = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, str):
            parts.append(child if isinstance(child, Markup) else escape(child))
        elif isinstance(child, Iterable):
            parts.append(join(child))
        else:
            parts.append(escape(child))
    return Markup("".join(parts))


def escape(value: object) -> Markup:
    """Text as it may stand in content and in quoted attributes.

    Characters that are not seen but change what is (controls, direction marks, lone surrogates) are
    written out as \\uXXXX.
    """
    text = str(value)
    if not text.isascii() or not text.isprintable():
        text = "".join(visible(c) for c in text)
    return Markup(html_escape(text))


def visible(char: str) -> str:
    """The character, or its number where it would be invisible; line ends stay."""
    if char in "\n\t":
        return char
    if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"):
        return f"\\u{ord(char):04x}"
    return char
