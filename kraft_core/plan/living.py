"""A running quorum: its leader's log, just fetched, and its replicas as that leader reports them.

The leader knows a follower's log only by its last Fetch, and when that was: a voter is in sync only if the
leader saw it with the whole log within the fetch timeout. Anything less is BEHIND or NOT_KNOWN. The times are
by the leader's clock, which may have been set back: Kafka never lowers the time of the last Fetch
(LeaderState), so a follower may be down and seem caught up for as long as that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kraft_core.evidence.facts import AnsweredWatermark
from kraft_core.messages.uuid_text import ZERO_UUID
from kraft_core.plan.captured_quorum import CapturedQuorum
from kraft_core.plan.standings import FETCH_TIMEOUT_MS, Member, Standing
from kraft_core.raft.voters import ReplicaKey
from kraft_core.wire.quorum import DescribedQuorum, DescribedReplica
from kraft_core.wording import length

Appended = Sequence[tuple[int, int]]
"""End offset (exclusive) and time (ms) of each batch that the leader appended last, in order of the log."""


def living_quorum(copied: CapturedQuorum, described: DescribedQuorum, appended: Appended) -> CapturedQuorum:
    """The quorum of a copy of its leader's log, with the replicas described after the copy was made."""
    copied, leader = replace(copied, is_live=True), described.leader
    if leader is None:
        return replace(copied, superseded_by="the leader is not among the replicas that it reports")
    differing = _differing(copied, described)
    if differing is not None:
        return replace(copied, superseded_by=differing)
    members = [member for member in copied.members if member.key.id == leader.node_id]
    followers = [each for each in described.replicas if each is not leader]
    members += [_member(copied, described, leader, each, appended) for each in followers]
    members.sort(key=lambda member: (not member.is_voter, member.key.id, member.key.directory_id or ""))
    return replace(copied, members=tuple(members), epoch_start=_epoch_start(copied))


def answered_watermarks(described: DescribedQuorum) -> tuple[AnsweredWatermark, ...]:
    """What the leader says is committed, by its clock; nothing while it knows no high watermark."""
    leader, end = described.leader, described.high_watermark
    if leader is None or leader.last_fetch_at is None or end is None:
        return ()
    return (AnsweredWatermark(described.leader_epoch, leader.node_id, end, leader.last_fetch_at),)


def _epoch_start(copied: CapturedQuorum) -> int | None:
    """Where the leader's epoch begins, at the latest: a log that begins within it lacks its LEADER_CHANGE."""
    epochs = copied.log_epochs.entries
    begins_in_it = len(epochs) == 1 and epochs[0][0] == copied.epoch
    return copied.log_start if copied.epoch_start is None and begins_in_it else copied.epoch_start


def _differing(copied: CapturedQuorum, described: DescribedQuorum) -> str | None:
    """Why the log and the description are not of one moment, None if they are."""
    leads = copied.leader.id if copied.leader else None
    if (leads, copied.epoch) != (described.leader_id, described.leader_epoch):
        return f"the leader changed to {described.leader_id} meanwhile: try again"
    if copied.voters is None:
        return None
    by_log = {(voter.key.id, voter.key.directory_id) for voter in copied.voters.voters}
    told = {(each.node_id, _directory(each)) for each in described.replicas if each.is_voter}
    if copied.voters.source == "static":
        by_log, told = {(id_, None) for id_, _ in by_log}, {(id_, None) for id_, _ in told}
    if by_log == told:
        return None
    ids = ", ".join(str(id_) for id_, _ in sorted(told))
    return f"the leader reports the voters {ids}, not those of its log, {copied.voters.words}: try again"


def _directory(replica: DescribedReplica) -> str | None:
    return None if replica.directory_id == ZERO_UUID else replica.directory_id


def _member(
    copied: CapturedQuorum,
    described: DescribedQuorum,
    leader: DescribedReplica,
    replica: DescribedReplica,
    appended: Appended,
) -> Member:
    """A follower. Every time is by the leader's clock; the leader's own are those of its answer."""
    key = ReplicaKey(replica.node_id, _directory(replica))
    end, now = replica.log_end_offset, leader.last_fetch_at
    lag = None if end is None else max(0, max(copied.log_end, leader.log_end_offset or 0) - end)
    caught_up = replica.last_caught_up_at
    age = None if caught_up is None or now is None else now - caught_up
    standing, gap = Standing.NOT_KNOWN, None
    if end is None or replica.last_fetch_at is None:
        words = gap = f"has not fetched from leader {leader.node_id} in epoch {described.leader_epoch}"
    elif age is None:
        words = gap = "the leader has not seen it caught up; for how long is not known"
    elif (contradiction := _contradiction(age, end, now, appended)) is not None:
        words = gap = contradiction
    elif age > FETCH_TIMEOUT_MS:
        standing = Standing.BEHIND
        words = f"lacks {lag}; the leader last saw it caught up {length(age, digits=1)} ago"
    else:
        standing = Standing.IN_SYNC
        words = f"the leader saw it caught up {length(max(0, age), digits=1)} ago"
    return Member(
        key,
        replica.is_voter,
        standing,
        end,
        lag,
        None if age is None else max(0, age),
        now,
        words,
        gap,
        gap,
        copied.as_of_source,
        None if end is None else described.leader_epoch,
    )


def _contradiction(age: int, end: int, now: int | None, appended: Appended) -> str | None:
    """Why a follower may be further behind than the leader's clock says, None if nothing shows it.

    age: ms since the leader saw it caught up. end: of its log. A batch is dated before it is appended.
    """
    lacking = [at for end_offset, at in appended if end_offset > end]
    if now is None or age > FETCH_TIMEOUT_MS:
        return None
    ahead = max(now - age, *lacking, now) - now
    if ahead > FETCH_TIMEOUT_MS:
        return (
            f"the leader's clock was set back: it saw this replica, or appended, {length(ahead)} from now; "
            "until then it does not show for how long the replica has lagged"
        )
    lag = now - min(lacking, default=now)
    if lag > FETCH_TIMEOUT_MS:
        return (
            f"the leader saw it caught up {length(max(0, age), digits=1)} ago, but its log lacks what was "
            f"appended {length(lag, digits=1)} ago: it lost records, or the leader's clock was changed"
        )
    return None
