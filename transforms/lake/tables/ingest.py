"""What was read: captures, segments, batches, records, checkpoints, observations, and what was lost."""

from __future__ import annotations

from pyspark.sql.pandas.types import from_arrow_type

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
)
from transforms.lake.tables.declaration import Column, Table, required

# What the reader understands; a higher one reads segments again.
PARSER_VERSION = 1

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


RUN_STRUCT = (
    "STRUCT<leader_epoch: INT, first_offset: BIGINT, end_offset: BIGINT, digest: STRING, "
    "first_appended_at: TIMESTAMP, last_appended_at: TIMESTAMP, first_batch_end_offset: BIGINT, "
    "first_data_end_offset: BIGINT, first_data_appended_at: TIMESTAMP>"
)

# As in captures.runs, but for the digest, which is a number that those of other stretches are XORed with.
PIECE_STRUCT = RUN_STRUCT.replace("digest: STRING", "digest: BIGINT").replace(
    ">", ", batches: BIGINT, size_bytes: BIGINT>"
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
