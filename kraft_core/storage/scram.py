"""--add-scram: the first SCRAM credentials of a cluster (Kafka's ScramParser).

Passwords, salts and keys are secrets: they are in no text that a person sees, but Kafka's tool quotes some of
them in its errors, which are therefore given in part.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kraft_core.storage.java_values import java_integer
from kraft_core.storage.tool_error import ToolError

# By mechanism: its id in records, its hash, the least and the most iterations (ScramMechanism).
_MECHANISMS: Mapping[str, tuple[int, str, int, int]] = {
    "SCRAM-SHA-256": (1, "sha256", 4096, 16384),
    "SCRAM-SHA-512": (2, "sha512", 4096, 16384),
}
_DEFAULT_ITERATIONS = 4096
_SHOWN = ("name", "iterations")


@dataclass(frozen=True, slots=True)
class ScramCredential:
    """salt: None where the tool draws one."""

    mechanism: str
    name: str
    iterations: int
    salt: bytes | None = field(repr=False)
    password: str | None = field(repr=False)
    salted_password: bytes | None = field(repr=False)

    def to_record(self, salt: bytes) -> dict[str, Any]:
        """The UserScramCredentialRecord. salt: its own, or the one drawn."""
        type_, hash_name, _, _ = _MECHANISMS[self.mechanism]
        salted = self.salted_password
        if salted is None:
            password = (self.password or "").encode()
            salted = hashlib.pbkdf2_hmac(hash_name, password, salt, self.iterations)
        client_key = hmac.digest(salted, b"Client Key", hash_name)
        return {
            "name": self.name,
            "mechanism": type_,
            "salt": salt,
            "storedKey": hashlib.new(hash_name, client_key).digest(),
            "serverKey": hmac.digest(salted, b"Server Key", hash_name),
            "iterations": self.iterations,
        }


def parse_scram(text: str) -> ScramCredential:
    """MECHANISM=[name=NAME,password=...,salt=...,iterations=...]. Raises ToolError, without the secrets."""
    mechanism, equals, configs = text.strip().partition("=")
    if not equals:
        raise ToolError("Failed to find equals sign in SCRAM argument '...'")
    if mechanism not in _MECHANISMS:
        raise ToolError(f"The add-scram mechanism {mechanism} is not supported.")
    if not configs.startswith("["):
        raise ToolError("Expected configuration string to start with [")
    if not configs.endswith("]"):
        raise ToolError("Expected configuration string to end with ]")
    return _credential(mechanism, _components(configs[1:-1]))


def hidden(text: str) -> str:
    """The argument with its name and iterations; the secrets are left for whoever runs the command."""
    mechanism, _, configs = text.strip().partition("=")
    if mechanism not in _MECHANISMS:
        return "..."
    parts = [part.partition("=") for part in configs.strip("[]").split(",")]
    shown = [f"{name}={value if name in _SHOWN else '...'}" for name, _, value in parts]
    return f"{mechanism}=[{','.join(shown)}]"


def _components(configs: str) -> dict[str, str]:
    # Java's split drops empty parts at the end, but keeps a whole that is empty.
    parts = configs.split(",")
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    found: dict[str, str] = {}
    for part in parts:
        name, equals, value = part.partition("=")
        if not equals:
            raise ToolError("No equals sign found in SCRAM component: ...")
        is_quoted = len(value) >= 2 and value[0] == value[-1] == '"'
        found[name] = value[1:-1] if is_quoted else value
    return found


def _credential(mechanism: str, given: dict[str, str]) -> ScramCredential:
    name = given.pop("name", None)
    if name is None:
        raise ToolError("You must supply 'name' to add-scram")
    salt = _decoded(given.pop("salt", None), "salt")
    iterations = _iterations(given.pop("iterations", None))
    password, salted_text = given.pop("password", None), given.pop("saltedpassword", None)
    salted = None
    if password is None:
        if salted_text is None:
            raise ToolError("You must supply one of 'password' or 'saltedpassword' to add-scram")
        if salt is None:
            raise ToolError("You must supply 'salt' with 'saltedpassword' to add-scram")
        salted = _decoded(salted_text, "saltedPassword")
    if given:
        # They may be what follows a comma in a password.
        raise ToolError("Unknown SCRAM configurations: ...")
    _, _, least, most = _MECHANISMS[mechanism]
    for is_off, sign, limit in ((iterations < least, ">=", least), (iterations > most, "<=", most)):
        if is_off:
            words = mechanism.replace("-", "_")
            raise ToolError(f"The 'iterations' value must be {sign} {limit} for add-scram using {words}")
    return ScramCredential(mechanism, name, iterations, salt, password, salted)


def _decoded(text: str | None, what: str) -> bytes | None:
    if text is None:
        return None
    try:
        return b64decode(text + "=" * (-len(text) % 4) if "=" not in text else text, validate=True)
    except (Base64Error, ValueError):
        raise ToolError(f"Failed to decode given {what}: ...") from None


def _iterations(text: str | None) -> int:
    if text is None:
        return _DEFAULT_ITERATIONS
    value = java_integer(text)
    if value is None:
        raise ToolError(f"Failed to parse iterations count: {text}")
    return value
