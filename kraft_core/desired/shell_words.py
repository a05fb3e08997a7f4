"""Text as one word of bash, and as a line of a Java properties file, whatever it contains."""

from __future__ import annotations

import re
from collections.abc import Mapping
from shlex import quote

_UNSAFE = re.compile(r"[^\x20-\x7e]")


def shell_word(text: str) -> str:
    """One word of bash that stands for the text, in printable ASCII.

    What is not printable ASCII is written as bytes of UTF-8 ($'\\303\\251'), so that no terminal acts on it.
    Raises ValueError for NUL, which no argument can hold.
    """
    if "\0" in text:
        raise ValueError("no argument of a command can hold NUL")
    if not _UNSAFE.search(text):
        return quote(text)
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    # Three octal digits: a hexadecimal escape could take in the character behind it.
    return "$'" + _UNSAFE.sub(lambda found: _octal(found[0]), escaped) + "'"


def _octal(char: str) -> str:
    return "".join(f"\\{byte:03o}" for byte in char.encode("utf-8", "surrogatepass"))


def properties_lines(values: Mapping[str, str]) -> list[str]:
    """Lines of a properties file (java.util.Properties.load) that give these values, in printable ASCII."""
    return [f"{_escaped(name, is_key=True)}={_escaped(value)}" for name, value in values.items()]


def _escaped(text: str, *, is_key: bool = False) -> str:
    special = "\\ =:#!" if is_key else "\\"
    made = "".join(f"\\{char}" if char in special else char for char in text)
    if not is_key:
        # Kafka trims a value; java.util.Properties drops only the space before it.
        made = re.sub(r"^ ", r"\\ ", made)
    return _UNSAFE.sub(_units, made)


def _units(found: re.Match[str]) -> str:
    """A character as the units of UTF-16 that Java reads."""
    raw = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{raw[i]:02x}{raw[i + 1]:02x}" for i in range(0, len(raw), 2))
