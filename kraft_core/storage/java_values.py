"""Numbers and ids as Java parses them."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode

from kraft_core.messages.uuid_text import uuid_text

_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_LONGEST_UUID = 24
_UUID = re.compile(r"[A-Za-z0-9_-]*={0,2}", re.ASCII)


def java_integer(text: str, bits: int = 32) -> int | None:
    """Integer.parseInt, or Short.parseShort with 16 bits; None where it throws."""
    if _INTEGER.fullmatch(text) is None:
        return None
    value = int(text)
    return value if -(1 << bits - 1) <= value < 1 << bits - 1 else None


def java_uuid(text: str) -> str:
    """Uuid.fromString: its 22 characters. Raises ValueError with Kafka's message, "" if not known."""
    if len(text) > _LONGEST_UUID:
        raise ValueError(
            f"Input string with prefix `{text[:_LONGEST_UUID]}` is too long to be decoded as a base64 UUID"
        )
    odd = next((char for char in text if _UUID.fullmatch(char) is None), None)
    if odd is not None:
        raise ValueError(f"Illegal base64 character {ord(odd):x}")
    bare = text.rstrip("=")
    if _UUID.fullmatch(text) is None or len(bare) % 4 == 1 or (len(bare) != len(text) and len(text) % 4):
        raise ValueError("")
    decoded = urlsafe_b64decode(bare + "=" * (-len(bare) % 4))
    if len(decoded) != 16:
        raise ValueError(
            f"Input string `{text}` decoded as {len(decoded)} bytes, which is not equal to the expected 16 "
            "bytes of a base64-encoded UUID"
        )
    return uuid_text(decoded)
