"""The lake's own tables: its runs, what people call its clusters, and whether each could be derived."""

from __future__ import annotations

from dataclasses import replace

from transforms.lake.tables.columns import CLUSTER_ID, LOADED
from transforms.lake.tables.declaration import Column, Table, required

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
