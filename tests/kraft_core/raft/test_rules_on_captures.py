"""KRaft's rules on real captures: a sound quorum breaks none, the stale one that which shows it."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraft_core.format.batch import BatchHeader
from kraft_core.format.segment import scan
from kraft_core.raft import invariants as one
from kraft_core.raft import quorum_invariants as between
from kraft_core.raft.batches import Batches
from kraft_core.raft.epochs import EpochCache
from kraft_core.raft.log import ReplicaLog, Segment, voters_of_log
from kraft_core.raft.rules import Violation
from kraft_core.raft.voters import ReplicaKey
from tests.kraft_core.raft.reading import read_batches, read_snapshot

GOLDEN = Path(__file__).parents[2] / "golden"
SOUND = (
    "disk-failure",
    "dynamic-membership",
    "election-storm",
    "old-mv-3.3-IV0-fatal-on-4.3.1",
    "static-upgrade",
    "uncommitted-removal",
    "uncommitted-then-committed",
    "uncommitted-truncation",
    "v4.4.0-mini",
)


def captured(folder: Path) -> ReplicaLog:
    """A captured controller directory as a replica that has just started; a torn tail is not read."""
    partition = folder / "__cluster_metadata-0"
    files = {int(path.stem): path.read_bytes() for path in sorted(partition.glob("*.log"))}
    batches = Batches(batch for buf in files.values() for batch in read_batches(buf[: _sound_bytes(buf)]))
    snapshots = [
        read_snapshot(int(end), int(epoch), path.read_bytes())
        for path in partition.glob("*.checkpoint")
        for end, epoch in [path.stem.split("-")]
    ]
    base = min(files)
    lines = (partition / "leader-epoch-checkpoint").read_text().splitlines()[2:]
    cached = EpochCache(tuple((int(epoch), int(start)) for epoch, start in map(str.split, lines)))
    return ReplicaLog(
        start_offset=base,
        end_offset=batches.last.end_offset if batches.last else base,
        high_watermark=base,
        epochs=cached,
        batches=batches,
        segments=tuple(Segment(offset, len(buf)) for offset, buf in files.items()),
        snapshots=tuple(sorted(snapshots, key=lambda snapshot: snapshot.order)),
    )


def _sound_bytes(buf: bytes) -> int:
    end = 0
    for item in scan(buf):
        if not isinstance(item, BatchHeader):
            break
        end = item.end
    return end


def of_one_log(log: ReplicaLog) -> Iterator[Violation]:
    yield from one.epochs_never_go_back(log)
    yield from one.epoch_cache_matches_batches(log)
    yield from one.epochs_begin_with_leader_change(log)
    yield from one.one_voter_at_a_time(log)
    yield from one.kraft_version_allows_voters(log)
    yield from one.snapshots_carry_the_log(log)
    yield from one.snapshots_are_aligned(log)
    yield from one.starts_under_a_snapshot(log)
    yield from one.removed_leader_changes_no_more(log)
    yield from one.leader_change_names_the_set(log)


def captures(scenario: str) -> dict[str, dict[ReplicaKey, ReplicaLog]]:
    """Label of a moment -> the logs captured then."""
    found: dict[str, dict[ReplicaKey, ReplicaLog]] = defaultdict(dict)
    for partition in sorted((GOLDEN / scenario).rglob("__cluster_metadata-0")):
        folder = partition.parent
        if any(partition.glob("*.log")):
            meta = (folder / "meta.properties").read_text()
            key = ReplicaKey(int(folder.name.removeprefix("node-")), re.search("directory.id=(.*)", meta)[1])
            found[folder.parent.name if folder.parent != GOLDEN / scenario else "final"][key] = captured(
                folder
            )
    return found


@pytest.mark.parametrize("scenario", SOUND)
def test_a_sound_quorum_breaks_no_rule(scenario: str) -> None:
    moments = captures(scenario)
    assert moments
    for logs in moments.values():
        assert [found for log in logs.values() for found in of_one_log(log)] == []
        assert list(between.one_leader_an_epoch(logs)) == []
        assert list(between.logs_match(logs)) == []


def test_the_stale_quorum_breaks_rule_23_where_it_elected_itself() -> None:
    """Two of five voters elected one of them by the set of three that they had not unlearnt."""
    broken = {
        (moment, key.id, found.rule, found.offset)
        for moment, logs in captures("stale-split").items()
        for key, log in logs.items()
        for found in of_one_log(log)
    }
    assert broken == {
        (moment, replica, 23, 5006) for moment in ("two-of-five", "healed") for replica in (1, 3)
    }
    stale = captures("stale-split")["two-of-five"]
    assert {voters_of_log(log).ids for log in stale.values()} == {(1, 2, 3, 4, 5)}


def test_the_voters_of_the_log_are_those_that_kafka_described() -> None:
    """The last `describe --status` of the scenario against the newest log of its last capture."""
    for scenario in ("dynamic-membership", "static-upgrade", "stale-split", "disk-failure"):
        newest = max(captures(scenario)["final"].values(), key=lambda log: log.end_offset)
        status = sorted((GOLDEN / scenario / "quorum").glob("*-status-*.txt"))[-1].read_text()
        described = json.loads(re.search(r"CurrentVoters:\s*(\[.*\])", status)[1])
        voters = voters_of_log(newest)
        assert voters is not None
        assert voters.keys == {ReplicaKey(voter["id"], voter["directoryId"]) for voter in described}
