"""HTML and SVG as values: all text is escaped, so that captured text never becomes markup."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache
from html import escape as html_escape

# Elements that have no content and no end tag in HTML.
VOID = frozenset(("meta", "input", "br", "wbr", "link"))
# All but printable ASCII without &, <, >, " and '. Most texts have none of it, and a page has a million.
_to_escape = re.compile("[^ !#$%(-;=?-~]").search


class Markup(str):
    """Text that is markup; only this module and packaged files create it."""

    __slots__ = ()


def el(name: str, /, *children: object, **attributes: object) -> Markup:
    """An element. In attribute names a final _ is dropped, others become -; None and False omit one."""
    words = "".join([_attribute(key, value) for key, value in attributes.items()])
    if name in VOID:
        return Markup(f"<{name}{words}>")
    return Markup(f"<{name}{words}>{join(children)}</{name}>")


def _attribute(key: str, value: object) -> str:
    """One attribute with its leading space, or nothing."""
    if value is None or value is False:
        return ""
    return f" {_name(key)}" if value is True else f' {_name(key)}="{_escaped(str(value))}"'


@cache
def _name(key: str) -> str:
    """The attribute that an argument of `el` names."""
    return key.rstrip("_").replace("_", "-")


def join(children: Iterable[object]) -> Markup:
    """Children in order; text is escaped, None is left out, lists are flattened."""
    parts: list[str] = []
    for child in children:
        if child is None:
            continue
        if isinstance(child, str):
            parts.append(child if isinstance(child, Markup) else _escaped(child))
        elif isinstance(child, Iterable):
            parts.append(join(child))
        else:
            parts.append(_escaped(str(child)))
    return Markup("".join(parts))


def escape(value: object) -> Markup:
    """Text for content and quoted attributes.

    Invisible characters (controls, direction marks, lone surrogates) are written as \\uXXXX.
    """
    return Markup(_escaped(str(value)))


def _escaped(text: str) -> str:
    if _to_escape(text) is None:
        return text
    if not text.isascii() or not text.isprintable():
        text = "".join(visible(c) for c in text)
    return html_escape(text)


def visible(char: str) -> str:
    """The character, or \\uXXXX if it is invisible; line ends and tabs stay."""
    if char in "\n\t":
        return char
    if unicodedata.category(char) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp"):
        return f"\\u{ord(char):04x}"
    return char
