"""Reads the lake, makes the page and those of the clusters that it has no room for, and writes them."""

from __future__ import annotations

import contextlib
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dashboards.report.growth import ask_growth
from dashboards.report.history_queries import ask_histories, under_min_isr, under_min_isr_now
from dashboards.report.page import MOST_LISTED, Page, cluster_page, file_name, page
from dashboards.report.queries import Parts, ask_detail, ask_fleet, ask_lake, rows_of
from dashboards.report.samples import ask_samples
from dashboards.report.standing import origins, signed, stands
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
# How many of the others are read at a time.
BATCH = 250


class PageFileError(Exception):
    """The page's file cannot be written; the message says why."""


class DamagedLakeError(Exception):
    """Files of the lake are lost or damaged."""


@dataclass(frozen=True, slots=True)
class Report:
    """A page as bytes: how many clusters it lists, which have a part of their own, which failed, and why.

    beside: a page of each other cluster it lists, compressed by zlib, by the name of its file, if it is to be
    written; standing: the names of those that are there and stay.
    """

    data: bytes
    clusters: int
    detailed: tuple[str, ...]
    failed: dict[str, str]
    beside: dict[str, bytes]
    standing: frozenset[str]

    @property
    def cluster_pages(self) -> int:
        """How many clusters have a page of their own."""
        return len(self.beside) + len(self.standing)


@dataclass(frozen=True, slots=True)
class _Pages:
    """The page over the clusters, and those beside it, as a Report has them."""

    whole: Page
    beside: dict[str, bytes]
    standing: frozenset[str]


@dataclass(frozen=True)
class _Details(Mapping[str, dict[str, list[Row]]]):
    """The rows by cluster, made when they are asked for: the page has no room for most of the clusters.

    parts: of ask_detail; others: the rows of further kinds.
    """

    parts: Mapping[str, Parts]
    others: Sequence[Mapping[str, dict[str, list[Row]]]]

    def __getitem__(self, cluster: str) -> dict[str, list[Row]]:
        found = rows_of(self.parts[cluster])
        for of in self.others:
            found |= of[cluster]
        return found

    def __contains__(self, cluster: object) -> bool:  # Mapping's would make the rows
        return cluster in self.parts

    def __iter__(self) -> Iterator[str]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)


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
    made: dict[int, _Pages] = {}

    def make(some: Sequence[str]) -> None:
        # Without a condition all clusters are read faster than by their ids.
        made[len(some)] = _pages(lake, now, file, clusters if some == every else some, names)

    failed = apart(every, make)
    if failed and damaged_tables(lake, open_files=True):
        raise DamagedLakeError
    if failed and len(failed) == len(every):
        alone = page([], {}, now, _name(lake), (), failed, titles=_titles(lake, failed, names))
        last = _Pages(alone, {}, frozenset())
    else:
        sound = [cluster for cluster in every if cluster not in failed] if failed else clusters
        # Halves may have succeeded: the page is that of them all, or none.
        last = made.get(len(every)) or _pages(lake, now, file, sound, names, failed)
    whole = last.whole
    return Report(whole.text.encode(), whole.clusters, whole.detailed, failed, last.beside, last.standing)


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
        kept = report.beside.keys() | report.standing
        for old in (*folder.glob("*.html"), *folder.glob(".*.html.part")):
            if old.name not in kept:
                old.unlink()
    except OSError as error:
        raise PageFileError(error.strerror) from error
    if not report.cluster_pages:
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
) -> _Pages:
    """The page over all clusters, or over those named and those that failed; the pages beside it."""
    spans = under_min_isr(lake, clusters)
    named: dict[str, Sequence[Row]] = {"names": names} if names else {}
    rehearsed = newest_rehearsals(lake, clusters).items()
    rehearsals = [{"cluster_id": cluster, "rehearsal": found} for cluster, found in rehearsed]
    asked = {**ask_fleet(lake, clusters), **under_min_isr_now(spans), "rehearsals": rehearsals}
    states = fleet({**asked, **named}, now)

    def details(some: Sequence[ClusterState]) -> Mapping[str, dict[str, list[Row]]]:
        ids = [s.cluster_id for s in some]
        if not ids:  # which the tables would take for all
            return {}
        # To plan a query of a view takes longer than to read rows: both at once, where there are processors.
        with ThreadPoolExecutor() as pool:
            asked = [
                pool.submit(ask_histories, lake, ids, spans),
                pool.submit(ask_growth, lake, ids),
                pool.submit(ask_samples, lake, ids),
            ]
            parts = ask_detail(lake, ids)
            return _Details(parts, [each.result() for each in asked])

    rows, folder = details(states[:MOST_DETAILED]), folder_of(file)
    titles = _titles(lake, failed, names)
    made = page(states, rows, now, _name(lake), ask_lake(lake), failed, folder.name, titles)
    beside: dict[str, bytes] = {}
    others = [s for s in states[:MOST_LISTED] if s.cluster_id not in made.detailed]
    # Each table is read once: to find some clusters' rows takes as long as to read all.
    origin = origins(lake, clusters, others, spans, (_name(lake), file.name)) if others else {}
    changed = [s for s in others if not stands(folder / file_name(s.cluster_id), origin[s.cluster_id])]
    standing = {file_name(s.cluster_id) for s in others} - {file_name(s.cluster_id) for s in changed}
    for some in _batches(changed):
        found = details(some)
        for s in some:
            text = cluster_page(s, found[s.cluster_id], now, _name(lake), file.name)
            beside[file_name(s.cluster_id)] = zlib.compress(signed(text, origin[s.cluster_id]))
    return _Pages(made, beside, frozenset(standing))


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
