"""Migrations from ZooKeeper: what finishing one now means, and what the captures must show to say so."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_core.image.brokers import Broker
from kraft_core.image.change import Change
from kraft_core.image.tables import BROKERS, ZK_MIGRATION
from kraft_core.image.zk_migration import ZkMigration
from kraft_core.plan.captured_metadata import CapturedMetadata
from kraft_core.plan.migration import plan_migration
from kraft_core.plan.standings import Standing
from tests.kraft_core.plan.captured import metadata


def broker(node_id: int, *, migrating: bool) -> Change:
    return Change(BROKERS, (node_id,), Broker(node_id, 9, "i", (), (), None, False, False, migrating, (), ()))


def cluster(state: int, *changes: Change, committed: bool = True) -> CapturedMetadata:
    """A captured quorum in a state of the migration; not committed: only the log's end shows it."""
    found = metadata("disk-failure/before-wipe")
    assert found.image is not None
    assert found.committed is not None
    for image in (found.image, found.committed) if committed else (found.image,):
        for change in (Change(ZK_MIGRATION, ("zkMigrationState",), ZkMigration(state)), *changes):
            image.tables.put(change)
    return found


def test_a_cluster_of_kraft_alone_has_none() -> None:
    answer = plan_migration(metadata("disk-failure/before-wipe"))
    assert (answer.verdict, answer.reason) == ("safe", "there is no migration: the log is in state NONE")


def test_brokers_that_still_migrate() -> None:
    answer = plan_migration(cluster(1, broker(12, migrating=True), broker(11, migrating=True)))
    assert answer.verdict == "risky"
    assert [risk.name for risk in answer.risks] == ["brokers_in_zookeeper_mode", "irreversible", "needs_3_9"]
    assert "brokers 11, 12 still run in ZooKeeper mode" in answer.reason
    assert answer.steps[0].what.startswith("restart brokers 11, 12 in KRaft mode")
    assert "POST_MIGRATION" in (answer.steps[1].expect or "")


def test_it_can_be_finished() -> None:
    answer = plan_migration(cluster(1, broker(11, migrating=False)))
    assert [risk.name for risk in answer.risks] == ["irreversible", "needs_3_9"]
    assert len(answer.steps) == 1


def test_metadata_is_being_copied() -> None:
    answer = plan_migration(cluster(2))
    assert [risk.name for risk in answer.risks] == ["partly_copied"]


def test_it_is_finished() -> None:
    answer = plan_migration(cluster(3, broker(11, migrating=False)))
    assert (answer.verdict, answer.reason[:14]) == ("safe", "it is finished")


def test_it_was_finished_early() -> None:
    answer = plan_migration(cluster(3, broker(11, migrating=True)))
    assert [risk.name for risk in answer.risks] == ["finished_early"]


@pytest.mark.parametrize("state", [0, 4, 9])
def test_other_states_are_not_known(state: int) -> None:
    answer = plan_migration(cluster(state, broker(11, migrating=True)))
    assert answer.verdict == "not_known"
    assert answer.missing


def test_what_is_not_committed_is_not_known() -> None:
    answer = plan_migration(cluster(3, committed=False))
    assert answer.verdict == "not_known"
    assert "not proven committed" in answer.reason
    found = cluster(3)
    assert plan_migration(replace(found, committed=None)).verdict == "not_known"


def test_each_piece_of_evidence_is_needed() -> None:
    found = cluster(3)
    assert plan_migration(found).verdict == "safe"
    assert plan_migration(replace(found, image=None)).verdict == "not_known"
    assert plan_migration(replace(found, gap="a record is missing")).missing == ("a record is missing",)
    leader = next(m for m in found.quorum.members if m.standing is Standing.LEADER)
    others = tuple(m for m in found.quorum.members if m is not leader)
    lost = replace(found, quorum=replace(found.quorum, members=others, leader=None))
    assert plan_migration(lost).verdict == "not_known"
