"""Table functions about the quorum at a time: who could vote, and who led.

Each answers with at least one row, and column validity says what the row is worth: valid (proven), observed
(reported by describe outputs then, or both before and after), or undecided (possible by what is known).
"""

from __future__ import annotations

from collections.abc import Iterator


def statements(database: str) -> Iterator[str]:
    """The functions qualify their tables by their database: Spark resolves names where they are called."""
    yield _voters_at(database)
    yield _leaders_at(database)


def _voters_at(database: str) -> str:
    """Where no set is known for the time, the columns of the only row are null.

    A set that is only known from later on (in_force_from_exact is false) may have been in force after the one
    before it began; one that nothing replaced may have been replaced after the newest capture.
    """
    return f"""CREATE OR REPLACE FUNCTION voters_at(of_cluster STRING, at_time TIMESTAMP) RETURNS TABLE RETURN
WITH sets AS (
  SELECT *, COALESCE(at_time BETWEEN observed_from AND observed_to, false) AS is_observed,
         MAX(in_force_from) OVER (ORDER BY in_force_from, `offset`
                                  ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS earliest_from
  FROM {database}.voter_sets WHERE cluster_id = of_cluster
), possible AS (
  SELECT *, in_force_from_offset IS NOT NULL AND in_force_from <= at_time
            AND (in_force_to IS NULL OR in_force_to_exact) AS is_proven
  FROM sets
  WHERE is_observed
     OR (in_force_from IS NULL OR in_force_from <= at_time
         OR NOT in_force_from_exact AND COALESCE(earliest_from <= at_time, true))
        AND NOT COALESCE(in_force_to <= at_time, false)
), newest AS (
  SELECT MAX(captured_at) AS captured_at FROM {database}.captures WHERE cluster_id = of_cluster
)
SELECT p.`offset`, p.leader_epoch, p.source, p.voter_ids, p.majority, p.commit_status, p.truncated_by_epoch,
       p.in_force_from, p.in_force_to, p.in_force_from_exact, p.in_force_to_exact,
       CASE WHEN p.is_proven AND at_time <= n.captured_at THEN 'valid'
            WHEN p.is_observed THEN 'observed' ELSE 'undecided' END AS validity,
       p.observed_from, p.observed_to, p.evidence
FROM newest n LEFT JOIN possible p ON true"""


def _leaders_at(database: str) -> str:
    """An epoch led from its LEADER_CHANGE to its last captured batch; from there to the next one it may have.

    Where no epoch is known that may have led then, the columns of the only row are null.
    """
    return f"""CREATE OR REPLACE FUNCTION leaders_at(of_cluster STRING, at_time TIMESTAMP)
RETURNS TABLE RETURN
WITH neighbours AS (
  SELECT *, MIN(known_from) OVER (ORDER BY leader_epoch ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)
              AS next_known_from,
         MAX(known_to) OVER (ORDER BY leader_epoch ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
              AS last_known_to
  FROM {database}.epochs WHERE cluster_id = of_cluster
), possible AS (
  SELECT *,
         CASE WHEN leader_source = 'record' AND at_time BETWEEN elected_at AND known_to THEN 'valid'
              WHEN leader_id IS NOT NULL AND at_time BETWEEN LEAST(known_from, observed_from)
                                                         AND GREATEST(known_to, observed_to) THEN 'observed'
              ELSE 'undecided' END AS validity
  FROM neighbours
)
SELECT p.leader_epoch, p.leader_id, p.leader_source, p.elected_at, p.known_from, p.known_to, p.observed_from,
       p.observed_to, COALESCE(p.validity, 'undecided') AS validity
FROM (SELECT 1) one LEFT JOIN possible p
  ON p.validity <> 'undecided'
  OR COALESCE(p.elected_at <= at_time, true) AND NOT COALESCE(p.next_known_from <= at_time, false)
     AND NOT COALESCE(p.last_known_to >= at_time, false)"""
