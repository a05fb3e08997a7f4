"""Reads the lake, makes the page and those of the clusters that it has no room for, and writes them."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dashboards.report.history_queries import ask_histories, under_min_isr, under_min_isr_now
from dashboards.report.page import MOST_LISTED, Page, cluster_page, file_name, page
from dashboards.report.queries import ask_detail, ask_fleet, ask_lake
from dashboards.report.state import NONE_FAILED, ClusterState, fleet
from transforms.lake.delta_rs import cluster_ids
from transforms.lake.isolation import apart
from transforms.lake.lives import named_clusters
from transforms.lake.storage.location import Location
from transforms.lake.table_damage import damaged_tables
from transforms.quality.rehearsals import newest_rehearsals

Row = dict[str, Any]

# The most urgent clusters get a part of their own, up to this many; the size of the page may allow fewer.
MOST_DETAILED = 60
# So many of the others are read at a time.
BATCH = 250


class PageFileError(Exception):
    """The page's file cannot be written; the message says why."""


class DamagedLakeError(Exception):
    """Files of the lake are lost or damaged."""


@dataclass(frozen=True, slots=True)
class Report:
    """A page as bytes: how many clusters it lists, which have a part of their own, which failed, and why.

    beside: a page of each other cluster it lists, compressed by zlib, by the name of its file.
    """

    data: bytes
    clusters: int
    detailed: tuple[str, ...]
    failed: dict[str, str]
    beside: dict[str, bytes]


def folder_of(file: Path) -> Path:
    """The folder beside a page for those of single clusters."""
    return file.with_name(f"{file.stem}-clusters")


def made_report(
    lake: Location, now: int, file: Path, clusters: Sequence[str] = (), names: Sequence[Row] = ()
) -> Report:
    """The page over all clusters, or over those named, to be written to `file`. `now` in ms since the epoch.

    names: rows of cluster_names to use in place of the lake's.
    A cluster that cannot be shown fails alone. Raises DamagedLakeError if files of the lake are the reason.
    """
    every = list(clusters) or cluster_ids(lake)
    made: list[tuple[Page, dict[str, bytes]]] = []
    # Without a condition all clusters are read faster than by their ids.
    failed = apart(
        every, lambda some: made.append(_pages(lake, now, file, clusters if some == every else some, names))
    )
    if failed and damaged_tables(lake, open_files=True):
        raise DamagedLakeError
    if failed:
        sound = [cluster for cluster in every if cluster not in failed]
        if sound:
            made.append(_pages(lake, now, file, sound, names, failed))
        else:
            made.append((page([], {}, now, _name(lake), (), failed, titles=_titles(lake, failed, names)), {}))
    whole, beside = made[-1]
    return Report(whole.text.encode(), whole.clusters, whole.detailed, failed, beside)


def put_report(report: Report, file: Path) -> None:
    """Replace the file atomically, after the pages beside it; pages of other clusters go.

    Raises PageFileError.
    """
    folder = folder_of(file)
    try:
        if report.beside:
            folder.mkdir(exist_ok=True)
        for name, data in report.beside.items():
            _replace(folder / name, zlib.decompress(data))
        _replace(file, report.data)
        for old in folder.glob("*.html"):
            if old.name not in report.beside:
                old.unlink()
    except OSError as error:
        raise PageFileError(error.strerror) from error
    if not report.beside:
        with contextlib.suppress(OSError):  # it is not there, or has files of others
            folder.rmdir()


def _replace(file: Path, data: bytes) -> None:
    part = file.with_name(f".{file.name}.part")
    part.write_bytes(data)
    part.replace(file)


def _pages(
    lake: Location,
    now: int,
    file: Path,
    clusters: Sequence[str],
    names: Sequence[Row],
    failed: Mapping[str, str] = NONE_FAILED,
) -> tuple[Page, dict[str, bytes]]:
    """The page over all clusters, or over those named and those that failed; the pages beside it."""
    spans = under_min_isr(lake, clusters)
    named: dict[str, Sequence[Row]] = {"names": names} if names else {}
    rehearsed = newest_rehearsals(lake, clusters).items()
    rehearsals = [{"cluster_id": cluster, "rehearsal": found} for cluster, found in rehearsed]
    asked = {**ask_fleet(lake, clusters), **under_min_isr_now(spans), "rehearsals": rehearsals}
    states = fleet({**asked, **named}, now)

    def rows_of(some: Sequence[ClusterState]) -> dict[str, dict[str, list[Row]]]:
        ids = [s.cluster_id for s in some]
        histories = ask_histories(lake, ids, spans)
        return {cluster: found | histories[cluster] for cluster, found in ask_detail(lake, ids).items()}

    rows, folder = rows_of(states[:MOST_DETAILED]), folder_of(file).name
    made = page(states, rows, now, _name(lake), ask_lake(lake), failed, folder, _titles(lake, failed, names))
    others = [s for s in states[:MOST_LISTED] if s.cluster_id not in made.detailed]
    beside: dict[str, bytes] = {}
    for some in _batches(others):
        found = rows_of(some)
        for s in some:
            text = cluster_page(s, found[s.cluster_id], now, _name(lake), file.name)
            beside[file_name(s.cluster_id)] = zlib.compress(text.encode())
    return made, beside


def _titles(lake: Location, clusters: Collection[str], names: Sequence[Row]) -> dict[str, str]:
    """The names of clusters that have one, as `names` or the lake has them."""
    if not clusters:
        return {}
    found = names or named_clusters(lake)
    return {row["cluster_id"]: row["name"] for row in found if row["cluster_id"] in clusters and row["name"]}


def _batches(states: Sequence[ClusterState]) -> Iterator[Sequence[ClusterState]]:
    for start in range(0, len(states), BATCH):
        yield states[start : start + BATCH]


def _name(lake: Location) -> str:
    return lake.resolve().name
