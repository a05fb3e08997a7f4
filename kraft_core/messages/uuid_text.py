"""Kafka's text form of a uuid: URL-safe base64 of the 16 bytes without padding, 22 characters (Uuid)."""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode
from binascii import b2a_base64
from functools import lru_cache

ZERO_UUID = "A" * 22

_TEXT = re.compile("[A-Za-z0-9_-]{22}(==)?")
_TO_URL_SAFE = bytes.maketrans(b"+/", b"-_")


# The same few topics, directories and brokers recur in a log.
@lru_cache(maxsize=1 << 16)
def uuid_text(sixteen: bytes) -> str:
    """The text of 16 bytes; ValueError for another length."""
    if len(sixteen) != 16:
        raise ValueError(f"a uuid has 16 bytes, not {len(sixteen)}")
    return b2a_base64(sixteen, newline=False).translate(_TO_URL_SAFE)[:22].decode("ascii")


def uuid_bytes(text: str) -> bytes:
    """The 16 bytes of a text, which may carry base64 padding; ValueError for any other text."""
    if not _TEXT.fullmatch(text):
        raise ValueError(f"not a uuid: {text!r}")
    return urlsafe_b64decode(text[:22] + "==")


def random_uuid() -> str:
    """A new id of a cluster, directory or topic (Uuid.randomUuid, kafka-storage random-uuid).

    None begins with a dash, which tools would take for a flag. It is a random UUID (version 4): never one of
    the ids that Kafka reserves, whose high bytes are 0.
    """
    # Text and bytes of ids, which all need, do without it.
    import uuid

    while (text := uuid_text(uuid.uuid4().bytes)).startswith("-"):
        pass
    return text
