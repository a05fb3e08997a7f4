"""Every table of the lake, declared once: columns with types and comments, key.

Tables are the API: SQL, delta-rs and the pages read them, so names and types change only with the lake's
format version. Times are UTC. Offsets named first_ or *_offset are inclusive, end_ are exclusive.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructType, _parse_datatype_string

from kraft_core.columnar.schema import RECORDS as RECORDS_SCHEMA
from kraft_core.columnar.schema import message_columns

# What the reader understands; a higher one reads segments again.
PARSER_VERSION = 1
# Of times that a log's bytes tell (kraft_core.columnar.moments).
WITHIN = "held within the years 1 to 9999"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, Spark SQL type, comment, and whether null is allowed."""

    name: str
    type: str
    comment: str
    nullable: bool = True

    @property
    def ddl(self) -> str:
        comment = self.comment.replace("'", "\\'")
        return f"`{self.name}` {self.type}{'' if self.nullable else ' NOT NULL'} COMMENT '{comment}'"


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A table: `key` names the non-null columns that identify a row.

    `recomputed` tables hold what is derived: all rows of a touched cluster are replaced together.
    """

    name: str
    comment: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    recomputed: bool = False

    @property
    def schema(self) -> StructType:
        """The Spark schema, column order as declared. Needs a session: Spark parses the types."""
        return spark_schema(self.columns)

    @property
    def names(self) -> list[str]:
        return [c.name for c in self.columns]


@cache
def spark_schema(columns: tuple[Column, ...]) -> StructType:
    """The columns as Spark has them; it takes a tenth of a second to parse hundreds of types."""
    schema = _parse_datatype_string(", ".join(f"`{c.name}` {c.type}" for c in columns))
    assert isinstance(schema, StructType)
    for column, declared in zip(schema.fields, columns, strict=True):
        column.nullable = declared.nullable
    return schema


def required(name: str, type_: str, comment: str) -> Column:
    return Column(name, type_, comment, nullable=False)


CLUSTER_ID = required("cluster_id", "STRING", "Cluster id of meta.properties")
NODE_ID = required("node_id", "INT", "Controller's node id")
DIRECTORY_ID = required("directory_id", "STRING", "Directory id of the replica; the zero uuid when unknown")
CAPTURE_ID = required("capture_id", "STRING", "SHA-256 of what identifies the captured directory")
LOADED = (
    Column("run_id", "STRING", "Run that wrote the row"),
    Column("loaded_at", "TIMESTAMP", "When that run began"),
)
COMMIT_STATUS = (
    "commit_status",
    "STRING",
    "committed, truncated, uncommitted or undecided, as the captures prove it",
)
AS_OF = Column(
    "as_of",
    "TIMESTAMP",
    "Committed, truncated: proven from then on. Uncommitted: held then. Undecided: the newest capture",
)
EVIDENCE = Column("evidence", "STRING", "What proves the status, in words")
VOTERS_TYPE = (
    "ARRAY<STRUCT<voter_id: INT, directory_id: STRING, "
    "endpoints: ARRAY<STRUCT<name: STRING, host: STRING, port: INT>>, "
    "min_kraft_version: SMALLINT, max_kraft_version: SMALLINT>>"
)

REPLICA_STRUCT = "STRUCT<node_id: INT, directory_id: STRING>"


# --- decoded records as columns ------------------------------------------------------------------

READING_COMMENTS = {
    "leader_epoch": "Leader epoch of the batch",
    "batch_crc": "CRC-32C of the batch, unsigned",
    "position_in_batch": "Index of the record in its batch",
    "appended_at": f"Timestamp of the record: the leader's clock, {WITHIN}",
    "type": "Record type as kafka-dump-log names it; UNKNOWN for a type of a newer Kafka",
    "version": "Version of the record's schema",
    "is_control": "Whether it is a control record",
    "batch_base_offset": "First offset of its batch",
    "key_size_bytes": "Size of the key; -1 without one",
    "value_size_bytes": "Size of the value; -1 without one",
    "value_sha256": "Digest of bytes that could not be decoded",
    "unread_reason": "Why the value could not be decoded; null when it was",
    "unread_position": "Where the undecoded bytes begin, from the start of the batch",
    "unread_size_bytes": "How many bytes could not be decoded",
    "unknown_tagged_fields": "Tagged fields of a newer Kafka, left out",
    "redacted": "Whether secrets were taken out",
}


def record_columns(*without: str) -> tuple[Column, ...]:
    """The columns of decoded records (kraft_core.columnar.schema.RECORDS), the named ones left out.

    After the envelope comes one nullable struct a record type, its fields the union over versions.
    """
    comments = READING_COMMENTS | {
        m.column: f"Fields of {m.name}; null for others" for m in message_columns()
    }
    return tuple(
        Column(f.name, from_arrow_type(f.type).simpleString(), comments[f.name], f.nullable)
        for f in RECORDS_SCHEMA
        if f.name not in without
    )


# --- what was read -------------------------------------------------------------------------------

RUN_STRUCT = (
    "STRUCT<leader_epoch: INT, first_offset: BIGINT, end_offset: BIGINT, digest: STRING, "
    "first_appended_at: TIMESTAMP, last_appended_at: TIMESTAMP, first_batch_end_offset: BIGINT, "
    "first_data_end_offset: BIGINT, first_data_appended_at: TIMESTAMP>"
)
# As in captures.runs, but for the digest, which is a number that those of other stretches are XORed with.
PIECE_STRUCT = RUN_STRUCT.replace("digest: STRING", "digest: BIGINT").replace(
    ">", ", batches: BIGINT, size_bytes: BIGINT>"
)

RUNS = Table(
    "runs",
    "A run of a job: what it read, wrote and found",
    (
        required("run_id", "STRING", "Id of the run"),
        required("started_at", "TIMESTAMP", "When it began"),
        Column("finished_at", "TIMESTAMP", "When it ended"),
        Column("job", "STRING", "The verb that ran"),
        Column("exit_code", "INT", "Exit code it ended with"),
        Column("stage_seconds", "MAP<STRING, DOUBLE>", "Seconds a stage took"),
        Column("counts", "MAP<STRING, BIGINT>", "What it read, wrote and found, counted"),
        Column("failed_clusters", "MAP<STRING, STRING>", "Clusters that failed, and why"),
        Column(
            "reported_findings",
            "ARRAY<STRUCT<cluster_id: STRING, finding_id: STRING>>",
            "Errors that this run was the first to report",
        ),
        Column(
            "lease",
            "STRUCT<host: STRING, process: STRING, until: TIMESTAMP>",
            "While finished_at is null and until has not passed, no other run may write; null if it wrote "
            "nothing",
        ),
    ),
    key=("run_id",),
)

CAPTURES = Table(
    "captures",
    "A captured controller directory",
    (
        CLUSTER_ID,
        CAPTURE_ID,
        NODE_ID,
        DIRECTORY_ID,
        required("captured_at", "TIMESTAMP", "When the directory was copied"),
        required("captured_at_source", "STRING", "flag, capture.json or file_time"),
        required("consistent", "BOOLEAN", "quorum-state was copied after the log or from a stopped node"),
        Column("log_start_offset", "BIGINT", "First offset in the captured segments; null without batches"),
        Column("log_end_offset", "BIGINT", "End of the captured log, exclusive; null without batches"),
        Column("last_leader_epoch", "INT", "Epoch of the last batch"),
        Column("kraft_version", "SMALLINT", "kraft.version in force at the log end; null if not in sight"),
        Column(
            "quorum_state",
            "STRUCT<data_version: INT, leader_id: INT, leader_epoch: INT, voted_id: INT, "
            "voted_directory_id: STRING, applied_offset: BIGINT, current_voters: ARRAY<INT>>",
            "The file quorum-state; null if absent or unreadable",
        ),
        Column(
            "leader_epoch_checkpoint",
            "ARRAY<STRUCT<leader_epoch: INT, start_offset: BIGINT>>",
            "The file leader-epoch-checkpoint; null if absent or unreadable",
        ),
        Column("runs", f"ARRAY<{RUN_STRUCT}>", "Maximal stretches of one epoch in the captured log"),
        Column(
            "snapshots",
            "ARRAY<STRUCT<end_offset: BIGINT, leader_epoch: INT, content_digest: STRING>>",
            "Checkpoints in the directory: keys of table snapshots",
        ),
        Column(
            "damage",
            "ARRAY<STRUCT<file: STRING, position: BIGINT, size_bytes: BIGINT, sha256: STRING, "
            "reason: STRING, lost_from_offset: BIGINT, lost_to_offset: BIGINT>>",
            "Bytes that could not be read, with the offsets lost: from inclusive, to exclusive or null",
        ),
        Column(
            "order_faults",
            "ARRAY<STRUCT<offset: BIGINT, leader_epoch: INT, kind: STRING, expected: BIGINT>>",
            "Batches that do not follow the one before: gap, overlap, duplicate or epoch_regression, and the "
            "offset or epoch that they should at least have; the first of them",
        ),
        Column(
            "file_faults", "ARRAY<STRUCT<file: STRING, reason: STRING>>", "Other files that could not be read"
        ),
        Column("batches", "BIGINT", "Batches read from the segments"),
        Column("size_bytes", "BIGINT", "Bytes of segments and checkpoints"),
        *LOADED,
    ),
    key=("cluster_id", "capture_id"),
)

EXPIRED_CAPTURES = Table(
    "expired_captures",
    "A capture that kraftlake maintain --keep-days removed; it is not loaded again",
    (
        CLUSTER_ID,
        CAPTURE_ID,
        NODE_ID,
        DIRECTORY_ID,
        required("captured_at", "TIMESTAMP", "When the directory was copied"),
        *LOADED,
    ),
    key=("cluster_id", "capture_id"),
)

SEGMENTS = Table(
    "segments",
    "What was read of a capture's segment",
    (
        CLUSTER_ID,
        CAPTURE_ID,
        NODE_ID,
        DIRECTORY_ID,
        required("base_offset", "BIGINT", "Offset in the segment's name"),
        required("size_bytes", "BIGINT", "Size of the file"),
        required("bytes_read", "BIGINT", "Bytes that were good batches"),
        required("head_digest", "STRING", "SHA-256 of the first 64 KiB"),
        required("tail_digest", "STRING", "SHA-256 of the last 64 KiB"),
        Column(
            "runs",
            f"ARRAY<{PIECE_STRUCT}>",
            "Stretches of one epoch in it; null where anything of it was lost: then it is read again",
        ),
        required("parser_version", "INT", "Version of the reader"),
        *LOADED,
    ),
    key=("capture_id", "base_offset"),
)

BATCHES = Table(
    "batches",
    "A distinct batch of a replica's log",
    (
        CLUSTER_ID,
        NODE_ID,
        DIRECTORY_ID,
        required("base_offset", "BIGINT", "First offset"),
        required("leader_epoch", "INT", "Partition leader epoch"),
        required("crc", "BIGINT", "CRC-32C, unsigned"),
        required("size_bytes", "BIGINT", "Size of the whole batch"),
        required("last_offset", "BIGINT", "Last offset, inclusive"),
        required(
            "appended_at", "TIMESTAMP", f"Largest timestamp of its records: the leader's clock, {WITHIN}"
        ),
        required("is_control", "BOOLEAN", "Whether it holds control records"),
        required("record_count", "INT", "Records, by the header"),
        required("attributes", "SMALLINT", "Attributes as they stand in the header"),
        *LOADED,
    ),
    key=("cluster_id", "node_id", "directory_id", "base_offset", "leader_epoch", "crc", "size_bytes"),
)

RECORDS = Table(
    "records",
    "A decoded record of the metadata log",
    (
        CLUSTER_ID,
        required("offset", "BIGINT", "Offset in the log"),
        *record_columns("offset"),
        *LOADED,
    ),
    key=("cluster_id", "offset", "leader_epoch", "batch_crc"),
)

SNAPSHOTS = Table(
    "snapshots",
    "A checkpoint: what a replica kept of the log below an offset",
    (
        CLUSTER_ID,
        required("end_offset", "BIGINT", "End of the log it stands for, exclusive"),
        required("leader_epoch", "INT", "Epoch of the record at end_offset - 1"),
        required("content_digest", "STRING", "SHA-256 of the file"),
        required("kind", "STRING", "snapshot; bootstrap for bootstrap.checkpoint and 0-0"),
        required("complete", "BOOLEAN", "Header first, footer last, every byte read"),
        Column("header_at", "TIMESTAMP", f"Timestamp of the SNAPSHOT_HEADER: the writer's clock, {WITHIN}"),
        Column("last_contained_log_at", "TIMESTAMP", f"LastContainedLogTimestamp of the header, {WITHIN}"),
        Column("kraft_version", "SMALLINT", "kraft.version it records; null if none"),
        Column("voters", VOTERS_TYPE, "Voter set it records; null if none"),
        Column("size_bytes", "BIGINT", "Size of the file"),
        Column("head_digest", "STRING", "SHA-256 of the first 64 KiB"),
        Column("tail_digest", "STRING", "SHA-256 of the last 64 KiB"),
        *LOADED,
    ),
    key=("cluster_id", "end_offset", "leader_epoch", "content_digest"),
)

SNAPSHOT_RECORDS = Table(
    "snapshot_records",
    "A record of a checkpoint",
    (
        CLUSTER_ID,
        required("end_offset", "BIGINT", "End offset of the checkpoint"),
        required("leader_epoch", "INT", "Epoch of the checkpoint"),
        required("content_digest", "STRING", "SHA-256 of the checkpoint"),
        required("position", "BIGINT", "Offset of the record in the checkpoint's own count"),
        *record_columns("offset", "leader_epoch"),
        *LOADED,
    ),
    key=("cluster_id", "end_offset", "leader_epoch", "content_digest", "position"),
)

QUARANTINE = Table(
    "quarantine",
    "Bytes that no captured copy supplied",
    (
        CLUSTER_ID,
        CAPTURE_ID,
        required("file", "STRING", "File, relative to the captured directory"),
        required("position", "BIGINT", "Byte position in the file"),
        required("size_bytes", "BIGINT", "Bytes that could not be read"),
        Column("sha256", "STRING", "Digest of those bytes"),
        required("reason", "STRING", "Why they could not be read"),
        Column("lost_from_offset", "BIGINT", "First offset that may have been there"),
        Column("lost_to_offset", "BIGINT", "Offset of the next batch read; null at the end of the file"),
    ),
    key=("cluster_id", "capture_id", "file", "position"),
    recomputed=True,
)

OBSERVATIONS = Table(
    "observations",
    "A row of what kafka-metadata-quorum describe printed: a status, or a line of --replication",
    (
        CLUSTER_ID,
        required("observation_id", "STRING", "SHA-256 of the output, its name and its moment"),
        required("node_id", "INT", "The replica; of a status the leader, -1 without one"),
        required("directory_id", "STRING", "Directory id of the replica; the zero uuid when not told"),
        required("kind", "STRING", "status or replication"),
        required("source", "STRING", "Name of the output's file"),
        required("observed_from", "TIMESTAMP", "When the command was started"),
        required("observed_to", "TIMESTAMP", "When it had ended: it was true at one moment between"),
        Column("status", "STRING", "Leader, Follower or Observer"),
        Column("leader_epoch", "INT", "Epoch of the leader; only a status tells it"),
        Column("high_watermark", "BIGINT", "The leader's high watermark; null when it knew none"),
        Column("log_end_offset", "BIGINT", "Log end; of others than the leader their last fetch offset"),
        Column("lag_records", "BIGINT", "Records behind the leader, as the leader knew it"),
        Column("last_fetch_at", "TIMESTAMP", "Last fetch; null where not told to the ms"),
        Column("last_caught_up_at", "TIMESTAMP", "Last time it had the whole log; null where not told"),
        Column("voters", f"ARRAY<{REPLICA_STRUCT}>", "Voters of a status, as the leader had them"),
        Column("observers", f"ARRAY<{REPLICA_STRUCT}>", "Observers of a status"),
        *LOADED,
    ),
    key=("cluster_id", "observation_id", "node_id", "directory_id"),
)


# --- what the captures prove ---------------------------------------------------------------------

LOG_RANGES = Table(
    "log_ranges",
    "A maximal run of offsets of one epoch with one commit status",
    (
        CLUSTER_ID,
        required("leader_epoch", "INT", "Leader epoch"),
        required("first_offset", "BIGINT", "First offset, inclusive"),
        required("end_offset", "BIGINT", "End offset, exclusive"),
        required(*COMMIT_STATUS),
        EVIDENCE,
        AS_OF,
        Column("truncated_by_epoch", "INT", "Epoch that took the place of truncated offsets"),
    ),
    key=("cluster_id", "leader_epoch", "first_offset"),
    recomputed=True,
)

REPLICA_RANGES = Table(
    "replica_ranges",
    "A run of offsets of one epoch that a replica held in any of its captures",
    (
        CLUSTER_ID,
        NODE_ID,
        DIRECTORY_ID,
        required("leader_epoch", "INT", "Leader epoch"),
        required("first_offset", "BIGINT", "First offset, inclusive"),
        required("end_offset", "BIGINT", "End offset, exclusive"),
        Column("first_captured_at", "TIMESTAMP", "First capture that holds part of it"),
        Column("last_captured_at", "TIMESTAMP", "Last capture that holds part of it"),
    ),
    key=("cluster_id", "node_id", "directory_id", "leader_epoch", "first_offset"),
    recomputed=True,
)

EPOCHS = Table(
    "epochs",
    "A leader epoch",
    (
        CLUSTER_ID,
        required("leader_epoch", "INT", "Leader epoch"),
        Column("leader_id", "INT", "Leader by its LEADER_CHANGE; null if that is not in sight"),
        Column("start_offset", "BIGINT", "First offset of the epoch"),
        Column("start_offset_exact", "BOOLEAN", "Whether the LEADER_CHANGE itself is in sight"),
        Column("elected_at", "TIMESTAMP", "Timestamp of the LEADER_CHANGE: the leader's clock"),
        Column("voters", "ARRAY<INT>", "Voter ids the LEADER_CHANGE names"),
        Column("granting_voters", "ARRAY<INT>", "Voters whose grants were counted, the leader included"),
        Column("leaderless_ms", "BIGINT", "Upper estimate of the time without a leader before it, in ms"),
    ),
    key=("cluster_id", "leader_epoch"),
    recomputed=True,
)

VOTER_SETS = Table(
    "voter_sets",
    "A set of voters and what the captures prove about it",
    (
        CLUSTER_ID,
        required("offset", "BIGINT", "Offset of the VotersRecord; -1 for bootstrap"),
        required("leader_epoch", "INT", "Epoch of the record"),
        required("source", "STRING", "record, snapshot, static or bootstrap"),
        Column("voters", VOTERS_TYPE, "The voters, by id"),
        Column("voter_ids", "ARRAY<INT>", "Their ids, ascending"),
        Column("majority", "INT", "Votes that make a majority"),
        Column("commit_status", "STRING", COMMIT_STATUS[2] + "; null for static and bootstrap"),
        EVIDENCE,
        AS_OF,
        Column("appended_at", "TIMESTAMP", f"Timestamp of the record: the leader's clock, {WITHIN}"),
        Column("in_force_from_offset", "BIGINT", "Offset from which the set counts in the log, inclusive"),
        Column(
            "in_force_to_offset", "BIGINT", "Offset at which the next set took its place; null for the last"
        ),
        Column("in_force_from", "TIMESTAMP", "Since when"),
        Column("in_force_to", "TIMESTAMP", "Until when; null for the last"),
        Column("truncated_by_epoch", "INT", "Epoch that took the place of a truncated record"),
    ),
    key=("cluster_id", "offset", "leader_epoch", "source"),
    recomputed=True,
)

VOTER_CHANGES = Table(
    "voter_changes",
    "A difference between two successive voter sets",
    (
        CLUSTER_ID,
        required("offset", "BIGINT", "Offset of the set that made the change"),
        required("leader_epoch", "INT", "Epoch of that set"),
        required("kind", "STRING", "bootstrapped, added, removed or updated"),
        required("voter_id", "INT", "The voter"),
        required("directory_id", "STRING", "Its directory id; the zero uuid when unknown"),
        Column("detail", "STRING", "What was updated, in words"),
        Column("changed_at", "TIMESTAMP", "Timestamp of the record"),
        Column("commit_status", "STRING", "Status of the set that made the change"),
    ),
    key=("cluster_id", "offset", "leader_epoch", "kind", "voter_id", "directory_id"),
    recomputed=True,
)

HIGH_WATERMARKS = Table(
    "high_watermarks",
    "A proof about the high watermark: a lower bound holds from as_of on, an upper bound up to as_of",
    (
        CLUSTER_ID,
        required("evidence", "STRING", "Kind of proof: snapshot, first_data_batch, log_ends, ..."),
        required("source", "STRING", "What it was read from, in words"),
        required("as_of", "TIMESTAMP", "Moment of the bound"),
        Column("leader_epoch", "INT", "Epoch that the proof speaks of"),
        Column("lower_bound", "BIGINT", "The high watermark was at least this; null for an upper bound"),
        Column("upper_bound", "BIGINT", "The high watermark was at most this; null for a lower bound"),
        Column("believed_bound", "BIGINT", "What only the leader of an unlawful election took for committed"),
    ),
    key=("cluster_id", "evidence", "source", "as_of"),
    recomputed=True,
)

TRUNCATIONS = Table(
    "truncations",
    "A truncation that two captures of a replica show: what it held and then held no more",
    (
        CLUSTER_ID,
        NODE_ID,
        DIRECTORY_ID,
        required("truncated_to", "BIGINT", "First offset that was lost"),
        required("end_offset", "BIGINT", "End of what was lost, exclusive"),
        required("by_epoch", "INT", "Epoch whose batches took the place"),
        Column("leader_epochs", "ARRAY<INT>", "Epochs of what was lost"),
        Column("voter_set_offsets", "ARRAY<BIGINT>", "Offsets of the VotersRecords that were lost"),
        Column("lost_voter_changes", "STRING", "The changes of voters that were lost, in words"),
        Column("held_at", "TIMESTAMP", "Last capture before it"),
        Column("lost_at", "TIMESTAMP", "First capture after it"),
        Column("held_capture_id", "STRING", "Capture that holds what was lost"),
        Column("lost_capture_id", "STRING", "Capture that holds what took its place"),
    ),
    key=("cluster_id", "node_id", "directory_id", "truncated_to", "end_offset", "by_epoch"),
    recomputed=True,
)

# --- what a person has to look at ----------------------------------------------------------------

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

DERIVATIONS = Table(
    "derivations",
    "Whether what the captures of a cluster prove could be derived, when a run tried last",
    (
        CLUSTER_ID,
        Column("failure", "STRING", "Why not: what is told of the cluster is older then; null if it could"),
        *(replace(column, nullable=False) for column in LOADED),
    ),
    key=("cluster_id",),
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

CANDIDATE_STRUCT = (
    "STRUCT<node_id: INT, directory_id: STRING, capture_id: STRING, captured_at: TIMESTAMP, "
    "last_leader_epoch: INT, log_end_offset: BIGINT, is_observer: BOOLEAN, led_last_epoch: BOOLEAN, "
    "voters_in_force: STRING, voters_offset: BIGINT, voters_status: STRING, loses: STRING, keeps: STRING>"
)

RECOVERIES = Table(
    "recoveries",
    "From which replica to recover the cluster, as far as its captures tell",
    (
        CLUSTER_ID,
        Column("as_of", "TIMESTAMP", "The advice holds for what was captured until then"),
        required("is_safe", "BOOLEAN", "Whether the best candidates hold every committed record"),
        required("why", "STRING", "Why it is safe, or what may be missing"),
        Column("best", f"ARRAY<{CANDIDATE_STRUCT}>", "Replicas with the best claim; all are equal"),
        Column("others", f"ARRAY<{CANDIDATE_STRUCT}>", "The other replicas, and what each would lose"),
        Column("highest_epoch", "INT", "Highest epoch that any captured replica has seen"),
    ),
    key=("cluster_id",),
    recomputed=True,
)

CLUSTER_NAMES = Table(
    "cluster_names",
    "What people call a cluster: the clusters of kraftlake.toml",
    (
        CLUSTER_ID,
        required("name", "STRING", "Its name; it can be given wherever a cluster id can"),
        Column("environment", "STRING", "Such as production or test"),
        Column("owner", "STRING", "Whom to call"),
    ),
    key=("cluster_id",),
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

# --- histories of the metadata -------------------------------------------------------------------

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

TABLES: tuple[Table, ...] = (
    RUNS,
    CAPTURES,
    EXPIRED_CAPTURES,
    SEGMENTS,
    BATCHES,
    RECORDS,
    SNAPSHOTS,
    SNAPSHOT_RECORDS,
    OBSERVATIONS,
    QUARANTINE,
    LOG_RANGES,
    REPLICA_RANGES,
    EPOCHS,
    VOTER_SETS,
    VOTER_CHANGES,
    HIGH_WATERMARKS,
    TRUNCATIONS,
    SNAPSHOT_CHECKS,
    DERIVATIONS,
    FINDINGS,
    ACKNOWLEDGEMENTS,
    RECOVERIES,
    EXPECTATION_RESULTS,
    CLUSTER_NAMES,
    *HISTORIES,
    METADATA_TRANSACTIONS,
    REPLAYS,
)
