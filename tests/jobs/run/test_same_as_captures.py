"""A lake answers as the captures do that it was loaded from, also about logs that may still be truncated."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.plan_captures import from_lake
from kraft_core.format.log_dirs import LOG_DIR_NAME
from kraft_core.format.side_file_texts import (
    checkpoint_name,
    leader_epoch_checkpoint_text,
    meta_properties_text,
    quorum_state_text,
)
from kraft_core.messages.control import LEADER_CHANGE
from kraft_core.messages.uuid_text import uuid_text
from kraft_core.plan.broker_plan import BrokerChange, plan_broker
from kraft_core.raft.epochs import EpochCache
from kraft_core.raft.log import Snapshot
from kraft_core.simulation.directories import snapshot_bytes
from tests.jobs.captured_logs import metadata
from tests.jobs.lakes import run
from tests.jobs.plan_metadata import both_metadata, lake_arguments
from tests.jobs.shell.test_lake_source import shown
from tests.kraft_core.batches import control_batch
from transforms.lake.delta_rs import rows_with
from transforms.lake.tables import EPOCHS

BROKER, TOPIC, PARTITION, CONFIG, PARTITION_CHANGE, FEATURE = 0, 2, 3, 4, 5, 12
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
NODES = (1, 2, 3)
CLUSTERS = ("whole", "gap", "formatted")
AT = "2025-10-09T08:53:20Z"  # of offset 0


def leader_change(offset: int, epoch: int, leader: int) -> bytes:
    voters = [{"voterId": node} for node in NODES]
    change = {"version": 0, "leaderId": leader, "voters": voters, "grantingVoters": voters[:2]}
    return control_batch(offset, epoch, LEADER_CHANGE, change)


def node(folder: Path, node_id: int, state: tuple[int, int], log: dict[int, bytes], *starts: int) -> None:
    """A captured directory. state: leader and epoch; log: segments by base offset; starts: of its epochs."""
    log_dir = folder / f"node-{node_id}" / LOG_DIR_NAME
    log_dir.mkdir(parents=True)
    meta = meta_properties_text(folder.name, node_id, uuid_text(bytes([node_id] * 16)))
    (log_dir.parent / "meta.properties").write_text(meta)
    (log_dir.parent / "capture.json").write_text(f'{{"captured_at": "{AT}"}}')
    (log_dir / "quorum-state").write_text(quorum_state_text(*state, state[0], None, NODES))
    entries = tuple(zip((1, state[1]), starts, strict=False))
    (log_dir / "leader-epoch-checkpoint").write_text(leader_epoch_checkpoint_text(entries))
    for base, content in log.items():
        (log_dir / f"{base:020}.log").write_bytes(content)


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the leader of epoch 3, of a voter that led epoch 2 alone, and of one that heard of neither.

    What the leader wrote in epoch 1 before, that the ISR of a partition shrank, the others did not store. Of
    the leader of `gap`, the segment with that was not copied. In `formatted`, a node was formatted and never
    started.
    """
    folder = tmp_path_factory.mktemp("epochs")
    partition = {"topicId": TOPIC_ID, "partitionId": 0}
    held = partition | {"replicas": [11, 12], "isr": [11, 12], "leader": 11}
    config = {"resourceType": 2, "resourceName": "orders"}
    stored = leader_change(0, 1, 1) + metadata(
        1,
        [
            (FEATURE, 0, {"name": "metadata.version", "featureLevel": 25}),
            (BROKER, 1, {"brokerId": 11, "fenced": False}),
            (BROKER, 1, {"brokerId": 12, "fenced": False}),
            (TOPIC, 0, {"name": "orders", "topicId": TOPIC_ID}),
            (PARTITION, 0, held),
            (CONFIG, 0, config | {"name": "min.insync.replicas", "value": "1"}),
            (CONFIG, 0, config | {"name": "unclean.leader.election.enable", "value": "false"}),
        ],
    )
    written = metadata(8, [(PARTITION_CHANGE, 0, partition | {"isr": [11]})])
    led = leader_change(9, 3, 1)
    for cluster, of_leader in {"whole": {0: stored + written + led}, "gap": {0: stored, 9: led}}.items():
        node(folder / cluster, 1, (1, 3), of_leader, 0, 9)
        node(folder / cluster, 2, (2, 2), {0: stored + leader_change(8, 2, 2)}, 0, 8)
        node(folder / cluster, 3, (1, 3), {0: stored}, 0)
    node(folder / "formatted", 1, (1, 1), {0: stored}, 0)
    node(folder / "formatted", 2, (-1, 0), {})
    formatted = snapshot_bytes(Snapshot(0, 0), 0, 0)
    (folder / "formatted/node-2" / LOG_DIR_NAME / checkpoint_name(0, 0)).write_bytes(formatted)
    return folder


@pytest.fixture(scope="module")
def read(spark: Any, captures: Path) -> Path:
    assert spark is not None  # the session that the run finds open
    assert run(captures / "lake", *(captures / name for name in CLUSTERS)) == 1  # rule 0
    return captures / "lake"


def test_the_histories_have_what_the_newest_leaders_log_has(captures: Path, read: Path) -> None:
    by_captures, by_lake = both_metadata(read, [captures / "whole"], "whole")
    assert by_captures.image is not None
    assert by_lake.image is not None
    assert shown(by_lake.image) == shown(by_captures.image)
    for is_removal in (False, True):
        asked = BrokerChange(11, is_removal)
        assert plan_broker(by_captures, asked).verdict == "not_known"
        assert plan_broker(by_lake, asked) == plan_broker(by_captures, asked)


def test_what_is_not_known_to_be_below_the_newest_log_is_not_replayed(read: Path) -> None:
    quorum, _, metadata_of = from_lake(lake_arguments(read, "gap"))
    assert metadata_of(quorum).gap == "record 8 is missing: what it changed is unknown from there on"


def test_each_epoch_names_the_one_below_it(read: Path) -> None:
    known = {
        cluster: {
            row["leader_epoch"]: row["previous_epoch"]
            for row in rows_with(read, EPOCHS, cluster_id=[cluster])
        }
        for cluster in ("whole", "gap")
    }
    assert known == {"whole": {1: None, 2: 1, 3: 1}, "gap": {1: None, 2: 1, 3: None}}


def test_a_log_that_the_histories_do_not_follow_is_told(read: Path) -> None:
    """As where an older capture has a higher epoch than the newest ones."""
    quorum, _, metadata_of = from_lake(lake_arguments(read, "whole"))
    other = replace(quorum, log_epochs=EpochCache(((1, 0), (2, 9))))
    assert metadata_of(other).gap == "the metadata of epoch 3 at offset 9 is not of the leader's log"


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_replicas_stand_as_by_the_captures(captures: Path, read: Path, cluster: str) -> None:
    by_captures, by_lake = both_metadata(read, [captures / cluster], cluster)
    assert by_lake.quorum.members == by_captures.quorum.members
