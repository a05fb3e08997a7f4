"""Columns and types that several tables share, and the tables of clusters."""

from __future__ import annotations

from transforms.lake.tables.declaration import Column, Table, required

# For times read from a log (kraft_core.columnar.timestamps).
WITHIN = "clamped to the years 1 to 9999"

CLUSTER_ID = required(
    "cluster_id", "STRING", "Cluster id in meta.properties, followed by /life if the id has several lives"
)

NODE_ID = required("node_id", "INT", "Node id of the controller; -1 for a log read by kraftlake follow")

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
    "Time of the status: committed and truncated hold from then on (null: the captures that prove it have "
    "no stated time), uncommitted was true then; undecided: newest capture with a stated time",
)

EVIDENCE = Column("evidence", "STRING", "What proves the status, as text")

VOTERS_TYPE = (
    "ARRAY<STRUCT<voter_id: INT, directory_id: STRING, "
    "endpoints: ARRAY<STRUCT<name: STRING, host: STRING, port: INT>>, "
    "min_kraft_version: SMALLINT, max_kraft_version: SMALLINT>>"
)

REPLICA_STRUCT = "STRUCT<node_id: INT, directory_id: STRING>"


def of_clusters(
    name: str, comment: str, key: tuple[str, ...], *columns: Column, recomputed: bool = False
) -> Table:
    """A table of what belongs to clusters: a row is identified by its cluster and `key`."""
    return Table(name, comment, (CLUSTER_ID, *columns), ("cluster_id", *key), recomputed)
