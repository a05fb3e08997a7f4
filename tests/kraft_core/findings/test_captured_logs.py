"""Captures whose logs are equal share one: it is what each capture alone would give."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kraft_core.evidence.conclusions import conclude
from kraft_core.evidence.derive import tables
from kraft_core.evidence.facts import Capture, CapturedControlRecord, ClusterFacts, EpochRange, SnapshotFacts
from kraft_core.findings import voter_rules
from kraft_core.findings.captured_logs import CapturedLogs
from kraft_core.findings.cluster_view import ClusterView
from kraft_core.findings.facts import BatchConflict, RuleFacts
from kraft_core.findings.judge import LOG_RULES_OF, judge
from kraft_core.findings.recovery import recovery_advice
from kraft_core.findings.truncations import observed_truncations
from kraft_core.raft import invariants
from tests.kraft_core.evidence.narrated import directory, voters
from tests.kraft_core.evidence.test_lawless import FACTS, NODES, NUMBERS
from tests.kraft_core.findings.test_order import CONFLICTS


@st.composite
def with_equal_logs(draw: st.DrawFn) -> ClusterFacts:
    """Facts in which logs were captured again, also by others, and checkpoints may name their captures."""
    facts = draw(FACTS)
    captures = list(facts.captures)
    for capture in draw(st.lists(st.sampled_from(captures), max_size=5)) if captures else ():
        node, directory_id = directory(draw(NODES))
        captures.append(
            replace(
                capture,
                capture_id=draw(st.uuids()).hex,
                node_id=node,
                directory_id=directory_id,
                captured_at=draw(NUMBERS),
            )
        )
    names = st.lists(st.sampled_from([c.capture_id for c in captures] or ["unknown"]), max_size=3)
    snapshots = tuple(replace(s, held_in=tuple(draw(names))) for s in facts.snapshots)
    return replace(facts, captures=tuple(captures), snapshots=snapshots)


def held_by(capture: Capture, snapshots: tuple[SnapshotFacts, ...]) -> list[SnapshotFacts]:
    """As CapturedLogs.snapshots, of all that there are."""
    return [
        s
        for s in snapshots
        if s.complete and not s.unfinished and (not s.is_bootstrap or s.voters is not None)
        if (
            capture.capture_id in s.held_in
            if s.held_in
            else capture.replica
            in {replace(capture, node_id=n, directory_id=d).replica for n, d in s.held_by}
        )
    ]


@settings(max_examples=60, deadline=None)
@given(facts=with_equal_logs(), conflicts=st.lists(CONFLICTS, max_size=3).map(tuple))
def test_shared_logs_are_those_of_each_capture(
    facts: ClusterFacts, conflicts: tuple[BatchConflict, ...]
) -> None:
    known = conclude(facts)
    shared = CapturedLogs(known, conflicts)
    for capture in known.facts.captures:
        log = shared.of(capture)
        assert log == CapturedLogs(known, conflicts).of(capture)
        assert list(log.snapshots) == shared.snapshots(capture) == held_by(capture, known.facts.snapshots)
        found = log.in_sections(invariants.epochs_never_go_back)
        assert list(found) == [v for each in log.sections for v in invariants.epochs_never_go_back(each)]


@settings(max_examples=60, deadline=None)
@given(facts=with_equal_logs(), high_watermark=NUMBERS)
def test_the_higher_the_high_watermark_the_fewer_changes_are_uncommitted(
    facts: ClusterFacts, high_watermark: int
) -> None:
    """Rule 12 asks for the high watermark only where a log breaks the rule with nothing committed."""
    known = conclude(facts)
    logs = CapturedLogs(known, ())
    for capture in known.facts.captures:
        for log in logs.of(capture).sections:
            found = set(invariants.one_change_uncommitted(log, high_watermark))
            all_found = list(invariants.one_change_uncommitted(log, 0))
            assert bool(found) <= bool(all_found)


CACHES = (None, ((1, 0),), ((1, 0), (2, 4)), ((1, 0), (2, 5)), ((1, 0), (2, 4), (3, 8)), ((1, 0), (2, 8)))
VOTERS_AT, CHECKPOINT_ENDS = (None, 5, 7), (None, 3, 4, 6, 8)


def grown_logs(
    start: int,
    cache: tuple[tuple[int, int], ...] | None,
    elected: bool,
    voters_at: int | None,
    end: int | None,
) -> ClusterFacts:
    """Two replicas' logs of two epochs, captured as they ended at 5 to 11.

    elected: whether the second epoch has its LEADER_CHANGE. voters_at: of a VotersRecord that removes two
    voters, in a batch of two offsets. end: of a checkpoint of the first.
    """
    captures = [
        Capture(
            f"{node} {log_end}",
            *directory(node),
            log_end,
            start,
            log_end,
            (
                EpochRange(1, start, 4, "a", 0, 0, 1 if start == 0 else None),
                EpochRange(2, 4, log_end, "b", 1, log_end, 5 if elected else None),
            ),
            quorum_state_epoch=2,
            leader_epoch_checkpoint=cache,
        )
        for node in "12"
        for log_end in range(5, 12)
    ]
    change = {"leaderId": 1, "voters": [{"voterId": n} for n in (1, 2, 3)], "grantingVoters": []}
    records = [
        CapturedControlRecord(at, at // 4 + 1, at, at + 1, at, 0, "LeaderChange", change) for at in (0, 4)
    ]
    records = records if elected else records[:1]
    version = {"kRaftVersion": 1}
    for at, names in ((2, "1 2 3"), (voters_at, "1")) if voters_at is not None else ():
        epoch = 1 if at < 4 else 2
        records.append(CapturedControlRecord(at, epoch, at, at + 2, at, 0, "KRaftVersion", version))
        records.append(
            CapturedControlRecord(at + 1, epoch, at, at + 2, at, 0, "KRaftVoters", {"voters": voters(names)})
        )
    held: list[SnapshotFacts] = []
    if end is not None:
        epoch, whole, holders = 1 if end <= 4 else 2, (True, False), (directory("1"),)
        held.append(SnapshotFacts(end, epoch, "c", *whole, 0, 0, 1, voters("1 2 3"), 1, end, holders, 0))
    return ClusterFacts("grown", tuple(captures), tuple(records), tuple(held))


@pytest.mark.parametrize("cache", CACHES)
def test_a_flawless_log_is_so_however_far_it_goes_on(cache: tuple[tuple[int, int], ...] | None) -> None:
    """Behind all that rules look at: of captures of one content none has a breach, or each has one."""
    shared = 0
    for how in product((0, 2), [cache], (True, False), VOTERS_AT, CHECKPOINT_ENDS):
        view = ClusterView(conclude(grown_logs(*how)).at_face_value(), RuleFacts())
        found: dict[Hashable, bool] = {}
        for capture in view.known.facts.captures:
            if not voter_rules.depends_on_time(view, capture):
                has_breach = any(breach for rule in LOG_RULES_OF.values() for breach in rule(view, capture))
                content = view.content(capture)
                shared += content in found
                assert found.setdefault(content, has_breach) == has_breach, how
    assert shared


def test_captures_of_one_log_share_it() -> None:
    copies = (Capture(str(n), *directory(str(n)), n, 0, 0, ()) for n in range(1, 4))
    known = conclude(ClusterFacts("c", tuple(copies)))
    logs = CapturedLogs(known, ())
    assert len({id(logs.of(capture)) for capture in known.facts.captures}) == 1


def with_parts_of_its_own(capture: Capture) -> Capture:
    """The same with parts that are no objects of another capture."""
    entries = capture.leader_epoch_checkpoint
    return replace(
        capture,
        epoch_ranges=tuple(map(replace, capture.epoch_ranges)),
        leader_epoch_checkpoint=None if entries is None else tuple((e, start) for e, start in entries),
    )


@settings(max_examples=60, deadline=None)
@given(with_equal_logs())
def test_it_makes_no_difference_which_equal_parts_are_one_object(facts: ClusterFacts) -> None:
    """Captures that share the objects are looked at once, by identity."""
    apart = replace(facts, captures=tuple(map(with_parts_of_its_own, facts.captures)))
    known, known_apart = conclude(facts), conclude(apart)
    assert tables(known) == tables(known_apart)
    findings = judge(known)
    assert findings == judge(known_apart)
    assert observed_truncations(known) == observed_truncations(known_apart)
    assert recovery_advice(known, findings) == recovery_advice(known_apart, findings)
