"""A restored quorum that talks over TLS and SASL, with and without brokers, against a real Kafka."""

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
from tests.long.live_cluster import LiveCluster
from tests.long.live_quorum import kafka_tools
from tests.long.restoring import restored, started_anew, three_controllers

JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required username=admin password=pw"
VOTERS = (21, 22, 23)
MESSAGES = [f"message-{nth:04}" for nth in range(60)]


@dataclass(slots=True)
class SecuredCluster(LiveCluster):
    """Every listener is SASL_SSL, with one certificate for all."""

    def __post_init__(self) -> None:
        LiveCluster.__post_init__(self)
        words = ("-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1")
        key, certificate = self.path / "key.pem", self.path / "certificate.pem"
        command = ["openssl", "req", *words, "-keyout", str(key), "-out", str(certificate)]
        subprocess.run(command, check=True, capture_output=True)
        (self.path / "node.pem").write_text(key.read_text() + certificate.read_text())
        lines = ["security.protocol=SASL_SSL", "sasl.mechanism=PLAIN", f"sasl.jaas.config={JAAS};"]
        (self.path / "client.properties").write_text("\n".join([*lines, *self._trust()]))

    def _trust(self) -> list[str]:
        return [
            "ssl.truststore.type=PEM",
            f"ssl.truststore.location={self.path / 'certificate.pem'}",
            "ssl.endpoint.identification.algorithm=",
        ]

    def configure(self, node: int) -> str:
        file = LiveCluster.configure(self, node)
        given = Path(file).read_text().replace("listeners=PLAINTEXT:", "listeners=SECURED:").splitlines()
        lines = [line for line in given if not line.startswith("listener.security.protocol.map")]
        lines += [
            "listener.security.protocol.map=CONTROLLER:SASL_SSL,SECURED:SASL_SSL",
            "sasl.enabled.mechanisms=PLAIN",
            "sasl.mechanism.controller.protocol=PLAIN",
            f"listener.name.controller.plain.sasl.jaas.config={JAAS} user_admin=pw;",
            "ssl.keystore.type=PEM",
            f"ssl.keystore.location={self.path / 'node.pem'}",
            *self._trust(),
        ]
        if node in self.brokers:
            lines += [
                "inter.broker.listener.name=SECURED",
                "sasl.mechanism.inter.broker.protocol=PLAIN",
                f"listener.name.secured.plain.sasl.jaas.config={JAAS} user_admin=pw;",
            ]
        Path(file).write_text("\n".join(lines))
        return file

    def as_client(self) -> tuple[str, ...]:
        return "--command-config", str(self.path / "client.properties")


@pytest.mark.long
def test_three_voters_boot_over_tls_and_sasl(golden: Path, tmp_path: Path) -> None:
    live = SecuredCluster(kafka_tools(), tmp_path / "live", 29920)
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


@pytest.mark.long
def test_brokers_come_back_over_tls_and_sasl(tmp_path: Path) -> None:
    """The majority and its disks are destroyed; brokers find the new controller, with every message."""
    with three_controllers(tmp_path / "live", 29940, kind=SecuredCluster) as live:
        live.tool("topics", "--create", "--topic", "orders", "--replication-factor", "2", by=11)
        live.produce("orders", MESSAGES, by=11)
        left = live.leader(1, 2, 3)
        for node in list(live.running):
            live.kill(node)
        captures = live.capture("left", left)
        gone = sorted({1, 2, 3} - {left})
        port = live.ports[gone[0]]
        for node in (1, 2, 3):
            shutil.rmtree(live.folder(node))
        words = ("--voters", f"21@127.0.0.1:{port}", "--gone", *map(str, gone))
        restored(captures, tmp_path, *words, "--controllers-stopped", "--brokers-stopped")
        started_anew(live, tmp_path / "new", 21, port)
        assert live.consumed("orders", len(MESSAGES) + 1, by=12) == MESSAGES
        live.produce("orders", ["message-last"], by=12)
        assert live.consumed("orders", len(MESSAGES) + 2, by=11) == sorted([*MESSAGES, "message-last"])
