"""Every table of the lake, declared once: columns with types and comments, key, clustering, checks.

Tables are the API: SQL, delta-rs and the pages read them, so names and types change only with the lake's
format version. Times are UTC. Offsets named first_ or *_offset are inclusive, end_ are exclusive.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructType, _parse_datatype_string

from kraft_core.columnar.schema import RECORDS as RECORDS_SCHEMA
from kraft_core.columnar.schema import message_columns

# What the reader understands; a higher one reads segments again.
PARSER_VERSION = 1


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
    """A table: `key` names the non-null columns that identify a row, `clustering` those it is laid out by.

    `recomputed` tables hold what is derived: all rows of a touched cluster are replaced together.
    """

    name: str
    comment: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    clustering: tuple[str, ...] = ("cluster_id",)
    checks: dict[str, str] = field(default_factory=dict)
    recomputed: bool = False

    @property
    def schema(self) -> StructType:
        """The Spark schema, column order as declared. Needs a session: Spark parses the types."""
        schema = _parse_datatype_string(", ".join(f"`{c.name}` {c.type}" for c in self.columns))
        assert isinstance(schema, StructType)
        for column, declared in zip(schema.fields, self.columns, strict=True):
            column.nullable = declared.nullable
        return schema

    @property
    def names(self) -> list[str]:
        return [c.name for c in self.columns]


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


# --- decoded records as columns ------------------------------------------------------------------

READING_COMMENTS = {
    "leader_epoch": "Leader epoch of the batch",
    "batch_crc": "CRC-32C of the batch, unsigned",
    "position_in_batch": "Index of the record in its batch",
    "appended_at": "Timestamp of the record: the leader's clock",
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
    ),
    key=("run_id",),
    clustering=(),  # delta-rs appends to it, which writes no clustered tables
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
            "file_faults", "ARRAY<STRUCT<file: STRING, reason: STRING>>", "Other files that could not be read"
        ),
        Column("batches", "BIGINT", "Batches read from the segments"),
        Column("size_bytes", "BIGINT", "Bytes of segments and checkpoints"),
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
        required("base_offset", "BIGINT", "Offset in the segment's name"),
        required("size_bytes", "BIGINT", "Size of the file"),
        required("bytes_read", "BIGINT", "Bytes that were good batches"),
        required("head_digest", "STRING", "SHA-256 of the first 64 KiB"),
        required("tail_digest", "STRING", "SHA-256 of the last 64 KiB"),
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
        required("appended_at", "TIMESTAMP", "Largest timestamp of its records: the leader's clock"),
        required("is_control", "BOOLEAN", "Whether it holds control records"),
        required("record_count", "INT", "Records, by the header"),
        required("attributes", "SMALLINT", "Attributes as they stand in the header"),
        *LOADED,
    ),
    key=("cluster_id", "node_id", "directory_id", "base_offset", "leader_epoch", "crc", "size_bytes"),
    clustering=("cluster_id", "base_offset"),
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
    clustering=("cluster_id", "offset"),
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
        Column("header_at", "TIMESTAMP", "Timestamp of the SNAPSHOT_HEADER: the writer's clock"),
        Column("last_contained_log_at", "TIMESTAMP", "LastContainedLogTimestamp of the header"),
        Column("kraft_version", "SMALLINT", "kraft.version it records; null if none"),
        Column("voters", VOTERS_TYPE, "Voter set it records; null if none"),
        Column("size_bytes", "BIGINT", "Size of the file"),
        *LOADED,
    ),
    key=("cluster_id", "end_offset", "leader_epoch", "content_digest"),
    clustering=("cluster_id", "end_offset"),
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
    clustering=("cluster_id", "end_offset"),
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
        Column("appended_at", "TIMESTAMP", "Timestamp of the record: the leader's clock"),
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

TABLES: tuple[Table, ...] = (
    RUNS,
    CAPTURES,
    SEGMENTS,
    BATCHES,
    RECORDS,
    SNAPSHOTS,
    SNAPSHOT_RECORDS,
    QUARANTINE,
    LOG_RANGES,
    REPLICA_RANGES,
    EPOCHS,
    VOTER_SETS,
    VOTER_CHANGES,
    HIGH_WATERMARKS,
)
