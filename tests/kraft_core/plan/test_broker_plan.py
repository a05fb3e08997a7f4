"""Removal and restart of brokers: whose partitions go offline or under min ISR, and what to do first."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from kraft_core.image.brokers import Broker
from kraft_core.image.change import Change
from kraft_core.image.configs import TOPIC_RESOURCE, Config
from kraft_core.image.effective_configs import BROKER_RESOURCE, MIN_ISR, UNCLEAN_ELECTION
from kraft_core.image.endpoints import EndPoint
from kraft_core.image.features import Feature
from kraft_core.image.image import Image
from kraft_core.image.names import LOST_DIRECTORY, UNASSIGNED_DIRECTORY
from kraft_core.image.partitions import Partition
from kraft_core.image.tables import BROKERS, CONFIGS, FEATURES, PARTITIONS, ZK_MIGRATION
from kraft_core.image.zk_migration import ZkMigration
from kraft_core.messages.releases import ELR_VERSION
from kraft_core.plan.answer import Answer
from kraft_core.plan.broker_loss import PartitionLoss, lose_broker
from kraft_core.plan.broker_plan import BrokerChange, plan_broker
from kraft_core.plan.captured_metadata import CapturedMetadata
from kraft_core.plan.reassignment import move_off
from kraft_core.protocol.errors import ErrorCode
from tests.kraft_core.plan.captured import metadata

DIRECTORY = "d5efUia_RsKg158_0afzxQ"


def broker(node_id: int, **different: Any) -> Change:
    ends = (EndPoint("PLAINTEXT", f"host-{node_id}", 9092, 0),)
    made = Broker(node_id, 9, f"i{node_id}", ends, (), None, False, False, False, (DIRECTORY,), None)
    return Change(BROKERS, (node_id,), replace(made, **different))


def partition(nth: int, replicas: tuple[int, ...], **different: Any) -> Change:
    directories = (DIRECTORY,) * len(replicas)
    made = Partition("id", "t", nth, replicas, directories, replicas, (), (), (), (), replicas[0], 0, 0, 0)
    return Change(PARTITIONS, ("id", nth), replace(made, **different))


def config(resource_type: int, resource: str, name: str, value: str) -> Change:
    key = (resource_type, resource, name)
    return Change(CONFIGS, key, Config(*key, value))


MIN_ISR_1 = config(BROKER_RESOURCE, "", MIN_ISR, "1")
MIN_ISR_2 = config(TOPIC_RESOURCE, "t", MIN_ISR, "2")
ELR = Change(FEATURES, (ELR_VERSION,), Feature(ELR_VERSION, 1))
NO_ELR = Change(FEATURES, (ELR_VERSION,), None)
THREE = (broker(11), broker(12), broker(13))


def image(*changes: Change) -> Image:
    made = Image()
    for change in (*THREE, *changes):
        made.tables.put(change)
    return made


def lost(*changes: Change, broker_id: int = 11) -> PartitionLoss:
    """The only partition, when a broker is lost."""
    (loss,) = lose_broker(image(*changes), broker_id, 1)
    return loss


def cluster(*changes: Change) -> CapturedMetadata:
    """Three voters that follow each other, as if changed so long ago that all is committed."""
    found = metadata("disk-failure/before-wipe")
    for each in (found.image, found.committed):
        assert each is not None
        each.tables.put(Change(CONFIGS, (BROKER_RESOURCE, "", MIN_ISR), None))
        for change in (*THREE, *changes):
            each.tables.put(change)
    return found


def restart(*changes: Change, broker_id: int = 11) -> Answer:
    return plan_broker(cluster(*changes), BrokerChange(broker_id, is_removal=False))


def remove(*changes: Change, broker_id: int = 11) -> Answer:
    return plan_broker(cluster(*changes), BrokerChange(broker_id, is_removal=True))


def test_the_first_active_replica_in_sync_leads() -> None:
    loss = lost(partition(0, (11, 12, 13)), broker(12, fenced=True))
    assert (loss.after.leader, loss.after.isr) == (13, (12, 13))
    loss = lost(partition(0, (11, 12, 13)), broker(12, in_controlled_shutdown=True))
    assert loss.after.leader == 13
    loss = lost(partition(0, (11, 12, 13), directories=(DIRECTORY, LOST_DIRECTORY, UNASSIGNED_DIRECTORY)))
    assert loss.after.leader == 13
    loss = lost(partition(0, (11, 12, 13)), broker(12, log_dirs=("another",)))
    assert loss.after.leader == 13


def test_a_leader_that_stays_stays() -> None:
    loss = lost(partition(0, (11, 12, 13), leader=13))
    assert (loss.after.leader, loss.after.isr) == (13, (12, 13))


def test_without_elr_the_last_member_stays_in_the_isr() -> None:
    loss = lost(partition(0, (11, 12), isr=(11,)))
    assert (loss.goes_offline, loss.after.isr) == (True, (11,))


def test_with_elr_the_isr_is_empty_and_an_eligible_replica_leads() -> None:
    loss = lost(ELR, partition(0, (11, 12, 13), isr=(11,)))
    assert (loss.goes_offline, loss.after.isr) == (True, ())
    loss = lost(ELR, partition(0, (11, 12, 13), isr=(11,), eligible_leader_replicas=(13,)))
    assert (loss.goes_offline, loss.after.leader, loss.after.isr) == (False, 13, (13,))
    loss = lost(
        ELR, broker(13, fenced=True), partition(0, (11, 13), isr=(11,), eligible_leader_replicas=(13,))
    )
    assert loss.goes_offline


def test_an_eligible_replica_does_not_lead_beside_a_member_of_the_isr() -> None:
    """Member 12 of the ISR is shutting down: 13 in the ELR waits for it."""
    stopping = broker(12, in_controlled_shutdown=True)
    loss = lost(ELR, stopping, partition(0, (11, 12, 13), isr=(11, 12), eligible_leader_replicas=(13,)))
    assert (loss.goes_offline, loss.after.isr) == (True, (12,))


def test_an_unclean_election_where_the_log_allows_it() -> None:
    out_of_sync = partition(0, (11, 12), isr=(11,))
    assert lost(out_of_sync).may_be_unclean
    assert not lost(partition(0, (11,))).may_be_unclean
    loss = lost(out_of_sync, config(TOPIC_RESOURCE, "t", UNCLEAN_ELECTION, "true"))
    assert (loss.is_unclean, loss.after.leader, loss.after.isr) == (True, 12, (12,))
    loss = lost(out_of_sync, config(BROKER_RESOURCE, "1", UNCLEAN_ELECTION, "true"))
    assert loss.is_unclean  # the controller's own config
    loss = lost(out_of_sync, config(BROKER_RESOURCE, "", UNCLEAN_ELECTION, "false"))
    assert (loss.goes_offline, loss.may_be_unclean) == (True, False)


@pytest.mark.parametrize(
    ("configs", "under"),
    [
        ((), None),
        ((config(BROKER_RESOURCE, "", MIN_ISR, "3"),), True),
        ((config(BROKER_RESOURCE, "", MIN_ISR, "3"), config(BROKER_RESOURCE, "12", MIN_ISR, "2")), False),
        ((config(BROKER_RESOURCE, "12", MIN_ISR, "3"), config(TOPIC_RESOURCE, "t", MIN_ISR, "2")), False),
        ((config(BROKER_RESOURCE, "11", MIN_ISR, "3"), MIN_ISR_1), False),
    ],
)
def test_min_isr_is_the_topics_else_the_new_leaders_else_the_clusters(
    configs: tuple[Change, ...], under: bool | None
) -> None:
    assert lost(partition(0, (11, 12, 13)), *configs).after.is_under_min_isr is under


def test_min_isr_is_at_most_the_number_of_replicas() -> None:
    loss = lost(partition(0, (12,)), config(TOPIC_RESOURCE, "t", MIN_ISR, "3"), broker_id=12)
    assert (loss.before.min_isr, loss.before.is_under_min_isr) == (1, False)


def test_a_restart_that_every_partition_survives_is_safe() -> None:
    made = restart(partition(0, (11, 12, 13)), partition(1, (12, 13)), MIN_ISR_2)
    assert (made.verdict, made.risks) == ("safe", ())
    assert made.steps[0].command == "bin/kafka-server-stop.sh --node-id=11"
    assert made.partitions["replicas"] == ("t-0",)
    servers = "--bootstrap-server host-12:9092,host-13:9092"
    assert made.steps[1].command == f"bin/kafka-topics.sh {servers} --describe --unavailable-partitions"


def test_a_restart_that_takes_partitions_down_names_them() -> None:
    made = restart(NO_ELR, partition(0, (11,)), partition(1, (11, 12)), partition(2, (12, 11)), MIN_ISR_2)
    assert made.verdict == "risky"
    assert [risk.name for risk in made.risks] == ["partitions_offline", "under_min_isr"]
    assert made.partitions["offline"] == ("t-0",)
    assert made.partitions["under_min_isr"] == ("t-1", "t-2")
    assert "t 1-2" in made.reason


def test_min_isr_that_no_log_shows_is_not_known() -> None:
    made = restart(partition(0, (11, 12, 13)))
    assert made.verdict == "not_known"
    assert made.missing[0].startswith("min.insync.replicas of t 0: neither the topic nor the cluster")
    assert made.partitions["min_isr_not_known"] == ("t-0",)
    # What is proven to go offline is a risk whatever the rest is.
    assert restart(partition(0, (11, 12, 13)), partition(1, (11,))).verdict == "risky"


def test_what_a_leader_demands_whose_predecessors_demand_is_not_known() -> None:
    """That of 11 is in its file; 12 leads without it, and demands two."""
    shrunken = partition(0, (11, 12, 13), isr=(11, 12))
    answer = restart(shrunken, config(BROKER_RESOURCE, "12", MIN_ISR, "2"))
    assert (answer.verdict, [risk.name for risk in answer.risks]) == ("risky", ["under_min_isr"])
    assert restart(shrunken, config(BROKER_RESOURCE, "12", MIN_ISR, "1")).verdict == "safe"


def test_what_was_offline_before_is_no_price_of_the_restart() -> None:
    made = restart(MIN_ISR_1, partition(0, (12,), isr=(), leader=-1, last_known_elr=(12,)))
    assert made.verdict == "safe"
    assert "already without a leader: t 0" in made.evidence


def test_a_fenced_broker_restarts_safely() -> None:
    made = restart(broker(11, fenced=True), partition(0, (12, 11), isr=(12,)), MIN_ISR_1)
    assert (made.verdict, made.reason) == ("safe", "broker 11 is already fenced: no partition depends on it")
    assert all("kafka-server-stop" not in (step.command or "") for step in made.steps)


def test_a_broker_in_zookeeper_mode_does_not_return_after_the_migration() -> None:
    """It was SAFE."""
    migrating = broker(11, is_migrating_zk_broker=True)
    over, goes_on = (Change(ZK_MIGRATION, ("zkMigrationState",), ZkMigration(state)) for state in (3, 1))
    made = restart(migrating, over, partition(0, (11, 12)), MIN_ISR_1)
    assert (made.verdict, [risk.name for risk in made.risks]) == ("risky", ["finished_early"])
    assert restart(migrating, goes_on, partition(0, (11, 12)), MIN_ISR_1).verdict == "safe"
    assert restart(over, partition(0, (11, 12)), MIN_ISR_1).verdict == "safe"
    assert remove(migrating, over, MIN_ISR_1).verdict == "safe"


def test_a_broker_without_partitions_is_removed() -> None:
    made = remove(partition(0, (12, 13)), MIN_ISR_1)
    assert made.verdict == "safe"
    assert made.steps[0].command == "bin/kafka-server-stop.sh --node-id=11"
    assert (made.steps[-1].command or "").startswith(
        "bin/kafka-cluster.sh unregister --bootstrap-controller "
    )
    assert (made.steps[-1].command or "").endswith(" --id 11")


def test_a_broker_with_partitions_is_moved_off_first() -> None:
    made = remove(partition(0, (11, 12)), partition(1, (12, 13)), MIN_ISR_1)
    assert made.verdict == "risky"
    assert [risk.name for risk in made.risks] == ["replicas_left"]
    written = made.steps[0].command or ""
    assert '{"topic":"t","partition":0,"replicas":[13,12]}' in written
    assert made.steps[1].command == (
        "bin/kafka-reassign-partitions.sh --bootstrap-server host-12:9092,host-13:9092 "
        "--reassignment-json-file remove-broker-11.json --execute"
    )
    made = remove(partition(0, (11, 12)), partition(1, (12, 13), adding_replicas=(13,)), MIN_ISR_1)
    assert (made.steps[1].command or "").endswith("--execute --additional")


def test_the_last_copy_is_named() -> None:
    made = remove(broker(11, fenced=True), partition(0, (11, 12), isr=(11,), leader=-1), MIN_ISR_1)
    assert [risk.name for risk in made.risks] == ["only_copy", "replicas_left"]
    made = remove(ELR, partition(0, (11, 12), isr=(), leader=-1, last_known_elr=(11,)), MIN_ISR_1)
    assert made.partitions["only_copy"] == ("t-0",)


def test_a_broker_that_is_not_registered() -> None:
    made = remove(MIN_ISR_1, broker_id=99)
    assert (made.verdict, made.error) == ("refused", ErrorCode.BROKER_ID_NOT_REGISTERED)
    assert made.error_text == "Broker ID 99 is not currently registered"
    assert made.exception == "BrokerIdNotRegisteredException"
    assert restart(MIN_ISR_1, broker_id=99).verdict == "not_known"


def test_a_voter_is_taken_out_of_the_voters_first() -> None:
    made = remove(broker(1), MIN_ISR_1, broker_id=1)
    assert [risk.name for risk in made.risks] == ["voter"]
    assert made.steps[0].command == "kraftlake plan remove 1 ..."
    assert restart(broker(1), MIN_ISR_1, broker_id=1).verdict == "safe"


def test_the_answer_must_not_depend_on_what_is_not_committed() -> None:
    found = cluster(MIN_ISR_1)
    assert found.image is not None
    found.image.tables.put(partition(0, (11,)))
    made = plan_broker(found, BrokerChange(11, is_removal=False))
    assert made.verdict == "not_known"
    assert made.missing == ("it depends on records at the log's end that are not proven committed",)


def test_replicas_go_where_the_partition_has_no_rack_and_fewest_are() -> None:
    made = image(
        broker(11, rack="a"),
        broker(12, rack="b"),
        broker(13, rack="b"),
        broker(14, rack="c"),
        partition(0, (11, 12)),
        partition(1, (14, 13)),
        partition(2, (14,)),
    )
    parts = [each for _, each in made.tables.items(PARTITIONS)]
    moved = move_off(made, 11, parts[:1])
    assert moved.moves[0][1] == (14, 12)
    made.tables.put(broker(14, rack="c", cordoned_log_dirs=(DIRECTORY,)))
    moved = move_off(made, 11, parts[:1])
    assert moved.moves[0][1] == (13, 12)
    made.tables.put(broker(13, fenced=True))
    moved = move_off(made, 11, parts[:1])
    assert (moved.moves, moved.stuck) == ((), (parts[0],))


def test_a_reassignment_under_way_is_ended() -> None:
    made = image(partition(0, (11, 12, 13), removing_replicas=(11,), adding_replicas=(13,)))
    moved = move_off(made, 11, [each for _, each in made.tables.items(PARTITIONS)])
    assert json.loads(moved.json)["partitions"] == [{"topic": "t", "partition": 0, "replicas": [12, 13]}]
