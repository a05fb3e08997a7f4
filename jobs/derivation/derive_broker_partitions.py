"""Derive what the metadata says of the partitions in brokers' log directories: table broker_partitions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from jobs.runtime.progress import Progress
from kraft_core.wording import count
from transforms.lake.arrow_rows import Row, to_arrow
from transforms.lake.delta_rs import exists, rows_with
from transforms.lake.isolation import apart
from transforms.lake.lake import Lake
from transforms.lake.tables import BROKER_DIRECTORIES, BROKER_PARTITIONS
from transforms.quality.broker_partitions import broker_partition_rows


class BrokerPartitions(NamedTuple):
    """changed: clusters whose rows are others than before. failed: those not compared, with the reason."""

    changed: list[str]
    failed: dict[str, str]


def derive_broker_partitions(
    lake: Lake, clusters: Sequence[str], fresh: Sequence[Row], progress: Progress
) -> BrokerPartitions:
    """Replace the rows of the clusters. fresh: rows of broker_directories that the run will commit.

    Where no directory of a broker was ever captured, nothing is read or written.
    """
    if not clusters or (not fresh and not exists(lake.path, BROKER_DIRECTORIES)):
        return BrokerPartitions([], {})
    changed: list[str] = []

    def write(some: Sequence[str]) -> None:
        directories = [*rows_with(lake.path, BROKER_DIRECTORIES, cluster_id=some), *of_clusters(fresh, some)]
        found = broker_partition_rows(lake.path, some, directories)
        for cluster, rows in found.items():
            if replaced(lake, cluster, rows):
                changed.append(cluster)

    with progress.stage("brokers' directories", count(len(clusters), "cluster")):
        failed = apart(clusters, write)
    reasons = {c: f"comparing its brokers' directories failed: {reason}" for c, reason in failed.items()}
    return BrokerPartitions(changed, reasons)


def of_clusters(rows: Iterable[Row], clusters: Sequence[str]) -> list[Row]:
    return [row for row in rows if row["cluster_id"] in clusters]


def replaced(lake: Lake, cluster: str, rows: Iterable[Row]) -> bool:
    """Replace a cluster's rows; whether they are others than before."""
    made = to_arrow(rows, BROKER_PARTITIONS.arrow_schema)
    if not len(made) and not lake.exists(BROKER_PARTITIONS):
        return False
    return lake.replace_few(BROKER_PARTITIONS, made, [cluster])
