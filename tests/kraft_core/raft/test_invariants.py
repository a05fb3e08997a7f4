"""Each rule broken on purpose: it is named, where it broke, and no other rule of one log is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_core.raft import invariants as one
from kraft_core.raft import quorum_invariants as between
from kraft_core.raft.batches import Batch, Batches, ControlRecord, KRaftVersion, LeaderChange
from kraft_core.raft.emulation import emulate, start
from kraft_core.raft.epochs import EpochCache
from kraft_core.raft.log import ReplicaLog, Segment, Snapshot
from kraft_core.raft.quorum_invariants import Committed
from kraft_core.raft.replay import AppendAsFollower, TruncateTo
from kraft_core.raft.rules import RULES, Violation
from kraft_core.raft.voters import ReplicaKey, Voter, VoterSet

A, B, C, D, E = (Voter(ReplicaKey(replica, chr(64 + replica))) for replica in range(1, 6))
ABC = VoterSet.of((A, B, C))
ABCD = VoterSet.of((A, B, C, D))
AB = VoterSet.of((A, B))


def elected(leader: Voter, voters: VoterSet, granting: tuple[Voter, ...] | None = None) -> LeaderChange:
    granted = tuple(ReplicaKey(voter.key.id) for voter in granting or voters.voters)
    return LeaderChange(leader.key.id, tuple(ReplicaKey(voter.key.id) for voter in voters), granted)


def batch(base: int, epoch: int, *values: LeaderChange | KRaftVersion | VoterSet, crc: int = 0) -> Batch:
    """A batch of control records, or of one data record."""
    records = tuple(ControlRecord(base + at, value) for at, value in enumerate(values))
    return Batch(base, base + max(1, len(values)) - 1, epoch, 100, crc, records)


FIRST = batch(0, 1, elected(A, ABC), KRaftVersion(1), ABC)


def log_of(*batches: Batch, **fields) -> ReplicaLog:
    """A log of these batches, with the cache that they ask for and the bootstrap checkpoint of A, B and C."""
    epochs = EpochCache()
    for held in batches:
        epochs = epochs.assign(held.leader_epoch, held.base_offset)
    end = batches[-1].end_offset if batches else 0
    plain = ReplicaLog(
        batches=Batches(batches), epochs=epochs, end_offset=end, snapshots=(Snapshot(0, 0, 1, ABC),)
    )
    return replace(plain, **fields)


def broken(log: ReplicaLog, high_watermark: int = 0) -> list[tuple[int, int]]:
    """Rule and offset of all that the log alone breaks."""
    found: list[Violation] = [
        *one.epochs_never_go_back(log),
        *one.epoch_cache_matches_batches(log),
        *one.epochs_begin_with_leader_change(log),
        *one.one_change_uncommitted(log, high_watermark),
        *one.one_voter_at_a_time(log),
        *one.kraft_version_allows_voters(log),
        *one.snapshots_carry_the_log(log),
        *one.snapshots_are_aligned(log),
        *one.starts_under_a_snapshot(log),
        *one.removed_leader_changes_no_more(log),
        *one.leader_change_names_the_set(log),
    ]
    assert all(violation.rule in RULES and violation.detail for violation in found)
    return [(violation.rule, violation.offset) for violation in found]


SECOND = batch(3, 2, elected(B, ABC))
HEALTHY = log_of(FIRST, SECOND, batch(4, 2), batch(5, 2, ABCD))


def test_a_healthy_log_breaks_nothing() -> None:
    assert broken(HEALTHY) == []
    assert broken(ReplicaLog()) == []


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (log_of(FIRST, SECOND, batch(4, 1), epochs=EpochCache(((1, 0), (2, 3)))), [(2, 4), (11, 4)]),
        (replace(HEALTHY, epochs=EpochCache(((1, 0), (2, 4)))), [(10, 3)]),
        (replace(HEALTHY, epochs=EpochCache(((1, 0),))), [(10, 3)]),
        (log_of(FIRST, batch(3, 2)), [(11, 3)]),
        (log_of(batch(0, 1), batch(1, 2, elected(B, ABC))), [(11, 0)]),
        (log_of(FIRST, batch(3, 1, ABCD), batch(4, 1, ABC)), [(12, 4)]),
        (log_of(FIRST, batch(3, 2, elected(B, ABC), ABCD)), [(12, 4)]),
        (log_of(FIRST, batch(3, 1, VoterSet.of((A, B, D)))), [(13, 3)]),
        (log_of(FIRST, batch(3, 1, VoterSet.of((A, B, C, D, E)))), [(13, 3)]),
        (log_of(FIRST, batch(3, 1, KRaftVersion(0))), [(15, 3)]),
        (
            log_of(batch(0, 1, elected(A, ABC)), batch(1, 1, ABC), snapshots=(), static_voters=ABC),
            [(15, 1)],
        ),
        (replace(HEALTHY, snapshots=(Snapshot(4, 2, 1, AB),)), [(17, 4)]),
        (
            replace(HEALTHY, snapshots=(Snapshot(6, 2, 1, ABCD),), known_high_watermark=5, high_watermark=5),
            [(18, 6)],
        ),
        (replace(HEALTHY, snapshots=(Snapshot(2, 1, 1, None),)), [(18, 2)]),
        (
            log_of(batch(7, 1), segments=(Segment(7),), epochs=EpochCache(((1, 7),))),
            [(19, 7)],
        ),
        (
            log_of(FIRST, batch(3, 1, VoterSet.of((B, C))), batch(4, 1, VoterSet.of((B,)))),
            [(12, 4), (20, 4)],
        ),
        (log_of(FIRST, batch(3, 2, elected(B, AB))), [(23, 3)]),
        (log_of(FIRST, batch(3, 2, elected(B, ABC, granting=(B,)))), [(23, 3)]),
    ],
)
def test_a_broken_rule_is_named(log: ReplicaLog, expected: list[tuple[int, int]]) -> None:
    assert broken(log) == expected


def test_a_log_may_begin_with_records_before_its_first_leader_change() -> None:
    """As written before release 3.6 (KAFKA-15345), also where the copy ends before it."""
    first = (batch(0, 1), batch(1, 1, elected(A, ABC)))
    for count in (1, 2):
        assert broken(log_of(*first[:count], static_voters=ABC)) == []
    assert broken(log_of(*first, batch(2, 2), static_voters=ABC)) == [(11, 2)]


def test_a_committed_change_makes_room_for_the_next() -> None:
    log = log_of(FIRST, batch(3, 1, ABCD), batch(4, 1, ABC))
    assert broken(log, high_watermark=4) == []


def test_what_kafka_would_log_of_a_double_step_is_said() -> None:
    swapped = log_of(FIRST, batch(3, 1, VoterSet.of((A, B, D))))
    assert "passes Kafka's own check" in next(one.one_voter_at_a_time(swapped)).detail
    doubled = log_of(FIRST, batch(3, 1, VoterSet.of((A, B, C, D, E))))
    assert "fails Kafka's own check" in next(one.one_voter_at_a_time(doubled)).detail


def test_a_leader_without_directory_is_recognised_once_it_has_one() -> None:
    static = VoterSet.of(Voter(ReplicaKey(replica)) for replica in (1, 2))
    log = log_of(
        batch(0, 1, elected(A, static)),
        batch(1, 1, KRaftVersion(1), AB),
        batch(3, 1, VoterSet.of((A, B, C))),
        snapshots=(),
        static_voters=static,
    )
    assert broken(log) == []


def test_a_stale_kafka_breaks_rule_16() -> None:
    replica = start(HEALTHY)
    assert list(one.kafka_goes_by_its_log(replica)) == []
    replica = emulate(replica, TruncateTo(3))
    replica = emulate(replica, AppendAsFollower(3, (batch(3, 3, elected(C, ABC)), batch(4, 3, AB))))
    (violation,) = one.kafka_goes_by_its_log(replica)
    assert (violation.rule, violation.detail) == (
        16,
        "uses (1, A), (2, B), (3, C) where its log has (1, A), (2, B)",
    )


def test_a_replica_behind_its_log_breaks_rule_21() -> None:
    assert [found.rule for found in one.epoch_is_not_behind_log(HEALTHY, 1)] == [21]
    assert list(one.epoch_is_not_behind_log(HEALTHY, 2)) == []


def keyed(*logs: ReplicaLog) -> dict[ReplicaKey, ReplicaLog]:
    return {voter.key: log for voter, log in zip(ABC, logs, strict=False)}


def test_two_leaders_of_an_epoch_break_rule_1() -> None:
    other = log_of(FIRST, batch(3, 2, elected(C, ABC)))
    assert [(found.rule, found.offset) for found in between.one_leader_an_epoch(keyed(HEALTHY, other))] == [
        (1, 3)
    ]
    assert list(between.one_leader_an_epoch(keyed(HEALTHY, HEALTHY))) == []


def test_another_prefix_breaks_rule_3() -> None:
    swapped = log_of(FIRST, SECOND, batch(4, 2, crc=7), batch(5, 2, ABCD))
    assert [(found.rule, found.offset) for found in between.logs_match(keyed(HEALTHY, swapped))] == [(3, 4)]
    tail = log_of(FIRST, batch(3, 3, elected(C, ABC)), batch(4, 3))
    assert list(between.logs_match(keyed(HEALTHY, tail))) == []


def test_two_committed_batches_break_rule_4() -> None:
    other = log_of(FIRST, batch(3, 3, elected(C, ABC)))
    both = {A.key: Committed(HEALTHY, 4), B.key: Committed(other, 4)}
    assert [(found.rule, found.offset) for found in between.committed_agree(both)] == [(4, 3)]
    lawful = {A.key: Committed(HEALTHY, 4), B.key: Committed(other, 3)}
    assert list(between.committed_agree(lawful)) == []


def test_a_lost_committed_batch_breaks_rule_5() -> None:
    shorter = log_of(FIRST, SECOND)
    lost = between.committed_stay(HEALTHY, shorter, Committed(HEALTHY, 5))
    assert [(found.rule, found.offset) for found in lost] == [(5, 4)]
    assert list(between.committed_stay(HEALTHY, shorter, Committed(HEALTHY, 4))) == []
    # What a snapshot covers is not lost.
    installed = log_of(start_offset=6, end_offset=6, snapshots=(Snapshot(6, 2, 1, ABCD),))
    assert list(between.committed_stay(HEALTHY, installed, Committed(HEALTHY, 6))) == []


def test_a_falling_high_watermark_breaks_rule_6() -> None:
    high, low = (replace(HEALTHY, known_high_watermark=offset) for offset in (5, 4))
    assert [found.rule for found in between.high_watermark_rises(high, low)] == [6]
    assert list(between.high_watermark_rises(low, high)) == []
    assert list(between.high_watermark_rises(high, HEALTHY)) == []


def test_an_incomplete_leader_breaks_rule_7() -> None:
    found = between.leader_is_complete(log_of(FIRST), Committed(HEALTHY, 4))
    assert [(violation.rule, violation.offset) for violation in found] == [(7, 3)]
    assert list(between.leader_is_complete(HEALTHY, Committed(HEALTHY, 6))) == []


def test_a_high_watermark_without_a_majority_breaks_rule_8() -> None:
    logs = keyed(HEALTHY, log_of(FIRST), log_of(FIRST))
    assert [found.rule for found in between.majority_holds(logs, Committed(HEALTHY, 6), (ABCD, ABC))] == [8]
    assert list(between.majority_holds(logs, Committed(HEALTHY, 3), (ABC,))) == []
    assert list(between.majority_holds(logs, Committed(HEALTHY, 0), (ABC,))) == []


def test_a_high_watermark_at_the_epochs_start_breaks_rule_9() -> None:
    leader = replace(HEALTHY, known_high_watermark=3)
    assert [found.rule for found in between.high_watermark_is_in_epoch(leader, 3)] == [9]
    assert list(between.high_watermark_is_in_epoch(leader, 2)) == []
    assert list(between.high_watermark_is_in_epoch(HEALTHY, 3)) == []


def test_a_change_before_the_epochs_commit_breaks_rule_14() -> None:
    change = (batch(6, 2, ABC),)
    for known, expected in ((None, [14]), (3, [14]), (4, [])):
        leader = replace(HEALTHY, known_high_watermark=known)
        assert [found.rule for found in between.changes_follow_a_commit(leader, 3, change)] == expected
    upgrade = (batch(6, 2, KRaftVersion(1), ABC), batch(8, 2))
    assert list(between.changes_follow_a_commit(HEALTHY, 3, upgrade)) == []


def test_a_leader_outside_the_voters_that_counts_itself_breaks_rule_24() -> None:
    left = VoterSet.of((B, C))
    logs, claimed = keyed(HEALTHY, HEALTHY, log_of(FIRST)), Committed(HEALTHY, 6)

    def broken_rules(leader: Voter, voters: VoterSet, logs: between.Logs) -> list[int]:
        violations = between.leader_outside_voters_is_not_counted(leader.key, logs, claimed, (voters,))
        return [found.rule for found in violations]

    assert broken_rules(A, left, logs) == [24]
    assert broken_rules(B, left, logs) == []  # a voter counts itself: rule 8 alone
    assert broken_rules(A, ABC, logs) == []
    assert broken_rules(A, left, keyed(HEALTHY, HEALTHY, HEALTHY)) == []
    assert broken_rules(A, left, keyed(HEALTHY, log_of(FIRST), log_of(FIRST))) == []  # none with it either
