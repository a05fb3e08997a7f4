"""What is drawn of followers: what kraftlake follow can come to hold, and nothing that is not committed."""

from __future__ import annotations

import random

import pytest

from kraft_core.evidence.facts import ClusterFacts
from kraft_core.protocol.replica import Leader
from kraft_core.simulation.setup import Setup
from tests.soundness.captures import Copy
from tests.soundness.claims import ClaimCheck
from tests.soundness.drawing import random_execution
from tests.soundness.execution import Execution, begin, go_on
from tests.soundness.following import (
    Ask,
    FollowedLog,
    Follower,
    fewer_asks,
    followed_logs,
    observations_of,
    random_followers,
    with_followed,
)
from tests.soundness.moves import Append, Elect, LawfulMove, Pull, WriteCheckpoint


def executed(*moves: LawfulMove) -> Execution:
    """Of three dynamic voters."""
    execution = begin(Setup(1, 3, 0))
    assert all(go_on(execution, 3_000, move) for move in moves)
    return execution


def drawn(seed: int) -> tuple[Execution, tuple[Follower, ...]]:
    execution = random_execution(random.Random(seed))
    return execution, random_followers(random.Random(f"{seed} followed"), execution)


def is_replaced(execution: Execution, ask: Ask) -> bool:
    replicas = execution.moments[ask.at].values()
    newest = max(replica.epoch for replica in replicas if isinstance(replica.state, Leader))
    return execution.moments[ask.at][ask.slot].epoch < newest


@pytest.mark.parametrize("seed", range(60))
def test_what_is_followed_is_committed_by_then(seed: int) -> None:
    execution, followers = drawn(seed)
    for log in (log for follower in followers for log in followed_logs(execution, follower)):
        assert log.batches
        newest = log.batches[-1]
        is_noted = log.noted >= execution.appended_at[newest.base_offset, newest.leader_epoch]
        assert not is_noted or all(
            execution.committed_at[batch.base_offset, batch.leader_epoch] <= log.noted
            for batch in log.batches
        )


def test_followers_do_all_that_follow_does() -> None:
    """They ask leaders that were replaced, begin in the middle, begin again, and stop at any moment."""
    asks: list[tuple[Execution, Ask]] = []
    logs: list[FollowedLog] = []
    for seed in range(400):
        execution, followers = drawn(seed)
        asks += ((execution, ask) for follower in followers for ask in follower.asks)
        logs += (log for follower in followers for log in followed_logs(execution, follower))
    assert sum(is_replaced(execution, ask) for execution, ask in asks) > 20
    assert any(ask.at < len(execution.moments) - 8 for execution, ask in asks)
    assert any(log.snapshot for log in logs)
    assert any(log.batches[0].base_offset and not log.snapshot for log in logs)
    assert any(len({batch.leader_epoch for batch in log.batches}) > 1 for log in logs)


COMMITTED = Elect(1, (2, 3)), Pull(2, 1, 2), Pull(3, 1, 2), Append(1, 2), Pull(2, 1, 2), Pull(3, 1, 2)


def test_an_uncommitted_batch_is_not_followed() -> None:
    execution = executed(*COMMITTED, Append(1, 2))
    (log,) = followed_logs(execution, Follower(1, (Ask(1, 7, 7, 7),)))
    leader = execution.moments[7][1]
    assert isinstance(leader.state, Leader)
    assert log.batches == list(leader.log.batches)[:-1]
    assert log.batches[-1].end_offset == leader.state.progress.high_watermark


def test_what_was_deleted_is_replaced_by_the_leader_s_snapshot() -> None:
    execution = executed(*COMMITTED, WriteCheckpoint(1, True), Append(1, 2), Pull(2, 1, 2))
    last = len(execution.moments) - 1
    leader = execution.moments[last][1]
    assert leader.log.start_offset > 0
    asks = Ask(1, 2, 2, 2, batches=1), Ask(1, last, last, last)
    (first, second) = followed_logs(execution, Follower(1, asks))
    assert (first.snapshot, second.snapshot) == (None, leader.log.latest_snapshot)
    assert second.batches[0].base_offset >= leader.log.start_offset


def test_a_leader_of_an_older_epoch_than_was_followed_is_not_read() -> None:
    execution = executed(*COMMITTED, Elect(2, (3,)), Pull(3, 2, 2))
    last = len(execution.moments) - 1
    newer, older = Ask(2, last, last, last, batches=1), Ask(1, last, last, last)
    assert len(followed_logs(execution, Follower(1, (newer, older)))[0].batches) == 1
    assert len(observations_of(execution, [Follower(1, (newer, older))])) == 4


def test_an_epoch_that_was_only_followed_is_concluded() -> None:
    """The only copy is of an empty directory."""
    execution = executed(*COMMITTED)
    last = len(execution.moments) - 1
    follower = Follower(1, (Ask(1, last, last, last),))
    check = ClaimCheck(execution, (Copy(3, 0, 0, execution.at[0], 0),), followers=(follower,))
    assert [*check.unsound()] == []
    assert {check.verdict_on(batch).status for batch in check.captured_batches()} == {"committed"}
    facts = with_followed(ClusterFacts("c"), execution, [follower])
    assert [capture.node_id for capture in facts.followed] == [-1]
    assert [each.high_watermark for each in facts.answered] == [check.followed[0].batches[-1].end_offset]


def test_what_was_read_by_a_pass_that_was_killed_is_noted_later() -> None:
    execution = executed(*COMMITTED, Append(1, 2), Pull(2, 1, 2))
    asks = tuple(Ask(1, at, at, at, is_killed=at == 8) for at in (5, 8))
    (log,) = followed_logs(execution, Follower(1, asks))
    assert (log.noted, log.batches[-1].end_offset) == (execution.at[5], execution.high_watermarks[8])
    copies = (Copy(3, 0, 0, execution.at[0], 0),)
    check = ClaimCheck(execution, copies, followers=(Follower(1, asks),))
    assert [*check.unsound()] == []


def test_asks_can_be_left_out_one_by_one() -> None:
    one, other = Ask(1, 1, 1, 1), Ask(1, 2, 2, 2)
    followers = Follower(1, (one, other)), Follower(2, (one,))
    assert list(fewer_asks(followers)) == [
        (Follower(1, (other,)), followers[1]),
        (Follower(1, (one,)), followers[1]),
        (followers[0],),
    ]
