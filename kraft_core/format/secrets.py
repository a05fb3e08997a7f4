"""Redaction of credentials, delegation token ids, and the values of configs that may be secrets.

A secret becomes null; its name, the time and the fact that it was set remain. The id of a delegation token,
which other records reference, becomes its digest.
"""

from __future__ import annotations

import re
from collections.abc import Set
from functools import cache, lru_cache
from typing import Any

from kraft_core.messages.configs import CONFIG_TYPES
from kraft_core.messages.metadata import by_api_key
from kraft_core.messages.schema import Field, Message

_CONFIG_RECORD = by_api_key[4]
_DIGEST_CHARACTERS = 16
_OF_LISTENER = "listener.name."
_PASSWORD = "password"

# Replaces the value of a secret config of which only the fact that it is set is known.
HIDDEN = "[redacted]"

# Names of configs that are shown although Kafka does not define them: none unless the settings name them.
NONE_ALLOWED: frozenset[str] = frozenset()

# Values that carry credentials, whatever their config is called. No part of a value is scanned from more than
# a few places: the value comes from a log, and time must not grow with the square of its length.
_CREDENTIAL = r"""
    -----BEGIN\s                             # PEM
    | LoginModule\b                          # JAAS
    | \b(?:bearer|basic|digest|negotiate)\s+[a-z0-9+/._~=-]{4,}  # an Authorization header
    | (?:pass(?:word|wd|phrase)?|pwd|secret|token|credentials?|(?:api|access|account|private)[._-]?key
      |authorization|cookie|signature|\bsig)
      \s*(?:["']\s*)?[=:>]\s*\S              # NAME=VALUE, as in connection strings, URLs, JSON, XML
    | SharedAccessSignature\s                # of Azure
    | (?-i:\b(?:AKIA|ASIA)[A-Z0-9]{16}\b)    # an access key id of AWS
    | (?-i:\bAIza[\w-]{35} | \bya29\.\w)     # a key and a token of Google
    # Tokens of GitHub, GitLab, Slack, Stripe, Vault.
    | \b(?:gh[opsur]_|github_pat_|glpat-|xox[a-z]-|[rs]k_live_|hvs\.)[\w-]{10}
    """
# A JSON web token, if its group matches. A match takes in every later place where one could begin.
_JSON_WEB_TOKEN = re.compile(r"eyJ[a-z0-9_-]{8,}(\.[a-z0-9_-])?", re.IGNORECASE)


def redact(
    message: Message, value: dict[str, Any], allowed: Set[str] = NONE_ALLOWED
) -> tuple[dict[str, Any], bool]:
    """A copy of the value with its secrets as null, and whether there were any.

    allowed: as in is_secret_config.
    """
    named = named_secret(message)
    if named is not None:
        name, held = named
        if value[held.name] is None or not is_secret_config(value[name.name], value[held.name], allowed):
            return value, False
        return {**value, held.name: None}, True
    if not _holds_secrets(message.fields):
        return value, False
    redacted = _without_secrets(message.fields, value)
    return redacted, redacted != value


@cache
def named_secret(message: Message) -> tuple[Field, Field] | None:
    """The field of a config's name and that of its value, which is_secret_config judges."""
    if message.api_key != _CONFIG_RECORD.api_key:
        return None
    fields = {field.name: field for field in message.fields}
    return fields["name"], fields["value"]


def has_secrets(message: Message) -> bool:
    """Whether redact may change a value of the message."""
    return named_secret(message) is not None or _holds_secrets(message.fields)


@cache
def _holds_secrets(fields: tuple[Field, ...]) -> bool:
    return any(field.secret or _holds_secrets(field.fields) for field in fields)


def _without_secrets(fields: tuple[Field, ...], value: dict[str, Any]) -> dict[str, Any]:
    result = dict(value)
    for field in fields:
        held = value.get(field.name)
        if field.secret:
            result[field.name] = digest(held) if field.digested and held is not None else None
        elif held is not None and _holds_secrets(field.fields):
            result[field.name] = (
                [_without_secrets(field.fields, element) for element in held]
                if field.array
                else _without_secrets(field.fields, held)
            )
    return result


def digest(secret: str) -> str:
    """A substitute for a random id that must not be shown: its SHA-256 in hex, truncated."""
    import hashlib

    return hashlib.sha256(secret.encode()).hexdigest()[:_DIGEST_CHARACTERS]


def is_secret_config(name: str, value: str, allowed: Set[str] = NONE_ALLOWED) -> bool:
    """Whether the value of a config must not be shown. The one rule for every table, page, log and answer.

    It is shown only if Kafka itself defines the config, and not as a password, and the value carries no
    credentials. Of a plugin's config nothing says what it holds: the settings may allow its exact name.
    """
    return is_secret_name(name, allowed) or is_credential(value)


def is_secret_name(name: str, allowed: Set[str] = NONE_ALLOWED) -> bool:
    """Whether no value of a config of this name may be shown. Kafka's own passwords cannot be allowed."""
    type_ = _type(name)
    return type_ == _PASSWORD or (type_ is None and name not in allowed)


@lru_cache(maxsize=4096)
def _type(name: str) -> str | None:
    """The type of a config by Kafka's definition, None if Kafka defines none of this name.

    listener.name.LISTENER. or listener.name.LISTENER.MECHANISM. is followed by the name of a broker's config.
    """
    if name.startswith(_OF_LISTENER):
        parts = name.removeprefix(_OF_LISTENER).split(".")
        return next(filter(None, (CONFIG_TYPES.get(".".join(parts[start:])) for start in (1, 2))), None)
    return CONFIG_TYPES.get(name)


def is_credential(value: str) -> bool:
    """Whether a value looks like a credential."""
    if value.isdecimal():  # as most are: what is searched for below has a letter or an @
        return False
    return (
        value == HIDDEN
        or _credential().search(value) is not None
        or any(token[1] for token in _JSON_WEB_TOKEN.finditer(value))
        or ("@" in value and any(map(_names_user, value.split())))
    )


@cache
def _credential() -> re.Pattern[str]:
    # It takes longer to compile than a small file to dump.
    return re.compile(_CREDENTIAL, re.IGNORECASE | re.VERBOSE)


def _names_user(url: str) -> bool:
    """Whether a word is a URL with user information, even of a password that should have been escaped."""
    user, at, _ = url.partition("://")[2].partition("@")
    if at and user:
        return True
    user, at, _ = url.lower().partition("jdbc:oracle:")[2].partition("@")
    return bool(at) and "/" in user
