"""What was read: captures, segments, batches, records, checkpoints, observations, and what was lost."""

from __future__ import annotations

from kraft_core.columnar.schema import RECORDS as RECORDS_SCHEMA
from kraft_core.columnar.schema import message_columns
from transforms.lake.tables.columns import (
    CAPTURE_ID,
    CLUSTER_ID,
    DIRECTORY_ID,
    LOADED,
    NODE_ID,
    REPLICA_STRUCT,
    VOTERS_TYPE,
    WITHIN,
    of_clusters,
)
from transforms.lake.tables.declaration import Column, Table, required, type_name

# Version of the reader; a higher one reads all segments again.
PARSER_VERSION = 1

READING_COMMENTS = {
    "leader_epoch": "Leader epoch of the batch",
    "batch_crc": "CRC-32C of the batch, unsigned",
    "position_in_batch": "Index of the record in its batch",
    "appended_at": f"Timestamp of the record: the leader's clock, {WITHIN}",
    "type": "Record type, named as by kafka-dump-log; UNKNOWN for a type of a newer Kafka",
    "version": "Version of the record's schema",
    "is_control": "Whether it is a control record",
    "batch_base_offset": "First offset of its batch",
    "key_size_bytes": "Size of the key; -1 if there is none",
    "value_size_bytes": "Size of the value; -1 if there is none",
    "value_sha256": "Digest of bytes that could not be decoded",
    "unread_reason": "Why the value could not be decoded; null if it was",
    "unread_position": "Where the undecoded bytes begin: in the batch; in a checkpoint, in the file",
    "unread_size_bytes": "How many bytes could not be decoded",
    "unknown_tagged_fields": "Tagged fields of a newer Kafka, which were skipped",
    "redacted": "Whether secrets were removed",
}


def record_columns(*without: str) -> tuple[Column, ...]:
    """The columns of decoded records (kraft_core.columnar.schema.RECORDS), without the named ones.

    After the envelope comes one nullable struct a record type, its fields the union over versions.
    """
    comments = READING_COMMENTS | {
        m.column: f"Fields of {m.name}; null for other types" for m in message_columns()
    }
    return tuple(
        Column(f.name, type_name(f.type), comments[f.name], f.nullable)
        for f in RECORDS_SCHEMA
        if f.name not in without
    )


RANGE_STRUCT = (
    "STRUCT<leader_epoch: INT, first_offset: BIGINT, end_offset: BIGINT, digest: STRING, "
    "first_appended_at: TIMESTAMP, last_appended_at: TIMESTAMP, first_batch_end_offset: BIGINT, "
    "first_data_end_offset: BIGINT, first_data_appended_at: TIMESTAMP, first_batch_crc: BIGINT>"
)

# As in captures.epoch_ranges, except the digest: a number, so that digests of adjacent ranges can be XORed.
PIECE_STRUCT = RANGE_STRUCT.replace("digest: STRING", "digest: BIGINT").replace(
    ">", ", batches: BIGINT, size_bytes: BIGINT>"
)

CAPTURES = of_clusters(
    "captures",
    "A captured controller directory",
    ("capture_id",),
    CAPTURE_ID,
    NODE_ID,
    DIRECTORY_ID,
    required("captured_at", "TIMESTAMP", "When the directory was copied"),
    required("captured_at_source", "STRING", "flag, capture.json or file_time"),
    required(
        "last_captured_at",
        "TIMESTAMP",
        "When the last copy with the same bytes was made, by a flag or capture.json if any copy has one",
    ),
    Column(
        "log_readable",
        "BOOLEAN",
        "false: a file or folder of the log could not be listed, opened or read to its end, or it "
        "changed meanwhile; absence then proves nothing",
    ),
    required(
        "consistent", "BOOLEAN", "false: quorum-state was copied before the log, which has a higher epoch"
    ),
    Column(
        "log_start_offset",
        "BIGINT",
        "First offset of the captured segments, by their names; null without any",
    ),
    Column(
        "log_end_offset",
        "BIGINT",
        "End of the captured log, exclusive; null without segments, or if log_readable is false",
    ),
    Column("last_leader_epoch", "INT", "Epoch of the last batch; null like log_end_offset"),
    Column("kraft_version", "SMALLINT", "kraft.version in force at the log end; null if not captured"),
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
    required(
        "epoch_ranges", f"ARRAY<{RANGE_STRUCT}>", "Epoch ranges of the captured log: maximal, without gaps"
    ),
    Column(
        "snapshots",
        "ARRAY<STRUCT<end_offset: BIGINT, leader_epoch: INT, content_digest: STRING>>",
        "Checkpoints in the directory: keys of table snapshots",
    ),
    Column(
        "damage",
        "ARRAY<STRUCT<file: STRING, position: BIGINT, size_bytes: BIGINT, sha256: STRING, "
        "reason: STRING, lost_from_offset: BIGINT, lost_to_offset: BIGINT>>",
        "Unreadable bytes and the lost offsets: from inclusive, to exclusive or null",
    ),
    Column(
        "order_faults",
        "ARRAY<STRUCT<offset: BIGINT, leader_epoch: INT, kind: STRING, expected: BIGINT>>",
        "The first batches that do not follow the previous one (gap, overlap, duplicate or "
        "epoch_regression), with the lowest offset or epoch expected",
    ),
    Column(
        "file_faults",
        "ARRAY<STRUCT<file: STRING, reason: STRING>>",
        "Files and folders that could not be read (unreadable: ...), and invalid ones (invalid: ...)",
    ),
    Column(
        "superseded_faults",
        "ARRAY<STRUCT<file: STRING, reason: STRING>>",
        "File faults of other copies of the same bytes that this copy does not have; null without any",
    ),
    Column("batches", "BIGINT", "Batches read from the segments"),
    Column("size_bytes", "BIGINT", "Bytes of segments and checkpoints"),
    Column("life", "STRING", "Name of the life in table lives; null if the cluster id has only one"),
    *LOADED,
)

LIVES = Table(
    "lives",
    "A life of a cluster id that has several histories; no row for an id with only one",
    (
        required(
            "cluster_id", "STRING", "Id of the life in all tables: cluster id in meta.properties, / and life"
        ),
        required("kafka_cluster_id", "STRING", "Cluster id in meta.properties"),
        required("life", "STRING", "Name of the life: 8 hex digits, by its lowest captured batch"),
        required("is_newest", "BOOLEAN", "Whether no life of the cluster id has a newer record"),
        Column("first_offset", "BIGINT", "First captured offset; null if its captures contain no batch"),
        Column("first_appended_at", "TIMESTAMP", f"Time of its first captured batch, {WITHIN}"),
        Column("last_appended_at", "TIMESTAMP", f"Time of its newest captured batch, {WITHIN}"),
        required("nodes", "ARRAY<INT>", "Node ids of its captures"),
        required("capture_ids", "ARRAY<STRING>", "Its captures"),
    ),
    key=("cluster_id",),
)

EXPIRED_CAPTURES = of_clusters(
    "expired_captures",
    "A capture that kraftlake maintain --keep-days removed; it is not loaded again",
    ("capture_id",),
    CAPTURE_ID,
    NODE_ID,
    DIRECTORY_ID,
    required("captured_at", "TIMESTAMP", "When the directory was copied"),
    *LOADED,
)

SEGMENTS = Table(
    "segments",
    "A segment of a capture, as far as it was read",
    (
        CLUSTER_ID,
        CAPTURE_ID,
        NODE_ID,
        DIRECTORY_ID,
        required("base_offset", "BIGINT", "Offset in the segment's name"),
        required("size_bytes", "BIGINT", "Size of the file"),
        required("bytes_read", "BIGINT", "Bytes of valid batches"),
        required("head_digest", "STRING", "SHA-256 of the first 64 KiB"),
        required("tail_digest", "STRING", "SHA-256 of the last 64 KiB"),
        Column(
            "epoch_ranges",
            f"ARRAY<{PIECE_STRUCT}>",
            "Its epoch ranges; null if it was damaged or out of order: it is then read again as a whole "
            "when it grows",
        ),
        required("parser_version", "INT", "Version of the reader"),
        *LOADED,
    ),
    key=("capture_id", "base_offset"),
)

BATCHES = of_clusters(
    "batches",
    "A distinct batch of a replica's log",
    ("node_id", "directory_id", "base_offset", "leader_epoch", "crc", "size_bytes"),
    NODE_ID,
    DIRECTORY_ID,
    required("base_offset", "BIGINT", "First offset"),
    required("leader_epoch", "INT", "Partition leader epoch"),
    required("crc", "BIGINT", "CRC-32C, unsigned"),
    required("size_bytes", "BIGINT", "Size of the whole batch"),
    required("last_offset", "BIGINT", "Last offset, inclusive"),
    required("appended_at", "TIMESTAMP", f"Largest timestamp of its records: the leader's clock, {WITHIN}"),
    required("is_control", "BOOLEAN", "Whether its records are control records"),
    required("record_count", "INT", "Number of records, as the header states it"),
    required("attributes", "SMALLINT", "Attributes of the header"),
    *LOADED,
)

RECORDS = of_clusters(
    "records",
    "A decoded record of the metadata log",
    ("offset", "leader_epoch", "batch_crc"),
    required("offset", "BIGINT", "Offset in the log"),
    *record_columns("offset"),
    *LOADED,
)

SNAPSHOTS = of_clusters(
    "snapshots",
    "A checkpoint: a snapshot that replaces the log below an offset",
    ("end_offset", "leader_epoch", "content_digest"),
    required("end_offset", "BIGINT", "End of the log that it replaces, exclusive"),
    required("leader_epoch", "INT", "Epoch of the record at end_offset - 1"),
    required("content_digest", "STRING", "SHA-256 of the file"),
    required("kind", "STRING", "snapshot; bootstrap for bootstrap.checkpoint and 0-0"),
    required(
        "complete",
        "BOOLEAN",
        "Whether it starts with a header, ends with a footer, and has no unreadable byte",
    ),
    Column("header_at", "TIMESTAMP", f"Timestamp of the SNAPSHOT_HEADER: the writer's clock, {WITHIN}"),
    Column("last_contained_log_at", "TIMESTAMP", f"LastContainedLogTimestamp of the header, {WITHIN}"),
    Column("kraft_version", "SMALLINT", "kraft.version recorded in it; null if none"),
    Column("voters", VOTERS_TYPE, "Voter set recorded in it; null if none"),
    Column("size_bytes", "BIGINT", "Size of the file"),
    Column("head_digest", "STRING", "SHA-256 of the first 64 KiB"),
    Column("tail_digest", "STRING", "SHA-256 of the last 64 KiB"),
    *LOADED,
)

SNAPSHOT_RECORDS = of_clusters(
    "snapshot_records",
    "A record of a checkpoint",
    ("end_offset", "leader_epoch", "content_digest", "position"),
    required("end_offset", "BIGINT", "End offset of the checkpoint"),
    required("leader_epoch", "INT", "Epoch of the checkpoint"),
    required("content_digest", "STRING", "SHA-256 of the checkpoint"),
    required("position", "BIGINT", "Offset of the record in the checkpoint file"),
    *record_columns("offset", "leader_epoch"),
    *LOADED,
)

QUARANTINE = of_clusters(
    "quarantine",
    "Bytes that no captured copy supplied",
    ("capture_id", "file", "position"),
    CAPTURE_ID,
    required("file", "STRING", "File, relative to the captured directory"),
    required("position", "BIGINT", "Byte position in the file"),
    required("size_bytes", "BIGINT", "Number of unreadable bytes"),
    Column("sha256", "STRING", "Digest of those bytes"),
    required("reason", "STRING", "Why they are unreadable"),
    Column(
        "lost_from_offset", "BIGINT", "First offset that may be lost; null if none is, or if it is not known"
    ),
    Column(
        "lost_to_offset",
        "BIGINT",
        "End of the lost offsets, exclusive: the next offset that was read; null at the end of the file",
    ),
    recomputed=True,
)

OBSERVATIONS = of_clusters(
    "observations",
    "A row of kafka-metadata-quorum describe output: a status, or a line of --replication",
    ("observation_id", "node_id", "directory_id"),
    required("observation_id", "STRING", "SHA-256 of the output, its file name and its time"),
    required("node_id", "INT", "Node id of the replica; for a status, of the leader, -1 without one"),
    required("directory_id", "STRING", "Directory id of the replica; the zero uuid when unknown"),
    required("kind", "STRING", "status or replication"),
    required("source", "STRING", "Name of the output's file"),
    required("observed_from", "TIMESTAMP", "Start time of the command"),
    required(
        "observed_to",
        "TIMESTAMP",
        "End time of the command; the row was true at some time between start and end",
    ),
    Column("status", "STRING", "Leader, Follower or Observer"),
    Column("leader_epoch", "INT", "Epoch of the leader; null in lines of --replication"),
    Column("high_watermark", "BIGINT", "The leader's high watermark; null if it had none"),
    Column(
        "log_end_offset", "BIGINT", "Log end offset; for followers and observers, their last fetch offset"
    ),
    Column("lag_records", "BIGINT", "Records behind the leader, as reported by the leader"),
    Column("last_fetch_at", "TIMESTAMP", "Last fetch; null if not reported to the ms"),
    Column("last_caught_up_at", "TIMESTAMP", "Last time it was caught up; null if not reported"),
    Column("voters", f"ARRAY<{REPLICA_STRUCT}>", "Voters in a status"),
    Column("observers", f"ARRAY<{REPLICA_STRUCT}>", "Observers in a status"),
    *LOADED,
)

BROKER_DIRECTORIES = of_clusters(
    "broker_directories",
    "A copy of a broker's log directory without messages, as made by capture --broker-dirs",
    ("capture_id",),
    CAPTURE_ID,
    required("broker_id", "INT", "Broker whose directory it is, by its meta.properties"),
    required("directory_id", "STRING", "Directory id; the zero uuid before Kafka 3.7"),
    required("captured_at", "TIMESTAMP", "When the copy was complete, by its capture.json"),
    required(
        "partitions",
        "ARRAY<STRUCT<topic_name: STRING, topic_id: STRING, partition_id: INT, kind: STRING, "
        "leader_epoch: INT>>",
        "The partitions in it. kind: current; future: to replace a copy in another directory; stray: "
        "renamed to -stray by Kafka. leader_epoch: the last in which messages were written; -1: none",
    ),
    *LOADED,
)
