"""Random groups of the captures by real Kafka: whatever is missing, nothing is proven that is not so.

What all captures of a cluster say is the truth here: its scenarios end with every replica in agreement.
"""

from __future__ import annotations

from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_core.evidence.conclusions import Conclusions, conclude
from kraft_core.evidence.derive import derive
from kraft_core.evidence.facts import ClusterFacts
from tests.kraft_core.evidence.golden import CLUSTERS, cluster, directories, union

SCENARIOS = {
    **CLUSTERS,
    **{name: (name,) for name in ("dynamic-membership", "election-storm", "v4.4.0-mini")},
}


@cache
def parts_of(name: str) -> list[ClusterFacts]:
    return [part for member in SCENARIOS[name] for part in directories(member)]


def lasting(known: Conclusions) -> dict[tuple[int, int], str]:
    """The committed and the truncated offsets, by (epoch, offset)."""
    return {
        (line.leader_epoch, offset): verdict.status
        for line in known.lineage.lines.values()
        for first, end, verdict in known.commit.ranges(line)
        if verdict.status in ("committed", "truncated")
        for offset in range(first, end)
    }


@cache
def truth(name: str) -> dict[tuple[int, int], str]:
    return lasting(conclude(union(parts_of(name))))


GROUPS = st.sampled_from(sorted(SCENARIOS)).flatmap(
    lambda name: st.tuples(
        st.just(name),
        st.lists(st.integers(0, len(parts_of(name)) - 1), min_size=1, max_size=8),
    )
)


def check_group(name: str, chosen: list[int]) -> None:
    facts = union(parts_of(name)[nth] for nth in chosen)
    found = lasting(conclude(facts))
    wrong = {place: status for place, status in found.items() if truth(name).get(place) != status}
    assert not wrong
    rows = derive(facts).high_watermarks
    lower = [(row.as_of, row.lower_bound) for row in rows if row.lower_bound is not None]
    for row in rows:
        if row.upper_bound is not None:
            assert all(bound <= row.upper_bound for at, bound in lower if at <= row.as_of)


@settings(max_examples=120, deadline=None)
@given(group=GROUPS)
def test_a_group_never_says_otherwise_than_all(group: tuple[str, list[int]]) -> None:
    check_group(*group)


@pytest.mark.long
@settings(max_examples=24_000, deadline=None)
@given(group=GROUPS)
def test_a_group_never_says_otherwise_than_all_many_times(group: tuple[str, list[int]]) -> None:
    check_group(*group)


@settings(max_examples=25, deadline=None)
@given(name=st.sampled_from(sorted(CLUSTERS)), data=st.data())
def test_the_order_of_directories_does_not_count(name: str, data: st.DataObject) -> None:
    parts = data.draw(st.permutations(parts_of(name)))
    assert derive(union([*parts, parts[0]])) == derive(union(parts_of(name)))


@pytest.mark.parametrize("name", sorted(CLUSTERS))
def test_directories_one_by_one_give_what_all_at_once_give(name: str) -> None:
    at_once: ClusterFacts = cluster(name)
    assert derive(union(parts_of(name))) == derive(at_once)
