"""Logging in against a node that keeps to the RFCs, and against nodes that do not."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode
from typing import Any

import pytest

from kraft_core.wire.apis import DESCRIBE_QUORUM, FETCH
from kraft_core.wire.errors import RefusedError, WireError
from kraft_core.wire.login import NodeSession, ask_versions, authenticate
from kraft_core.wire.sasl import Credentials, SaslClient

SECRET = "pencil"


def test_scram_sha_256_as_in_rfc_7677() -> None:
    client = SaslClient(Credentials("SCRAM-SHA-256", "user", SECRET), "rOprNGfwEbeRWgbNEkqO")
    assert client.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    challenge = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert client.next(challenge) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert client.next(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None


def test_plain_as_in_rfc_4616() -> None:
    client = SaslClient(Credentials("PLAIN", "tim", "tanstaaftanstaaf"), "")
    assert client.first() == b"\0tim\0tanstaaftanstaaf"
    assert client.next(b"") is None


class Node:
    """A node that accepts one user; `lie` is what it does wrong."""

    def __init__(self, mechanism: str = "SCRAM-SHA-512", lie: str = "", lifetime_ms: int = 0) -> None:
        self.mechanism, self.lie, self.lifetime_ms = mechanism, lie, lifetime_ms
        self.opening = self.challenge = ""
        self.hash = "sha512" if mechanism.endswith("512") else "sha256"

    def answer(self, api: str, body: dict[str, Any]) -> dict[str, Any]:
        if api == "SaslHandshake":
            wrong = body["mechanism"] != self.mechanism
            return {"errorCode": 33 if wrong else 0, "mechanisms": [self.mechanism, "GSSAPI"]}
        said = body["authBytes"].decode()
        ok = {"errorCode": 0, "errorMessage": None, "sessionLifetimeMs": self.lifetime_ms}
        if self.mechanism == "PLAIN":
            code = 0 if said == f"\0us=er,\0{SECRET}" else 58
            return ok | {"errorCode": code, "authBytes": b""}
        if not self.challenge:
            self.opening = said.removeprefix("n,,")
            assert self.opening.startswith("n=us=3Der=2C,r=")
            nonce = "other" if self.lie == "nonce" else self.opening.rpartition(",r=")[2]
            rounds = {"few": 5, "many": 10**9}.get(self.lie, 4096)
            salt = "%%%" if self.lie == "salt" else b64encode(b"salt").decode()
            self.challenge = f"r={nonce}theirs,s={salt},i={rounds}"
            return ok | {"authBytes": self.challenge.encode()}
        closing, _, proof = said.rpartition(",p=")
        salted = hashlib.pbkdf2_hmac(self.hash, SECRET.encode(), b"salt", 4096)
        signed = ",".join((self.opening, self.challenge, closing)).encode()
        stored = hashlib.new(self.hash, hmac.digest(salted, b"Client Key", self.hash)).digest()
        signature = hmac.digest(stored, signed, self.hash)
        key = bytes(a ^ b for a, b in zip(b64decode(proof), signature, strict=True))
        if hashlib.new(self.hash, key).digest() != stored:
            return ok | {"errorCode": 58, "errorMessage": f"wrong password {SECRET}", "authBytes": b""}
        verifier = hmac.digest(hmac.digest(salted, b"Server Key", self.hash), signed, self.hash)
        verifier = b"x" * len(verifier) if self.lie == "verifier" else verifier
        return ok | {"authBytes": b"v=" + b64encode(verifier)}


def log_in(node: Node, mechanism: str, password: str = SECRET) -> NodeSession:
    session = NodeSession({})
    exchange = authenticate(session, Credentials(mechanism, "us=er,", password), lambda: "mine")
    request = next(exchange)
    try:
        while True:
            request = exchange.send(node.answer(request.api.name, dict(request.body)))
    except StopIteration:
        return session


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_the_right_password(mechanism: str) -> None:
    assert log_in(Node(mechanism, lifetime_ms=60_000), mechanism).lifetime_ms == 60_000


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_wrong_password_is_said_without_it(mechanism: str) -> None:
    with pytest.raises(RefusedError, match="the user or its password is wrong") as raised:
        log_in(Node(mechanism), mechanism, "pen cil")
    assert "pencil" not in str(raised.value)
    assert "pen cil" not in str(raised.value) + repr(Credentials("PLAIN", "a", "pen cil"))


def test_a_mechanism_that_is_not_offered() -> None:
    with pytest.raises(
        RefusedError, match=r"does not accept sasl\.mechanism PLAIN; it offers SCRAM-SHA-512, GSSAPI"
    ):
        log_in(Node(), "PLAIN")


@pytest.mark.parametrize(
    ("lie", "said"),
    [
        ("nonce", "malformed"),
        ("salt", "malformed"),
        ("few", "not 4096 to "),
        ("many", "iterations"),
        ("verifier", "impostor"),
    ],
)
def test_a_node_that_lies(lie: str, said: str) -> None:
    with pytest.raises(RefusedError, match=said):
        log_in(Node(lie=lie), "SCRAM-SHA-512")


def test_versions_are_negotiated() -> None:
    session = NodeSession({})
    exchange = ask_versions(session, "1")
    next(exchange)
    keys = [(1, 0, 17), (55, 0, 1)]
    listed = [{"apiKey": key, "minVersion": low, "maxVersion": high} for key, low, high in keys]
    with pytest.raises(StopIteration):
        exchange.send({"errorCode": 0, "apiKeys": listed})
    assert (session.newest(FETCH), session.newest(DESCRIBE_QUORUM)) == (17, 1)
    session.versions = {1: (19, 20)}
    assert (session.newest(FETCH), session.newest(DESCRIBE_QUORUM)) == (None, None)


def test_a_node_too_old_to_be_asked() -> None:
    exchange = ask_versions(NodeSession({}), "1")
    next(exchange)
    with pytest.raises(WireError, match="UNSUPPORTED_VERSION"):
        exchange.send({"errorCode": 35, "apiKeys": []})
