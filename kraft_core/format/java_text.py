"""Text and numbers as Java and Jackson write them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from math import isfinite, isnan

_ESCAPES = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
_TO_ESCAPE = re.compile('[\\x00-\\x1f"\\\\]')
# Java replaces an encoded surrogate by one character, Python's decoder each of its bytes.
_SURROGATE = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
# Java writes numbers from 10^-3 up to 10^7 without an exponent.
_LEAST_EXPONENT, _EXPONENT_END = -3, 7


def quoted(text: str) -> str:
    """A string in JSON as Jackson writes it: escaped are quotes, backslashes and what is below 0x20."""
    return f'"{_TO_ESCAPE.sub(_escape, text)}"' if _TO_ESCAPE.search(text) else f'"{text}"'


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    return _ESCAPES.get(char) or f"\\u{ord(char):04X}"


def java_text(content: bytes) -> str:
    """Bytes as Java's UTF-8 decoder reads them."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return _SURROGATE.sub("\ufffd".encode(), content).decode(errors="replace")


def hash_order(names: Iterable[str], buckets: int = 16) -> list[str]:
    """The order in which java.util.HashMap iterates over strings; those of one bucket stay as they are given.

    buckets: 16 hold up to 12 names.
    """
    return sorted(names, key=lambda name: hash_bucket(name, buckets))


def hash_order_of_ids(ids: Iterable[int]) -> list[int]:
    """The order in which java.util.HashMap iterates over numbers from 0 on; those of one bucket ascend."""
    ascending = sorted(ids)
    buckets = 16
    while len(ascending) > buckets * 3 // 4:
        buckets *= 2
    return sorted(ascending, key=lambda id_: (id_ ^ (id_ >> 16)) & (buckets - 1))


def hash_bucket(name: str, buckets: int) -> int:
    """The bucket of a string in java.util.HashMap; buckets: a power of 2."""
    code = 0
    for unit in memoryview(name.encode("utf-16-le", "surrogatepass")).cast("H"):
        code = (31 * code + unit) & 0xFFFFFFFF
    return (code ^ (code >> 16)) & (buckets - 1)


def java_double(value: float) -> str:
    """A double as Double.toString writes it (since Java 19, shortest), which Jackson quotes if not finite."""
    if not isfinite(value):
        return '"NaN"' if isnan(value) else '"Infinity"' if value > 0 else '"-Infinity"'
    sign, value = ("-" if str(value).startswith("-") else ""), abs(value)
    if value == 0:
        return sign + "0.0"
    # Two digits where they are closer to the value than one.
    short = f"{value:.1e}"
    mantissa, _, exponent = (short if float(short) == value else f"{value!r}").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    power = int(exponent or 0) + len(whole) - 1 if int(whole) else -len(fraction) + len(digits) - 1
    digits = digits.rstrip("0") or "0"
    if _LEAST_EXPONENT <= power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    if 0 <= power < _EXPONENT_END:
        return f"{sign}{digits[: power + 1].ljust(power + 1, '0')}.{digits[power + 1 :] or '0'}"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{power}"
