"""A connection to one node: a socket, perhaps TLS, and the login of kraft_core.wire."""

from __future__ import annotations

import secrets
import socket
import ssl
import time
from collections.abc import Callable
from typing import Any

from kraft_core.protocol.errors import ErrorCode
from kraft_core.wire.apis import DESCRIBE_CLUSTER, DESCRIBE_QUORUM, FETCH, FETCH_SNAPSHOT, Api
from kraft_core.wire.errors import (
    ClosedError,
    NoClusterIdError,
    RefusedError,
    SilentError,
    WireError,
    error_name,
)
from kraft_core.wire.follower import A_BROKER, Ask
from kraft_core.wire.frames import LENGTH, Request, frame_length, request_frame, response_body
from kraft_core.wire.login import Exchange, NodeSession, ask_versions, authenticate
from kraft_core.wire.observing import (
    ANOTHER_CLUSTER,
    QUORUM_BODY,
    WHO_LEADS,
    FetchAnswer,
    FetchAsk,
    NodeAddress,
    SnapshotAnswer,
    fetch_answer,
    snapshot_answer,
)
from kraft_core.wire.quorum import DescribedQuorum, described_quorum
from transforms.live.security import ListenerSecurity

CLIENT_ID = "kraftlake"
VERSION = "0.1.0"
# Seconds. A node tells its versions as soon as it can be connected to, or hangs.
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 15.0
# Of a session's lifetime: Kafka's clients log in again between 85 and 95 percent.
_RENEWED_AFTER = 0.85
# DescribeCluster's endpointType.
_BROKERS, _CONTROLLERS = 1, 2


class NodeConnection:
    """An open connection. Raises WireError for what may heal, RefusedError for what does not.

    Each message begins with the node's address.
    """

    def __init__(
        self,
        address: NodeAddress,
        security: ListenerSecurity,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.address = address
        self._security = security
        self._monotonic = monotonic
        self._correlation_id = 0
        self._session = NodeSession({})
        self._socket = self._connect()
        try:
            self._run(ask_versions(self._session, VERSION))
            self._socket.settimeout(ANSWER_SECONDS)
            self._log_in()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._socket.close()

    def ask(self, ask: Ask, cluster_id: str | None) -> FetchAnswer | SnapshotAnswer:
        """The answer to a follower's question."""
        if isinstance(ask, FetchAsk):
            version = self._version(FETCH)
            body = self._send(Request(FETCH, version, ask.body(version, cluster_id)))
            return self._read(fetch_answer, body)
        version = self._version(FETCH_SNAPSHOT)
        return self._read(snapshot_answer, self._send(Request(FETCH_SNAPSHOT, version, ask.body(cluster_id))))

    def describe_quorum(self) -> DescribedQuorum:
        """The quorum as its leader knows it; a broker asks the leader."""
        body = self._send(Request(DESCRIBE_QUORUM, self._newest(DESCRIBE_QUORUM), QUORUM_BODY))
        return self._read(described_quorum, body)

    def must_be_of(self, cluster_id: str) -> None:
        """Raises RefusedError for a node of another cluster. A node that does not tell this user is believed.

        DescribeQuorum does not compare ids. Fetch does, at a controller, for users with ClusterAction.
        """
        if self._is_controller and (version := self._session.newest(FETCH)) is not None:
            body = self._send(Request(FETCH, version, WHO_LEADS.body(version, cluster_id)))
            is_other = body["errorCode"] == ErrorCode.INCONSISTENT_CLUSTER_ID
        else:
            try:
                is_other = self.cluster_id() != cluster_id
            except (NoClusterIdError, RefusedError):
                return
        if is_other:
            raise RefusedError(f"{self.address}: {ANOTHER_CLUSTER}")

    def must_be_controller(self) -> None:
        """Raises RefusedError for a broker."""
        if not self._is_controller:
            raise RefusedError(f"{self.address}: {A_BROKER}")

    def cluster_id(self) -> str:
        """The cluster's id, which only DescribeCluster returns; a controller, only to users with Alter."""
        kind = _CONTROLLERS if self._is_controller else _BROKERS
        body = self._send(Request(DESCRIBE_CLUSTER, self._newest(DESCRIBE_CLUSTER), {"endpointType": kind}))
        if not body["errorCode"]:
            return body["clusterId"]
        why = f"the node does not report its cluster id ({error_name(body['errorCode'])})"
        advice = "give it as option clusterId, or as --cluster (it is cluster.id in meta.properties)"
        if body["errorCode"] == ErrorCode.UNSUPPORTED_VERSION:
            healing = "or wait until it has started; below metadata.version 3.7 it never reports it"
            raise NoClusterIdError(f"{self.address}: {why}: {advice}, {healing}")
        right = "or grant the user Alter on resource Cluster"
        raise RefusedError(f"{self.address}: {why}: {advice}, {right}")

    def _read(self, read: Callable[[dict[str, Any]], Any], body: dict[str, Any]) -> Any:
        try:
            return read(body)
        except WireError as error:
            raise type(error)(f"{self.address}: {error}") from None

    def _version(self, api: Api) -> int:
        """The version of a request that controllers alone serve."""
        self.must_be_controller()
        return self._newest(api)

    @property
    def _is_controller(self) -> bool:
        return FETCH_SNAPSHOT.key in self._session.versions

    def _newest(self, api: Api) -> int:
        version = self._session.newest(api)
        if version is None:
            raise RefusedError(
                f"{self.address}: the node supports no version of {api.name} that Kraftlake knows: it can "
                f"follow Kafka 3.9.2 to 4.4.0"
            )
        return version

    def _send(self, request: Request) -> dict[str, Any]:
        if self._renew_at is not None and self._monotonic() >= self._renew_at:
            self._log_in()
        return self._exchanged(request)

    def _log_in(self) -> None:
        self._renew_at: float | None = None
        if self._security.credentials is None:
            return
        self._run(authenticate(self._session, self._security.credentials, lambda: secrets.token_urlsafe(18)))
        if self._session.lifetime_ms > 0:
            self._renew_at = self._monotonic() + self._session.lifetime_ms / 1000 * _RENEWED_AFTER

    def _run(self, exchange: Exchange) -> None:
        try:
            request = next(exchange)
            while True:
                request = exchange.send(self._exchanged(request))
        except StopIteration:
            return
        except WireError as error:
            text = str(error)
            if text.startswith(str(self.address)):
                raise
            raise type(error)(f"{self.address}: {text}") from None

    def _exchanged(self, request: Request) -> dict[str, Any]:
        self._correlation_id += 1
        try:
            self._socket.sendall(request_frame(request, self._correlation_id, CLIENT_ID))
            frame = self._received(frame_length(self._received(LENGTH.size)))
            return response_body(request, self._correlation_id, frame)
        except WireError as error:
            raise type(error)(f"{self.address}: {error}") from None
        except OSError as error:
            raise _fault(self.address, error) from None

    def _received(self, size: int) -> bytes:
        buffer = bytearray(size)
        view, at = memoryview(buffer), 0
        while at < size:
            count = self._socket.recv_into(view[at:])
            if not count:
                raise ClosedError(
                    "the node closed the connection"
                    + (
                        f": its port expects another security.protocol than {self._security.protocol}"
                        if self._correlation_id == 1
                        else ""
                    )
                )
            at += count
        return bytes(buffer)

    def _connect(self) -> socket.socket:
        plain = None
        try:
            plain = socket.create_connection((self.address.host, self.address.port), CONNECT_SECONDS)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            opened = plain
            if self._security.has_tls:
                opened = self._security.tls().wrap_socket(plain, server_hostname=self.address.host)
            opened.settimeout(CONNECT_SECONDS)
            return opened
        except OSError as error:
            if plain is not None:
                plain.close()
            raise _fault(self.address, error) from None
        except UnicodeError:  # of a host's name, which a node reports, too
            raise WireError(f"{self.address}: that is no host name") from None


def _fault(address: NodeAddress, error: OSError) -> WireError:
    """What an error of a socket means."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return RefusedError(
            f"{address}: the node's certificate is not trusted: {error.verify_message}; set "
            f"ssl.truststore.location to the PEM file of the CA that signed it"
        )
    if isinstance(error, ssl.SSLError):
        reason = error.reason or ""
        if "CERTIFICATE" in reason or "HANDSHAKE_FAILURE" in reason or "UNKNOWN_CA" in reason:
            return RefusedError(
                f"{address}: the node refused the TLS connection ({reason}): it requires a client "
                f"certificate that it trusts; set ssl.keystore.location to its PEM file"
            )
        return WireError(
            f"{address}: the port does not speak TLS ({reason or type(error).__name__}); check "
            f"security.protocol"
        )
    if isinstance(error, TimeoutError):
        return SilentError(f"{address}: no answer in time")
    kind = ClosedError if isinstance(error, ConnectionError) else WireError
    return kind(f"{address}: {error.strerror or type(error).__name__}")
