"""Facts that no quorum produces: contradictory, torn, tampered with. They must not break the derivation."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_core.evidence.derive import derive
from kraft_core.evidence.facts import (
    Capture,
    CapturedControlRecord,
    ClusterFacts,
    EpochRange,
    FeatureLevel,
    SnapshotFacts,
)
from tests.kraft_core.evidence.narrated import directory, voters
from tests.kraft_core.evidence.test_simulated import check_keys

NUMBERS = st.integers(min_value=0, max_value=12)
NODES = st.sampled_from(["1", "2", "3", "2b", "1?"])
NAMES = st.lists(NODES, max_size=4).map(" ".join)


@st.composite
def runs(draw: st.DrawFn) -> EpochRange:
    first = draw(NUMBERS)
    end = first + draw(st.integers(min_value=1, max_value=6))
    data = draw(st.none() | NUMBERS)
    return EpochRange(
        draw(NUMBERS),
        first,
        end,
        draw(st.sampled_from("ab")),
        draw(NUMBERS),
        draw(NUMBERS),
        draw(st.none() | st.just(first + 1)),
        data,
        data,
    )


@st.composite
def captures(draw: st.DrawFn) -> Capture:
    node, directory_id = directory(draw(NODES))
    held = tuple(draw(st.lists(runs(), max_size=4)))
    return Capture(
        draw(st.uuids()).hex,
        node,
        directory_id,
        draw(NUMBERS),
        draw(st.none() | NUMBERS),
        draw(st.none() | NUMBERS),
        held,
        quorum_state_epoch=draw(st.none() | NUMBERS),
        quorum_state_leader_id=draw(st.none() | st.integers(-1, 4)),
        leader_epoch_checkpoint=draw(
            st.none() | st.lists(st.tuples(NUMBERS, NUMBERS), max_size=3).map(tuple)
        ),
        consistent=draw(st.booleans()),
        tail_damaged=draw(st.booleans()),
        ends_inside_batch=draw(st.booleans()),
        readable=draw(st.booleans()),
        captured_from=draw(st.none() | NUMBERS),
        captured_until=draw(st.none() | NUMBERS),
    )


@st.composite
def control_records(draw: st.DrawFn) -> CapturedControlRecord:
    base, crc = draw(NUMBERS), draw(st.integers(0, 2**32 - 1))
    offset = base + draw(st.integers(min_value=0, max_value=2))
    kind = draw(st.sampled_from(["LeaderChange", "KRaftVersion", "KRaftVoters"]))
    ids = [{"voterId": voter["voterId"]} for voter in voters(draw(NAMES))]
    value = {
        "LeaderChange": {"leaderId": draw(NUMBERS), "voters": ids, "grantingVoters": ids[:1]},
        "KRaftVersion": {"kRaftVersion": draw(st.integers(0, 2))},
        "KRaftVoters": {"voters": voters(draw(NAMES))},
    }[kind]
    return CapturedControlRecord(
        offset,
        draw(NUMBERS),
        base,
        offset + draw(st.integers(1, 3)),
        crc,
        draw(NUMBERS),
        kind,
        value,
    )


@st.composite
def snapshots(draw: st.DrawFn) -> SnapshotFacts:
    names = draw(st.none() | NAMES)
    return SnapshotFacts(
        end_offset=draw(NUMBERS),
        leader_epoch=draw(NUMBERS),
        content_digest=draw(st.uuids()).hex,
        complete=draw(st.booleans()),
        unfinished=draw(st.booleans()),
        header_timestamp=draw(st.none() | NUMBERS),
        last_contained_log_timestamp=draw(st.none() | NUMBERS),
        kraft_version=draw(st.none() | st.integers(0, 2)),
        voters=None if names is None else voters(names),
        metadata_version=draw(st.none() | NUMBERS),
        batch_end=draw(st.none() | NUMBERS),
        held_by=tuple(directory(name) for name in draw(st.lists(NODES, max_size=2))),
        first_captured_at=draw(NUMBERS),
    )


FACTS = st.builds(
    ClusterFacts,
    st.just("lawless"),
    st.lists(captures(), max_size=5, unique_by=lambda capture: capture.capture_id).map(tuple),
    st.lists(control_records(), max_size=6, unique_by=lambda record: record.batch_crc).map(tuple),
    st.lists(snapshots(), max_size=3, unique_by=lambda snapshot: snapshot.content_digest).map(tuple),
    st.lists(st.builds(FeatureLevel, NUMBERS, NUMBERS, NUMBERS), max_size=2).map(tuple),
)


@settings(max_examples=60, deadline=None)
@given(facts=FACTS, random=st.randoms(use_true_random=False))
def test_whatever_the_facts_are(facts: ClusterFacts, random: Random) -> None:
    expected = derive(facts)
    check_keys(facts)
    parts = [
        list(facts.captures),
        list(facts.control_records),
        list(facts.snapshots),
        list(facts.feature_levels),
    ]
    for part in parts:
        part += part[:1]
        random.shuffle(part)
    shuffled = ClusterFacts("lawless", *(tuple(part) for part in parts))
    assert derive(shuffled) == expected
