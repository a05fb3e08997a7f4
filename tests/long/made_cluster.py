"""A real cluster with authorization, whose metadata is made by Kafka's Admin alone."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from jobs.time_travel.open_source import open_captured
from kraft_core.desired.of_image import state_in
from kraft_core.desired.state import DesiredState
from tests.kafka import RELEASE
from tests.kafka.java_programs import ask
from tests.long.drawn_metadata import Thing
from tests.long.live_cluster import AuthorizedCluster
from tests.long.live_quorum import kafka_tools

BROKERS = (11, 12, 13)
TOOLS = {"kafka-topics.sh": "topics", "kafka-configs.sh": "configs", "kafka-acls.sh": "acls"}


@dataclass(slots=True)
class MadeCluster:
    """A running cluster of controllers and three brokers."""

    live: AuthorizedCluster

    @classmethod
    def at(cls, path: Path, port: int, controllers: tuple[int, ...] = (1,)) -> MadeCluster:
        live = AuthorizedCluster(kafka_tools(), path, port, brokers=set(BROKERS))
        live.begin(controllers=controllers)
        return cls(live)

    def make(self, things: list[Thing], folder: Path) -> list[Thing]:
        """Those that Kafka takes."""
        servers = {"servers": self.live.broker_address(11)}
        lines = [json.dumps(line) for line in (servers, *things)]
        answers = ask(
            Path(__file__).with_name("MakeMetadata.java"), "MakeMetadata", RELEASE, lines, folder
        ).stdout.splitlines()
        assert len(answers) == len(things)
        return [thing for thing, answer in zip(things, answers, strict=True) if answer == "made"]

    def run_script(self, script: Path, folder: Path) -> str:
        """What a script of export prints; Kafka's tools are on its path by their names."""
        folder.mkdir()
        for name, tool in TOOLS.items():
            (folder / name).write_text(f'#!/bin/bash\nexec {self.live.tools / "k"} {RELEASE} {tool} "$@"\n')
            (folder / name).chmod(0o755)
        settings = {
            "PATH": f"{folder}:{os.environ['PATH']}",
            "BOOTSTRAP_SERVER": self.live.broker_address(11),
        }
        done = subprocess.run(
            ["bash", str(script)], capture_output=True, text=True, env={**os.environ, **settings}, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def state(self, label: str) -> tuple[Path, DesiredState]:
        captured = self.live.capture(label, 1) / "node-1"
        return captured, state_in(open_captured(captured).image_at())
