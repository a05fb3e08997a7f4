"""What the page asks of the cluster's metadata over time: the views under_min_isr and admin_events.

The engine inside delta-rs answers, so that the page and `kraftlake sql` share one definition and the page
needs no Spark session.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from dashboards import embedded_sql
from dashboards.report import aggregates
from dashboards.report.plain_rows import plain_rows
from dashboards.report.queries import NEWEST, Row, Rows
from transforms.histories.missing import missing_by_cluster
from transforms.histories.replay_steps import known_paths
from transforms.lake.storage.location import Location

# Successive events that do the same to the same subject make one group, and so do those of any partitions.
ADMIN_EVENTS = """
WITH keyed AS (
  SELECT *, concat_ws(' ', operation, resource_type, CASE WHEN resource_type <> 'PARTITION' THEN subject END,
                      CASE WHEN `after` IS NULL THEN 'unset' END, commit_status,
                      CASE WHEN NOT is_exact THEN 'at or before' END) AS sameness
  FROM admin_events
), marked AS (
  SELECT *, CASE WHEN sameness = LAG(sameness) OVER newest THEN 0 ELSE 1 END AS is_first
  FROM keyed WINDOW newest AS ({newest})
), numbered AS (
  SELECT *, SUM(is_first) OVER newest AS group_number, ROW_NUMBER() OVER newest AS event_number
  FROM marked WINDOW newest AS ({newest})
), counted AS (
  SELECT *, COUNT(*) OVER one AS times, MIN(changed_at) OVER one AS since,
         MIN(event_number) OVER one AS first_number
  FROM numbered WINDOW one AS (PARTITION BY cluster_id, group_number)
)
SELECT * FROM counted WHERE event_number = first_number AND group_number <= {most}
ORDER BY cluster_id, group_number
"""
NEWEST_FIRST = (
    "PARTITION BY cluster_id ORDER BY `offset` DESC, resource_type, operation, subject, `before`, `after`, "
    "commit_status"
)


def under_min_isr(lake: Location, clusters: Sequence[str] = ()) -> Rows:
    """When which partition was under min ISR, of all clusters or of some; times in ms."""
    return view_rows(lake, "under_min_isr", "SELECT * FROM under_min_isr", clusters)


def admin_events(lake: Location, clusters: Sequence[str] = ()) -> Rows:
    """The newest events of each cluster, newest first; times in ms.

    Rows of the view, with the number of events that each represents (`times`) and the time of the oldest
    (`since`).
    """
    sql = ADMIN_EVENTS.format(newest=NEWEST_FIRST, most=NEWEST)
    return view_rows(lake, "admin_events", sql, clusters)


def ask_histories(
    lake: Location, clusters: Sequence[str], spans: Iterable[Row]
) -> dict[str, dict[str, Rows]]:
    """The rows of the sections on metadata by cluster; `spans` are rows of under_min_isr, of any clusters."""
    spans_of, events_of = _by_cluster(spans), _by_cluster(admin_events(lake, clusters) if clusters else ())
    missing = missing_by_cluster(lake, known_paths(lake, clusters)) if clusters else {}
    found = {}
    for cluster in clusters:
        ours = spans_of.get(cluster, [])
        alike = aggregates.partitions_together(sorted(ours, key=_newest_first))
        found[cluster] = {
            "under_min_isr": aggregates.under_min_isr_steps(ours),
            "under_min_isr_spans": alike[:NEWEST],
            "admin_events": events_of.get(cluster, []),
            "missing_records": [asdict(each) for each in missing.get(cluster, ())],
            "under_min_isr_totals": [{"spans": len(alike)}],
        }
    return found


def under_min_isr_now(spans: Iterable[Row]) -> dict[str, Rows]:
    """How many partitions of each cluster are still under min ISR, as a kind of row of the fleet."""
    counts = Counter(span["cluster_id"] for span in spans if span["to_offset"] is None)
    return {"under_min_isr": [{"cluster_id": c, "partitions": n} for c, n in counts.items()]}


def view_rows(lake: Location, view: str, sql: str, clusters: Sequence[str]) -> Rows:
    """The rows of a query over one view, of some clusters or of all; times in ms."""
    found = embedded_sql.query(lake, view, sql, clusters)
    return [] if found is None else plain_rows(found)


def _newest_first(span: Row) -> tuple[Any, ...]:
    """Those that still are first, then the newest."""
    return span["to_offset"] is not None, -span["from_offset"], span["topic_name"], span["partition_id"]


def _by_cluster(rows: Iterable[Row]) -> dict[str, Rows]:
    found: dict[str, Rows] = {}
    for row in rows:
        found.setdefault(row["cluster_id"], []).append(row)
    return found
