"""Findings, compared checkpoints and brokers' directories, rehearsals, and results of expectations."""

from __future__ import annotations

from transforms.lake.tables.columns import CAPTURE_ID, of_clusters
from transforms.lake.tables.declaration import Column, Table, required

FINDINGS = of_clusters(
    "findings",
    "A violated rule of KRaft, or unreadable bytes",
    ("finding_id",),
    required("finding_id", "STRING", "Derived from cluster, rule and place: the same in every run"),
    required("rule", "INT", "Number of the rule; 0 for unreadable bytes"),
    required("name", "STRING", "Name of the rule"),
    required("severity", "STRING", "error if KRaft forbids it, else warning"),
    required("state", "STRING", "open, acknowledged, or resolved: newer captures no longer show it"),
    required("first_seen_at", "TIMESTAMP", "First capture that shows it"),
    required("last_seen_at", "TIMESTAMP", "Last capture that shows it"),
    Column("first_offset", "BIGINT", "First offset concerned; null if none is"),
    Column("end_offset", "BIGINT", "End of the offsets concerned, exclusive"),
    Column("leader_epochs", "ARRAY<INT>", "Leader epochs concerned"),
    Column("replicas", "ARRAY<STRING>", "Replicas concerned, as node@directory"),
    Column("capture_ids", "ARRAY<STRING>", "Captures that show it"),
    required("sentence", "STRING", "What is wrong, in one sentence"),
    Column("evidence", "STRING", "What shows it"),
    Column("source", "STRING", "Where the rule is specified: section of a KIP, or Kafka's class"),
    Column("reason", "STRING", "Why it is resolved, else why it was acknowledged; null while it is open"),
    recomputed=True,
)

SNAPSHOT_CHECKS = of_clusters(
    "snapshot_checks",
    "Comparison of a checkpoint with the replay of the log below it (rule 22)",
    ("end_offset", "leader_epoch", "content_digest", "base_end_offset", "base_content_digest"),
    required("end_offset", "BIGINT", "End offset of the checkpoint"),
    required("leader_epoch", "INT", "Epoch of the checkpoint"),
    required("content_digest", "STRING", "SHA-256 of the checkpoint"),
    required("base_end_offset", "BIGINT", "End of the checkpoint from which the replay starts; 0: none"),
    required("base_content_digest", "STRING", "SHA-256 of that checkpoint; empty: none"),
    required("log_digest", "STRING", "Digest of the epochs and offsets of the replayed log"),
    required(
        "outcome",
        "STRING",
        "equal; lawful: Kafka omits these things by design; deviates; unread_log, unread_checkpoint: a "
        "record below its end, or in it, is unreadable",
    ),
    Column(
        "deviations",
        "ARRAY<STRUCT<kind: STRING, subject: STRING, is_missing: BOOLEAN, is_extra: BOOLEAN, "
        "explanation: STRING>>",
        "The first differences; explanation: the known defect of Kafka, or empty",
    ),
    recomputed=True,
)

ACKNOWLEDGEMENTS = of_clusters(
    "acknowledgements",
    "A finding that a user has acknowledged; kept when findings are derived again",
    ("finding_id", "acknowledged_at"),
    required("finding_id", "STRING", "The finding"),
    required("acknowledged_at", "TIMESTAMP", "When"),
    Column("acknowledged_by", "STRING", "Name of the user who ran the command"),
    required("reason", "STRING", "Why"),
)

BROKER_PARTITIONS = of_clusters(
    "broker_partitions",
    "A partition in a copy of a broker's log directory, compared with the metadata (rule 52): of each "
    "directory, the newest copy whose time the captured metadata covers, else the newest",
    ("capture_id", "topic_name", "topic_id", "partition_id", "kind"),
    CAPTURE_ID,
    required("broker_id", "INT", "Broker whose directory it is"),
    required("directory_id", "STRING", "Directory id; the zero uuid before Kafka 3.7"),
    required("captured_at", "TIMESTAMP", "When the copy was complete"),
    required("topic_name", "STRING", "Topic by the name of the partition's folder"),
    required("topic_id", "STRING", "Topic id in its partition.metadata"),
    required("partition_id", "INT", "Partition by the name of its folder"),
    required(
        "kind",
        "STRING",
        "current; future: to replace a copy in another directory; stray: renamed to -stray by Kafka",
    ),
    required("leader_epoch", "INT", "Last leader epoch in which messages were written; -1: none"),
    required(
        "state",
        "STRING",
        "By the metadata of that time. assigned: the replica is here; other_directory: in another "
        "directory of the broker; unregistered_directory, unregistered_broker: the broker is a replica, "
        "but had not registered the directory, or was not registered; stray_replica: the broker is not a "
        "replica; other_topic_id: the topic has another id; unknown_topic: there is no such topic; "
        "marked_stray: renamed to -stray by Kafka; undecided",
    ),
    Column("reason", "STRING", "Why it is undecided; else null"),
    Column("offset", "BIGINT", "Last offset of the metadata that it was compared with; null: none"),
    recomputed=True,
)

REHEARSALS = of_clusters(
    "rehearsals",
    "A rehearsal: whether a new quorum could be built from captures alone (restore rehearse)",
    ("run_id",),
    required("run_id", "STRING", "Run that rehearsed"),
    required("rehearsed_at", "TIMESTAMP", "When"),
    required(
        "is_restorable",
        "BOOLEAN",
        "Whether directories of a new quorum were written to scratch and read back as planned",
    ),
    Column("verdict", "STRING", "SAFE, LOSES or REFUSED, as printed by restore plan; null: no plan was made"),
    Column("refusals", "ARRAY<STRING>", "Why it is refused"),
    Column(
        "failure",
        "STRING",
        "Why the captures could not be read, or why the plan could not be written or read back; else null",
    ),
    Column("losses", "ARRAY<STRING>", "Names of the losses that would have to be accepted, ascending"),
    Column(
        "as_of", "TIMESTAMP", "The captures it is based on were taken at this time or later; null: not known"
    ),
    Column("source_node_id", "INT", "Node whose captured log would be restored; null if nothing is planned"),
    Column("end_offset", "BIGINT", "End of that log, exclusive; null if nothing is planned"),
    Column(
        "seen_end_offset",
        "BIGINT",
        "Highest log end that was seen, exclusive: offsets from end_offset on would be lost",
    ),
)

EXPECTATION_RESULTS = Table(
    "expectation_results",
    "Result of an expectation for one cluster in a run",
    (
        required("cluster_id", "STRING", "Cluster; * for rows that belong to no cluster"),
        required("suite", "STRING", "Table that the expectation is about"),
        required("expectation", "STRING", "Name of the expectation"),
        required("sentence", "STRING", "What is expected, as text"),
        required("severity", "STRING", "Severity of a failure: error or warning"),
        required("success", "BOOLEAN", "Whether the expectation is met"),
        Column(
            "observed",
            "DOUBLE",
            "Number of failing rows, or the measured value; null if there was nothing to measure",
        ),
        required("allowed", "DOUBLE", "Largest allowed value"),
        Column("failing_rows", "ARRAY<STRING>", "Some of the failing rows, as JSON"),
        required("is_own", "BOOLEAN", "Whether it is declared in kraftlake.toml"),
        required("run_id", "STRING", "Run that evaluated it"),
        required("loaded_at", "TIMESTAMP", "When that run began"),
    ),
    key=("run_id", "cluster_id", "suite", "expectation"),
)
