"""How tables name the lives of a cluster id (kraft_core.evidence.lives).

A life is a separate cluster to every table: if the cluster id of meta.properties has several, column
cluster_id is that id, a slash, and the life's name; if it has one, as nearly always, the id.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pyarrow.compute as pc

from transforms.lake.arrow_rows import Row
from transforms.lake.delta_rs import arrow_with, distinct, exists, rows_with
from transforms.lake.storage.location import Location
from transforms.lake.tables import CAPTURES, CLUSTER_NAMES, LIVES


def life_id(kafka_cluster_id: str, life: str | None) -> str:
    """The column cluster_id of a life; None: the only one of its cluster id."""
    return kafka_cluster_id if life is None else f"{kafka_cluster_id}/{life}"


def kafka_id(row: Row) -> str:
    """The cluster id of meta.properties, of a row with cluster_id and life."""
    return row["cluster_id"] if row["life"] is None else row["cluster_id"].removesuffix(f"/{row['life']}")


def divided_ids(lake: Location) -> set[str]:
    """The cluster ids of meta.properties that name several lives: no capture bears the id alone."""
    return {row["kafka_cluster_id"] for row in rows_with(lake, LIVES, ["kafka_cluster_id"])}


def with_other_lives(lake: Location, clusters: Collection[str]) -> set[str]:
    """The clusters and, of those that are one life of several, the others: verdicts depend on these, too."""
    rows = rows_with(lake, LIVES, ["cluster_id", "kafka_cluster_id"]) if clusters else []
    ids = {row["kafka_cluster_id"] for row in rows if row["cluster_id"] in clusters}
    return {*clusters, *(row["cluster_id"] for row in rows if row["kafka_cluster_id"] in ids)}


def captured_life_ids(lake: Location) -> list[Row]:
    """cluster_id and life of the captures of cluster ids with several lives, each once."""
    if not exists(lake, CAPTURES):
        return []
    # By the statistics of the files, next to none is opened: captures rarely have a life.
    named = arrow_with(lake, CAPTURES, ["cluster_id", "life"], pc.field("life").is_valid())
    return named.group_by(["cluster_id", "life"]).aggregate([]).to_pylist() if len(named) else []


def held_lives(lake: Location) -> list[Row]:
    """The rows of LIVES of which the lake holds a capture, by cluster id, the newest life of each last."""
    if not exists(lake, LIVES):
        return []
    held = {row["cluster_id"] for row in captured_life_ids(lake)}
    found = [row for row in rows_with(lake, LIVES) if row["cluster_id"] in held]
    return sorted(found, key=lambda row: (row["kafka_cluster_id"], row["is_newest"], row["cluster_id"]))


def cluster_ids_of(lake: Location, kafka_ids: Collection[str]) -> dict[str, list[str]]:
    """By cluster id of meta.properties the ids under which the tables hold its captures; itself without any.

    Those of an interrupted move of rows between lives, too.
    """
    found: dict[str, list[str]] = {name: [] for name in kafka_ids}
    for row in captured_life_ids(lake):
        if kafka_id(row) in found:
            found[kafka_id(row)].append(row["cluster_id"])
    divided = [name for name, lives in found.items() if lives]
    if divided:
        for name in distinct(lake, CAPTURES, "cluster_id", cluster_id=divided):
            found[name].append(name)
    return {name: sorted(lives) or [name] for name, lives in found.items()}


def expanded(lake: Location, kafka_ids: Iterable[str]) -> list[str]:
    """Cluster ids of meta.properties as the tables have them, rising."""
    every = cluster_ids_of(lake, set(kafka_ids))
    return sorted(name for lives in every.values() for name in lives)


def named_clusters(lake: Location) -> list[Row]:
    """The rows of CLUSTER_NAMES; of a cluster id with several lives a row for each of them, as NAME/LIFE."""
    lives: dict[str, list[Row]] = {}
    for row in held_lives(lake):
        lives.setdefault(row["kafka_cluster_id"], []).append(row)
    found: list[Row] = []
    for row in rows_with(lake, CLUSTER_NAMES):
        of_id = lives.get(row["cluster_id"], [])
        names = [(life["cluster_id"], f"{row['name']}/{life['life']}") for life in of_id]
        found += [row | {"cluster_id": id_, "name": name} for id_, name in names] or [row]
    return found


def life_words(lake: Location) -> dict[str, str]:
    """By cluster_id which life of its cluster id it is; nothing for those with one life."""
    lives: dict[str, list[str]] = {}
    for row in held_lives(lake):
        lives.setdefault(row["kafka_cluster_id"], []).append(row["cluster_id"])
    return {
        name: f"newest of {len(named)} histories of cluster id {id_}"
        if name == named[-1]
        else f"earlier history of cluster id {id_}; the newest is {named[-1]}"
        for id_, named in lives.items()
        for name in named
    }
