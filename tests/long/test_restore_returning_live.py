"""Old controllers return, against a real Kafka: with both bumps they never displace the new quorum."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kraft_core.restore import horizon
from tests.long.live_quorum import LiveQuorum, kafka_tools
from tests.long.restoring import planned, restored

OLD = (1, 2)


@pytest.fixture
def quorum(tmp_path: Path) -> Iterator[LiveQuorum]:
    """Voters 1, 2 and 3, of which 3 was killed early: a majority that goes on without it."""
    live = LiveQuorum(kafka_tools(), tmp_path / "live", 29860)
    directories = {node: live.random_uuid() for node in (1, 2, 3)}
    voters = ",".join(f"{node}@{live.address(node)}:{id_}" for node, id_ in directories.items())
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda node: live.format(node, "--initial-controllers", voters), directories))
    try:
        for node in directories:
            live.start(node)
        live.leader(*directories)
        live.kill(3)
        leader = live.leader(*OLD)
        begun = live.watermark(leader)
        while live.watermark(leader) < begun + 30:
            time.sleep(1)
        for node in OLD:
            live.kill(node)
        yield live
    finally:
        live.close()


def _observers(live: LiveQuorum) -> set[int]:
    listed = live.status(21).get("CurrentObservers", "")
    return {node for node in OLD if f'"id": {node}' in listed}


def _elected(live: LiveQuorum) -> bool:
    """Whether an old controller says in its quorum-state that one of the two leads."""
    files = (live.folder(node) / "__cluster_metadata-0/quorum-state" for node in OLD)
    return any(json.loads(file.read_text())["leaderId"] in OLD for file in files)


@pytest.mark.long
@pytest.mark.parametrize(("offsets", "epochs", "elect"), [(True, True, False), (False, True, True)])
def test_a_majority_comes_back(
    quorum: LiveQuorum,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    offsets: bool,
    epochs: bool,
    elect: bool,
) -> None:
    """Restored from what 3 held; the new voter, at 3's address, leads, then dies: do the old two elect?

    Without the bump of the offset they do, beside the new quorum: so it matters.
    """
    live = quorum
    if not offsets:
        monkeypatch.setattr(horizon, "OFFSET_MARGIN", 0)
    if not epochs:
        monkeypatch.setattr(horizon, "EPOCH_MARGIN", 0)
    captures = live.capture("behind", 3)
    words = ("--voters", f"21@{live.address(3)}", "--gone", "1", "2", "--listener", "CONTROLLER")
    restored(captures, tmp_path, *words, "--controllers-stopped", "--brokers-stopped")
    live.ports = {21: live.ports[3], **{node: live.ports[node] for node in OLD}}
    shutil.copytree(tmp_path / "new/node-21", live.folder(21))
    live.start(21)
    assert live.leader(21) == 21
    epoch = int(live.status(21)["LeaderEpoch"])
    for node in OLD:
        live.start(node)
    for _ in range(60):
        if _observers(live) == set(OLD):
            break
        time.sleep(1)
    assert _observers(live) == set(OLD)
    assert (live.leader(21), int(live.status(21)["LeaderEpoch"])) == (21, epoch)
    assert {node for node, _ in live.voters(21)} == {21}

    live.kill(21)
    for _ in range(60):
        if _elected(live):
            break
        time.sleep(1)
    assert _elected(live) == elect


@pytest.mark.long
@pytest.mark.parametrize("epochs", [True, False])
def test_a_majority_leads_before_the_new_voter_starts(
    quorum: LiveQuorum, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, epochs: bool
) -> None:
    """With both bumps the old leader steps down; with the offset's alone the new voter dies.

    It follows, or led the same epoch.
    """
    live = quorum
    if not epochs:
        monkeypatch.setattr(horizon, "EPOCH_MARGIN", 0)
    captures = live.capture("behind", 3)
    words = ("--voters", f"21@{live.address(3)}", "--gone", "1", "2", "--listener", "CONTROLLER")
    made = restored(captures, tmp_path, *words, "--controllers-stopped", "--brokers-stopped")
    for node in OLD:
        live.start(node)
    assert live.leader(*OLD) in OLD
    led = max(int(live.status(node).get("LeaderEpoch", "-1")) for node in OLD)
    assert (made["restored"]["written"]["leader_epoch"] > led) == epochs
    live.ports = {21: live.ports[3], **{node: live.ports[node] for node in OLD}}
    shutil.copytree(tmp_path / "new/node-21", live.folder(21))
    live.start(21)
    if epochs:
        for _ in range(60):
            if _observers(live) == set(OLD):
                break
            time.sleep(1)
        assert _observers(live) == set(OLD)
        assert (live.leader(21), {node for node, _ in live.voters(21)}) == (21, {21})
        return
    live.running.pop(21).wait(120)
    died = (live.path / "21.out").read_text()
    assert "below the current high watermark" in died or "is inconsistent with current leader" in died
    assert live.leader(*OLD) in OLD


def _lines(refusal: str) -> dict[int, str]:
    """By node the end of its log, as --line takes it."""
    ends = re.findall(r"(\d+@\d+) \(node ([\d, ]+)\)", refusal)
    return {int(node): end for end, nodes in ends for node in nodes.split(", ")}


@pytest.mark.long
def test_two_quorums_of_one_id(quorum: LiveQuorum, tmp_path: Path) -> None:
    """At an address that they do not know the old two elect beside the new voter, whatever the bumps.

    Captures of both are refused, and each history is restored by name.
    """
    live, old = quorum, {node: quorum.ports[node] for node in (1, 2, 3)}
    captures = live.capture("behind", 3)
    live.ports = {21: live.port + 21}
    words = ("--gone", "1", "2", "--listener", "CONTROLLER", "--controllers-stopped", "--brokers-stopped")
    restored(captures, tmp_path, "--voters", f"21@{live.address(21)}", *words)
    shutil.copytree(tmp_path / "new/node-21", live.folder(21))
    live.start(21)
    assert live.leader(21) == 21
    live.ports = dict(old)
    for node in OLD:
        live.start(node)
    assert live.leader(*OLD) in OLD
    live.ports = old | {21: live.port + 21}
    assert live.leader(21) == 21
    for node in list(live.running):
        live.kill(node)
    both = live.capture("both", 21, *OLD)

    stated = ("--gone", "3", *words[2:])
    refused = planned(both, tmp_path / "refused.json", "--voters", f"31@{live.address(31)}", *stated)
    assert refused["verdict"] == "REFUSED"
    lines = _lines(refused["refusals"][-1])
    assert set(lines) == {1, 2, 21}
    of_old = max((lines[node] for node in OLD), key=lambda line: [int(word) for word in line.split("@")])
    for voter, line in ((31, lines[21]), (32, of_old)):
        (tmp_path / str(voter)).mkdir()
        live.ports = {voter: live.port + voter}
        given = ("--voters", f"{voter}@{live.address(voter)}", "--line", line, *stated)
        made = restored(both, tmp_path / str(voter), *given)
        assert "other-line" in {loss["name"] for loss in made["losses"]}
        assert lines[int(made["restored"]["source"].partition("@")[0])] == line
        shutil.copytree(tmp_path / str(voter) / f"new/node-{voter}", live.folder(voter))
        live.start(voter)
        assert live.leader(voter) == voter
        assert int(live.status(voter)["LeaderEpoch"]) > made["restored"]["highest_seen"]["leader_epoch"]
        live.kill(voter)


@pytest.mark.long
def test_killed_while_it_starts(golden: Path, tmp_path: Path) -> None:
    """kill -9 at ten moments of the first start: it goes on, with all that was planned."""
    live = LiveQuorum(kafka_tools(), tmp_path / "live", 29880)
    made = restored(
        golden / "uncommitted-truncation/after",
        tmp_path,
        *("--voters", f"21@{live.address(21)}", "--controllers-stopped"),
    )
    live.cluster_id = made["cluster_id"]
    shutil.copytree(tmp_path / "new/node-21", live.folder(21))
    try:
        for nth in range(10):
            live.start(21)
            time.sleep(0.7 * (nth + 1))
            live.kill(21)
        live.start(21)
        assert live.leader(21) == 21
        assert int(live.status(21)["LeaderEpoch"]) > made["restored"]["written"]["leader_epoch"]
        assert live.watermark(21) > made["restored"]["written"]["end_offset"]
    finally:
        live.close()
