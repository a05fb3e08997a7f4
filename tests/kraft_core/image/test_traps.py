"""The rules of replay that are easily got wrong, one by one."""

from __future__ import annotations

import pytest

from kraft_core.image import tables
from kraft_core.image.image import Image
from kraft_core.image.names import MIGRATING_DIRECTORY
from kraft_core.messages.uuid_text import uuid_text
from tests.kraft_core.image.worlds import (
    broker_fields,
    change_fields,
    partition_fields,
    replay,
    row,
    rows,
    topic_fields,
)

ID = uuid_text(b"\x01" * 16)
OTHER = uuid_text(b"\x02" * 16)
DIRECTORY = uuid_text(b"\x03" * 16)
TOPIC = ("TOPIC_RECORD", topic_fields("t", ID))
PARTITION = ("PARTITION_RECORD", partition_fields(ID, leaderEpoch=3, partitionEpoch=7))


def partition_after(*changes, first=PARTITION):
    image = replay(rows([TOPIC, first, *(("PARTITION_CHANGE_RECORD", change) for change in changes)]))
    assert image.refusals == []
    return image.tables.get(tables.PARTITIONS, (ID, 0))


def refused(image: Image) -> list[str]:
    return [refusal.reason for refusal in image.refusals]


class TestPartitionChange:
    def test_leader_minus_two_changes_neither_leader_nor_its_epoch(self):
        partition = partition_after(change_fields(ID, isr=[1]))
        assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (1, 3, 8)

    def test_the_same_leader_again_bumps_the_epoch(self):
        partition = partition_after(change_fields(ID, leader=1))
        assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (1, 4, 8)

    def test_the_largest_epochs_are_followed_by_the_smallest(self):
        largest = (1 << 31) - 1
        first = ("PARTITION_RECORD", partition_fields(ID, leaderEpoch=largest, partitionEpoch=largest))
        partition = partition_after(change_fields(ID, leader=1), first=first)
        assert (partition.leader_epoch, partition.partition_epoch) == (-(1 << 31), -(1 << 31))

    def test_leader_minus_one_is_none_and_bumps_the_epoch(self):
        partition = partition_after(change_fields(ID, leader=-1))
        assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (-1, 4, 8)

    def test_an_empty_change_record_bumps_the_partition_epoch(self):
        partition = partition_after(change_fields(ID), change_fields(ID))
        assert (partition.leader_epoch, partition.partition_epoch) == (3, 9)

    @pytest.mark.parametrize(
        ("field", "column"),
        [
            ("isr", "isr"),
            ("removingReplicas", "removing_replicas"),
            ("addingReplicas", "adding_replicas"),
            ("eligibleLeaderReplicas", "eligible_leader_replicas"),
            ("lastKnownElr", "last_known_elr"),
        ],
    )
    def test_null_keeps_a_list_and_empty_clears_it(self, field, column):
        filled = change_fields(ID, **{field: [2]})
        assert getattr(partition_after(filled, change_fields(ID)), column) == (2,)
        assert getattr(partition_after(filled, change_fields(ID, **{field: []})), column) == ()

    def test_recovery_state_minus_one_keeps_it(self):
        recovering = change_fields(ID, leaderRecoveryState=1)
        assert partition_after(recovering, change_fields(ID)).leader_recovery_state == 1
        assert (
            partition_after(recovering, change_fields(ID, leaderRecoveryState=0)).leader_recovery_state == 0
        )

    def test_a_field_absent_in_an_old_version_changes_nothing(self):
        old = {"partitionId": 0, "topicId": ID, "isr": [2], "leader": -2, "replicas": None}
        old |= {"removingReplicas": None, "addingReplicas": None, "leaderRecoveryState": -1}
        elr = change_fields(ID, eligibleLeaderReplicas=[1])
        partition = partition_after(elr, old)
        assert (partition.isr, partition.eligible_leader_replicas) == ((2,), (1,))

    def test_of_an_unknown_partition_is_refused(self):
        image = replay(rows([TOPIC, ("PARTITION_CHANGE_RECORD", change_fields(ID, 5, leader=1))]))
        assert refused(image) == [f"change of unknown partition 5 of topic {ID}"]


class TestDirectories:
    def test_a_version_without_them_means_migrating(self):
        old = {name: value for name, value in PARTITION[1].items() if name != "directories"}
        partition = partition_after(first=("PARTITION_RECORD", old))
        assert partition.directories == (MIGRATING_DIRECTORY,) * 2

    def test_none_and_only_migrating_ones_follow_the_number_of_replicas(self):
        for given in ([], [MIGRATING_DIRECTORY]):
            first = ("PARTITION_RECORD", partition_fields(ID, directories=given))
            partition = partition_after(change_fields(ID, replicas=[1, 2, 3]), first=first)
            assert partition.directories == (MIGRATING_DIRECTORY,) * 3

    def test_they_stay_through_a_change_that_leaves_them_out(self):
        first = ("PARTITION_RECORD", partition_fields(ID, directories=[DIRECTORY, OTHER]))
        assert partition_after(change_fields(ID, isr=[1]), first=first).directories == (DIRECTORY, OTHER)

    def test_another_number_than_that_of_the_replicas_is_refused(self):
        first = ("PARTITION_RECORD", partition_fields(ID, directories=[DIRECTORY, OTHER]))
        change = ("PARTITION_CHANGE_RECORD", change_fields(ID, replicas=[1, 2, 3]))
        image = replay(rows([TOPIC, first, change]))
        assert refused(image) == ["2 directories for 3 replicas"]
        assert image.tables.get(tables.PARTITIONS, (ID, 0)).replicas == (1, 2)


class TestClearElr:
    def image(self, *names: str) -> Image:
        made = [
            TOPIC,
            ("TOPIC_RECORD", topic_fields("u", OTHER)),
            ("PARTITION_RECORD", partition_fields(ID, eligibleLeaderReplicas=[1])),
            ("PARTITION_RECORD", partition_fields(ID, 1)),
            ("PARTITION_RECORD", partition_fields(OTHER, lastKnownElr=[2])),
            *(("CLEAR_ELR_RECORD", {"topicName": name}) for name in names),
        ]
        return replay(rows(made))

    def states(self, image: Image):
        return {
            key: (value.eligible_leader_replicas, value.last_known_elr, value.partition_epoch)
            for key, value in image.tables.items(tables.PARTITIONS)
        }

    def test_of_one_topic_touches_only_its_partitions_that_have_some(self):
        assert self.states(self.image("t")) == {
            (ID, 0): ((), (), 1),
            (ID, 1): ((), (), 0),
            (OTHER, 0): ((), (2,), 0),
        }

    def test_the_empty_name_means_all(self):
        assert self.states(self.image("")) == {
            (ID, 0): ((), (), 1),
            (ID, 1): ((), (), 0),
            (OTHER, 0): ((), (), 1),
        }

    def test_an_unknown_topic_is_refused(self):
        assert refused(self.image("nope")) == ["ELR of unknown topic nope"]


class TestTopics:
    def test_removal_takes_partitions_and_configs_but_leaves_acls_and_others_configs(self):
        def config(resource_type: int, name: str):
            fields = {
                "resourceType": resource_type,
                "resourceName": name,
                "name": "retention.ms",
                "value": "1",
            }
            return "CONFIG_RECORD", fields

        acl = {
            "id": OTHER,
            "resourceType": 2,
            "resourceName": "t",
            "patternType": 3,
            "principal": "User:a",
            "host": "*",
            "operation": 3,
            "permissionType": 3,
        }
        image = replay(
            rows(
                [
                    TOPIC,
                    PARTITION,
                    config(2, "t"),
                    config(2, "u"),
                    config(4, "t"),
                    ("ACCESS_CONTROL_ENTRY_RECORD", acl),
                    ("REMOVE_TOPIC_RECORD", {"topicId": ID}),
                ]
            )
        )
        assert image.refusals == []
        assert image.tables.count(tables.TOPICS) == image.tables.count(tables.PARTITIONS) == 0
        assert [key for key, _ in image.tables.items(tables.CONFIGS)] == [
            (2, "u", "retention.ms"),
            (4, "t", "retention.ms"),
        ]
        assert image.tables.count(tables.ACLS) == 1
        assert image.tables.topic_ids == {}

    def test_the_same_name_again_is_another_topic(self):
        image = replay(
            rows(
                [
                    TOPIC,
                    PARTITION,
                    ("REMOVE_TOPIC_RECORD", {"topicId": ID}),
                    ("TOPIC_RECORD", topic_fields("t", OTHER)),
                ]
            )
        )
        assert image.tables.topic_ids == {"t": OTHER}
        assert not image.tables.group(tables.PARTITIONS, OTHER)

    def test_the_order_of_topics_with_one_name_does_not_matter(self):
        """A history goes on from topics in another order than that of the log, a checkpoint has its own."""
        made = [("TOPIC_RECORD", topic_fields("t", id_)) for id_ in (ID, OTHER)]
        for some in (made, made[::-1]):
            image = replay(rows(some))
            assert image.tables.topic_ids == {"t": max(ID, OTHER)}
            twin = image.copy()
            replay(rows([("REMOVE_TOPIC_RECORD", {"topicId": max(ID, OTHER)})], 2), image)
            assert image.tables.topic_ids == {"t": min(ID, OTHER)}
            replay(rows([("TOPIC_RECORD", topic_fields("u", min(ID, OTHER)))], 3), image)
            assert image.tables.topic_ids == {"u": min(ID, OTHER)}
            replay(rows([("REMOVE_TOPIC_RECORD", {"topicId": min(ID, OTHER)})], 2), twin)
            assert twin.tables.topic_ids == {"t": max(ID, OTHER)}

    def test_the_same_id_again_starts_without_partitions(self):
        image = replay(rows([TOPIC, PARTITION, TOPIC]))
        assert image.tables.count(tables.PARTITIONS) == 0

    def test_removal_of_an_unknown_one_and_a_partition_of_it_are_refused(self):
        image = replay(rows([("REMOVE_TOPIC_RECORD", {"topicId": ID}), PARTITION]))
        assert refused(image) == [f"no topic has id {ID}", f"partition 0 of unknown topic {ID}"]


class TestBrokers:
    def broker_after(self, *made, **registered):
        image = replay(rows([("REGISTER_BROKER_RECORD", broker_fields(1, 10, ID, **registered)), *made]))
        return image.tables.get(tables.BROKERS, (1,)), refused(image)

    def changed(self, **changed):
        fields = {"brokerId": 1, "brokerEpoch": 10, "fenced": 0, "inControlledShutdown": 0, "logDirs": []}
        return "BROKER_REGISTRATION_CHANGE_RECORD", fields | {"cordonedLogDirs": None} | changed

    @pytest.mark.parametrize(
        ("fenced", "number", "after"), [(False, 1, True), (True, -1, False), (True, 0, True)]
    )
    def test_fenced_is_plus_one_minus_one_or_no_change(self, fenced, number, after):
        broker, _ = self.broker_after(self.changed(fenced=number), fenced=fenced)
        assert broker.fenced is after

    def test_controlled_shutdown_is_left_only_by_registering(self):
        broker, _ = self.broker_after(self.changed(inControlledShutdown=1), self.changed())
        assert broker.in_controlled_shutdown
        again = ("REGISTER_BROKER_RECORD", broker_fields(1, 20, OTHER))
        broker, _ = self.broker_after(self.changed(inControlledShutdown=1), again)
        assert not broker.in_controlled_shutdown

    def test_registering_replaces_all(self):
        again = ("REGISTER_BROKER_RECORD", broker_fields(1, 20, OTHER))
        broker, _ = self.broker_after(again, fenced=False, rack="r", logDirs=[DIRECTORY])
        assert (broker.broker_epoch, broker.fenced, broker.rack, broker.log_dirs) == (20, True, None, ())

    def test_no_log_dirs_keeps_them_and_no_cordoned_ones_releases_them(self):
        broker, _ = self.broker_after(self.changed(), logDirs=[DIRECTORY], cordonedLogDirs=[DIRECTORY])
        assert (broker.log_dirs, broker.cordoned_log_dirs) == ((DIRECTORY,), (DIRECTORY,))
        broker, _ = self.broker_after(self.changed(cordonedLogDirs=[]), cordonedLogDirs=[DIRECTORY])
        assert broker.cordoned_log_dirs == ()

    def test_versions_without_newer_fields_are_read(self):
        old = broker_fields(1, 10, ID)
        for name in ("isMigratingZkBroker", "inControlledShutdown", "logDirs", "cordonedLogDirs"):
            del old[name]
        image = replay(rows([("REGISTER_BROKER_RECORD", old)]))
        broker = image.tables.get(tables.BROKERS, (1,))
        assert (broker.in_controlled_shutdown, broker.log_dirs, broker.cordoned_log_dirs) == (False, (), None)
        fenced = {"brokerId": 1, "brokerEpoch": 10, "fenced": -1}
        image = replay([row("BROKER_REGISTRATION_CHANGE_RECORD", fenced)], image)
        assert not image.tables.get(tables.BROKERS, (1,)).fenced

    def test_fence_and_unfence_records(self):
        unfence, fence = (
            (type_, {"id": 1, "epoch": 10}) for type_ in ("UNFENCE_BROKER_RECORD", "FENCE_BROKER_RECORD")
        )
        assert not self.broker_after(unfence)[0].fenced
        assert self.broker_after(unfence, fence)[0].fenced

    @pytest.mark.parametrize(
        ("made", "reason"),
        [
            (("FENCE_BROKER_RECORD", {"id": 2, "epoch": 10}), "broker 2 is not registered"),
            (("UNFENCE_BROKER_RECORD", {"id": 1, "epoch": 9}), "broker 1 has epoch 10, not 9"),
            (
                ("BROKER_REGISTRATION_CHANGE_RECORD", {"brokerId": 1, "brokerEpoch": 10, "fenced": 2}),
                "unknown value 2 of fenced",
            ),
        ],
    )
    def test_another_broker_another_epoch_an_unknown_value_are_refused(self, made, reason):
        _, reasons = self.broker_after(made)
        assert reasons == [reason]

    def test_unregistering_takes_it_away_and_an_unknown_one_is_no_matter(self):
        gone = ("UNREGISTER_BROKER_RECORD", {"brokerId": 1, "brokerEpoch": 10})
        assert self.broker_after(gone, gone) == (None, [])


class TestOtherKinds:
    def test_a_null_config_deletes_and_an_empty_one_does_not(self):
        def config(value):
            return "CONFIG_RECORD", {"resourceType": 4, "resourceName": "", "name": "a", "value": value}

        assert replay(rows([config("x"), config("")])).tables.get(tables.CONFIGS, (4, "", "a")).value == ""
        assert replay(rows([config("x"), config(None)])).tables.count(tables.CONFIGS) == 0

    def test_kraft_version_is_no_feature_of_the_image(self):
        made = [
            ("FEATURE_LEVEL_RECORD", {"name": name, "featureLevel": 1}) for name in ("kraft.version", "g")
        ]
        assert [key for key, _ in replay(rows(made)).tables.items(tables.FEATURES)] == [("g",)]

    def test_level_zero_withdraws_a_feature_but_not_metadata_version(self):
        made = [
            ("FEATURE_LEVEL_RECORD", {"name": name, "featureLevel": level})
            for name in ("g", "metadata.version")
            for level in (1, 0)
        ]
        assert [key for key, _ in replay(rows(made)).tables.items(tables.FEATURES)] == [("metadata.version",)]

    def test_a_range_of_levels_is_its_upper_end_and_such_a_feature_can_be_removed(self):
        old = ("FEATURE_LEVEL_RECORD", {"name": "f", "minFeatureLevel": 1, "maxFeatureLevel": 3})
        assert replay(rows([old])).tables.get(tables.FEATURES, ("f",)).level == 3
        gone = ("REMOVE_FEATURE_LEVEL_RECORD", {"name": "f"})
        assert replay(rows([old, gone])).tables.count(tables.FEATURES) == 0

    def test_quota_entities_are_the_same_in_any_order_and_a_default_is_not_a_name(self):
        def quota(entity, remove=False, value=1.0):
            parts = [{"entityType": kind, "entityName": name} for kind, name in entity]
            return "CLIENT_QUOTA_RECORD", {"entity": parts, "key": "k", "value": value, "remove": remove}

        user, client = ("user", "a"), ("client-id", "c")
        image = replay(
            rows([quota([user, client]), quota([client, user], value=2.0), quota([("user", None)])])
        )
        assert [value.value for _, value in image.tables.items(tables.CLIENT_QUOTAS)] == [2.0, 1.0]
        image = replay(rows([quota([user, client]), quota([client, user], remove=True)]))
        assert image.tables.count(tables.CLIENT_QUOTAS) == 0

    def test_removing_an_unknown_acl_is_refused(self):
        image = replay(rows([("REMOVE_ACCESS_CONTROL_ENTRY_RECORD", {"id": ID})]))
        assert refused(image) == [f"no ACL has id {ID}"]

    def test_credentials_of_one_user_by_two_mechanisms_are_two(self):
        def credential(mechanism):
            keys = {"salt": b"s", "storedKey": b"k", "serverKey": b"v", "iterations": 4096}
            return "USER_SCRAM_CREDENTIAL_RECORD", {"name": "a", "mechanism": mechanism} | keys

        gone = ("REMOVE_USER_SCRAM_CREDENTIAL_RECORD", {"name": "a", "mechanism": 1})
        image = replay(rows([credential(1), credential(2), gone]))
        assert [key for key, _ in image.tables.items(tables.SCRAM_USERS)] == [(2, "a")]

    def test_the_old_credential_record_holds_one_credential_per_mechanism(self):
        infos = [{"mechanism": m, "salt": b"s", "saltedPassword": b"p", "iterations": 1} for m in (1, 2)]
        image = replay(rows([("USER_SCRAM_CREDENTIAL_RECORD", {"name": "a", "credentialInfos": infos})]))
        assert [key for key, _ in image.tables.items(tables.SCRAM_USERS)] == [(1, "a"), (2, "a")]

    def test_a_token_of_the_old_layout_has_no_requester(self):
        fields = {"owner": "User:a", "renewers": [], "issueTimestamp": 1, "maxTimestamp": 2}
        old = ("DELEGATION_TOKEN_RECORD", fields | {"expirationTimestamp": 2, "tokenId": "x"})
        assert replay(rows([old])).tables.get(tables.DELEGATION_TOKENS, ("x",)).requester is None

    def test_a_state_of_migration_that_means_none_is_none(self):
        made = [("ZK_MIGRATION_STATE_RECORD", {"zkMigrationState": state}) for state in (2, 0)]
        assert replay(rows(made[:1])).tables.count(tables.ZK_MIGRATION) == 1
        assert replay(rows(made)).tables.count(tables.ZK_MIGRATION) == 0

    def test_the_broker_of_producer_ids_is_not_part_of_the_state(self):
        def ids(broker_id):
            fields = {"brokerId": broker_id, "brokerEpoch": broker_id, "nextProducerId": 1000}
            return replay(rows([("PRODUCER_IDS_RECORD", fields)])).tables

        assert ids(1) == ids(-1)


class TestTransactions:
    def begin(self, offset=0):
        return row("BEGIN_TRANSACTION_RECORD", {"name": None}, offset)

    def test_changes_become_visible_at_the_end_of_the_transaction(self):
        image = replay([row(*PARTITION[:1], None, 0), self.begin(1), row(*TOPIC, 2), row(*PARTITION, 3)])
        assert (image.offset, image.tables.count(tables.TOPICS)) == (0, 0)
        made = image.apply(row("END_TRANSACTION_RECORD", {}, 4))
        assert [each.record.offset for each in made] == [2, 3]
        assert (image.offset, image.tables.count(tables.PARTITIONS)) == (4, 1)

    def test_what_it_made_and_removed_leaves_no_trace(self):
        image = replay([self.begin(), row(*TOPIC, 1), row("REMOVE_TOPIC_RECORD", {"topicId": ID}, 2)])
        assert image.apply(row("END_TRANSACTION_RECORD", {}, 3)) == []

    def test_a_thing_changed_twice_in_it_changed_once(self):
        image = replay(rows([TOPIC, PARTITION]))
        changes = [
            row("PARTITION_CHANGE_RECORD", change_fields(ID, leader=leader), leader) for leader in (1, 2)
        ]
        replay([self.begin(), *changes], image)
        (made,) = image.apply(row("END_TRANSACTION_RECORD", {}, 9))
        assert (made.before.leader_epoch, made.change.value.leader_epoch, made.record.offset) == (3, 5, 2)

    def test_an_aborted_transaction_changes_nothing_and_the_next_one_starts_anew(self):
        image = replay(
            [
                self.begin(),
                row(*TOPIC, 1),
                row("ABORT_TRANSACTION_RECORD", {"reason": None}, 2),
                row("TOPIC_RECORD", topic_fields("u", OTHER), 3),
            ]
        )
        assert image.tables.topic_ids == {"u": OTHER}
        assert (image.offset, image.refusals) == (3, [])

    def test_unexpected_transaction_markers_are_refused(self):
        image = replay([row("END_TRANSACTION_RECORD", {}, 0), row("ABORT_TRANSACTION_RECORD", {}, 1)])
        assert refused(image) == ["no metadata transaction is open"] * 2
        image = replay([self.begin(0), row(*TOPIC, 1), self.begin(2)])
        assert refused(image) == ["a metadata transaction is already open"]
        image.apply(row("END_TRANSACTION_RECORD", {}, 3))
        assert image.tables.count(tables.TOPICS) == 1


class TestUnreadable:
    def test_unknown_types_and_unreadable_values_are_named(self):
        image = replay(
            [row("UNKNOWN", None, 5), row("TOPIC_RECORD", None, 6), row("ACCESS_CONTROL_RECORD", {}, 7)]
        )
        assert [(refusal.offset, refusal.reason) for refusal in image.refusals] == [
            (5, "no rule to replay UNKNOWN"),
            (6, "unreadable value"),
            (7, "no rule to replay ACCESS_CONTROL_RECORD"),
        ]
        assert image.offset == 7

    def test_control_records_move_the_offset_alone(self):
        image = replay([row("LeaderChange", {"leaderId": 1}, 0), row("KRaftVoters", {"voters": []}, 1)])
        assert (image.offset, image.tables, image.refusals) == (1, Image().tables, [])
