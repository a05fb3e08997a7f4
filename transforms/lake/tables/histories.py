"""Versions of topics, partitions, brokers and every other kind of metadata, and their replay path."""

from __future__ import annotations

from transforms.lake.tables.columns import WITHIN, of_clusters
from transforms.lake.tables.declaration import Column, Table, required

# Raised when the replay of the same path finds more, or names it otherwise: a run replays all of it again.
REPLAY_VERSION = 7

ENDPOINTS_TYPE = "ARRAY<STRUCT<name: STRING, host: STRING, port: INT, security_protocol: STRING>>"

FEATURES_TYPE = (
    "ARRAY<STRUCT<name: STRING, min_supported_version: SMALLINT, max_supported_version: SMALLINT>>"
)

VERSION = (
    required(
        "valid_from_offset",
        "BIGINT",
        "First offset at which it is known to be valid; it began at or before it unless valid_from_exact",
    ),
    Column(
        "valid_to_offset",
        "BIGINT",
        "End of its validity, exclusive; it ended at or before it unless valid_to_exact; null if it is "
        "still valid",
    ),
    Column(
        "valid_from_at",
        "TIMESTAMP",
        "Time of valid_from_offset, by the running maximum of the batches' timestamps; likewise at or "
        "before it",
    ),
    Column(
        "valid_to_at",
        "TIMESTAMP",
        "Time of valid_to_offset; likewise at or before it; null if it is still valid",
    ),
    Column(
        "valid_from_exact",
        "BOOLEAN",
        "Whether a record shows its start; false: a snapshot shows it first, and it began at or before",
    ),
    Column(
        "earliest_from_offset",
        "BIGINT",
        "Unless valid_from_exact, the lowest offset at which it can have begun; null if not bounded",
    ),
    Column("earliest_from_at", "TIMESTAMP", "Time of earliest_from_offset: it did not begin before"),
    Column(
        "valid_to_exact",
        "BOOLEAN",
        "Whether a record shows its end; false: a snapshot no longer contains it, and it ended at or before",
    ),
    Column(
        "earliest_to_offset", "BIGINT", "Unless valid_to_exact, the lowest offset at which it can have ended"
    ),
    Column("earliest_to_at", "TIMESTAMP", "Time of earliest_to_offset: it did not end before"),
    Column(
        "known_from_offset",
        "BIGINT",
        "Set if the version is first known from a snapshot: its last offset; the version may be older",
    ),
    Column(
        "record_offset", "BIGINT", "Offset of the record that created it; null if it is known from a snapshot"
    ),
    required("record_type", "STRING", "Type of the record that created it"),
    Column("record_leader_epoch", "INT", "Leader epoch of that record, or of the snapshot"),
    Column("appended_at", "TIMESTAMP", "Timestamp of that record: the leader's clock"),
    Column("ended_by", "STRING", "Type of the record that ended it; snapshot if one no longer contains it"),
    required("commit_status", "STRING", "Commit status of its start: committed, uncommitted or undecided"),
    Column("end_commit_status", "STRING", "Commit status of its end; null if it is still valid"),
    Column(
        "incomplete_from_offset",
        "BIGINT",
        "Set if records are missing that may have changed it, or ended it before: their first offset",
    ),
    Column("incomplete_from_at", "TIMESTAMP", "The missing records took effect at this time or later"),
    Column(
        "incomplete_to_offset",
        "BIGINT",
        "Offset of a snapshot that restates the version, or would; null if none does",
    ),
    Column("incomplete_to_at", "TIMESTAMP", "Time of incomplete_to_offset; null if not known"),
)


def history(name: str, comment: str, key: tuple[str, ...], *columns: Column) -> Table:
    """A table of versions of one kind of thing, identified by `key`."""
    return of_clusters(name, comment, (*key, "valid_from_offset"), *columns, *VERSION, recomputed=True)


TOPICS = history(
    "topics",
    "A topic, from creation to removal",
    ("topic_id",),
    required("topic_id", "STRING", "Topic id"),
    Column("topic_name", "STRING", "Name; that of a removed topic may be reused under another id"),
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
    Column(
        "eligible_leader_replicas",
        "ARRAY<INT>",
        "Replicas outside the ISR that are eligible to lead (KIP-966)",
    ),
    Column("last_known_elr", "ARRAY<INT>", "Last known eligible leader replicas, for an unclean recovery"),
    Column("leader", "INT", "Broker id of the leader; -1 if there is none"),
    Column("leader_recovery_state", "STRING", "RECOVERED, or RECOVERING after an unclean election"),
    Column("leader_epoch", "INT", "Leader epoch of the partition"),
    Column("partition_epoch", "INT", "Partition epoch: incremented by every change"),
)

BROKERS = history(
    "brokers",
    "A version of a broker's registration",
    ("broker_id",),
    required("broker_id", "INT", "Broker id"),
    Column("broker_epoch", "BIGINT", "Broker epoch: increases with every registration"),
    Column("incarnation_id", "STRING", "Id of the broker's process"),
    Column("endpoints", ENDPOINTS_TYPE, "Its listeners, by name"),
    Column("features", FEATURES_TYPE, "Feature levels it supports, by name"),
    Column("rack", "STRING", "Rack; null if there is none"),
    Column("fenced", "BOOLEAN", "Whether it is fenced: it may not lead partitions or serve clients"),
    Column("in_controlled_shutdown", "BOOLEAN", "Whether it is in controlled shutdown"),
    Column("is_migrating_zk_broker", "BOOLEAN", "Whether it still ran in ZooKeeper mode"),
    Column("log_dirs", "ARRAY<STRING>", "Its log directories"),
    Column(
        "cordoned_log_dirs",
        "ARRAY<STRING>",
        "Log directories that take no new replicas; null before release 4.3",
    ),
)

CONTROLLERS = history(
    "controllers",
    "A version of a controller's registration",
    ("controller_id",),
    required("controller_id", "INT", "Controller id"),
    Column("incarnation_id", "STRING", "Id of the controller's process"),
    Column("zk_migration_ready", "BOOLEAN", "Whether it could take over from ZooKeeper"),
    Column("endpoints", ENDPOINTS_TYPE, "Its listeners, by name"),
    Column("features", FEATURES_TYPE, "Feature levels it supports, by name"),
)

CONFIGS = history(
    "configs",
    "A version of one configuration of a resource",
    ("resource_type", "resource_name", "name"),
    required("resource_type", "STRING", "TOPIC, BROKER, CLIENT_METRICS, GROUP, ..."),
    required("resource_name", "STRING", "Name of the resource; empty for the default of its type"),
    required("name", "STRING", "Name of the configuration"),
    Column("value", "STRING", "Value; null if it is a secret"),
    Column("redacted", "BOOLEAN", "Whether the value is a secret"),
)

ACLS = history(
    "acls",
    "An ACL, from creation to removal",
    ("id",),
    required("id", "STRING", "Id of the ACL"),
    Column("resource_type", "STRING", "TOPIC, GROUP, CLUSTER, ..."),
    Column("resource_name", "STRING", "Name of the resource, or its prefix"),
    Column("pattern_type", "STRING", "LITERAL or PREFIXED"),
    Column("principal", "STRING", "Principal that the ACL applies to"),
    Column("host", "STRING", "Host that the ACL applies to; * for any"),
    Column("operation", "STRING", "READ, WRITE, ALL, ..."),
    Column("permission_type", "STRING", "ALLOW or DENY"),
)

CLIENT_QUOTAS = history(
    "client_quotas",
    "A version of a client quota",
    ("entity_name", "key"),
    required("entity_name", "STRING", "The entity as text: client-id=c1,user=<default>"),
    Column(
        "entity",
        "ARRAY<STRUCT<entity_type: STRING, entity_name: STRING>>",
        "Its parts by type; a null name is the default of that type",
    ),
    required("key", "STRING", "producer_byte_rate, request_percentage, ..."),
    Column("value", "DOUBLE", "The quota"),
)

SCRAM_USERS = history(
    "scram_users",
    "A version of a user's SCRAM credential; the lake does not contain its secrets",
    ("mechanism", "name"),
    required("mechanism", "STRING", "SCRAM-SHA-256 or SCRAM-SHA-512"),
    required("name", "STRING", "Name of the user"),
    Column("iterations", "INT", "Iterations"),
)

DELEGATION_TOKENS = history(
    "delegation_tokens",
    "A version of a delegation token; the lake does not contain its id",
    ("token_digest",),
    required("token_digest", "STRING", "Digest that identifies the token"),
    Column("owner", "STRING", "Owner of the token"),
    Column("requester", "STRING", "Who requested it; null before release 3.6"),
    Column("renewers", "ARRAY<STRING>", "Who may renew it"),
    Column("issue_timestamp", "BIGINT", "When it was issued, ms since the epoch"),
    Column("max_timestamp", "BIGINT", "When it can no longer be renewed, ms since the epoch"),
    Column("expiration_timestamp", "BIGINT", "When it expires, ms since the epoch"),
)

FEATURES = history(
    "features",
    "A version of a finalized feature level",
    ("name",),
    required("name", "STRING", "metadata.version, group.version, ..."),
    Column("level", "SMALLINT", "Finalized level"),
)

PRODUCER_IDS = history(
    "producer_ids",
    "A version of the next producer id",
    (),
    Column("next_producer_id", "BIGINT", "Next producer id that is not assigned to a broker"),
    Column("broker_id", "INT", "Broker that requested the previous block; -1 in snapshots"),
    Column("broker_epoch", "BIGINT", "Its broker epoch; -1 in snapshots"),
)

ZK_MIGRATION_STATES = history(
    "zk_migration_states",
    "A state of the migration from ZooKeeper",
    (),
    Column("zk_migration_state", "STRING", "NONE, PRE_MIGRATION, MIGRATION, POST_MIGRATION or ZK"),
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

METADATA_TRANSACTIONS = of_clusters(
    "metadata_transactions",
    "A metadata transaction (KIP-868): its records take effect at its end",
    ("begun_offset",),
    required("begun_offset", "BIGINT", "Offset of the record that began it"),
    Column("ended_offset", "BIGINT", "Offset of the record that ended or aborted it; null if it is open"),
    Column("name", "STRING", "Name given by the controller"),
    required("outcome", "STRING", "ended, aborted (its records have no effect) or open"),
    Column("reason", "STRING", "Why it was aborted"),
    Column("begun_at", "TIMESTAMP", "Timestamp of the record that began it"),
    Column("ended_at", "TIMESTAMP", "Timestamp of the record that ended or aborted it"),
    required(
        "commit_status", "STRING", "Status of the record that closed it, or that began it if it is open"
    ),
    recomputed=True,
)

REPLAYS = of_clusters(
    "replays",
    "What the histories were replayed from: a range of the log, or a snapshot over a gap",
    ("step",),
    required("step", "INT", "Its position in the replay, from 0"),
    required("first_offset", "BIGINT", "First offset, inclusive; of a snapshot, the last offset it replaces"),
    required("end_offset", "BIGINT", "End offset, exclusive"),
    required("leader_epoch", "INT", "Leader epoch"),
    required("commit_status", "STRING", "Commit status of these offsets"),
    Column("content_digest", "STRING", "Key of a snapshot in table snapshots; null for the log"),
    Column("last_contained_log_at", "TIMESTAMP", f"Of a snapshot: LastContainedLogTimestamp, {WITHIN}"),
    Column(
        "replay_version", "INT", "Version of the replay code; ranges of other versions are replayed again"
    ),
    recomputed=True,
)

REFUSED_RECORDS = of_clusters(
    "refused_records",
    "A record on the replay path, of the log or of a checkpoint, that Kafka refuses to replay: the first "
    "1,000 of a cluster (rule 49)",
    ("offset", "leader_epoch", "type", "reason"),
    required(
        "offset", "BIGINT", "Offset of the record; of one in a checkpoint, the last offset that it covers"
    ),
    required("leader_epoch", "INT", "Leader epoch of the record, or of the checkpoint"),
    required("type", "STRING", "Type of the record"),
    required("cause", "STRING", "Kind of the refusal: unknown_topic, other_broker_epoch, ..."),
    required("subject", "STRING", "What the record refers to: a topic, a broker, ..."),
    required("reason", "STRING", "Why Kafka refuses it, as text"),
    required("by_controllers_only", "BOOLEAN", "Whether brokers apply it, and only controllers refuse it"),
    required("commit_status", "STRING", "Commit status of the record"),
    required(
        "base_end_offset",
        "BIGINT",
        "End of the checkpoint that it was replayed onto, or that holds it; 0: none",
    ),
    required("base_content_digest", "STRING", "SHA-256 of that checkpoint; empty: none"),
    required("log_digest", "STRING", "Digest of the epochs and offsets of the log replayed up to it"),
    recomputed=True,
)
