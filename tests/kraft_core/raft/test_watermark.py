"""Who counts for the high watermark."""

from __future__ import annotations

from kraft_core.raft.voters import ReplicaKey, Voter, VoterSet
from kraft_core.raft.watermark import (
    LeaderProgress,
    begin_leading,
    counted_end_offsets,
    follower_fetched,
    leader_reached,
)

A, B, C = (Voter(ReplicaKey(replica, chr(64 + replica))) for replica in range(1, 4))
ABC, BC = VoterSet.of((A, B, C)), VoterSet.of((B, C))


def led_by_a() -> LeaderProgress:
    """Leader A of voters A, B and C; all three have stored what lies below 10."""
    progress = leader_reached(begin_leading(A.key, 0, ABC), 10, ABC)
    for follower in (B, C):
        progress = follower_fetched(progress, follower.key, 10)
    return progress


def test_a_leader_outside_the_voter_set_does_not_count_itself() -> None:
    removed = follower_fetched(leader_reached(led_by_a(), 20, BC), B.key, 20)
    assert counted_end_offsets(removed) == (20, 10)
    assert removed.high_watermark == 10
    assert follower_fetched(removed, C.key, 20).high_watermark == 20


def test_a_leader_inside_it_does() -> None:
    appended = follower_fetched(leader_reached(led_by_a(), 20, ABC), B.key, 20)
    assert counted_end_offsets(appended) == (20, 20, 10)
    assert appended.high_watermark == 20


def test_a_leader_of_another_directory_than_the_voter_does_not_count_itself() -> None:
    other = VoterSet.of((Voter(ReplicaKey(1, "Z")), B, C))
    replaced = follower_fetched(leader_reached(led_by_a(), 20, other), B.key, 20)
    assert counted_end_offsets(replaced) == (None, 20, 10)
    assert replaced.high_watermark == 10
