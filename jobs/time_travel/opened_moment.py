"""The metadata at one moment of one source, for verbs that ask for one: its place in words and as JSON."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jobs.runtime.local_paths import local_path
from jobs.runtime.outcome import Failure
from jobs.runtime.output import warn_line
from jobs.time_travel.moment import InvalidMomentError, image_at, iso, parse_moment
from jobs.time_travel.open_source import add_lake_arguments, open_captured, open_lake, warn
from jobs.time_travel.source import MetadataSource
from kraft_core.image.image import Image
from kraft_core.image.replay_path import COMMITTED
from transforms.lake.storage.location import Location


@dataclass(frozen=True, slots=True)
class OpenedMoment:
    """The path or lake, and the metadata there at the moment."""

    path: Path | Location
    source: MetadataSource
    image: Image

    @property
    def doubts(self) -> list[str]:
        """Why the metadata may not be whole: notes of its source, and what could not be replayed."""
        refused = [f"offset {each.offset}, {each.type}: {each.reason}" for each in self.image.refusals]
        return [*self.source.notes, *refused]

    @property
    def words(self) -> str:
        image = self.image
        return f"offset {image.offset}, epoch {image.leader_epoch}, {iso(image.timestamp)} of {self.path}"

    @property
    def data(self) -> dict[str, Any]:
        return {
            "path": str(self.path),
            "offset": self.image.offset,
            "leader_epoch": self.image.leader_epoch,
            "timestamp": self.image.timestamp,
        }


def add_source(parser: argparse.ArgumentParser) -> None:
    """PATH, or --lake and --cluster."""
    add_path(parser)
    add_lake_arguments(parser)


def add_path(parser: argparse.ArgumentParser) -> None:
    """PATH."""
    parser.add_argument(
        "source",
        type=local_path,
        nargs="?",
        metavar="PATH",
        help="a controller directory, a segment or a checkpoint; omit it with --lake",
    )


def opened_moment(args: argparse.Namespace) -> OpenedMoment:
    """The source of add_source at moment args.at (None: the newest). Raises Failure.

    What could not be read is reported on stderr.
    """
    if (args.lake is None) == (args.source is None):
        raise Failure("give a controller directory, a segment or a checkpoint, or a lake with --lake")
    if args.lake is None:
        path, source = args.source, open_captured(args.source, args.settings.shown_configs)
    else:
        path, source = args.lake, open_lake(args.lake, args.cluster)
    try:
        image = source.image_at()
        if args.at is not None:
            image = image_at(source, parse_moment(args.at, image.timestamp), image.timestamp)
    except InvalidMomentError as error:
        raise Failure(str(error)) from None
    warn(source.notes, image)
    status = source.commit_status(image.offset)
    if status not in (None, COMMITTED):
        warn_line(f"note: offset {image.offset} is {status}: brokers knew only what was committed")
    return OpenedMoment(path, source, image)
