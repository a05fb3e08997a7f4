"""Opens a source of shell and diff: a captured replica, or a cluster of a lake."""

from __future__ import annotations

import argparse
from collections.abc import Sequence, Set
from pathlib import Path

from jobs.runtime.lakes import lake_folder, must_be_lake
from jobs.runtime.output import warn_line
from jobs.time_travel.replica_source import ReplicaSource, open_replica
from jobs.time_travel.source import MetadataSource
from kraft_core.format.secrets import NONE_ALLOWED
from kraft_core.image.image import Image
from kraft_core.wording import count
from transforms.lake.storage.location import Location

_MAX_LISTED = 5


def add_lake_arguments(parser: argparse.ArgumentParser) -> None:
    """--lake and --cluster, in place of a path."""
    parser.add_argument(
        "--lake",
        type=lake_folder,
        metavar="PATH",
        help="read this lake, which combines all captures",
    )
    parser.add_argument(
        "--cluster",
        metavar="CLUSTER",
        help="the cluster of the lake; optional if it has only one",
    )


def open_captured(path: Path, allowed: Set[str] = NONE_ALLOWED) -> MetadataSource:
    """The replica at a path. Raises Failure if nothing is readable.

    allowed: configs to show although Kafka does not define them.
    """
    return ReplicaSource(open_replica(path, allowed))


def open_lake(path: Location, cluster: str | None) -> MetadataSource:
    """A cluster of a lake, by id or name. Raises Failure without lake, cluster or histories."""
    from jobs.time_travel.lake_source import open_cluster

    must_be_lake(path)
    return open_cluster(path, cluster)


def warn(notes: Sequence[str], image: Image) -> None:
    """Report on stderr what could not be read or replayed, or is not visible yet."""
    if image.in_transaction:
        warn_line("note: this is inside a metadata transaction, whose changes become visible at its end")
    refused = [f"offset {refusal.offset}, {refusal.type}: {refusal.reason}" for refusal in image.refusals]
    for note in [*notes, *refused[:_MAX_LISTED]]:
        warn_line(f"warning: {note}")
    if len(refused) > _MAX_LISTED:
        warn_line(
            f"warning: {count(len(refused), 'record')} could not be replayed: a lake lists them in table "
            f"refused_records"
        )
