"""Patterns for one part of a path: * ? {a,b}; a backslash quotes the next character."""

import re
from collections.abc import Iterator

_MANY = {"*": ".*", "?": "."}
_SPECIAL = frozenset("*?{")


def compile_glob(pattern: str) -> re.Pattern[str] | None:
    """A pattern that matches a whole name; None if the text is a literal name (Kafka's GlobComponent).

    A text is literal without * ? {, and if a group is nested or not closed.
    """
    if _SPECIAL.isdisjoint(pattern):
        return None
    try:
        return re.compile("".join(_translate(pattern)), re.DOTALL)
    except ValueError:
        return None


def _translate(pattern: str) -> Iterator[str]:
    in_group = False
    characters = iter(pattern)
    for character in characters:
        if character in _MANY:
            yield _MANY[character]
        elif character == "\\":
            yield re.escape(next(characters, "\\"))
        elif character == "{":
            if in_group:
                raise ValueError("nested group")
            in_group = True
            yield "(?:"
        elif character == "}" and in_group:
            in_group = False
            yield ")"
        elif character == "," and in_group:
            yield "|"
        else:
            yield re.escape(character)
    if in_group:
        raise ValueError("group not closed")
