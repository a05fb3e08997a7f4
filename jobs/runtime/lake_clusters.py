"""The clusters of a lake that --cluster names: by id, or by the name that the lake keeps."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from jobs.runtime.outcome import Failure
from jobs.runtime.suggestion import did_you_mean
from transforms.lake.delta_rs import cluster_ids, rows_with
from transforms.lake.tables import CLUSTER_NAMES

_MOST_LISTED = 5


def lake_clusters(lake: Path, named: Sequence[str] = ()) -> list[str]:
    """The ids of the named clusters, or of all, rising. Raises Failure for one that is not there."""
    known = cluster_ids(lake)
    ids = {row["name"]: row["cluster_id"] for row in rows_with(lake, CLUSTER_NAMES)} if named else {}
    chosen = {word if word in known else ids.get(word, word) for word in named}
    missing = sorted(chosen - set(known))
    if missing:
        near = did_you_mean(missing[0], [*known, *ids])
        has = f"it has {listed(known)}{near}" if known else "it has none"
        raise Failure(f"the lake {lake} has no capture of cluster {', '.join(missing)}; {has}")
    return sorted(chosen or known)


def one_cluster(lake: Path, named: str | None) -> str:
    """The named cluster, or the lake's only one. Raises Failure."""
    found = lake_clusters(lake, () if named is None else (named,))
    if len(found) != 1:
        raise Failure(f"{lake} has {len(found)} clusters: choose one with --cluster: {listed(found)}")
    return found[0]


def listed(clusters: Collection[str]) -> str:
    """Some of the clusters, and how many more there are."""
    shown = sorted(clusters)[:_MOST_LISTED]
    more = len(clusters) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
