"""The table function voters_at: who could vote at a time, undecided where the captures do not prove it."""

from __future__ import annotations

from collections.abc import Iterator


def statements(database: str) -> Iterator[str]:
    """The function qualifies its tables by their database: Spark resolves names where it is called.

    There is always a row: where no set is known for the time, its columns are null. A set that is only known
    from later on (in_force_from_exact is false) may have been in force after the one before it began; one
    that nothing replaced may have been replaced after the newest capture.
    """
    yield f"""CREATE OR REPLACE FUNCTION voters_at(of_cluster STRING, at_time TIMESTAMP) RETURNS TABLE RETURN
WITH sets AS (
  SELECT *, MAX(in_force_from) OVER (ORDER BY in_force_from, `offset`
                                     ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS earliest_from
  FROM {database}.voter_sets WHERE cluster_id = of_cluster
), possible AS (
  SELECT *, in_force_from <= at_time AND (in_force_to IS NULL OR in_force_to_exact) AS is_proven FROM sets
  WHERE (in_force_from IS NULL OR in_force_from <= at_time
         OR NOT in_force_from_exact AND COALESCE(earliest_from <= at_time, true))
    AND NOT COALESCE(in_force_to <= at_time, false)
), newest AS (
  SELECT MAX(captured_at) AS captured_at FROM {database}.captures WHERE cluster_id = of_cluster
)
SELECT p.`offset`, p.leader_epoch, p.source, p.voter_ids, p.majority, p.commit_status, p.truncated_by_epoch,
       p.in_force_from, p.in_force_to, p.in_force_from_exact, p.in_force_to_exact,
       CASE WHEN p.is_proven AND at_time <= n.captured_at THEN 'valid' ELSE 'undecided' END AS validity
FROM newest n LEFT JOIN possible p ON true"""
