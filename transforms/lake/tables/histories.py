"""Versions of topics, partitions, brokers and every other kind of metadata, and their replay path."""

from __future__ import annotations

from transforms.lake.tables.columns import CLUSTER_ID, WITHIN
from transforms.lake.tables.declaration import Column, Table, required

END_POINTS_TYPE = "ARRAY<STRUCT<name: STRING, host: STRING, port: INT, security_protocol: STRING>>"

FEATURES_TYPE = (
    "ARRAY<STRUCT<name: STRING, min_supported_version: SMALLINT, max_supported_version: SMALLINT>>"
)

VERSION = (
    required("valid_from_offset", "BIGINT", "Offset from which it stood, inclusive"),
    Column("valid_to_offset", "BIGINT", "Offset at which it ended, exclusive; null: it stands"),
    Column("valid_from_at", "TIMESTAMP", "The same in time: running maximum of the batches' timestamps"),
    Column("valid_to_at", "TIMESTAMP", "When it ended, in the same time; null: it stands"),
    Column(
        "known_from_offset",
        "BIGINT",
        "Set where a snapshot told of it first: its last offset; it may be older",
    ),
    Column("record_offset", "BIGINT", "Offset of the record that made it; null where a snapshot told of it"),
    required("record_type", "STRING", "Type of the record that made it"),
    Column("record_leader_epoch", "INT", "Leader epoch of that record, or of the snapshot"),
    Column("appended_at", "TIMESTAMP", "Timestamp of that record: the leader's clock"),
    Column("ended_by", "STRING", "Type of the record that ended it; snapshot where one no longer had it"),
    required(
        "commit_status", "STRING", "Whether its beginning is committed: committed, uncommitted, undecided"
    ),
    Column("end_commit_status", "STRING", "Whether its end is committed; null: it stands"),
)


def history(name: str, comment: str, key: tuple[str, ...], *columns: Column) -> Table:
    """A table of versions of a kind of thing that `key` names."""
    return Table(
        name,
        comment,
        (CLUSTER_ID, *columns, *VERSION),
        key=("cluster_id", *key, "valid_from_offset"),
        recomputed=True,
    )


TOPICS = history(
    "topics",
    "A topic, from creation to removal",
    ("topic_id",),
    required("topic_id", "STRING", "Topic id"),
    Column("name", "STRING", "Name; one that was removed may be used again by another id"),
)

PARTITIONS = history(
    "partitions",
    "A version of a partition",
    ("topic_id", "partition_id"),
    required("topic_id", "STRING", "Topic id"),
    Column("topic_name", "STRING", "Name of the topic"),
    required("partition_id", "INT", "Number of the partition in its topic"),
    Column("replicas", "ARRAY<INT>", "Broker ids of the replicas, the preferred leader first"),
    Column("directories", "ARRAY<STRING>", "Log directory of each replica"),
    Column("isr", "ARRAY<INT>", "In-sync replicas"),
    Column("removing_replicas", "ARRAY<INT>", "Replicas that a reassignment removes"),
    Column("adding_replicas", "ARRAY<INT>", "Replicas that a reassignment adds"),
    Column("eligible_leader_replicas", "ARRAY<INT>", "Replicas outside the ISR that lost nothing (KIP-966)"),
    Column("last_known_elr", "ARRAY<INT>", "The last known of them, for an unclean recovery"),
    Column("leader", "INT", "Broker id of the leader; -1: none"),
    Column("leader_recovery_state", "STRING", "RECOVERED, or RECOVERING after an unclean election"),
    Column("leader_epoch", "INT", "Leader epoch of the partition"),
    Column("partition_epoch", "INT", "Partition epoch: rises with every change"),
)

BROKERS = history(
    "brokers",
    "A version of a broker's registration",
    ("broker_id",),
    required("broker_id", "INT", "Broker id"),
    Column("broker_epoch", "BIGINT", "Broker epoch: rises with every registration"),
    Column("incarnation_id", "STRING", "Id of the broker's process"),
    Column("end_points", END_POINTS_TYPE, "Its listeners, by name"),
    Column("features", FEATURES_TYPE, "Feature levels it supports, by name"),
    Column("rack", "STRING", "Rack; null: none"),
    Column("fenced", "BOOLEAN", "Whether the controller keeps it from leading and from clients"),
    Column("in_controlled_shutdown", "BOOLEAN", "Whether it hands over its leaderships to stop"),
    Column("is_migrating_zk_broker", "BOOLEAN", "Whether it still ran with ZooKeeper"),
    Column("log_dirs", "ARRAY<STRING>", "Its log directories"),
    Column("cordoned_log_dirs", "ARRAY<STRING>", "Those that take no new replicas; null before release 4.3"),
)

CONTROLLERS = history(
    "controllers",
    "A version of a controller's registration",
    ("controller_id",),
    required("controller_id", "INT", "Controller id"),
    Column("incarnation_id", "STRING", "Id of the controller's process"),
    Column("zk_migration_ready", "BOOLEAN", "Whether it could take over from ZooKeeper"),
    Column("end_points", END_POINTS_TYPE, "Its listeners, by name"),
    Column("features", FEATURES_TYPE, "Feature levels it supports, by name"),
)

CONFIGS = history(
    "configs",
    "A version of one configuration of a resource",
    ("resource_type", "resource_name", "name"),
    required("resource_type", "STRING", "TOPIC, BROKER, CLIENT_METRICS, GROUP, ..."),
    required("resource_name", "STRING", "Name of the resource; empty: the default of all of that type"),
    required("name", "STRING", "Name of the configuration"),
    Column("value", "STRING", "Value; null where it is a secret"),
    Column("redacted", "BOOLEAN", "Whether the value is a secret"),
)

ACLS = history(
    "acls",
    "An ACL, from creation to removal",
    ("id",),
    required("id", "STRING", "Id of the ACL"),
    Column("resource_type", "STRING", "TOPIC, GROUP, CLUSTER, ..."),
    Column("resource_name", "STRING", "Name of the resource, or its beginning"),
    Column("pattern_type", "STRING", "LITERAL or PREFIXED"),
    Column("principal", "STRING", "Who it is about"),
    Column("host", "STRING", "From where; *: anywhere"),
    Column("operation", "STRING", "READ, WRITE, ALL, ..."),
    Column("permission_type", "STRING", "ALLOW or DENY"),
)

CLIENT_QUOTAS = history(
    "client_quotas",
    "A version of a client quota",
    ("entity_name", "key"),
    required("entity_name", "STRING", "The entity in words: client-id=c1,user=<default>"),
    Column(
        "entity",
        "ARRAY<STRUCT<entity_type: STRING, entity_name: STRING>>",
        "Its parts by type; a null name: the default of that type",
    ),
    required("key", "STRING", "producer_byte_rate, request_percentage, ..."),
    Column("value", "DOUBLE", "The quota"),
)

SCRAM_USERS = history(
    "scram_users",
    "A version of a user's SCRAM credential; what is secret of it is nowhere in the lake",
    ("mechanism", "name"),
    required("mechanism", "STRING", "SCRAM-SHA-256 or SCRAM-SHA-512"),
    required("name", "STRING", "Name of the user"),
    Column("iterations", "INT", "Iterations"),
)

DELEGATION_TOKENS = history(
    "delegation_tokens",
    "A version of a delegation token; its id is nowhere in the lake",
    ("token_digest",),
    required("token_digest", "STRING", "Stands for the token"),
    Column("owner", "STRING", "Whose token it is"),
    Column("requester", "STRING", "Who asked for it; null before release 3.6"),
    Column("renewers", "ARRAY<STRING>", "Who may renew it"),
    Column("issue_timestamp", "BIGINT", "When it was issued, ms since the epoch"),
    Column("max_timestamp", "BIGINT", "Until when it may be renewed, ms since the epoch"),
    Column("expiration_timestamp", "BIGINT", "When it expires, ms since the epoch"),
)

FEATURES = history(
    "features",
    "A version of a finalized feature level",
    ("name",),
    required("name", "STRING", "metadata.version, group.version, ..."),
    Column("level", "SMALLINT", "Level in force"),
)

PRODUCER_IDS = history(
    "producer_ids",
    "A version of the next producer id",
    (),
    Column("next_producer_id", "BIGINT", "The next one that no broker was given"),
    Column("broker_id", "INT", "Broker that asked for the block before; -1 in snapshots"),
    Column("broker_epoch", "BIGINT", "Its broker epoch; -1 in snapshots"),
)

ZK_MIGRATION_STATES = history(
    "zk_migration_states",
    "How far the move from ZooKeeper was",
    (),
    Column("zk_migration_state", "STRING", "MIGRATION, PRE_MIGRATION, POST_MIGRATION or ZK"),
)

HISTORIES: tuple[Table, ...] = (
    TOPICS,
    PARTITIONS,
    BROKERS,
    CONTROLLERS,
    CONFIGS,
    ACLS,
    CLIENT_QUOTAS,
    SCRAM_USERS,
    DELEGATION_TOKENS,
    FEATURES,
    PRODUCER_IDS,
    ZK_MIGRATION_STATES,
)

METADATA_TRANSACTIONS = Table(
    "metadata_transactions",
    "A metadata transaction (KIP-868): its records show only from its end on",
    (
        CLUSTER_ID,
        required("begin_offset", "BIGINT", "Offset of the record that began it"),
        Column("end_offset", "BIGINT", "Offset of the record that ended or aborted it; null: open"),
        Column("name", "STRING", "Name the controller gave it"),
        required("outcome", "STRING", "ended, aborted (nothing of it shows) or open"),
        Column("reason", "STRING", "Why it was aborted"),
        Column("begun_at", "TIMESTAMP", "Timestamp of the first of these records"),
        Column("ended_at", "TIMESTAMP", "Timestamp of the other one"),
        required("commit_status", "STRING", "Status of the record that closed it, or began it if it is open"),
    ),
    key=("cluster_id", "begin_offset"),
    recomputed=True,
)

REPLAYS = Table(
    "replays",
    "What the histories were made from: a stretch of the log, or a snapshot where the log has a gap",
    (
        CLUSTER_ID,
        required("step", "INT", "Its place in the order of the replay, from 0"),
        required(
            "first_offset", "BIGINT", "First offset, inclusive; of a snapshot the last one it stands for"
        ),
        required("end_offset", "BIGINT", "End offset, exclusive"),
        required("leader_epoch", "INT", "Leader epoch"),
        required("commit_status", "STRING", "Commit status of these offsets"),
        Column("content_digest", "STRING", "Of a snapshot: its key in table snapshots; null for the log"),
        Column("last_contained_log_at", "TIMESTAMP", f"Of a snapshot: LastContainedLogTimestamp, {WITHIN}"),
    ),
    key=("cluster_id", "step"),
    recomputed=True,
)
