"""What must not leave the log: credentials, token ids, and the values of configurations that hold secrets.

A secret becomes null; the name, the time and the fact that it was set stay.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from kraft_core.messages.metadata import by_api_key
from kraft_core.messages.schema import Message

_CONFIG_RECORD = by_api_key[4]

# A configuration that Kafka does not know (a plugin's) is a secret if its name says so.
_TELLING = re.compile(r"password|passwd|secret|token|key|credential|jaas", re.IGNORECASE)


def redact(message: Message, value: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """The value with its secrets as null, and whether there were any; the given value is left as it was."""
    secrets = [name for name in _secret_fields(message) if value.get(name) is not None]
    if message.api_key == _CONFIG_RECORD.api_key and is_secret_config(value["name"]):
        secrets += ["value"] if value["value"] is not None else []
    if not secrets:
        return value, False
    return {**value, **dict.fromkeys(secrets)}, True


@cache
def _secret_fields(message: Message) -> tuple[str, ...]:
    return tuple(field.name for field in message.fields if field.secret)


def is_secret_config(name: str) -> bool:
    """Whether the value of a configuration is a secret, by its name."""
    return _TELLING.search(name) is not None
