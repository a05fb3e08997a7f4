"""kraftlake clusters: list the clusters of a lake with their names from kraftlake.toml; without Spark."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from typing import Any

from jobs.arguments import add_format, add_lake_path, add_wait
from jobs.questions.row_text import FORMATS
from jobs.runtime.lakes import must_be_lake, must_be_whole
from jobs.runtime.long_lists import add_limit, first_of, limit_of
from jobs.runtime.outcome import ExitCode
from jobs.runtime.progress import Progress
from jobs.runtime.run_record import RunRecord
from jobs.runtime.settings import NamedCluster, Settings
from transforms.lake.storage.location import Location

EXAMPLES = """examples:
  kraftlake clusters --lake /data/lake
  kraftlake clusters --lake /data/lake --config /etc/kraftlake.toml --format json

First, the names in the settings file replace those in table cluster_names. Without a file that names
clusters, the table is left as it is."""
COLUMNS = (
    "name",
    "cluster_id",
    "environment",
    "owner",
    "captures",
    "last_captured_at",
    "leader_epoch",
    "leader_id",
    "leader_source",
    "is_newest_life",
    "failure",
)
MOST_CLUSTERS = 1000
Row = dict[str, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_lake_path(parser)
    add_wait(parser)
    add_format(parser, *FORMATS)
    add_limit(parser, "clusters", MOST_CLUSTERS)


def run(args: argparse.Namespace) -> int:
    """Writes the names and prints the clusters. Raises Failure."""
    must_be_lake(args.lake)
    must_be_whole(args.lake)
    settings: Settings = args.settings
    if settings.clusters:
        _write_names(args, settings.clusters)
    rows = [tuple(row[name] for name in COLUMNS) for row in _cluster_rows(args.lake)]
    with first_of(rows, limit_of(args), "clusters", lambda: len(rows)) as shown:
        FORMATS[args.format](COLUMNS, shown, sys.stdout)
    return ExitCode.FINE


def _write_names(args: argparse.Namespace, clusters: Iterable[NamedCluster]) -> None:
    """Make table cluster_names equal to the settings, under the lease; write nothing if it already is."""
    rows = [cluster.row for cluster in clusters]
    if _has_names(args.lake, rows):
        return
    import pyarrow.dataset as ds

    from jobs.runtime.lease import held_lease
    from transforms.lake.commits import TableWriter
    from transforms.lake.tables import CLUSTER_NAMES, RUNS

    progress, lake = Progress(), args.lake.resolve()
    TableWriter(lake, None).create(RUNS)
    give_up = time.monotonic() + args.wait
    with held_lease(lake, RunRecord(args.verb, progress), give_up, progress.say) as lease:
        lease.writer.replace_where(CLUSTER_NAMES, ds.scalar(True), rows)
        lease.end(ExitCode.FINE)


def _has_names(lake: Location, rows: Iterable[Row]) -> bool:
    from transforms.lake.delta_rs import rows_with
    from transforms.lake.tables import CLUSTER_NAMES

    return sorted(rows, key=_by_id) == sorted(rows_with(lake, CLUSTER_NAMES), key=_by_id)


def _by_id(row: Row) -> str:
    return row["cluster_id"]


def _cluster_rows(lake: Location) -> list[Row]:
    """A row a cluster: captured ones by name, then those that have a name and no capture."""
    from transforms.lake.delta_rs import greatest, rows_with
    from transforms.lake.lives import named_clusters
    from transforms.lake.tables import CAPTURES, DERIVATIONS, EPOCHS, LIVES

    found = greatest(lake, CAPTURES, ["cluster_id"], "last_captured_at")
    captured = {cluster: numbers for (cluster,), numbers in found.items()}
    named = {row["cluster_id"]: row for row in named_clusters(lake)}
    epochs = rows_with(lake, EPOCHS, ("cluster_id", "leader_epoch", "leader_id", "leader_source"))
    newest = {row["cluster_id"]: row for row in sorted(epochs, key=lambda e: e["leader_epoch"])}
    derived = {row["cluster_id"]: row for row in rows_with(lake, DERIVATIONS, ("cluster_id", "failure"))}
    lives = {row["cluster_id"]: row for row in rows_with(lake, LIVES, ("cluster_id", "is_newest"))}
    rows = [
        dict.fromkeys(COLUMNS)
        | newest.get(cluster, {})
        | derived.get(cluster, {})
        | named.get(cluster, {})
        | dict(zip(("captures", "last_captured_at"), captured.get(cluster, (0, None)), strict=True))
        | {"cluster_id": cluster, "is_newest_life": lives.get(cluster, {}).get("is_newest")}
        for cluster in {*captured, *named}
    ]
    return sorted(rows, key=lambda r: (r["captures"] == 0, r["name"] is None, r["name"], r["cluster_id"]))
