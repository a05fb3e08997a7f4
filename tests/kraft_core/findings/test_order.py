"""Findings are a function of the set of captures and facts: no order and no duplicate changes them."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_core.evidence.conclusions import conclude
from kraft_core.evidence.facts import ClusterFacts
from kraft_core.findings.describe import observed_watermarks
from kraft_core.findings.explain import explain
from kraft_core.findings.facts import (
    BatchConflict,
    BatchCopy,
    LogOrderFault,
    Observation,
    RuleFacts,
    SnapshotDeviation,
    UnreadableBytes,
)
from kraft_core.findings.judge import judge
from kraft_core.findings.recovery import recovery_advice
from kraft_core.findings.truncations import observed_truncations
from tests.kraft_core.evidence.golden import CLUSTERS, cluster
from tests.kraft_core.evidence.narrated import directory
from tests.kraft_core.evidence.test_lawless import FACTS, NODES, NUMBERS
from tests.kraft_core.findings.golden import findings, rule_facts


def shuffled(facts: ClusterFacts, random: Random) -> ClusterFacts:
    """The same facts in another order, the first of each kind twice."""
    parts = [
        list(part) + list(part[:1])
        for part in (facts.captures, facts.control_records, facts.snapshots, facts.feature_levels)
    ]
    for part in parts:
        random.shuffle(part)
    return ClusterFacts(facts.cluster_id, *(tuple(part) for part in parts))


def shuffled_rule_facts(facts: RuleFacts, random: Random) -> RuleFacts:
    def other(part: tuple) -> tuple:
        doubled = [*part, *part[:1]]
        random.shuffle(doubled)
        return tuple(doubled)

    return RuleFacts(
        other(facts.batch_conflicts),
        other(facts.order_faults),
        other(facts.unreadable),
        other(facts.snapshot_deviations),
        other(facts.observations),
        other(facts.replay_refusals),
        other(facts.other_lives),
        other(facts.unassigned_replicas),
    )


@settings(max_examples=6, deadline=None)
@given(name=st.sampled_from(sorted(CLUSTERS)), random=st.randoms(use_true_random=False))
def test_the_order_of_golden_captures_does_not_count(name: str, random: Random) -> None:
    facts = cluster(name)
    of_rules = rule_facts()[facts.cluster_id]
    found = judge(conclude(shuffled(facts, random)), shuffled_rule_facts(of_rules, random))
    assert tuple(found) == findings(f"all of {name}")


CONFLICTS = st.builds(
    BatchConflict,
    NUMBERS,
    NUMBERS,
    st.lists(
        st.builds(
            BatchCopy,
            st.integers(1, 18),
            NUMBERS,
            st.just(70),
            st.lists(NODES.map(directory), min_size=1, max_size=2, unique=True).map(tuple),
        ),
        min_size=2,
        max_size=3,
        unique=True,
    ).map(tuple),
)
OBSERVATIONS = st.builds(
    Observation,
    st.just("lawless"),
    st.sampled_from(["a", "b"]),
    NUMBERS,
    st.integers(12, 20),
    st.sampled_from(["status", "replication"]),
    st.integers(1, 4),
    st.just("A" * 22),
    st.sampled_from(["Leader", "Follower"]),
    leader_epoch=NUMBERS,
    high_watermark=st.none() | NUMBERS,
)


@st.composite
def everything(draw: st.DrawFn) -> tuple[ClusterFacts, RuleFacts]:
    """Contradictory, torn, tampered-with facts, of which the rule facts speak."""
    facts = draw(FACTS)
    names = st.sampled_from([c.capture_id for c in facts.captures] or ["unknown"])
    snapshots = st.sampled_from(
        [(s.end_offset, s.leader_epoch, s.content_digest) for s in facts.snapshots] or [(1, 1, "unknown")]
    )
    kinds = st.sampled_from(["gap", "overlap", "duplicate", "epoch_regression"])
    return facts, RuleFacts(
        tuple(draw(st.lists(CONFLICTS, max_size=3))),
        tuple(draw(st.lists(st.builds(LogOrderFault, names, NUMBERS, NUMBERS, kinds, NUMBERS), max_size=3))),
        tuple(
            draw(
                st.lists(
                    st.builds(
                        UnreadableBytes,
                        names,
                        st.sampled_from(["x.log", "y.log"]),
                        NUMBERS,
                        NUMBERS,
                        st.sampled_from(["torn_tail", "bad_crc"]),
                        st.none() | NUMBERS,
                        st.none() | NUMBERS,
                    ),
                    max_size=3,
                    unique_by=lambda lost: (lost.capture_id, lost.file, lost.position),
                )
            )
        ),
        tuple(
            SnapshotDeviation(*key, "topics", "t", True, False, draw(st.sampled_from(["", "known"])))
            for key in draw(st.lists(snapshots, max_size=2, unique=True))
        ),
        tuple(draw(st.lists(OBSERVATIONS, max_size=3))),
    )


@settings(max_examples=35, deadline=None)
@given(facts_of_both=everything(), random=st.randoms(use_true_random=False))
def test_whatever_the_facts_are(facts_of_both: tuple[ClusterFacts, RuleFacts], random: Random) -> None:
    facts, of_rules = facts_of_both
    known = conclude(facts)
    expected = judge(known, of_rules)
    assert len({finding.finding_id for finding in expected}) == len(expected)
    other = conclude(shuffled(facts, random))
    assert judge(other, shuffled_rule_facts(of_rules, random)) == expected
    assert observed_truncations(other) == observed_truncations(known)
    assert recovery_advice(other, expected) == recovery_advice(known, expected)
    assert explain(other, 3) == explain(known, 3)
    backwards = observed_watermarks(other, of_rules.observations[::-1])
    assert backwards == observed_watermarks(known, of_rules.observations)
