"""Every checkpoint that real Kafka wrote equals our replay of the log up to it, from every earlier state.

Three do not, by a fault of Kafka itself: ScramDelta.apply forgets a credential when another user's removal,
read in the same delta, leaves the mechanism without users (the map it goes on filling is no longer in the
image). Node 1 of dynamic-membership read offsets 952 to 954 in one delta when it restarted: alice and bob
set, bob removed. alice's credential is missing from its image and from its checkpoints ever since; the
checkpoints of nodes 2 and 3, which read them one by one, have it.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from kraft_core.format.controller_dir import ControllerDir, find_controller_dirs
from kraft_core.format.record import Record, read_log
from kraft_core.format.snapshot import SnapshotId, read_snapshot
from kraft_core.image.differences import Difference, differences
from kraft_core.image.history import History
from kraft_core.image.image import Image
from kraft_core.image.tables import KINDS

GOLDEN = Path(__file__).parents[2] / "golden"
DIRECTORIES = {
    str(directory.log_dir.relative_to(GOLDEN).parent): directory
    for directory in find_controller_dirs([GOLDEN]).directories
    if directory.checkpoints
}

FORGOTTEN_BY_KAFKA = ("scram_users", (2, "alice"))
FORGETFUL = "dynamic-membership/node-1"


def records_of(directory: ControllerDir) -> list[Record]:
    return [
        record
        for segment in directory.segments
        for record in read_log(segment.path.read_bytes())
        if isinstance(record, Record)
    ]


def checkpoints_of(directory: ControllerDir) -> list[tuple[SnapshotId, Image]]:
    images: list[tuple[SnapshotId, Image]] = []
    for checkpoint in directory.checkpoints:
        if checkpoint.id is not None and checkpoint.id.end_offset > 0:
            content = checkpoint.path.read_bytes()
            snapshot = read_snapshot(content)
            assert snapshot.complete
            records = [record for record in read_log(content) if isinstance(record, Record)]
            image = Image.of_snapshot(
                records,
                checkpoint.id.end_offset,
                checkpoint.id.leader_epoch,
                snapshot.last_contained_log_timestamp or -1,
            )
            assert image.refusals == image.controller_refusals == []
            images.append((checkpoint.id, image))
    return images


def unexpected(node: str, replayed: Image, checkpoint: Image) -> list[Difference]:
    return [
        difference
        for difference in differences(replayed, checkpoint)
        if not (
            node == FORGETFUL
            and (difference.kind, difference.key) == FORGOTTEN_BY_KAFKA
            and difference.after is None
        )
    ]


def compare(node: str) -> Counter[str]:
    """Compares each checkpoint with the replay from the start and from each older checkpoint."""
    directory = DIRECTORIES[node]
    records, checkpoints = records_of(directory), checkpoints_of(directory)
    starts = [(0, Image()), *((id_.end_offset, image) for id_, image in checkpoints)]
    counts: Counter[str] = Counter()
    for id_, checkpoint in checkpoints:
        for start, image in starts:
            rest = [record for record in records if start <= record.offset < id_.end_offset]
            if start >= id_.end_offset or len(rest) != id_.end_offset - start:
                continue
            replayed = image.copy()
            for record in rest:
                replayed.apply(record)
            assert replayed.refusals == replayed.controller_refusals == []
            assert unexpected(node, replayed, checkpoint) == []
            assert replayed.offset == id_.end_offset - 1 == checkpoint.offset
            assert replayed.leader_epoch == id_.leader_epoch
            assert replayed.timestamp == checkpoint.timestamp
            counts["from the start" if start == 0 else "from a checkpoint"] += 1
            counts["without the forgotten credential"] += replayed.tables != checkpoint.tables
            for kind in KINDS:
                counts[kind] += checkpoint.tables.count(kind)
    return counts


@pytest.mark.parametrize("node", DIRECTORIES)
def test_checkpoints_equal_the_replay(node: str):
    compare(node)


def test_how_much_was_compared():
    total: Counter[str] = Counter()
    for node in DIRECTORIES:
        total += compare(node)
    assert total["from the start"] == 70
    assert total["from a checkpoint"] == 55
    assert total["without the forgotten credential"] == 6
    things = {kind: total[kind] for kind in KINDS if kind != "zk_migration"}
    assert min(things.values()) > 0, things


@pytest.mark.parametrize(
    ("node", "end_offset", "other"),
    [
        ("static-upgrade/node-4", 356, "static-upgrade/node-1"),
        ("old-mv-3.3-IV0-fatal-on-4.3.1/node-4", 343, "old-mv-3.3-IV0-fatal-on-4.3.1/node-2"),
    ],
)
def test_a_checkpoint_that_was_fetched_equals_the_replay_of_another_nodes_log(node, end_offset, other):
    """The log of a node that joined late begins where the checkpoint it fetched ends."""
    fetched = {id_.end_offset: image for id_, image in checkpoints_of(DIRECTORIES[node])}
    assert records_of(DIRECTORIES[node])[0].offset == end_offset
    replayed = Image()
    for record in records_of(DIRECTORIES[other]):
        if record.offset < end_offset:
            replayed.apply(record)
    assert list(differences(replayed, fetched[end_offset])) == []


def test_no_checkpoint_was_left_out():
    """74 stand for part of a log: 70 compared with all of it, 2 from an older one on, 2 with another node."""
    checkpoints = [(node, id_) for node in DIRECTORIES for id_, _ in checkpoints_of(DIRECTORIES[node])]
    assert len(checkpoints) == 74


def test_the_credential_that_kafka_forgot_is_in_the_other_nodes_checkpoints():
    held = {
        node: {
            id_.end_offset: image.tables.get(*FORGOTTEN_BY_KAFKA) is not None
            for id_, image in checkpoints_of(DIRECTORIES[f"dynamic-membership/{node}"])
        }
        for node in ("node-1", "node-2", "node-3")
    }
    assert held == {
        "node-1": {453: False, 1956: False, 2939: False, 3692: False},
        "node-2": {697: False, 1431: True, 2306: True, 3692: True},
        "node-3": {697: False, 1431: True, 2939: True, 3692: True},
    }


@pytest.mark.parametrize("node", ["dynamic-membership/node-2", "static-upgrade/node-1"])
def test_a_checkpoint_loaded_in_mid_history_changes_no_version(node: str):
    records, checkpoints = records_of(DIRECTORIES[node]), dict(checkpoints_of(DIRECTORIES[node]))
    ends = {id_.end_offset: image for id_, image in checkpoints.items()}
    plain, jumping = History(), History()
    for record in records:
        plain.apply(record)
        jumping.apply(record)
        if record.offset + 1 in ends:
            jumping.load(ends[record.offset + 1])
    for kind in KINDS:
        assert jumping.versions(kind) == plain.versions(kind)
