from collections import Counter

import pytest

from kraft_core.messages.control import CONTROL_RECORDS
from kraft_core.messages.metadata import METADATA_RECORDS, by_api_key
from kraft_core.messages.schema import Field, Versions, snake_case

EVERY_RECORD = [*METADATA_RECORDS, *CONTROL_RECORDS.values()]


def test_every_id_but_the_one_that_never_existed():
    assert sorted(by_api_key) == [*range(13), *range(14, 30)]
    assert [message.api_key for message in METADATA_RECORDS] == sorted(by_api_key)


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("brokerId", "broker_id"),
        ("kRaftVersion", "kraft_version"),
        ("kRaftVersionFeature", "kraft_version_feature"),
        ("isr", "isr"),
        ("lastKnownElr", "last_known_elr"),
        ("isMigratingZkBroker", "is_migrating_zk_broker"),
    ],
)
def test_columns_of_fields(name, column):
    assert Field(name, "int32").column == snake_case(name) == column


def test_types_and_columns_of_records():
    named = {message.type_name: message.column for message in EVERY_RECORD}
    assert named["REGISTER_BROKER_RECORD"] == "register_broker"
    assert named["NO_OP_RECORD"] == "no_op"
    assert named["ZK_MIGRATION_STATE_RECORD"] == "zk_migration_state"
    assert named["LeaderChange"] == "leader_change"
    assert named["KRaftVoters"] == "kraft_voters"
    assert max(Counter(named.values()).values()) == 1
    assert len(named) == len(EVERY_RECORD)


def test_versions():
    assert 3 in Versions(3)
    assert 2 not in Versions(3)
    assert 4 not in Versions(2, 3)
    assert list(Versions(2, 4)) == [2, 3, 4]
    with pytest.raises(ValueError, match="no end"):
        iter(Versions(1))


def test_defaults_are_fresh():
    partition = by_api_key[3]
    first = partition.default(2)
    assert first["leader"] == -1
    assert first["eligibleLeaderReplicas"] is None
    first["replicas"].append(1)
    assert partition.default(2)["replicas"] == []


def test_secrets_are_marked():
    secret = {
        (message.name, field.name)
        for record in METADATA_RECORDS
        for message in (record, *record.older)
        for declared in message.fields
        for field in (declared, *declared.fields)
        if field.secret
    }
    assert secret == {
        ("DelegationTokenRecord", "tokenId"),
        ("RemoveDelegationTokenRecord", "tokenId"),
        ("UserScramCredentialRecord", "salt"),
        ("UserScramCredentialRecord", "storedKey"),
        ("UserScramCredentialRecord", "serverKey"),
        ("UserScramCredentialRecord", "saltedPassword"),
    }
