"""Metadata records that Kafka no longer writes: retired types, and legacy layouts of current types.

Source: the definitions in kafka-metadata of the release a message names as its layout, the last to have it.
Kafka 2.8 framed its records differently, so none of its layouts can occur here.
"""

from __future__ import annotations

from kraft_core.messages.schema import ALL, V0, Field, metadata_record, structs

ACCESS_CONTROL_RECORD = metadata_record(
    "AccessControlRecord",
    6,
    V0,
    Field("resourceType", "int8"),
    Field("resourceName", "string", nullable=ALL),
    Field("patternType", "int8"),
    Field("principal", "string"),
    Field("host", "string"),
    Field("operation", "int8"),
    Field("permissionType", "int8"),
    layout="3.4",
)

REMOVE_FEATURE_LEVEL_RECORD = metadata_record(
    "RemoveFeatureLevelRecord", 16, V0, Field("name", "string"), layout="3.2"
)

DELEGATION_TOKEN_RECORD_3_5 = metadata_record(
    "DelegationTokenRecord",
    10,
    V0,
    Field("owner", "string"),
    Field("renewers", "string", array=True),
    Field("issueTimestamp", "int64"),
    Field("maxTimestamp", "int64"),
    Field("expirationTimestamp", "int64"),
    Field("tokenId", "string", secret=True, digested=True),
    layout="3.5",
)

USER_SCRAM_CREDENTIAL_RECORD_3_4 = metadata_record(
    "UserScramCredentialRecord",
    11,
    V0,
    Field("name", "string"),
    structs(
        "credentialInfos",
        Field("mechanism", "int8"),
        Field("salt", "bytes", secret=True),
        Field("saltedPassword", "bytes", secret=True),
        Field("iterations", "int32"),
    ),
    layout="3.4",
)

FEATURE_LEVEL_RECORD_3_2 = metadata_record(
    "FeatureLevelRecord",
    12,
    V0,
    Field("name", "string"),
    Field("minFeatureLevel", "int16"),
    Field("maxFeatureLevel", "int16"),
    layout="3.2",
)
