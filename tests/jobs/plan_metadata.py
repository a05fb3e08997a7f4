"""What `plan` reads of one cluster, by captures and by the lake that they were loaded into."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from jobs.plan_captures import from_captures, from_lake
from kraft_core.plan.captured_metadata import CapturedMetadata


def both_metadata(lake: Any, captures: list[Path], cluster: str) -> tuple[CapturedMetadata, CapturedMetadata]:
    """By the captures, and by the lake."""
    args = argparse.Namespace(
        captures=captures,
        lake=lake.path,
        cluster=cluster,
        cluster_id=[],
        node_id=None,
        captured_at=None,
        settings=argparse.Namespace(cluster_paths=()),
    )
    quorum, _, metadata = from_captures(args)
    of_lake, _, metadata_of_lake = from_lake(args)
    return metadata(quorum), metadata_of_lake(of_lake)
