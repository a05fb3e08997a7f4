"""kafka-dump-log reads what the simulation writes. Needs `make kafka`."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kraft_core.format.controller_dir import ControllerDir
from kraft_core.format.segment import scan
from kraft_core.simulation.runs import random_run, simulate
from kraft_core.simulation.setup import Setup
from tests.kraft_core.simulation.test_directories import write_quorum
from tests.long.live_quorum import kafka_tools

COMPLAINTS = ("isvalid: false", "Exception", "Found invalid", "mismatch")


@pytest.mark.long
@pytest.mark.parametrize("setup", [Setup(12, voters=5, observers=1), Setup(4, voters=3, static=True)])
def test_kafka_reads_the_directories_without_a_complaint(setup: Setup, tmp_path: Path) -> None:
    tools = kafka_tools()
    quorum = simulate(random_run(setup, 60)).quorum
    for directory in write_quorum(quorum, tmp_path):
        files = [str(file.path) for file in (*directory.segments, *directory.checkpoints) if file.size_bytes]
        command = [
            f"{tools}/k",
            "4.3.1",
            "dump-log",
            "--cluster-metadata-decoder",
            "--files",
            ",".join(files),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        printed = done.stdout + done.stderr
        assert done.returncode == 0, printed[-2000:]
        assert [line for line in printed.splitlines() if any(word in line for word in COMPLAINTS)] == []
        assert printed.count("baseOffset:") == len(_batches(directory))


def _batches(directory: ControllerDir) -> list[object]:
    return [
        batch
        for file in (*directory.segments, *directory.checkpoints)
        for batch in scan(file.path.read_bytes())
    ]
