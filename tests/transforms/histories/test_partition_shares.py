"""Large clusters are shared among tasks by topics."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

from tests.transforms.histories.test_histories import worlds
from transforms.histories.partition_shares import MOST_SHARES, Share, bucket_of, in_shares


def shares_of(sizes: list[int], cores: int) -> list[tuple[str, int, int]]:
    plans = [world.plan() for world in worlds(len(sizes))]
    by_cluster = Counter({plan.cluster_id: size for plan, size in zip(plans, sizes, strict=True)})
    found = in_shares([[plan] for plan in plans], by_cluster, cores)
    names = {plan.cluster_id: str(number) for number, plan in enumerate(plans)}
    return [(names[share.plans[0].cluster_id], share.number, share.shares) for share in found]


def test_a_cluster_is_shared_by_the_cores_that_it_would_leave_idle():
    assert shares_of([10], 2) == [("0", 0, 2), ("0", 1, 2)]
    assert shares_of([10], 1) == [("0", 0, 1)]
    assert shares_of([10, 10], 2) == [("0", 0, 1), ("1", 0, 1)]
    assert shares_of([10, 1], 2) == [("0", 0, 2), ("0", 1, 2), ("1", 0, 1)]
    assert shares_of([0], 2) == [("0", 0, 1)]
    assert len(shares_of([10], 100)) == MOST_SHARES


def test_small_clusters_stay_together():
    plans = [world.plan() for world in worlds(2)]
    sizes = Counter({plan.cluster_id: 5 for plan in plans})
    assert in_shares([plans], sizes, 8) == [Share(plans, 10)]


def test_every_topic_is_in_one_share_and_in_any_bucket_of_it():
    events = pa.table({"topic_id": [f"topic {n}" for n in range(2000)] * 2, "n": range(4000)})
    shares = [Share((), 0, number, 4).of(events) for number in range(4)]
    assert pa.concat_tables(shares).sort_by("n").equals(events)
    for one in shares:
        assert 400 < len(pc.unique(one["topic_id"])) < 600
        assert pc.value_counts(one["topic_id"]).field("counts").unique().to_pylist() == [2]
        assert set(bucket_of(one, 8).tolist()) == set(range(8))
    assert Share((), 0).of(events) is events
