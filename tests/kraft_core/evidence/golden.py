"""The bundled captures by moment, as facts."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from kraft_core.evidence.collect import collect
from kraft_core.evidence.facts import ClusterFacts
from kraft_core.format.controller_dir import find_controller_dirs

GOLDEN = Path(__file__).parents[2] / "golden"
MOMENTS = (
    "born-on-3.4",
    "disk-failure",
    "disk-failure/before-wipe",
    "disk-failure/reformatted-not-added",
    "dynamic-membership",
    "election-storm",
    "old-mv-3.3-IV0-fatal-on-4.3.1",
    "old-mv-3.3-IV0-fatal-on-4.3.1/at-3.9.2",
    "old-mv-3.3-IV0-fatal-on-4.3.1/at-4.3.1-static",
    "stale-split/before",
    "stale-split/changed",
    "stale-split/after",
    "stale-split/two-of-five",
    "stale-split/three-of-five",
    "stale-split/healed",
    "stale-split/final",
    "static-upgrade",
    "static-upgrade/at-3.9.2",
    "static-upgrade/at-4.3.1-static",
    "uncommitted-removal/before",
    "uncommitted-removal/after",
    "uncommitted-then-committed/before",
    "uncommitted-then-committed/after",
    "uncommitted-truncation/before",
    "uncommitted-truncation/after",
    "v4.4.0-mini",
)
# Clusters with captures of several moments.
CLUSTERS = {
    "disk-failure": tuple(m for m in MOMENTS if m.startswith("disk-failure")),
    "old-mv": tuple(m for m in MOMENTS if m.startswith("old-mv")),
    "stale-split": tuple(m for m in MOMENTS if m.startswith("stale-split")),
    "static-upgrade": tuple(m for m in MOMENTS if m.startswith("static-upgrade")),
    "uncommitted": tuple(m for m in MOMENTS if m.startswith("uncommitted")),
}


@cache
def directory(log: Path) -> ClusterFacts:
    """The facts of one captured controller directory."""
    (facts,) = collect(find_controller_dirs([log]).directories)
    return facts


def directories(name: str) -> list[ClusterFacts]:
    """The facts of each directory captured at a moment."""
    return [directory(log) for log in sorted((GOLDEN / name).glob("node-*"))]


@cache
def moment(name: str) -> ClusterFacts:
    """The facts of the captures of one moment."""
    (facts,) = collect(find_controller_dirs(sorted((GOLDEN / name).glob("node-*"))).directories)
    return facts


@cache
def cluster(name: str) -> ClusterFacts:
    """The facts of all captures of one cluster."""
    logs = [log for member in CLUSTERS[name] for log in sorted((GOLDEN / member).glob("node-*"))]
    (facts,) = collect(find_controller_dirs(logs).directories)
    return facts


def union(parts: Iterable[ClusterFacts]) -> ClusterFacts:
    """The facts of several groups of captures of one cluster."""
    parts = list(parts)
    return ClusterFacts(
        parts[0].cluster_id,
        tuple(c for part in parts for c in part.captures),
        tuple(r for part in parts for r in part.control_records),
        tuple(s for part in parts for s in part.snapshots),
        tuple(f for part in parts for f in part.feature_levels),
    )
