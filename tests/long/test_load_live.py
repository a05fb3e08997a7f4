"""plan load against real controllers, each started on its own log with one record added."""

from __future__ import annotations

import json
import random
import re
import shutil
import time
from pathlib import Path

import pytest

from kraft_core.findings.unread_files import unread_files
from kraft_core.format.controller_dir import find_controller_dirs
from kraft_core.format.log_dirs import BOOTSTRAP_NAME
from kraft_core.format.segment import scan
from kraft_core.messages.releases import release_of
from kraft_core.plan.load_logs import load_of
from tests.long.live_quorum import LiveQuorum, kafka_tools
from tests.long.load_mutations import LOG, MutableLog, Mutation, framed, large_batch, written

pytestmark = pytest.mark.long

LONGEST_S = 90
NO_LEVEL = "No FeatureLevelRecord for metadata.version was found in the bootstrap metadata"
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


# How many of the three batches of a bootstrap.checkpoint are left, and whether a controller starts on that.
BOOTSTRAPS = {"whole": (3, True), "no footer": (2, True), "header alone": (1, False), "0 bytes": (0, False)}


@pytest.mark.parametrize("version", ["3.9.2", "4.3.1"])
def test_a_controller_does_not_start_on_a_bootstrap_checkpoint_without_records(
    version: str, tmp_path: Path
) -> None:
    """Formatted just now, or with a log that makes the file needless; without the file it starts."""
    release = release_of(version)
    assert release is not None
    port = {"3.9.2": 29140, "4.3.1": 29150}[version]
    quorum = LiveQuorum(kafka_tools(version), tmp_path / "quorum", port, release=version)
    file = quorum.folder(1) / BOOTSTRAP_NAME
    try:
        quorum.format(1, "--standalone")
        whole = file.read_bytes()
        ends = [0, *(item.end for item in scan(whole))]
        assert len(ends) == 4
        file.write_bytes(b"")
        assert NO_LEVEL in _said_at_the_end(quorum)
        for name, (batches, starts) in BOOTSTRAPS.items():
            file.write_bytes(whole[: ends[batches]])
            if starts:
                quorum.start(1)
                assert not _ends(quorum, _log_size(quorum)), name
                quorum.stop(1)
            else:
                assert NO_LEVEL in _said_at_the_end(quorum), name
            (directory,) = find_controller_dirs([quorum.folder(1)]).directories
            refused = load_of(directory, "1", release).obstacles
            assert [NO_LEVEL in (each.kafka or "") for each in refused] == ([] if starts else [True]), name
            assert len(list(unread_files([("a capture", directory)]))) == (name != "whole"), name
        file.unlink()
        quorum.start(1)
        assert not _ends(quorum, _log_size(quorum))
        quorum.stop(1)
    finally:
        quorum.close()


@pytest.mark.parametrize("version", ["4.3.1", "4.4.0"])
def test_a_new_quorum_elects_no_leader_by_an_empty_checkpoint_of_formatting(
    version: str, tmp_path: Path
) -> None:
    """It goes on without a word, and knows no voters."""
    port = {"4.3.1": 29160, "4.4.0": 29170}[version]
    quorum = LiveQuorum(kafka_tools(version), tmp_path / "quorum", port, release=version)
    state = quorum.folder(1) / LOG / "quorum-state"
    try:
        quorum.format(1, "--standalone")
        (quorum.folder(1) / LOG / f"{0:020}-{0:010}.checkpoint").write_bytes(b"")
        quorum.start(1)
        until = time.monotonic() + LONGEST_S
        while not state.exists() and time.monotonic() < until:
            time.sleep(0.2)
        time.sleep(2 * STEADY_S)
        assert quorum.running[1].poll() is None
        assert json.loads(state.read_text())["leaderId"] == -1
        assert _log_size(quorum) == 0
    finally:
        quorum.close()


def _said_at_the_end(quorum: LiveQuorum) -> str:
    """What node 1 prints from its start until it ends by itself."""
    (quorum.path / "1.out").unlink(missing_ok=True)
    quorum.start(1)
    assert _ends(quorum, 0)
    return (quorum.path / "1.out").read_text(errors="replace")


def _log_size(quorum: LiveQuorum) -> int:
    return max((file.stat().st_size for file in (quorum.folder(1) / LOG).glob("*.log")), default=0)


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
