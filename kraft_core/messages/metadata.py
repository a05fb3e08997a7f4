"""Every metadata record, by id (the definitions in kafka-metadata's common/metadata, up to Kafka 4.4.0).

Fields are in the order of Kafka's definitions. Record 13 never existed. Names changed without a change of
the bytes: nextProducerId was producerIdsEnd before 3.2, lastKnownElr was lastKnownELR in 3.7.
"""

from __future__ import annotations

from kraft_core.messages.legacy_layouts import (
    ACCESS_CONTROL_RECORD,
    DELEGATION_TOKEN_RECORD_3_5,
    FEATURE_LEVEL_RECORD_3_2,
    REMOVE_FEATURE_LEVEL_RECORD,
    USER_SCRAM_CREDENTIAL_RECORD_3_4,
)
from kraft_core.messages.schema import (
    ALL,
    V0,
    Field,
    FieldType,
    Message,
    Versions,
    metadata_record,
    since,
    structs,
)

_ENDPOINTS = structs(
    "endPoints",
    Field("name", "string"),
    Field("host", "string"),
    Field("port", "uint16"),
    Field("securityProtocol", "int16"),
)
_FEATURES = structs(
    "features",
    Field("name", "string"),
    Field("minSupportedVersion", "int16"),
    Field("maxSupportedVersion", "int16"),
)


def _unchanged_list(name: str, tag: int, versions: Versions = ALL, type_: FieldType = "int32") -> Field:
    """A tagged list, by default of replicas; absent means unchanged, or unknown."""
    return Field(name, type_, array=True, versions=versions, tag=tag, nullable=versions, default=None)


METADATA_RECORDS: tuple[Message, ...] = (
    metadata_record(
        "RegisterBrokerRecord",
        0,
        Versions(0, 4),
        Field("brokerId", "int32"),
        Field("isMigratingZkBroker", "bool", versions=since(2)),
        Field("incarnationId", "uuid"),
        Field("brokerEpoch", "int64"),
        _ENDPOINTS,
        _FEATURES,
        Field("rack", "string", nullable=ALL),
        Field("fenced", "bool", default=True),
        Field("inControlledShutdown", "bool", versions=since(1)),
        Field("logDirs", "uuid", array=True, versions=since(3), tag=0),
        _unchanged_list("cordonedLogDirs", 1, since(4), "uuid"),
    ),
    metadata_record(
        "UnregisterBrokerRecord", 1, V0, Field("brokerId", "int32"), Field("brokerEpoch", "int64")
    ),
    metadata_record("TopicRecord", 2, V0, Field("name", "string"), Field("topicId", "uuid")),
    metadata_record(
        "PartitionRecord",
        3,
        Versions(0, 2),
        Field("partitionId", "int32", default=-1),
        Field("topicId", "uuid"),
        Field("replicas", "int32", array=True),
        Field("isr", "int32", array=True),
        Field("removingReplicas", "int32", array=True),
        Field("addingReplicas", "int32", array=True),
        Field("leader", "int32", default=-1),
        Field("leaderRecoveryState", "int8", tag=0),
        Field("leaderEpoch", "int32", default=-1),
        Field("partitionEpoch", "int32", default=-1),
        Field("directories", "uuid", array=True, versions=since(1)),
        _unchanged_list("eligibleLeaderReplicas", 1, since(2)),
        _unchanged_list("lastKnownElr", 2, since(2)),
    ),
    metadata_record(
        "ConfigRecord",
        4,
        V0,
        Field("resourceType", "int8"),
        Field("resourceName", "string"),
        Field("name", "string"),
        Field("value", "string", nullable=ALL),
    ),
    metadata_record(
        "PartitionChangeRecord",
        5,
        Versions(0, 2),
        Field("partitionId", "int32", default=-1),
        Field("topicId", "uuid"),
        _unchanged_list("isr", 0),
        Field("leader", "int32", tag=1, default=-2),
        _unchanged_list("replicas", 2),
        _unchanged_list("removingReplicas", 3),
        _unchanged_list("addingReplicas", 4),
        Field("leaderRecoveryState", "int8", tag=5, default=-1),
        _unchanged_list("directories", 8, since(1), "uuid"),
        _unchanged_list("eligibleLeaderReplicas", 6, since(2)),
        _unchanged_list("lastKnownElr", 7, since(2)),
    ),
    ACCESS_CONTROL_RECORD,
    metadata_record("FenceBrokerRecord", 7, V0, Field("id", "int32"), Field("epoch", "int64")),
    metadata_record("UnfenceBrokerRecord", 8, V0, Field("id", "int32"), Field("epoch", "int64")),
    metadata_record("RemoveTopicRecord", 9, V0, Field("topicId", "uuid")),
    metadata_record(
        "DelegationTokenRecord",
        10,
        V0,
        Field("owner", "string"),
        Field("requester", "string"),
        Field("renewers", "string", array=True),
        Field("issueTimestamp", "int64"),
        Field("maxTimestamp", "int64"),
        Field("expirationTimestamp", "int64"),
        Field("tokenId", "string", secret=True, digested=True),
        older=(DELEGATION_TOKEN_RECORD_3_5,),
    ),
    metadata_record(
        "UserScramCredentialRecord",
        11,
        V0,
        Field("name", "string"),
        Field("mechanism", "int8"),
        Field("salt", "bytes", secret=True),
        Field("storedKey", "bytes", secret=True),
        Field("serverKey", "bytes", secret=True),
        Field("iterations", "int32"),
        older=(USER_SCRAM_CREDENTIAL_RECORD_3_4,),
    ),
    metadata_record(
        "FeatureLevelRecord",
        12,
        V0,
        Field("name", "string"),
        Field("featureLevel", "int16"),
        older=(FEATURE_LEVEL_RECORD_3_2,),
    ),
    metadata_record(
        "ClientQuotaRecord",
        14,
        V0,
        structs("entity", Field("entityType", "string"), Field("entityName", "string", nullable=ALL)),
        Field("key", "string"),
        Field("value", "float64"),
        Field("remove", "bool"),
    ),
    metadata_record(
        "ProducerIdsRecord",
        15,
        V0,
        Field("brokerId", "int32"),
        Field("brokerEpoch", "int64", default=-1),
        Field("nextProducerId", "int64"),
    ),
    REMOVE_FEATURE_LEVEL_RECORD,
    metadata_record(
        "BrokerRegistrationChangeRecord",
        17,
        Versions(0, 3),
        Field("brokerId", "int32"),
        Field("brokerEpoch", "int64"),
        Field("fenced", "int8", tag=0),
        Field("inControlledShutdown", "int8", versions=since(1), tag=1),
        Field("logDirs", "uuid", array=True, versions=since(2), tag=2),
        _unchanged_list("cordonedLogDirs", 3, since(3), "uuid"),
    ),
    metadata_record(
        "AccessControlEntryRecord",
        18,
        V0,
        Field("id", "uuid"),
        Field("resourceType", "int8"),
        Field("resourceName", "string"),
        Field("patternType", "int8"),
        Field("principal", "string"),
        Field("host", "string"),
        Field("operation", "int8"),
        Field("permissionType", "int8"),
    ),
    metadata_record("RemoveAccessControlEntryRecord", 19, V0, Field("id", "uuid")),
    metadata_record("NoOpRecord", 20, V0),
    metadata_record("ZkMigrationStateRecord", 21, V0, Field("zkMigrationState", "int8")),
    metadata_record(
        "RemoveUserScramCredentialRecord", 22, V0, Field("name", "string"), Field("mechanism", "int8")
    ),
    metadata_record(
        "BeginTransactionRecord", 23, V0, Field("name", "string", tag=0, nullable=ALL, default=None)
    ),
    metadata_record("EndTransactionRecord", 24, V0),
    metadata_record(
        "AbortTransactionRecord", 25, V0, Field("reason", "string", tag=0, nullable=ALL, default=None)
    ),
    metadata_record(
        "RemoveDelegationTokenRecord", 26, V0, Field("tokenId", "string", secret=True, digested=True)
    ),
    metadata_record(
        "RegisterControllerRecord",
        27,
        V0,
        Field("controllerId", "int32"),
        Field("incarnationId", "uuid"),
        Field("zkMigrationReady", "bool"),
        _ENDPOINTS,
        _FEATURES,
    ),
    metadata_record("ClearElrRecord", 28, V0, Field("topicName", "string")),
    metadata_record("UnregisterControllerRecord", 29, V0, Field("controllerId", "int32")),
)

by_api_key: dict[int, Message] = {
    message.api_key: message for message in METADATA_RECORDS if message.api_key is not None
}
