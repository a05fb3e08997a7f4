"""Findings, checked checkpoints, and what the expectations came to."""

from __future__ import annotations

from transforms.lake.tables.columns import CLUSTER_ID
from transforms.lake.tables.declaration import Column, Table, required

FINDINGS = Table(
    "findings",
    "A broken rule of KRaft, or bytes that cannot be read",
    (
        CLUSTER_ID,
        required("finding_id", "STRING", "By cluster, rule and place: the same in every run"),
        required("rule", "INT", "Number of the rule; 0 for unreadable bytes"),
        required("name", "STRING", "What the rule demands, as a name"),
        required("severity", "STRING", "error, where KRaft forbids it, or warning"),
        required("state", "STRING", "open, acknowledged, or resolved: a newer capture shows it no more"),
        required("first_seen_at", "TIMESTAMP", "First capture that shows it"),
        required("last_seen_at", "TIMESTAMP", "Last capture that shows it"),
        Column("first_offset", "BIGINT", "First offset of the log concerned; null where none is"),
        Column("end_offset", "BIGINT", "End of the offsets concerned, exclusive"),
        Column("leader_epochs", "ARRAY<INT>", "Leader epochs concerned"),
        Column("replicas", "ARRAY<STRING>", "Replicas concerned, as node@directory"),
        Column("capture_ids", "ARRAY<STRING>", "Captures that show it"),
        required("sentence", "STRING", "What is wrong, in one sentence"),
        Column("evidence", "STRING", "What shows it"),
        Column("source", "STRING", "Where the rule is written: section of a KIP, or Kafka's class"),
        Column("reason", "STRING", "Why it was acknowledged; null if it was not"),
    ),
    key=("cluster_id", "finding_id"),
    recomputed=True,
)

SNAPSHOT_CHECKS = Table(
    "snapshot_checks",
    "What a checkpoint came to, held against the replay of the log below it (rule 22)",
    (
        CLUSTER_ID,
        required("end_offset", "BIGINT", "End offset of the checkpoint"),
        required("leader_epoch", "INT", "Epoch of the checkpoint"),
        required("content_digest", "STRING", "SHA-256 of the checkpoint"),
        required("base_end_offset", "BIGINT", "End of the checkpoint that the replay goes on from; 0: none"),
        required("base_content_digest", "STRING", "SHA-256 of that checkpoint; empty: none"),
        required("log_digest", "STRING", "Digest of the epochs and offsets of the log that was replayed"),
        required(
            "outcome",
            "STRING",
            "equal; lawful, where Kafka leaves things out by design; deviates; unread_log or "
            "unread_checkpoint, where a record below its end, or one of its own, cannot be read",
        ),
        Column(
            "deviations",
            "ARRAY<STRUCT<kind: STRING, thing: STRING, is_missing: BOOLEAN, is_extra: BOOLEAN, "
            "explanation: STRING>>",
            "What it has otherwise, the first of them; explanation: the known fault of Kafka, or empty",
        ),
    ),
    key=(
        "cluster_id",
        "end_offset",
        "leader_epoch",
        "content_digest",
        "base_end_offset",
        "base_content_digest",
    ),
    recomputed=True,
)

ACKNOWLEDGEMENTS = Table(
    "acknowledgements",
    "A finding that somebody has taken note of; kept when findings are derived again",
    (
        CLUSTER_ID,
        required("finding_id", "STRING", "The finding"),
        required("acknowledged_at", "TIMESTAMP", "When"),
        Column("acknowledged_by", "STRING", "Who: the name of the user who ran the command"),
        required("reason", "STRING", "Why"),
    ),
    key=("cluster_id", "finding_id", "acknowledged_at"),
)

EXPECTATION_RESULTS = Table(
    "expectation_results",
    "What an expectation of the data came to in a run, for one cluster",
    (
        required("cluster_id", "STRING", "Cluster; * for what belongs to none"),
        required("suite", "STRING", "Table that the expectation speaks of"),
        required("expectation", "STRING", "Name of the expectation"),
        required("sentence", "STRING", "What is expected, in words"),
        required("severity", "STRING", "error or warning, if it does not hold"),
        required("success", "BOOLEAN", "Whether it held"),
        Column(
            "observed",
            "DOUBLE",
            "Rows that fail, or the measured value; null if there was nothing to measure",
        ),
        required("allowed", "DOUBLE", "The largest value that is allowed"),
        Column("failing_rows", "ARRAY<STRING>", "Some of the rows that fail, as JSON"),
        required("run_id", "STRING", "Run that asked"),
        required("loaded_at", "TIMESTAMP", "When that run began"),
    ),
    key=("run_id", "cluster_id", "suite", "expectation"),
)
