"""write_report: reads the lake and writes the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dashboards.report.history_queries import ask_histories, under_min_isr, under_min_isr_now
from dashboards.report.page import page
from dashboards.report.queries import ask_detail, ask_fleet, ask_lake
from dashboards.report.state import fleet

# The most urgent clusters get a part of their own, up to this many; the size of the page may allow fewer.
MOST_DETAILED = 24


class PageFileError(Exception):
    """The page's file cannot be written; the message says why."""


@dataclass(frozen=True, slots=True)
class Written:
    """A page: its size, how many clusters it lists, and which have a part of their own."""

    size_bytes: int
    clusters: int
    detailed: tuple[str, ...]


def write_report(lake: Path, file: Path, now: int, clusters: Sequence[str] = ()) -> Written:
    """Write the page over all clusters, or over those named. `now` in ms since the epoch.

    Raises PageFileError.
    """
    spans = under_min_isr(lake, clusters)
    states = fleet(ask_fleet(lake, clusters) | under_min_isr_now(spans), now)
    detailed = [s.cluster_id for s in states[:MOST_DETAILED]]
    histories = ask_histories(lake, detailed, spans)
    rows = {cluster: found | histories[cluster] for cluster, found in ask_detail(lake, detailed).items()}
    made = page(states, rows, now, lake.resolve().name, ask_lake(lake))
    data = made.text.encode()
    _replace(file, data)
    return Written(len(data), len(states), made.detailed)


def _replace(file: Path, data: bytes) -> None:
    """Replace a file atomically. Raises PageFileError."""
    part = file.with_name(f".{file.name}.part")
    try:
        part.write_bytes(data)
        part.replace(file)
    except OSError as error:
        raise PageFileError(error.strerror) from error
