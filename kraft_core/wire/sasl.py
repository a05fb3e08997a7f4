"""SASL on the client's side: PLAIN (RFC 4616), SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677).

As in Kafka's ScramFormatter, names and passwords are UTF-8 without SASLprep, and fewer than 4096 iterations
are refused.
"""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from typing import Literal

from kraft_core.wire.errors import RefusedError

Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
MECHANISMS: tuple[Mechanism, ...] = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
_LEAST_ITERATIONS = 4096
# Far above what any node stores; a hostile one could make the client compute for hours.
_MOST_ITERATIONS = 10_000_000


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user of a mechanism. The password is in no representation."""

    mechanism: Mechanism
    user: str
    password: str = field(repr=False)


class SaslClient:
    """One authentication: first() opens it, next() answers the node until it returns None.

    Raises RefusedError where the node does not prove that it knows the password, or breaks the protocol.
    """

    def __init__(self, credentials: Credentials, nonce: str) -> None:
        self._credentials = credentials
        self._nonce = nonce
        self._opening = f"n={_escaped(credentials.user)},r={nonce}"
        self._server_signature: bytes | None = None
        self._done = False

    def first(self) -> bytes:
        """The first message."""
        user, password = self._credentials.user, self._credentials.password
        if self._credentials.mechanism == "PLAIN":
            self._done = True
            return f"\0{user}\0{password}".encode()
        return f"n,,{self._opening}".encode()

    def next(self, answer: bytes) -> bytes | None:
        """The next message, None once both sides have proved themselves."""
        if self._done:
            return None
        if self._server_signature is None:
            return self._proof(answer)
        if not hmac.compare_digest(
            _attributes(answer).get("v", ""), b64encode(self._server_signature).decode()
        ):
            raise RefusedError("the node does not know the user's password: it may be an impostor")
        self._done = True
        return None

    def _proof(self, challenge: bytes) -> bytes:
        stated = _attributes(challenge)
        nonce, salt, iterations = (stated.get(name, "") for name in "rsi")
        if not nonce.startswith(self._nonce) or nonce == self._nonce or not iterations.isdecimal():
            raise RefusedError("the node's SCRAM challenge is malformed")
        rounds = int(iterations)
        if not _LEAST_ITERATIONS <= rounds <= _MOST_ITERATIONS:
            raise RefusedError(
                f"the node asks for {rounds} SCRAM iterations, not {_LEAST_ITERATIONS} to {_MOST_ITERATIONS}"
            )
        name = _HASHES[self._credentials.mechanism]
        salted = hashlib.pbkdf2_hmac(name, self._credentials.password.encode(), _decoded(salt), rounds)
        key = hmac.digest(salted, b"Client Key", name)
        closing = f"c={b64encode(b'n,,').decode()},r={nonce}"
        signed = ",".join((self._opening, challenge.decode(), closing)).encode()
        signature = hmac.digest(hashlib.new(name, key).digest(), signed, name)
        proof = bytes(one ^ other for one, other in zip(key, signature, strict=True))
        self._server_signature = hmac.digest(hmac.digest(salted, b"Server Key", name), signed, name)
        return f"{closing},p={b64encode(proof).decode()}".encode()


def _escaped(user: str) -> str:
    return user.replace("=", "=3D").replace(",", "=2C")


def _attributes(message: bytes) -> dict[str, str]:
    try:
        parts = message.decode("ascii").split(",")
    except UnicodeDecodeError:
        raise RefusedError("the node's SCRAM message is malformed") from None
    return {part[:1]: part[2:] for part in parts if part[1:2] == "="}


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise RefusedError("the node's SCRAM challenge is malformed") from None
