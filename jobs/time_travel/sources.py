"""The two sources that there are: one captured replica, or a lake's histories of a cluster."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jobs.runtime.lakes import must_be_lake
from jobs.time_travel import shell_quorum
from jobs.time_travel.replica_files import open_replica
from jobs.time_travel.source import Epoch, MetadataSource, SetOfVoters
from kraft_core.image import tree
from kraft_core.image.events import Event, events
from kraft_core.image.image import Image
from kraft_core.image.replica import CapturedReplica


@dataclass(frozen=True, slots=True)
class Captured:
    """A captured replica as a source."""

    replica: CapturedReplica

    @property
    def notes(self) -> list[str]:
        return self.replica.notes

    @property
    def last_offset(self) -> int:
        return self.replica.last_offset

    def image_at(self, offset: int | None = None) -> Image:
        return self.replica.image_at(offset)

    def offset_at(self, time: int) -> int:
        return self.replica.offset_at(time)

    def append_before(self, offset: int) -> int | None:
        return self.replica.append_before(offset)

    def events(self, patterns: Sequence[tree.Path], last_offset: int) -> Iterator[Event]:
        return events(self.replica, patterns, last_offset)

    def voter_sets(self) -> list[SetOfVoters]:
        return shell_quorum.voter_sets(self.replica)

    def epochs(self) -> list[Epoch]:
        return shell_quorum.epochs(self.replica)


def add_lake(parser: argparse.ArgumentParser) -> None:
    """--lake and --cluster, in place of a path."""
    parser.add_argument(
        "--lake", type=Path, metavar="PATH", help="read this lake, which combines all captures"
    )
    parser.add_argument(
        "--cluster",
        metavar="CLUSTER",
        help="the cluster of the lake; optional if it has only one",
    )


def open_captured(path: Path) -> MetadataSource:
    """Raises Failure where there is nothing to be read."""
    return Captured(open_replica(path))


def open_lake(path: Path, cluster: str | None) -> MetadataSource:
    """Raises Failure where there is no lake, no such cluster, or no history of it."""
    from jobs.time_travel.lake_source import open_cluster

    must_be_lake(path)
    return open_cluster(path, cluster)
