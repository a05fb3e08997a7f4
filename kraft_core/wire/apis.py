"""The requests of an observer and their responses, in the versions that it sends.

Source: kafka-clients' common/message, Kafka 3.9.2 to 4.4.0. A controller takes
Fetch by topic id only, from 13 on, and its answer names the endpoints of its listener from 17 on.
"""

from __future__ import annotations

from dataclasses import dataclass

from kraft_core.messages.schema import ALL, Field, Message, Versions, since, struct, structs

METADATA_TOPIC = "__cluster_metadata"
METADATA_TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
MAX_INT64 = (1 << 63) - 1
_MAX_INT32 = (1 << 31) - 1


@dataclass(frozen=True, eq=False)
class Api:
    """A request and its response, of the same key and versions.

    bare_header: the header of the response has no tagged fields though the response may have some, so that a
    client can read the answer of a node that knows no such version.
    """

    request: Message
    response: Message
    bare_header: bool = False

    @property
    def name(self) -> str:
        return self.request.name.removesuffix("Request")

    @property
    def key(self) -> int:
        assert self.request.api_key is not None
        return self.request.api_key

    @property
    def versions(self) -> Versions:
        return self.request.versions


def _api(
    name: str,
    key: int,
    versions: Versions,
    request: tuple[Field, ...],
    response: tuple[Field, ...],
    flexible: bool = True,
    bare_header: bool = False,
) -> Api:
    return Api(
        Message(f"{name}Request", key, versions, request, flexible=flexible),
        Message(f"{name}Response", key, versions, response, flexible=flexible),
        bare_header,
    )


_ERROR = Field("errorCode", "int16")
_THROTTLE = Field("throttleTimeMs", "int32")
_CLUSTER_ID = Field("clusterId", "string", tag=0, nullable=ALL, default=None)
_NO_EPOCH = (Field("epoch", "int32", default=-1), Field("endOffset", "int64", default=-1))
_NO_SNAPSHOT = (Field("endOffset", "int64", default=-1), Field("epoch", "int32", default=-1))
_SNAPSHOT_ID = struct("snapshotId", Field("endOffset", "int64"), Field("epoch", "int32"))
_DIRECTORY_ID = Field("replicaDirectoryId", "uuid", tag=0)


def _error_message(versions: Versions) -> Field:
    return Field("errorMessage", "string", versions=versions, nullable=versions)


def _endpoint(port: Field, *more: Field) -> Field:
    return structs("nodeEndpoints", Field("nodeId", "int32"), Field("host", "string"), port, *more, tag=0)


API_VERSIONS = _api(
    "ApiVersions",
    18,
    Versions(3, 3),
    (Field("clientSoftwareName", "string"), Field("clientSoftwareVersion", "string")),
    (
        _ERROR,
        structs(
            "apiKeys", Field("apiKey", "int16"), Field("minVersion", "int16"), Field("maxVersion", "int16")
        ),
        _THROTTLE,
        structs(
            "supportedFeatures",
            Field("name", "string"),
            Field("minVersion", "int16"),
            Field("maxVersion", "int16"),
            tag=0,
        ),
        Field("finalizedFeaturesEpoch", "int64", tag=1, default=-1),
        structs(
            "finalizedFeatures",
            Field("name", "string"),
            Field("maxVersionLevel", "int16"),
            Field("minVersionLevel", "int16"),
            tag=2,
        ),
        Field("zkMigrationReady", "bool", tag=3),
    ),
    bare_header=True,
)

SASL_HANDSHAKE = _api(
    "SaslHandshake",
    17,
    Versions(1, 1),
    (Field("mechanism", "string"),),
    (_ERROR, Field("mechanisms", "string", array=True)),
    flexible=False,
)

SASL_AUTHENTICATE = _api(
    "SaslAuthenticate",
    36,
    Versions(2, 2),
    (Field("authBytes", "bytes", secret=True),),
    (
        _ERROR,
        _error_message(ALL),
        Field("authBytes", "bytes", secret=True),
        Field("sessionLifetimeMs", "int64"),
    ),
)

FETCH = _api(
    "Fetch",
    1,
    Versions(17, 18),
    (
        _CLUSTER_ID,
        struct(
            "replicaState",
            Field("replicaId", "int32", default=-1),
            Field("replicaEpoch", "int64", default=-1),
            tag=1,
        ),
        Field("maxWaitMs", "int32"),
        Field("minBytes", "int32"),
        Field("maxBytes", "int32", default=_MAX_INT32),
        Field("isolationLevel", "int8"),
        Field("sessionId", "int32"),
        Field("sessionEpoch", "int32", default=-1),
        structs(
            "topics",
            Field("topicId", "uuid"),
            structs(
                "partitions",
                Field("partition", "int32"),
                Field("currentLeaderEpoch", "int32", default=-1),
                Field("fetchOffset", "int64"),
                Field("lastFetchedEpoch", "int32", default=-1),
                Field("logStartOffset", "int64", default=-1),
                Field("partitionMaxBytes", "int32"),
                _DIRECTORY_ID,
                Field("highWatermark", "int64", versions=since(18), tag=1, default=MAX_INT64),
            ),
        ),
        structs("forgottenTopicsData", Field("topicId", "uuid"), Field("partitions", "int32", array=True)),
        Field("rackId", "string"),
    ),
    (
        _THROTTLE,
        _ERROR,
        Field("sessionId", "int32"),
        structs(
            "responses",
            Field("topicId", "uuid"),
            structs(
                "partitions",
                Field("partitionIndex", "int32"),
                _ERROR,
                Field("highWatermark", "int64"),
                Field("lastStableOffset", "int64", default=-1),
                Field("logStartOffset", "int64", default=-1),
                struct("divergingEpoch", *_NO_EPOCH, tag=0),
                struct(
                    "currentLeader",
                    Field("leaderId", "int32", default=-1),
                    Field("leaderEpoch", "int32", default=-1),
                    tag=1,
                ),
                struct("snapshotId", *_NO_SNAPSHOT, tag=2),
                Field(
                    "abortedTransactions",
                    "struct",
                    array=True,
                    nullable=ALL,
                    fields=(Field("producerId", "int64"), Field("firstOffset", "int64")),
                ),
                Field("preferredReadReplica", "int32", default=-1),
                Field("records", "bytes", nullable=ALL),
            ),
        ),
        _endpoint(Field("port", "int32"), Field("rack", "string", nullable=ALL, default=None)),
    ),
)

FETCH_SNAPSHOT = _api(
    "FetchSnapshot",
    59,
    Versions(1, 1),
    (
        _CLUSTER_ID,
        Field("replicaId", "int32", default=-1),
        Field("maxBytes", "int32", default=_MAX_INT32),
        structs(
            "topics",
            Field("name", "string"),
            structs(
                "partitions",
                Field("partition", "int32"),
                Field("currentLeaderEpoch", "int32"),
                _SNAPSHOT_ID,
                Field("position", "int64"),
                _DIRECTORY_ID,
            ),
        ),
    ),
    (
        _THROTTLE,
        _ERROR,
        structs(
            "topics",
            Field("name", "string"),
            structs(
                "partitions",
                Field("index", "int32"),
                _ERROR,
                _SNAPSHOT_ID,
                struct("currentLeader", Field("leaderId", "int32"), Field("leaderEpoch", "int32"), tag=0),
                Field("size", "int64"),
                Field("position", "int64"),
                Field("unalignedRecords", "bytes"),
            ),
        ),
        _endpoint(Field("port", "uint16")),
    ),
)


def _replicas(name: str) -> Field:
    return structs(
        name,
        Field("replicaId", "int32"),
        Field("replicaDirectoryId", "uuid", versions=since(2)),
        Field("logEndOffset", "int64"),
        Field("lastFetchTimestamp", "int64", versions=since(1), default=-1),
        Field("lastCaughtUpTimestamp", "int64", versions=since(1), default=-1),
    )


DESCRIBE_QUORUM = _api(
    "DescribeQuorum",
    55,
    Versions(0, 2),
    (
        structs(
            "topics", Field("topicName", "string"), structs("partitions", Field("partitionIndex", "int32"))
        ),
    ),
    (
        _ERROR,
        _error_message(since(2)),
        structs(
            "topics",
            Field("topicName", "string"),
            structs(
                "partitions",
                Field("partitionIndex", "int32"),
                _ERROR,
                _error_message(since(2)),
                Field("leaderId", "int32"),
                Field("leaderEpoch", "int32"),
                Field("highWatermark", "int64"),
                _replicas("currentVoters"),
                _replicas("observers"),
            ),
        ),
        structs(
            "nodes",
            Field("nodeId", "int32"),
            structs("listeners", Field("name", "string"), Field("host", "string"), Field("port", "uint16")),
            versions=since(2),
        ),
    ),
)

DESCRIBE_CLUSTER = _api(
    "DescribeCluster",
    60,
    Versions(1, 1),
    (Field("includeClusterAuthorizedOperations", "bool"), Field("endpointType", "int8", default=1)),
    (
        _THROTTLE,
        _ERROR,
        Field("errorMessage", "string", nullable=ALL, default=None),
        Field("endpointType", "int8", default=1),
        Field("clusterId", "string"),
        Field("controllerId", "int32", default=-1),
        structs(
            "brokers",
            Field("brokerId", "int32"),
            Field("host", "string"),
            Field("port", "int32"),
            Field("rack", "string", nullable=ALL, default=None),
        ),
        Field("clusterAuthorizedOperations", "int32", default=-2147483648),
    ),
)
