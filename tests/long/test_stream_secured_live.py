"""readStream.format("kraft") over SASL and TLS, against a real controller that wants them."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.long.live_quorum import LiveQuorum, kafka_tools
from tests.long.live_stream import ObservedCluster
from tests.transforms.live.test_quorum_stream import next_offset
from tests.transforms.live.test_quorum_stream import opened as quorum_opened
from tests.transforms.live.test_quorum_stream import rows as quorum_rows
from tests.transforms.live.test_stream import advanced, checkpointed, offsets, rows
from transforms.live.connection import NodeConnection
from transforms.live.kraft import KraftSource
from transforms.live.options import live_options
from transforms.live.stream import KraftStreamReader
from transforms.source.errors import SourceError

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
REAUTH_MS = 4000


@dataclass(slots=True)
class SecuredController(ObservedCluster):
    """Node 1 with three listeners: SASL_SSL at its port, SSL with client certificates 10 above, PLAINTEXT 20
    above, by which it is watched. Users admin, scram and CN=observer may do all, user poor nothing.
    """

    def __post_init__(self) -> None:
        LiveQuorum.__post_init__(self)
        self._sign("ca", None)
        self._sign("other-ca", None)
        self._sign("127.0.0.1", "ca")
        self._sign("observer", "ca", "secret-key")
        self._sign("stranger", "other-ca")

    def pem(self, name: str) -> str:
        return str(self.path / f"{name}.pem")

    def _sign(self, name: str, by: str | None, password: str | None = None) -> None:
        """A certificate for CN=name with its key, in name.pem."""
        key, certificate = self.path / f"{name}.key", self.path / f"{name}.crt"
        words = ["req", "-x509", "-newkey", "rsa:2048", "-days", "2", "-subj", f"/CN={name}"]
        words += ["-keyout", str(key), "-out", str(certificate)]
        words += ["-nodes"] if password is None else ["-passout", f"pass:{password}"]
        if by is not None:
            words += ["-CA", str(self.path / f"{by}.crt"), "-CAkey", str(self.path / f"{by}.key")]
            words += ["-addext", "basicConstraints=critical,CA:FALSE"]
        if name == "127.0.0.1":
            words += ["-addext", "subjectAltName=IP:127.0.0.1"]
        subprocess.run(["openssl", *words], check=True, capture_output=True)
        Path(self.pem(name)).write_text(key.read_text() + certificate.read_text())

    def at(self, above: int) -> str:
        return f"127.0.0.1:{self.ports[1] + above}"

    def configure(self, node: int) -> str:
        own = self.address(node)
        lines = [
            "process.roles=controller",
            f"node.id={node}",
            f"listeners=WATCHED://{self.at(20)},SECURED://{own},CERTIFIED://{self.at(10)}",
            "controller.listener.names=WATCHED,SECURED,CERTIFIED",
            "listener.security.protocol.map=WATCHED:PLAINTEXT,SECURED:SASL_SSL,CERTIFIED:SSL",
            f"controller.quorum.bootstrap.servers={self.at(20)}",
            f"log.dirs={self.folder(node)}",
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users=User:ANONYMOUS;User:admin;User:scram;User:CN=observer",
            "sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512",
            f"connections.max.reauth.ms={REAUTH_MS}",
            f'listener.name.secured.plain.sasl.jaas.config={PLAIN} user_admin="pw" user_poor="pw";',
            f"listener.name.secured.scram-sha-512.sasl.jaas.config={SCRAM};",
            "ssl.keystore.type=PEM",
            f"ssl.keystore.location={self.pem('127.0.0.1')}",
            "ssl.truststore.type=PEM",
            f"ssl.truststore.location={self.path / 'ca.crt'}",
            "listener.name.certified.ssl.client.auth=required",
        ]
        file = self.path / f"controller-{node}.properties"
        file.write_text("\n".join(lines))
        return str(file)


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredController]:
    live = SecuredController(kafka_tools(), tmp_path_factory.mktemp("secured") / "live", 29440)
    live.address(1)
    scram = "SCRAM-SHA-512=[name=scram,password=scram-pw]"
    live.format(1, "--standalone", "--add-scram", scram)
    live.start(1)
    try:
        live.ports[2] = live.ports[1] + 20  # where it is watched
        live.leader(2)
        yield live
    finally:
        live.close()


def sasl(live: SecuredController, user: str, password: str, mechanism: str = "PLAIN") -> dict[str, str]:
    module = PLAIN if mechanism == "PLAIN" else SCRAM
    return {
        "bootstrap.controllers": live.at(0),
        "clusterId": live.cluster_id,
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": mechanism,
        "kafka.sasl.jaas.config": f'{module} username="{user}" password="{password}";',
        "kafka.ssl.truststore.location": str(live.path / "ca.crt"),
    }


def certified(live: SecuredController, **more: str) -> dict[str, str]:
    return {
        "bootstrap.controllers": live.at(10),
        "clusterId": live.cluster_id,
        "kafka.security.protocol": "SSL",
        "kafka.ssl.truststore.location": str(live.path / "ca.crt"),
    } | {f"kafka.ssl.{name.replace('_', '.')}": text for name, text in more.items()}


def opened(given: dict[str, str]) -> KraftStreamReader:
    source = KraftSource(given)
    reader = source.streamReader(source.schema())
    assert isinstance(reader, KraftStreamReader)
    return reader


def read(given: dict[str, str]) -> list[int]:
    reader = opened(given)
    try:
        at = checkpointed(reader.initialOffset())
        return offsets(rows(reader, at, advanced(reader, at)))
    finally:
        reader.stop()


@pytest.mark.long
def test_each_way_in(live: SecuredController) -> None:
    """PLAIN, SCRAM, a certificate with an encrypted key, a client's properties file: the same records."""
    found = read(sasl(live, "admin", "pw"))
    assert found == list(range(len(found)))
    assert len(found) > 10
    for given in (
        sasl(live, "scram", "scram-pw", "SCRAM-SHA-512"),
        certified(live, keystore_location=live.pem("observer"), key_password="secret-key"),
    ):
        assert read(given)[: len(found)] == found
    properties = live.path / "client.properties"
    given = sasl(live, "admin", "pw")
    kafka = {name: text for name, text in given.items() if name.startswith("kafka.")}
    properties.write_text("".join(f"{name.removeprefix('kafka.')}={text}\n" for name, text in kafka.items()))
    plain = {name: text for name, text in given.items() if name not in kafka}
    assert read(plain | {"command.config": str(properties)})[: len(found)] == found


@pytest.mark.long
def test_a_login_is_renewed_on_its_connection(live: SecuredController) -> None:
    (cluster,) = live_options(sasl(live, "scram", "scram-pw", "SCRAM-SHA-512")).clusters
    connection = NodeConnection(cluster.addresses[0], cluster.security)
    try:
        first = connection.describe_quorum().high_watermark
        for _ in range(int(2.5 * REAUTH_MS / 1000)):
            time.sleep(1)
            last = connection.describe_quorum().high_watermark
    finally:
        connection.close()
    assert last > first


@pytest.mark.long
def test_what_no_waiting_heals_is_one_sentence(live: SecuredController) -> None:
    wrong = {
        "user 'admin' by PLAIN: the user or its password is wrong": sasl(live, "admin", "wr0ng"),
        "user 'scram' by SCRAM-SHA-512: the user or its": sasl(live, "scram", "wr0ng", "SCRAM-SHA-512"),
        "it offers .*SCRAM-SHA-512": sasl(live, "scram", "scram-pw", "SCRAM-SHA-256"),
        "it needs ClusterAction on resource Cluster": sasl(live, "poor", "pw"),
        "the node's certificate is not trusted: ": sasl(live, "admin", "pw")
        | {"kafka.ssl.truststore.location": str(live.path / "other-ca.crt")},
        "requires a client certificate": certified(live),
        "requires a client certificate that it trusts": certified(
            live, keystore_location=live.pem("stranger")
        ),
        "belongs to another cluster": sasl(live, "admin", "pw") | {"clusterId": live.random_uuid()},
        "give it as option clusterId": {
            name: text for name, text in sasl(live, "poor", "pw").items() if name != "clusterId"
        },
    }
    said = {}
    for sentence, given in wrong.items():
        with pytest.raises(SourceError) as raised:
            read(given)
        said[sentence] = str(raised.value)
        assert "wr0ng" not in str(raised.value)
    unlike = {sentence: text for sentence, text in said.items() if not re.search(sentence, text)}
    assert not unlike


@pytest.mark.long
def test_describe_is_enough_for_the_quorum(live: SecuredController) -> None:
    reader = quorum_opened(**sasl(live, "poor", "pw"))
    with pytest.raises(SourceError, match="it needs Describe on resource Cluster"):
        next_offset(reader, {})
    reader = quorum_opened(**sasl(live, "admin", "pw"))
    (row,) = quorum_rows(reader, {}, next_offset(reader, {}))
    assert (row["node_id"], row["leader_id"], row["is_voter"], row["lag_records"]) == (1, 1, True, 0)
    reader.stop()


@pytest.mark.long
def test_the_wrong_protocol_is_said_while_it_is_retried(
    live: SecuredController, caplog: pytest.LogCaptureFixture
) -> None:
    for protocol, where, said in (
        ("PLAINTEXT", live.at(0), "its port speaks TLS: set security.protocol"),
        ("SSL", live.at(20), "the port does not speak TLS"),
    ):
        given = {"bootstrap.controllers": where, "kafka.security.protocol": protocol}
        reader = opened(given | {"clusterId": live.cluster_id})
        at = checkpointed(reader.initialOffset())
        for _ in range(3):
            assert checkpointed(reader.latestOffset(at, reader.getDefaultReadLimit())) == at
        reader.stop()
        assert said in caplog.text
