"""plan load against real controllers, each started on its own log with one record added."""

from __future__ import annotations

import random
import re
import shutil
import time
from pathlib import Path

import pytest

from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.messages.releases import release_of
from kraft_core.plan.load_logs import load_of
from tests.long.live_quorum import LiveQuorum, kafka_tools
from tests.long.load_mutations import LOG, MutableLog, Mutation, framed, large_batch, written

pytestmark = pytest.mark.long

LONGEST_S = 90
# How long a controller that leads must go on.
STEADY_S = 6


def _unknown_type(_: random.Random, log: MutableLog) -> None:
    log.append(framed(1, 99, 0, b"\0"))


def _refused(_: random.Random, log: MutableLog) -> None:
    log.append(written(5, 0, partitionId=0, topicId="A" * 21 + "Q"))


def _unknown_level(_: random.Random, log: MutableLog) -> None:
    log.append(written(12, name="share.version", featureLevel=9))


def _left_out(_: random.Random, log: MutableLog) -> None:
    log.append(framed(1, 2, 1, written(2, 0, name="t", topicId="A" * 21 + "Q")[3:]))


# Each with what the controller prints of the record that ends it, a pattern; None: it goes on. Of what replay
# refuses, the metadata loader or the controller comes first.
CASES: dict[str, tuple[Mutation, str | None]] = {
    "unknown type": (_unknown_type, "Unknown metadata id 99"),
    "refused by replay": (_refused, r"Error loading metadata log record from|Unable to apply \w+ record"),
    "unknown level": (_unknown_level, r"FeatureLevelRecord\(name='share.version', featureLevel=9\)"),
    "fields left out": (_left_out, None),
    "batch beyond 8 MB": (large_batch, None),
}


@pytest.mark.parametrize("version", ["3.9.2", "4.3.1", "4.4.0"])
def test_a_controller_ends_where_it_is_said_to(version: str, tmp_path: Path) -> None:
    release = release_of(version)
    assert release is not None
    port = {"3.9.2": 29110, "4.3.1": 29120, "4.4.0": 29130}[version]
    quorum = LiveQuorum(kafka_tools(version), tmp_path / "quorum", port, release=version)
    folder, formatted = quorum.folder(1), tmp_path / "formatted"
    try:
        quorum.format(1, "--standalone")
        quorum.start(1)
        assert not _ends(quorum, 0)
        quorum.stop(1)
        folder.rename(formatted)
        for name, (change, reason) in CASES.items():
            shutil.copytree(formatted, folder)
            (segment,) = (folder / LOG).glob("*.log")
            log = MutableLog.of(segment)
            change(random.Random(0), log)
            log.write()
            for index in (folder / LOG).glob("*index"):
                index.unlink()
            (directory,) = find_controller_dirs([folder]).directories
            found = load_of(directory, "1", release)
            assert bool(found.obstacles or found.ends.refused) == (reason is not None), name
            (quorum.path / "1.out").unlink()
            quorum.start(1)
            ends = _ends(quorum, segment.stat().st_size)
            said = (quorum.path / "1.out").read_text(errors="replace")
            # Whatever else may end a controller, such as a port in use, is no answer.
            assert ends == (reason is not None), f"{name}: {said[-4000:]}"
            assert reason is None or re.search(reason, said), f"{name}: {said[-4000:]}"
            if 1 in quorum.running:
                quorum.kill(1)
            shutil.rmtree(folder)
    finally:
        quorum.close()


def _ends(quorum: LiveQuorum, size: int) -> bool:
    """Whether node 1 ends by itself; if not, it has appended to its log and goes on."""
    until, grown_at = time.monotonic() + LONGEST_S, None
    while time.monotonic() < until:
        if quorum.running[1].poll() is not None:
            quorum.running.pop(1)
            return True
        segments = list((quorum.folder(1) / LOG).glob("*.log"))
        if grown_at is None and segments and segments[-1].stat().st_size > size:
            grown_at = time.monotonic()
        if grown_at is not None and time.monotonic() > grown_at + STEADY_S:
            return False
        time.sleep(0.2)
    raise AssertionError("node 1 neither leads nor ends")
