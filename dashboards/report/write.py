"""From the lake to the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from dashboards.report.history_queries import ask_histories, thin_now, thin_spans
from dashboards.report.page import page
from dashboards.report.queries import LakeTables, ask_detail, ask_fleet, ask_lake
from dashboards.report.state import fleet

# So many clusters, those that need a person most, are told one by one; the page's size may stop earlier.
MOST_TOLD = 24


@dataclass(frozen=True, slots=True)
class Written:
    """A page: its size, how many clusters it lists and which it tells one by one."""

    size_bytes: int
    clusters: int
    told: tuple[str, ...]


class UnknownClusterError(Exception):
    """Clusters that the lake has no capture of; the message names them."""


def write_report(lake: Path, file: Path, now: int, clusters: Sequence[str] = ()) -> Written:
    """Write the page over all clusters, or over those named. `now` in ms since the epoch.

    Raises UnknownClusterError, and OSError where the file cannot be written.
    """
    thin = thin_spans(LakeTables(lake, clusters))
    states = fleet(ask_fleet(lake, clusters) | thin_now(thin), now)
    missing = sorted(set(clusters) - {s.cluster_id for s in states})
    if missing:
        raise UnknownClusterError(", ".join(missing))
    told = [s.cluster_id for s in states[:MOST_TOLD]]
    histories = ask_histories(lake, told, thin)
    rows = {cluster: found | histories[cluster] for cluster, found in ask_detail(lake, told).items()}
    made = page(states, rows, now, lake.resolve().name, ask_lake(lake))
    data = made.text.encode()
    replace(file, data)
    return Written(len(data), len(states), made.told)


def replace(file: Path, data: bytes) -> None:
    """Write a file so that whoever looks sees the old or the new one, never a part."""
    part = file.with_name(f".{file.name}.part")
    part.write_bytes(data)
    part.replace(file)
