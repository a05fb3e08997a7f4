"""Real Kafka controllers on loopback, driven by the scripts of tests/kafka."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.kafka import LAB, RELEASE, SCRIPTS, is_fetched

FETCH_TIMEOUT_MS = 15_000
HIDDEN = shutil.ignore_patterns("*.index", "*.timeindex", "*.txnindex", "*.lock", ".lock", "quorum-state")


def kafka_tools(release: str = RELEASE) -> Path:
    """The folder of the script k (k VERSION TOOL ...). A test of a release that is not fetched is skipped."""
    if not is_fetched(release):
        pytest.skip(f"no Kafka {release} in {LAB}: tests/kafka/bin/get {release}")
    return SCRIPTS / "bin"


@dataclass(slots=True)
class Tool:
    """What one of Kafka's tools answered."""

    code: int
    printed: str

    @property
    def exception(self) -> str | None:
        """Simple name of the first exception printed."""
        found = re.search(r"errors\.(\w+Exception)\b", self.printed)
        return found[1] if found else None


@dataclass(slots=True)
class LiveQuorum:
    """Controllers by id in `path`, their ports from `port` on; `static`: with a static set of voters.

    release: of Kafka.

    `fetch_timeouts`: for some nodes another time without the leader before they want an election, in ms.
    """

    tools: Path
    path: Path
    port: int
    static: bool = False
    cluster_id: str = ""
    ports: dict[int, int] = field(default_factory=dict)
    fetch_timeouts: dict[int, int] = field(default_factory=dict)
    running: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    release: str = RELEASE

    def __post_init__(self) -> None:
        self.path.mkdir(parents=True)
        self.cluster_id = self.random_uuid()

    def k(self, *words: str, timeout: float = 120) -> Tool:
        command = [str(self.tools / "k"), self._release_of(words[0]), *words]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
        except subprocess.TimeoutExpired as expired:
            return Tool(-1, str(expired.stdout))
        return Tool(done.returncode, done.stdout + done.stderr)

    def _release_of(self, tool: str) -> str:
        """Kafka 4.4.0's own tools are not on Maven Central, but for storage."""
        return RELEASE if self.release == "4.4.0" and tool != "storage" else self.release

    def random_uuid(self) -> str:
        return self.k("storage", "random-uuid").printed.split()[-1]

    def folder(self, node: int) -> Path:
        return self.path / f"node-{node}"

    def address(self, node: int) -> str:
        return f"127.0.0.1:{self.ports.setdefault(node, self.port + node)}"

    def configure(self, node: int) -> str:
        """Write the node's configuration. Returns the file's path."""
        nodes = sorted({*self.ports, node})
        servers = ",".join(map(self.address, nodes))
        quorum = f"controller.quorum.bootstrap.servers={servers}"
        if self.static:
            quorum = f"controller.quorum.voters={','.join(f'{n}@{self.address(n)}' for n in nodes)}"
        lines = [
            "process.roles=controller",
            f"node.id={node}",
            f"listeners=CONTROLLER://{self.address(node)}",
            f"advertised.listeners=CONTROLLER://{self.address(node)}",
            "controller.listener.names=CONTROLLER",
            quorum,
            f"log.dirs={self.folder(node)}",
            f"controller.quorum.fetch.timeout.ms={self.fetch_timeouts.get(node, FETCH_TIMEOUT_MS)}",
            "num.network.threads=1",
            "num.io.threads=2",
        ]
        file = self.path / f"controller-{node}.properties"
        file.write_text("\n".join(lines))
        return str(file)

    def format(self, node: int, *how: str) -> None:
        config = self.configure(node)
        done = self.k("storage", "format", "--cluster-id", self.cluster_id, "--config", config, *how)
        assert done.code == 0, done.printed

    def start(self, node: int) -> None:
        log = (self.path / f"{node}.out").open("ab")
        command = [str(self.tools / "k"), self.release, "server", self.configure(node)]
        self.running[node] = subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self, node: int) -> None:
        process = self.running.pop(node)
        process.kill()
        process.wait()

    def stop(self, node: int) -> None:
        process = self.running.pop(node)
        process.terminate()
        process.wait(60)

    def printed(self, node: int) -> str:
        """The end of what the node has printed."""
        return (self.path / f"{node}.out").read_text(errors="replace")[-4000:]

    def pause(self, *nodes: int) -> None:
        for node in nodes:
            os.kill(self.running[node].pid, signal.SIGSTOP)

    def resume(self, *nodes: int) -> None:
        for node in nodes:
            os.kill(self.running[node].pid, signal.SIGCONT)

    def close(self) -> None:
        for node in list(self.running):
            self.resume(node)
            self.kill(node)

    def directory_id(self, node: int) -> str:
        found = re.search(r"directory\.id=(\S+)", (self.folder(node) / "meta.properties").read_text())
        assert found is not None
        return found[1]

    def as_client(self) -> tuple[str, ...]:
        """The flags by which tools find the settings of a client, where they need any."""
        return ()

    def quorum_tool(self, *words: str, by: int, timeout: float = 120) -> Tool:
        given = ("--bootstrap-controller", self.address(by), *self.as_client())
        return self.k("metadata-quorum", *given, *words, timeout=timeout)

    def add(self, node: int, by: int) -> Tool:
        return self.k(*self._add(node, by))

    def begin_to_add(self, node: int, by: int) -> subprocess.Popen[bytes]:
        """The tool that adds a controller, left running: it waits until the change is committed."""
        words = self._add(node, by)
        command = [str(self.tools / "k"), self._release_of(words[0]), *words]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _add(self, node: int, by: int) -> tuple[str, ...]:
        config, where = self.configure(node), self.address(by)
        command = ("metadata-quorum", "--command-config", config, "--bootstrap-controller", where)
        return *command, "add-controller"

    def remove(self, node: int, directory_id: str, by: int) -> Tool:
        words = ("--controller-id", str(node), "--controller-directory-id", directory_id)
        return self.quorum_tool("remove-controller", *words, by=by)

    def features(self, *words: str, by: int) -> Tool:
        return self.k("features", "--bootstrap-controller", self.address(by), *words)

    def status(self, by: int) -> dict[str, str]:
        """The lines of describe --status; empty where nobody answers."""
        done = self.quorum_tool("describe", "--status", by=by, timeout=30)
        if done.code:
            return {}
        rows = (line.partition(":") for line in done.printed.splitlines())
        return {name: value.strip() for name, _, value in rows}

    def voters(self, by: int) -> set[tuple[int, str]]:
        """Ids and directory ids by describe."""
        listed = json.loads(self.status(by)["CurrentVoters"])
        return {(voter["id"], voter["directoryId"]) for voter in listed}

    def leader(self, *asked: int, but: int | None = None) -> int:
        """The leader that one of the nodes names, waited for."""
        for _ in range(40):
            for node in asked:
                found = int(self.status(node).get("LeaderId", "-1"))
                if found >= 0 and found != but and self.watermark(node) >= 0:
                    return found
            time.sleep(0.5)
        raise AssertionError(f"no leader by {asked}")

    def watermark(self, by: int) -> int:
        return int(self.status(by).get("HighWatermark", "-1"))

    def capture(self, label: str, *nodes: int) -> Path:
        """Copies of the nodes' directories, quorum-state last, with the time in capture.json."""
        target = self.path / "captures" / label
        for node in nodes:
            copy = target / f"node-{node}"
            shutil.copytree(self.folder(node), copy, ignore=HIDDEN)
            state = "__cluster_metadata-0/quorum-state"
            if (self.folder(node) / state).exists():
                shutil.copy2(self.folder(node) / state, copy / state)
            (copy / "capture.json").write_text(json.dumps({"captured_at": _now()}))
        return target


def _now() -> str:
    ms = time.time_ns() // 1_000_000
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(ms / 1000)) + f".{ms % 1000:03}Z"
