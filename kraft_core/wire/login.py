"""How a connection begins: the versions of the node, then SASL (KIP-43, KIP-152, KIP-368).

Each exchange is a generator: it yields a Request and is sent the response's body. The same authentication,
run again on the open connection, extends a session that ends.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any

from kraft_core.protocol.errors import ErrorCode
from kraft_core.wire.apis import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE, Api
from kraft_core.wire.errors import RefusedError, WireError, error_name
from kraft_core.wire.frames import Request
from kraft_core.wire.sasl import Credentials, SaslClient

Exchange = Generator[Request, dict[str, Any], None]
SOFTWARE = "kraftlake"


@dataclass(slots=True)
class NodeSession:
    """What is known of a connection: versions by API key (inclusive), and when its login ends.

    lifetime_ms: from the last authentication on; 0: it does not end.
    """

    versions: Mapping[int, tuple[int, int]]
    lifetime_ms: int = 0

    def newest(self, api: Api) -> int | None:
        """The newest version that the node and this package know; None if there is none."""
        low, high = self.versions.get(api.key, (0, -1))
        known = [version for version in api.versions if low <= version <= high]
        return max(known, default=None)


def ask_versions(session: NodeSession, software_version: str) -> Exchange:
    """Learn what the node serves. Raises RefusedError."""
    body = {"clientSoftwareName": SOFTWARE, "clientSoftwareVersion": software_version}
    answer = yield Request(API_VERSIONS, API_VERSIONS.versions.low, body)
    code = answer["errorCode"]
    if code:
        raise RefusedError(f"the node refused ApiVersions: {error_name(code)}; it is older than Kafka 2.4")
    session.versions = {key["apiKey"]: (key["minVersion"], key["maxVersion"]) for key in answer["apiKeys"]}


def authenticate(session: NodeSession, credentials: Credentials, nonce: Callable[[], str]) -> Exchange:
    """Log in, first or again. nonce: makes a random text of printable ASCII without commas.

    Raises RefusedError where the node does not accept the mechanism or the credentials.
    """
    mechanism = credentials.mechanism
    answer = yield Request(SASL_HANDSHAKE, SASL_HANDSHAKE.versions.low, {"mechanism": mechanism})
    code = answer["errorCode"]
    if code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        offered = ", ".join(answer["mechanisms"]) or "none"
        raise RefusedError(f"the node does not accept sasl.mechanism {mechanism}; it offers {offered}")
    if code:
        raise RefusedError(f"the node refused the SASL handshake: {error_name(code)}")
    client = SaslClient(credentials, nonce())
    said: bytes | None = client.first()
    while said is not None:
        body = {"authBytes": said}
        answer = yield Request(SASL_AUTHENTICATE, SASL_AUTHENTICATE.versions.low, body)
        _must_be_accepted(answer["errorCode"], credentials)
        said = client.next(answer["authBytes"])
    session.lifetime_ms = answer["sessionLifetimeMs"]


def _must_be_accepted(code: int, credentials: Credentials) -> None:
    # The node's own message may quote what it was sent.
    if code == ErrorCode.SASL_AUTHENTICATION_FAILED:
        raise RefusedError(
            f"the node refused user {credentials.user!r} by {credentials.mechanism}: the user or its "
            "password is wrong; create SCRAM users with kafka-storage format --add-scram or kafka-configs"
        )
    if code:
        raise WireError(f"the node failed the login by {credentials.mechanism}: {error_name(code)}")
