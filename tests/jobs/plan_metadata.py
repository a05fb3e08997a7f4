"""What `plan` reads of one cluster, by captures and by the lake that they were loaded into."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from jobs.plan_captures import from_captures, from_lake
from kraft_core.plan.captured_metadata import CapturedMetadata


def both_metadata(
    lake: Path, captures: list[Path], cluster: str
) -> tuple[CapturedMetadata, CapturedMetadata]:
    """By the captures, and by the lake."""
    args = lake_arguments(lake, cluster, captures)
    quorum, _, metadata = from_captures(args)
    of_lake, _, metadata_of_lake = from_lake(args)
    return metadata(quorum), metadata_of_lake(of_lake)


def lake_arguments(lake: Path, cluster: str, captures: Sequence[Path] = ()) -> argparse.Namespace:
    """The arguments of plan for a cluster of a lake."""
    return argparse.Namespace(
        captures=captures,
        lake=lake,
        cluster=cluster,
        cluster_id=[],
        node_id=None,
        captured_at=None,
        settings=argparse.Namespace(cluster_paths=()),
    )
