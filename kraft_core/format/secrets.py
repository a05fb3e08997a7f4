"""Redaction of credentials, delegation token ids, and the values of secret configs.

A secret becomes null; its name, the time and the fact that it was set remain. The id of a delegation token,
which other records reference, becomes its digest.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache, lru_cache
from typing import Any

from kraft_core.messages.metadata import by_api_key
from kraft_core.messages.schema import Field, Message

_CONFIG_RECORD = by_api_key[4]
_DIGEST_CHARACTERS = 16

# Every configuration of a broker, topic, group or client that Kafka's ConfigDefs type as PASSWORD,
# Kafka 3.3 to 4.4.
PASSWORD_CONFIGS = frozenset(
    {
        "delegation.token.master.key",
        "delegation.token.secret.key",
        "password.encoder.old.secret",
        "password.encoder.secret",
        "sasl.jaas.config",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.client.credentials.client.secret",
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.password",
        "ssl.truststore.certificates",
        "ssl.truststore.password",
        "zookeeper.ssl.keystore.password",
        "zookeeper.ssl.truststore.password",
    }
)

# Configs of another type whose names match _SECRET_NAME.
PLAIN_CONFIGS = frozenset(
    {
        "delegation.token.expiry.check.interval.ms",
        "delegation.token.expiry.time.ms",
        "delegation.token.max.lifetime.ms",
        "password.encoder.cipher.algorithm",
        "password.encoder.iterations",
        "password.encoder.key.length",
        "password.encoder.keyfactory.algorithm",
        "sasl.oauthbearer.assertion.private.key.file",
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.token.endpoint.url",
        "ssl.keymanager.algorithm",
        "ssl.keystore.location",
        "ssl.keystore.type",
        "zookeeper.ssl.keystore.location",
        "zookeeper.ssl.keystore.type",
    }
)

# A config unknown to Kafka (a plugin's) is a secret if its name matches.
_SECRET_NAME = re.compile(r"password|passwd|passphrase|secret|token|key|credential|jaas", re.IGNORECASE)


def redact(message: Message, value: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """A copy of the value with its secrets as null, and whether there were any."""
    named = named_secret(message)
    if named is not None:
        name, held = named
        if value[held.name] is None or not is_secret_config(value[name.name]):
            return value, False
        return {**value, held.name: None}, True
    if not _holds_secrets(message.fields):
        return value, False
    redacted = _without_secrets(message.fields, value)
    return redacted, redacted != value


@cache
def named_secret(message: Message) -> tuple[Field, Field] | None:
    """The field whose text decides (is_secret_config) whether another one is a secret, and that other one."""
    if message.api_key != _CONFIG_RECORD.api_key:
        return None
    fields = {field.name: field for field in message.fields}
    return fields["name"], fields["value"]


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
    return hashlib.sha256(secret.encode()).hexdigest()[:_DIGEST_CHARACTERS]


@lru_cache(maxsize=4096)
def is_secret_config(name: str) -> bool:
    """Whether the value of a configuration is a secret, by its name.

    A name known to Kafka also matches at the end of a longer one, after a dot: listener.name.x.,
    listener.name.x.mechanism. and plugins' prefixes precede it.
    """
    lowered = name.lower()
    parts = lowered.split(".")
    endings = {".".join(parts[start:]) for start in range(len(parts))}
    if endings & PASSWORD_CONFIGS:
        return True
    return not endings & PLAIN_CONFIGS and _SECRET_NAME.search(lowered) is not None
