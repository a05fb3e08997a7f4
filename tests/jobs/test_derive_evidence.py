"""Conclusions drawn in this process and by Spark are the same, of the same facts."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from jobs.captures.ingesting import Ingested
from jobs.derivation.compare_snapshots import Checks
from jobs.derivation.derive_evidence import facts_readers, gathered_facts, is_little, rows_at_hand
from transforms.lake.delta_rs import cluster_ids, rows_with
from transforms.lake.tables import CAPTURES, OBSERVATIONS, SNAPSHOT_CHECKS
from transforms.quality.derived import DERIVED, derive_at_hand, derive_clusters


def test_both_ways_conclude_the_same(lake: Any) -> None:
    """Of the golden lake, and of a capture and an observation that it does not hold yet."""
    clusters = cluster_ids(lake.path)
    assert is_little(lake.path, clusters)
    later = timedelta(hours=1)
    held = max(rows_with(lake.path, CAPTURES), key=lambda row: row["captured_at"])
    seen = max(rows_with(lake.path, OBSERVATIONS), key=lambda row: row["observed_to"])
    fresh = Ingested(captures={held["capture_id"]: held | {"captured_at": held["captured_at"] + later}})
    fresh.observations = [
        seen
        | {"observation_id": "fresh", "observed_to": seen["observed_to"] + later, "log_end_offset": 10**6}
    ]
    deviations = Checks(rows=rows_with(lake.path, SNAPSHOT_CHECKS)).deviations
    assert deviations

    by_spark = derive_clusters(gathered_facts(lake, clusters, fresh, deviations).repartition(2)).toArrow()
    at_hand = derive_at_hand(facts_readers(lake, clusters, fresh, deviations))
    assert set(at_hand["failure"].to_pylist()) == {None}
    for table in DERIVED:
        rows, others = (
            rows_at_hand(found.combine_chunks(), table).to_pylist() for found in (at_hand, by_spark)
        )
        assert sorted(map(repr, rows)) == sorted(map(repr, others)), table.name
