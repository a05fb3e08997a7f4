"""What the page asks of the logs' growth: the views log_growth and log_space."""

from __future__ import annotations

from collections.abc import Sequence

from dashboards.report.history_queries import view_rows
from dashboards.report.queries import LakeTables, Rows
from transforms.lake.storage.location import Location
from transforms.lake.tables import CAPTURES

# What the page shows of a cluster; of a log with more batches it takes too long to ask.
MOST_SHOWN = 12
MOST_BATCHES = 100_000

LOG_GROWTH = """
WITH kinds AS (
  SELECT cluster_id, type, topic_name, cause, SUM(records) AS records, SUM(size_bytes) AS size_bytes
  FROM log_growth GROUP BY cluster_id, type, topic_name, cause
), ranked AS (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY cluster_id
                               ORDER BY size_bytes DESC, type, topic_name, cause) AS nth
  FROM kinds
), wholes AS (
  SELECT cluster_id, SUM(size_bytes) AS log_bytes, COUNT(DISTINCT day) AS days
  FROM log_growth GROUP BY cluster_id
)
SELECT r.*, w.log_bytes, w.days FROM ranked r JOIN wholes w ON w.cluster_id = r.cluster_id
WHERE r.nth <= {most}
"""


def ask_growth(lake: Location, clusters: Sequence[str]) -> dict[str, dict[str, Rows]]:
    """The rows of the section on growth by cluster; times in ms."""
    if not clusters:
        return {}
    asked = _small_enough(lake, clusters)
    kinds = view_rows(lake, "log_growth", LOG_GROWTH.format(most=MOST_SHOWN), asked) if asked else []
    spaces = view_rows(lake, "log_space", "SELECT * FROM log_space", clusters)
    found: dict[str, dict[str, Rows]] = {cluster: {"log_growth": [], "log_space": []} for cluster in clusters}
    for row in sorted(kinds, key=lambda r: r["nth"]):
        found[row["cluster_id"]]["log_growth"].append(row)
    for row in sorted(spaces, key=lambda r: (r["node_id"], r["directory_id"])):
        found[row["cluster_id"]]["log_space"].append(row)
    return found


def _small_enough(lake: Location, clusters: Sequence[str]) -> list[str]:
    most: dict[str, int] = dict.fromkeys(clusters, 0)
    for row in LakeTables(lake, clusters).rows(CAPTURES, "batches"):
        most[row["cluster_id"]] = max(most[row["cluster_id"]], row["batches"] or 0)
    return [cluster for cluster, batches in most.items() if batches <= MOST_BATCHES]
