"""A restored quorum whose controllers talk over TLS and SASL, against a real Kafka."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from kraft_core.format.controller_dir import read_controller_dir
from kraft_core.format.log_dirs import LOG_DIR_NAME
from kraft_core.image.differences import differences
from kraft_core.image.tables import CONTROLLERS
from kraft_core.restore.replay import replayed
from tests.long.live_quorum import LiveQuorum, Tool, kafka_tools
from tests.long.restoring import restored

JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required username=admin password=pw"
VOTERS = (21, 22, 23)


@dataclass(slots=True)
class SecuredQuorum(LiveQuorum):
    """The controllers' listener is SASL_SSL, with one certificate for all."""

    @property
    def _certificate(self) -> Path:
        return self.path / "node.pem"

    def secure(self) -> None:
        words = ("-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1")
        key, certificate = self.path / "key.pem", self.path / "certificate.pem"
        command = ["openssl", "req", *words, "-keyout", str(key), "-out", str(certificate)]
        subprocess.run(command, check=True, capture_output=True)
        self._certificate.write_text(key.read_text() + certificate.read_text())
        lines = [
            "security.protocol=SASL_SSL",
            "sasl.mechanism=PLAIN",
            f"sasl.jaas.config={JAAS};",
            "ssl.truststore.type=PEM",
            f"ssl.truststore.location={certificate}",
            "ssl.endpoint.identification.algorithm=",
        ]
        (self.path / "client.properties").write_text("\n".join(lines))

    def configure(self, node: int) -> str:
        file = LiveQuorum.configure(self, node)
        lines = [
            "",
            "listener.security.protocol.map=CONTROLLER:SASL_SSL",
            "sasl.enabled.mechanisms=PLAIN",
            "sasl.mechanism.controller.protocol=PLAIN",
            f"listener.name.controller.plain.sasl.jaas.config={JAAS} user_admin=pw;",
            "ssl.keystore.type=PEM",
            f"ssl.keystore.location={self._certificate}",
            "ssl.truststore.type=PEM",
            f"ssl.truststore.location={self.path / 'certificate.pem'}",
            "ssl.endpoint.identification.algorithm=",
        ]
        with Path(file).open("a") as config:
            config.write("\n".join(lines))
        return file

    def quorum_tool(self, *words: str, by: int, timeout: float = 120) -> Tool:
        given = ("--bootstrap-controller", self.address(by))
        config = ("--command-config", str(self.path / "client.properties"))
        return self.k("metadata-quorum", *given, *config, *words, timeout=timeout)


@pytest.mark.long
def test_three_voters_boot_over_tls_and_sasl(golden: Path, tmp_path: Path) -> None:
    live = SecuredQuorum(kafka_tools(), tmp_path / "live", 29920)
    live.secure()
    live.ports = {node: live.port + node for node in VOTERS}
    voters = [f"{node}@{live.address(node)}" for node in VOTERS]
    words = ("--voters", *voters, "--controllers-stopped")
    made = restored(golden / "uncommitted-truncation/after", tmp_path, *words)
    live.cluster_id = made["cluster_id"]
    try:
        for node in VOTERS:
            shutil.copytree(tmp_path / f"new/node-{node}", live.folder(node))
            live.start(node)
        leader = live.leader(*VOTERS)
        assert int(live.status(leader)["LeaderEpoch"]) > made["restored"]["written"]["leader_epoch"]
        assert {node for node, _ in live.voters(leader)} == set(VOTERS)
        assert live.watermark(leader) > made["restored"]["written"]["end_offset"]
    finally:
        live.close()
    planned = replayed(read_controller_dir(tmp_path / "new/node-21" / LOG_DIR_NAME))
    for node in VOTERS:
        log = replayed(read_controller_dir(live.folder(node) / LOG_DIR_NAME))
        assert {each.kind for each in differences(planned.image, log.image)} <= {CONTROLLERS}
        assert log.end_offset > made["restored"]["written"]["end_offset"]
