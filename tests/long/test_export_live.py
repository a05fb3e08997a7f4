"""Metadata of a real cluster is exported, made again in an empty one, captured, and compared.

What is made is drawn; KRAFTLAKE_SEED draws other. Needs `make kafka`.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from jobs.cli import main
from jobs.runtime.output import printable
from kraft_core.desired.of_image import state_in
from kraft_core.desired.state import DesiredState
from kraft_core.format.controller_dir import read_controller_dir
from kraft_core.image.replica import CapturedReplica
from tests.kafka import RELEASE
from tests.kafka.java_programs import ask
from tests.long.drawn_metadata import Thing, drawn_metadata
from tests.long.live_cluster import AuthorizedCluster
from tests.long.live_quorum import kafka_tools

pytestmark = pytest.mark.long

BROKERS = (11, 12, 13)
TOOLS = {"kafka-topics.sh": "topics", "kafka-configs.sh": "configs", "kafka-acls.sh": "acls"}


@dataclass(slots=True)
class Begun:
    """A running cluster of one controller and three brokers."""

    live: AuthorizedCluster

    @classmethod
    def at(cls, path: Path, port: int) -> Begun:
        live = AuthorizedCluster(kafka_tools(), path, port, brokers=set(BROKERS))
        for node in (1, *BROKERS):
            live.address(node)
        live.format(1, "--initial-controllers", f"1@{live.address(1)}:{live.random_uuid()}")
        for broker in BROKERS:
            live.format(broker)
        for node in (1, *BROKERS):
            live.start(node)
        live.leader(1)
        live.wait_for_brokers(by=11)
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
        return captured, state_in(CapturedReplica.of_directory(read_controller_dir(captured)).image_at())


def exported(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, list[str]]:
    """What export prints, and what it says is not exported."""
    capsys.readouterr()
    assert main(["export", *words]) == 0
    printed = capsys.readouterr()
    return printed.out, [line.removeprefix("not exported: ") for line in printed.err.splitlines()]


@pytest.mark.parametrize("nth", range(2))
def test_what_is_exported_makes_the_same_metadata(
    nth: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = random.Random(f"{os.environ.get('KRAFTLAKE_SEED', '1')} {nth}")
    first = Begun.at(tmp_path / "first", 29480)
    try:
        made = first.make(list(drawn_metadata(seed, BROKERS)), tmp_path)
        captured, wanted = first.state("made")
    finally:
        first.live.close()
    placement = ["--placement"] if nth == 0 else []
    text, _ = exported(capsys, *placement, str(captured))
    (tmp_path / "desired.yaml").write_text(text)
    script, left_out = exported(capsys, "--as", "commands", *placement, str(captured))
    (tmp_path / "make.sh").write_text(script)

    second = Begun.at(tmp_path / "second", 29500)
    try:
        second.run_script(tmp_path / "make.sh", tmp_path / "bin")
        anew, actual = second.state("anew")
        code = main(["diff", "--desired", str(tmp_path / "desired.yaml"), "--format", "json", str(anew)])
    finally:
        second.live.close()
    found = json.loads(capsys.readouterr().out)["differences"]
    refused = [each for each in left_out if each.startswith("ACL ")]
    with capsys.disabled():
        kinds = {kind: sum(thing["make"] == kind for thing in made) for kind in ("topic", "acl", "quotas")}
        print(f"{len(made)} things made ({kinds}), {len(left_out)} not exported: {left_out}")
    # What is missing is what export said that no command makes: each credential, and ACLs.
    missing = {printable(each["subject"]) for each in found}
    assert {each["change"] for each in found} <= {"missing"}
    assert missing == {each.partition(": ")[0] for each in refused} | {
        printable(f"{mechanism} credential of {name}") for name, mechanism in wanted.users
    }
    assert code == 1
    assert not Path("owned").exists()
    assert (actual.topics == wanted.topics) or not placement
    assert (actual.configs, actual.quotas, actual.features) == (
        wanted.configs,
        wanted.quotas,
        wanted.features,
    )
