"""A real quorum with brokers on loopback: topics, users, and messages that are acknowledged and counted."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.long.live_quorum import LiveQuorum


@dataclass(slots=True)
class LiveCluster(LiveQuorum):
    """Brokers by id, of which no controller has one; `home`: of each node whose directory is elsewhere."""

    brokers: set[int] = field(default_factory=set)
    home: dict[int, Path] = field(default_factory=dict)

    def folder(self, node: int) -> Path:
        return self.home.get(node, self.path / f"node-{node}")

    def configure(self, node: int) -> str:
        if node not in self.brokers:
            return LiveQuorum.configure(self, node)
        controllers = sorted(set(self.ports) - self.brokers)
        quorum = f"controller.quorum.bootstrap.servers={','.join(map(self.address, controllers))}"
        if self.static:
            voters = ",".join(f"{each}@{self.address(each)}" for each in controllers)
            quorum = f"controller.quorum.voters={voters}"
        lines = [
            "process.roles=broker",
            f"node.id={node}",
            f"listeners=PLAINTEXT://{self.address(node)}",
            "controller.listener.names=CONTROLLER",
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            quorum,
            f"log.dirs={self.folder(node)}",
            "initial.broker.registration.timeout.ms=240000",
            "offsets.topic.replication.factor=2",
            "offsets.topic.num.partitions=1",
            "log.cleaner.dedupe.buffer.size=2097152",
            "num.network.threads=1",
            "num.io.threads=2",
        ]
        file = self.path / f"broker-{node}.properties"
        file.write_text("\n".join(lines))
        return str(file)

    def begin(self, *options: str, controllers: tuple[int, ...] = (1,)) -> None:
        """Format and start voters, with options of kafka-storage, and the brokers, until these serve."""
        nodes = (*controllers, *sorted(self.brokers))
        addresses = {node: self.address(node) for node in nodes}
        voters = ",".join(f"{node}@{addresses[node]}:{self.random_uuid()}" for node in controllers)
        for node in controllers:
            self.format(node, "--initial-controllers", voters, *options)
        for broker in sorted(self.brokers):
            self.format(broker)
        for node in nodes:
            self.start(node)
        self.leader(*controllers)
        self.wait_for_brokers(by=11)

    def broker_address(self, node: int) -> str:
        return self.address(node)

    def _brokers(self, by: int) -> tuple[str, ...]:
        return "--bootstrap-server", self.broker_address(by), *self.as_client()

    def tool(self, name: str, *words: str, by: int) -> str:
        """What a tool prints; it must succeed."""
        done = self.k(name, *self._brokers(by), *words)
        assert done.code == 0, done.printed
        return done.printed

    def produce(self, topic: str, messages: list[str], by: int) -> None:
        """Messages, each of which all replicas in sync have acknowledged."""
        name = "org.apache.kafka.tools.ConsoleProducer"
        words = (*self._brokers(by), "--topic", topic, "--command-property", "acks=all")
        command = [str(self.tools / "k"), self.release, name, *words]
        text = "".join(f"{message}\n" for message in messages)
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        assert "ERROR" not in done.stdout + done.stderr, done.stdout + done.stderr

    def consumed(self, topic: str, at_most: int, by: int, *more: str) -> list[str]:
        """The messages of a topic, at most so many: those that come within 20 s, sorted."""
        name = "org.apache.kafka.tools.consumer.ConsoleConsumer"
        words = ("--topic", topic, "--from-beginning", "--max-messages", str(at_most), *more)
        done = self.k(name, *self._brokers(by), *words, "--timeout-ms", "20000", timeout=60)
        return sorted(line for line in done.printed.splitlines() if line.startswith("message-"))

    def wait_for_brokers(self, by: int) -> None:
        """Until every broker is registered and unfenced."""
        versions = "org.apache.kafka.tools.BrokerApiVersionsCommand"
        for _ in range(60):
            done = self.k(versions, *self._brokers(by))
            if all(f"{self.broker_address(node)} (id: {node}" in done.printed for node in self.brokers):
                return
            time.sleep(1)
        raise AssertionError(f"not all brokers of {sorted(self.brokers)} are back")


@dataclass(slots=True)
class TwoDiskCluster(LiveCluster):
    """Every broker has two log directories."""

    def configure(self, node: int) -> str:
        file = LiveCluster.configure(self, node)
        if node in self.brokers:
            folder, written = self.folder(node), Path(file).read_text()
            Path(file).write_text(written.replace(f"log.dirs={folder}", f"log.dirs={folder}/a,{folder}/b"))
        return file


@dataclass(slots=True)
class AuthorizedCluster(LiveCluster):
    """Rights are checked by the metadata's ACLs, of which the nodes themselves need none."""

    def configure(self, node: int) -> str:
        file = LiveCluster.configure(self, node)
        lines = [
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users=User:ANONYMOUS",
        ]
        if node in self.brokers:
            lines += [
                "transaction.state.log.replication.factor=2",
                "transaction.state.log.min.isr=1",
                "transaction.state.log.num.partitions=2",
            ]
        with Path(file).open("a") as written:
            written.write("".join(f"\n{line}" for line in lines))
        return file


@dataclass(slots=True)
class CombinedCluster(LiveCluster):
    """Every node is controller and broker: its controller listens on its port, its broker 10 above."""

    def broker_address(self, node: int) -> str:
        return f"127.0.0.1:{self.ports[node] + 10}"

    def configure(self, node: int) -> str:
        own = self.address(node)
        servers = ",".join(self.address(each) for each in sorted(self.ports))
        lines = [
            "process.roles=broker,controller",
            f"node.id={node}",
            f"listeners=CONTROLLER://{own},PLAINTEXT://{self.broker_address(node)}",
            "controller.listener.names=CONTROLLER",
            "listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
            f"controller.quorum.bootstrap.servers={servers}",
            f"log.dirs={self.folder(node)}",
            "initial.broker.registration.timeout.ms=240000",
            "log.cleaner.dedupe.buffer.size=2097152",
            "num.network.threads=1",
            "num.io.threads=2",
        ]
        file = self.path / f"node-{node}.properties"
        file.write_text("\n".join(lines))
        return str(file)
