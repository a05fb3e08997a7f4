"""The lake's own tables: its runs, the names of its clusters, and the state of their derivation."""

from __future__ import annotations

from dataclasses import replace

from transforms.lake.tables.columns import LOADED, of_clusters
from transforms.lake.tables.declaration import Column, Table, required

RUNS = Table(
    "runs",
    "A run of a verb: what it read, wrote and found",
    (
        required("run_id", "STRING", "Id of the run"),
        required("started_at", "TIMESTAMP", "When it began, after any wait for the lease"),
        Column("finished_at", "TIMESTAMP", "When it ended"),
        Column("job", "STRING", "The verb that ran"),
        Column("exit_code", "INT", "Exit code it ended with"),
        Column("stage_seconds", "MAP<STRING, DOUBLE>", "Seconds by stage"),
        Column("counts", "MAP<STRING, BIGINT>", "Counters of what it read, wrote and found"),
        Column("failed_clusters", "MAP<STRING, STRING>", "Failed clusters, with the reason"),
        Column(
            "reported_findings",
            "ARRAY<STRUCT<cluster_id: STRING, finding_id: STRING>>",
            "Error findings that this run was the first to report",
        ),
        Column(
            "lease",
            "STRUCT<host: STRING, process: STRING, until: TIMESTAMP>",
            "Lease on the lake: no other run may write while finished_at is null and until has not passed; "
            "null if the run wrote nothing",
        ),
    ),
    key=("run_id",),
)

CLUSTER_NAMES = of_clusters(
    "cluster_names",
    "Names of clusters, from kraftlake.toml",
    (),
    required("name", "STRING", "Name, accepted wherever a cluster id is"),
    Column("environment", "STRING", "Such as production or test"),
    Column("owner", "STRING", "Whom to contact"),
)

DERIVATIONS = of_clusters(
    "derivations",
    "Whether the last derivation of a cluster succeeded",
    (),
    Column(
        "failure", "STRING", "Why it failed; the cluster's derived rows are then older; null if it succeeded"
    ),
    Column(
        "derived_rows",
        "ARRAY<STRUCT<table_name: STRING, rows: BIGINT>>",
        "Rows of the cluster in each derived table that has any, after the derivation; null: not counted",
    ),
    Column(
        "begun_by",
        "STRING",
        "Run that began to change rows of the cluster and did not finish, as the next run will; null "
        "if the rows are complete",
    ),
    Column("is_removed", "BOOLEAN", "Whether begun_by was removing the cluster from the lake"),
    Column(
        "ingested_by",
        "STRING",
        "Ingest that loaded rows of the cluster, or was about to, which are not derived yet; null: none",
    ),
    *(replace(column, nullable=False) for column in LOADED),
)
