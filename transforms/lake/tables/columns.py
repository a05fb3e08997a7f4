"""Columns and types that several tables share."""

from __future__ import annotations

from transforms.lake.tables.declaration import Column, required

# For times read from a log (kraft_core.columnar.timestamps).
WITHIN = "clamped to the years 1 to 9999"

CLUSTER_ID = required(
    "cluster_id", "STRING", "Cluster id of meta.properties; where it names several lives, with /life"
)

NODE_ID = required("node_id", "INT", "Controller's node id; -1 for what kraftlake follow read")

DIRECTORY_ID = required("directory_id", "STRING", "Directory id of the replica; the zero uuid when unknown")

CAPTURE_ID = required("capture_id", "STRING", "SHA-256 of what identifies the captured directory")

LOADED = (
    Column("run_id", "STRING", "Run that wrote the row"),
    Column("loaded_at", "TIMESTAMP", "When that run began"),
)

COMMIT_STATUS = (
    "commit_status",
    "STRING",
    "committed, truncated, uncommitted or undecided, as proven by the captures",
)

AS_OF = Column(
    "as_of",
    "TIMESTAMP",
    "Time of the status: committed and truncated hold from then on (null: the captures that prove it do not "
    "say when they were taken), uncommitted held then; undecided: newest capture of a stated time",
)

EVIDENCE = Column("evidence", "STRING", "What proves the status, in words")

VOTERS_TYPE = (
    "ARRAY<STRUCT<voter_id: INT, directory_id: STRING, "
    "endpoints: ARRAY<STRUCT<name: STRING, host: STRING, port: INT>>, "
    "min_kraft_version: SMALLINT, max_kraft_version: SMALLINT>>"
)

REPLICA_STRUCT = "STRUCT<node_id: INT, directory_id: STRING>"
