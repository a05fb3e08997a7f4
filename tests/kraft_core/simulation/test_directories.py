"""A simulated quorum's directories, read back as those of any Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest

from kraft_core.format.controller_dir import ControllerDir, find_controller_dirs
from kraft_core.simulation.directories import write_directories
from kraft_core.simulation.quorum import SimulatedQuorum
from kraft_core.simulation.runs import random_run, simulate
from kraft_core.simulation.setup import Setup
from tests.kraft_core.raft.reading import read_batches, read_snapshot


def write_quorum(quorum: SimulatedQuorum, path: Path) -> list[ControllerDir]:
    """The directories of every node, in the order of the nodes."""
    write_directories(quorum, path)
    return list(find_controller_dirs([path]).directories)


@pytest.mark.parametrize("setup", [Setup(12, voters=5, observers=1), Setup(4, voters=3, static=True)])
def test_a_written_quorum_reads_back_as_it_was(setup: Setup, tmp_path: Path) -> None:
    quorum = simulate(random_run(setup, 60)).quorum
    found = write_quorum(quorum, tmp_path)
    assert len(found) == len(quorum.replicas)
    for directory, replica in zip(found, quorum.replicas.values(), strict=True):
        log = replica.log
        assert directory.faults == ()
        assert directory.meta is not None
        assert (directory.meta.node_id, directory.meta.directory_id) == (
            replica.key.id,
            replica.key.directory_id,
        )
        assert directory.quorum_state is not None
        assert directory.quorum_state.leader_epoch == replica.epoch
        assert directory.leader_epoch_checkpoint == log.epochs.entries
        read = [batch for segment in directory.segments for batch in read_batches(segment.path.read_bytes())]
        assert [
            (one.base_offset, one.last_offset, one.leader_epoch, one.control_records) for one in read
        ] == [
            (one.base_offset, one.last_offset, one.leader_epoch, one.control_records) for one in log.batches
        ]
        snapshots = [
            read_snapshot(file.id.end_offset, file.id.leader_epoch, file.path.read_bytes())
            for file in directory.checkpoints
            if file.id
        ]
        assert snapshots == list(log.snapshots)
