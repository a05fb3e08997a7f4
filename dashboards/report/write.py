"""Reads the lake, makes the page, and writes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dashboards.report.history_queries import ask_histories, under_min_isr, under_min_isr_now
from dashboards.report.page import Page, page
from dashboards.report.queries import ask_detail, ask_fleet, ask_lake
from dashboards.report.state import NONE_FAILED, fleet
from transforms.lake.delta_rs import cluster_ids
from transforms.lake.isolation import apart
from transforms.lake.storage.location import Location
from transforms.lake.table_damage import damaged_tables

Row = dict[str, Any]

# The most urgent clusters get a part of their own, up to this many; the size of the page may allow fewer.
MOST_DETAILED = 60


class PageFileError(Exception):
    """The page's file cannot be written; the message says why."""


class DamagedLakeError(Exception):
    """Files of the lake are lost or damaged."""


@dataclass(frozen=True, slots=True)
class Report:
    """A page as bytes: how many clusters it lists, which have a part of their own, which failed, and why."""

    data: bytes
    clusters: int
    detailed: tuple[str, ...]
    failed: dict[str, str]


def made_report(lake: Location, now: int, clusters: Sequence[str] = (), names: Sequence[Row] = ()) -> Report:
    """The page over all clusters, or over those named. `now` in ms since the epoch.

    names: rows of cluster_names to use in place of the lake's.
    A cluster that cannot be shown fails alone. Raises DamagedLakeError if files of the lake are the reason.
    """
    every = list(clusters) or cluster_ids(lake)
    made: list[Page] = []
    # Without a condition all clusters are read faster than by their ids.
    failed = apart(
        every, lambda some: made.append(_page(lake, now, clusters if some == every else some, names))
    )
    if failed and damaged_tables(lake, open_files=True):
        raise DamagedLakeError
    if failed:
        sound = [cluster for cluster in every if cluster not in failed]
        made.append(
            _page(lake, now, sound, names, failed) if sound else page([], {}, now, _name(lake), (), failed)
        )
    return Report(made[-1].text.encode(), made[-1].clusters, made[-1].detailed, failed)


def put_report(report: Report, file: Path) -> None:
    """Replace the file atomically. Raises PageFileError."""
    part = file.with_name(f".{file.name}.part")
    try:
        part.write_bytes(report.data)
        part.replace(file)
    except OSError as error:
        raise PageFileError(error.strerror) from error


def _page(
    lake: Location,
    now: int,
    clusters: Sequence[str],
    names: Sequence[Row],
    failed: Mapping[str, str] = NONE_FAILED,
) -> Page:
    """The page over all clusters, or over those named and those that failed."""
    spans = under_min_isr(lake, clusters)
    named: dict[str, Sequence[Row]] = {"names": names} if names else {}
    states = fleet({**ask_fleet(lake, clusters), **under_min_isr_now(spans), **named}, now)
    detailed = [s.cluster_id for s in states[:MOST_DETAILED]]
    histories = ask_histories(lake, detailed, spans)
    rows = {cluster: found | histories[cluster] for cluster, found in ask_detail(lake, detailed).items()}
    return page(states, rows, now, _name(lake), ask_lake(lake), failed)


def _name(lake: Location) -> str:
    return lake.resolve().name
