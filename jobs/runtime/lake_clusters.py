"""The clusters of a lake selected by --cluster: by id, or by the name in the lake.

A cluster id with several lives means all of them; where one is needed, the newest.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from jobs.runtime.lives import named_lives
from jobs.runtime.outcome import Failure, UnknownCluster
from jobs.runtime.output import warn_line
from kraft_core.wording import first_named
from transforms.lake.storage.location import Location

_MOST_LISTED = 5


def lake_clusters(lake: Location, named: Sequence[str] = ()) -> list[str]:
    """The ids of the named clusters, or of all, rising. Raises Failure for one that is not there."""
    from transforms.lake.delta_rs import cluster_ids, rows_with
    from transforms.lake.lives import held_lives, named_clusters
    from transforms.lake.tables import CLUSTER_NAMES

    known = cluster_ids(lake)
    if not named:
        return known
    names = {r["name"]: r["cluster_id"] for r in (*rows_with(lake, CLUSTER_NAMES), *named_clusters(lake))}
    lives: dict[str, list[str]] = {}
    for row in held_lives(lake):
        lives.setdefault(row["kafka_cluster_id"], []).append(row["cluster_id"])
    ids = {word if word in known or word in lives else names.get(word, word) for word in named}
    missing = sorted(ids - set(known) - set(lives))
    if missing:
        has = f"it has {listed(known)}" if known else "it has none"
        words = f"the lake {lake} has no capture of cluster {', '.join(missing)}; {has}"
        raise UnknownCluster(words, missing[0], [*known, *names])
    return sorted({cluster for id_ in ids for cluster in lives.get(id_, [id_])})


def one_cluster(lake: Location, named: str | None) -> str:
    """The named cluster, or the lake's only one. Raises Failure.

    Of a cluster id with several lives the newest one, unless a life is named; a line on stderr says which.
    """
    from transforms.lake.lives import held_lives

    chosen = lake_clusters(lake, () if named is None else (named,))
    lives = held_lives(lake)
    kafka_ids = {row["cluster_id"]: row["kafka_cluster_id"] for row in lives}
    found = sorted({kafka_ids.get(cluster, cluster) for cluster in chosen})
    if len(found) != 1:
        raise Failure(f"{lake} has {len(found)} clusters: choose one with --cluster: {listed(found)}")
    of_id = [row["cluster_id"] for row in lives if row["kafka_cluster_id"] == found[0]]
    cluster = chosen[0] if len(chosen) == 1 else of_id[-1]
    if of_id:
        warn_line(f"cluster id {found[0]} {named_lives(of_id, cluster)}")
    return cluster


def listed(clusters: Collection[str]) -> str:
    """Some of the clusters, and how many more there are."""
    return first_named(sorted(clusters), _MOST_LISTED)
