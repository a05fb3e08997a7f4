"""The state of each captured replica, by its newest capture. The one place that decides what supports SAFE.

A voter is in sync only if its capture shows all of this: a log read to its end, a quorum-state that is not
older than that log and is in the leader's epoch, a leader-epoch-checkpoint that the log reaches, the time of
copying, and that no other capture is newer. Anything less is NOT_KNOWN, in words, and counts for nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.facts import CLOCK_SKEW_MS, Capture, TimeSource
from kraft_core.findings.capture_order import copied_before, is_later
from kraft_core.format.capture import STATED_SOURCES
from kraft_core.protocol.replica import ReplicaConfig
from kraft_core.raft.epochs import EpochCache
from kraft_core.raft.voters import ReplicaKey, VoterSet
from kraft_core.wording import length

# A capture further from the leader's (ms) shows where a replica was, not where it is.
SAME_MOMENT_MS = CLOCK_SKEW_MS
FETCH_TIMEOUT_MS = ReplicaConfig().fetch_timeout


class Standing(Enum):
    LEADER = "leader"
    IN_SYNC = "in sync"
    BEHIND = "behind"
    DIVERGED = "diverged"
    REPLACED = "replaced"
    LOST = "lost"
    NOT_KNOWN = "not known"


@dataclass(frozen=True, slots=True)
class Member:
    """A replica as captured. lag_ms: by append times of the leader's clock; None if unknown.

    time_source: what captured_at is by, None if it was not captured; a file time only lists captures.
    gap: what its capture lacks to count for a verdict, None if it lacks nothing; log_gap: the same, of its
    log alone. A follower with a gap is NOT_KNOWN, unless what it holds shows that it is behind.
    LOST: the action takes it for gone. in_epoch: the epoch that it was in, None if unknown.
    """

    key: ReplicaKey
    is_voter: bool
    standing: Standing
    end_offset: int | None
    lag_records: int | None
    lag_ms: int | None
    captured_at: int | None
    words: str
    gap: str | None = None
    log_gap: str | None = None
    time_source: TimeSource | None = None
    in_epoch: int | None = None

    @property
    def stated_at(self) -> int | None:
        """When it was captured, None if nothing states it."""
        return self.captured_at if self.time_source in STATED_SOURCES else None


@dataclass(frozen=True, slots=True)
class LeaderLog:
    """What the replicas are compared with: the longest captured log of the last epoch.

    leader: of `epoch`, None if it has none. source: the capture whose log it is; as_of (ms): when the leader
    was captured, else the source. errors: what error findings say of a capture, by capture id.
    """

    known: Conclusions
    epoch: int
    leader: ReplicaKey | None
    source: Capture
    as_of: int
    errors: Mapping[str, str]

    @property
    def end_offset(self) -> int:
        return self.source.epoch_ranges[-1].end_offset

    @property
    def epochs(self) -> EpochCache:
        return epochs_of(self.source)


def epochs_of(capture: Capture) -> EpochCache:
    """Where each epoch begins in a captured log."""
    epochs = EpochCache()
    for epoch_range in capture.epoch_ranges:
        epochs = epochs.assign(epoch_range.leader_epoch, epoch_range.first_offset)
    return epochs


def members_of(log: LeaderLog, newest: Iterable[Capture], voters: VoterSet | None) -> tuple[Member, ...]:
    """Every captured replica and every voter that was not captured, voters first, by id."""
    captured = {capture.replica: capture for capture in newest}
    entries = list(voters) if voters else []
    keys = set(captured) | {v.key for v in entries if not any(v.matches(key) for key in captured)}
    are_voters = {key for key in keys if any(voter.matches(key) for voter in entries)}
    ordered = sorted(keys, key=lambda key: (key not in are_voters, key.id, key.directory_id or ""))
    members = [_member(log, key, key in are_voters, captured.get(key)) for key in ordered]
    members = [_of_one_id(member, captured) for member in members]
    return tuple(_doubled(member, members, voters) for member in members)


def _member(log: LeaderLog, key: ReplicaKey, is_voter: bool, capture: Capture | None) -> Member:
    if capture is None:
        words = "not captured"
        return Member(key, is_voter, Standing.NOT_KNOWN, None, None, None, None, words, words, words)
    end = capture.known_end
    lag = max(0, log.end_offset - end) if end is not None else None
    lag_ms = _lag_ms(log, capture, end) if lag and end is not None else 0
    log_gap = _log_gap(log, capture)
    gap = log_gap or _epoch_gap(log, capture) or _clock_gap(capture) or _snapshot_gap(log, end)
    gap = gap or log.errors.get(capture.capture_id)
    standing, words = _standing(log, capture, lag, lag_ms, gap)
    at, by = capture.captured_at, capture.time_source
    return Member(key, is_voter, standing, end, lag, lag_ms, at, words, gap, log_gap, by, capture.in_epoch)


def _lag_ms(log: LeaderLog, capture: Capture, end: int) -> int:
    """For how long at least (ms) it lacked a record that the leader had appended when it was captured.

    Where that is inside an epoch, the record came soon after its last one: leaders append twice a second.
    """
    ranges = log.source.epoch_ranges
    until = min(ranges[-1].last_appended_at, capture.captured_at)
    epoch_range = next(epoch_range for epoch_range in ranges if epoch_range.end_offset > end)
    if capture.epoch_ranges and epoch_range.first_offset < end:
        since = capture.epoch_ranges[-1].last_appended_at
    else:
        since = min([epoch_range.first_appended_at, *_contained_at(log, end)])
    return max(0, until - since)


def _contained_at(log: LeaderLog, end: int) -> Iterator[int]:
    """Times (ms) by which the record at `end` was appended, if snapshots of the leader's log contain it."""
    for snapshot in log.known.facts.snapshots:
        at = snapshot.last_contained_log_timestamp
        if snapshot.proves and snapshot.end_offset > end and log.source.capture_id in snapshot.held_in and at:
            yield at


def _snapshot_gap(log: LeaderLog, end: int | None) -> str | None:
    """Why a log that ends below the leader's does not show for how long it lags: the leader deleted that."""
    start = log.source.epoch_ranges[0].first_offset
    if end is None or end >= start:
        return None
    return f"its log ends at {end}, below the leader's, which begins at {start}: it has to fetch a snapshot"


def _standing(
    log: LeaderLog, capture: Capture, lag: int | None, lag_ms: int, gap: str | None
) -> tuple[Standing, str]:
    """The standing, in words; gap: as in Member."""
    if capture.replica == log.leader:
        return Standing.LEADER, f"leads epoch {log.epoch}"
    unknown = _log_gap(log, capture)
    if unknown is not None or lag is None:
        return Standing.NOT_KNOWN, unknown or _end_gap(capture)
    behind = _not_keeping_up(log, capture, lag, lag_ms)
    if behind is not None:
        return behind
    if gap is not None:
        return Standing.NOT_KNOWN, gap
    return Standing.IN_SYNC, "has the whole log" if not lag else f"lacks the last {_records(lag)}"


def _not_keeping_up(log: LeaderLog, capture: Capture, lag: int, lag_ms: int) -> tuple[Standing, str] | None:
    """What a replica's own log and epoch show against it."""
    if _has_diverged(log, capture):
        words = f"holds a tail of epoch {capture.epoch_ranges[-1].leader_epoch} that will be truncated"
        return Standing.DIVERGED, words
    if lag and lag_ms > FETCH_TIMEOUT_MS:
        return Standing.BEHIND, f"lacks the last {_records(lag)}, for {length(lag_ms, digits=1)}"
    in_epoch, elected = capture.in_epoch, log.known.elections.get(log.epoch)
    late = elected is not None and capture.captured_at - elected.elected_at > FETCH_TIMEOUT_MS
    if in_epoch is not None and in_epoch < log.epoch and late:
        return Standing.BEHIND, f"was still in epoch {in_epoch}"
    return None


def _log_gap(log: LeaderLog, capture: Capture) -> str | None:
    """What keeps a capture from showing the replica's log at the leader's moment."""
    if capture.has_wrong_time and capture.captured_from is not None:
        early = capture.captured_from - capture.captured_at
        return f"the stated time of its capture is {length(early)} before its newest record"
    if capture.captured_until is None:
        return "the time of its capture is not stated (capture.json or --captured-at)"
    captures = log.known.holdings.captures[capture.replica]
    others = (other for other in captures if other.capture_id != capture.capture_id)
    if not all(is_later(capture, other) for other in others):
        return "another capture of it may be newer: its time is the same or not stated"
    if capture.capture_id in log.known.holdings.went_back:
        return "an earlier capture of it held more: it lost what it had stored"
    if capture.capture_id in log.known.holdings.lacks_own:
        return "its log lacks what it had written by then, as other logs show: copied in part, or earlier"
    if capture.capture_id in log.known.holdings.lacks_committed:
        return "its log, or another voter's, lacks what a majority had stored by then"
    apart = capture.captured_at - log.as_of
    if abs(apart) > SAME_MOMENT_MS:
        when = "before" if apart < 0 else "after"
        return f"captured {length(abs(apart))} {when} the leader"
    if capture.known_end is None:
        return _end_gap(capture)
    if not capture.is_contiguous:
        return "its captured log has a gap"
    return None


def _end_gap(capture: Capture) -> str:
    """Why a capture does not show where the replica's log ended."""
    if not capture.readable:
        return "files of its log could not be read"
    if capture.older_log is not None:
        return f"its log is older than other captured files, or incomplete ({capture.older_log})"
    if capture.tail_damaged:
        return "its log is damaged at the end"
    if capture.ends_inside_batch:
        return "its log ends inside a batch: the copy may have been cut off"
    return "no file of its log was captured"


def _epoch_gap(log: LeaderLog, capture: Capture) -> str | None:
    """What keeps a capture from showing that the replica was in the leader's epoch with all of its log."""
    if capture.quorum_state_epoch is None:
        return "its quorum-state was not captured, or cannot be read"
    if capture.in_epoch is None:
        return "its quorum-state is older than its log"
    if capture.in_epoch != log.epoch:
        return f"was still in epoch {capture.in_epoch}"
    if capture.leader_epoch_checkpoint is None:
        return "its leader-epoch-checkpoint was not captured, or cannot be read"
    last_epoch = capture.epoch_ranges[-1].leader_epoch if capture.epoch_ranges else None
    if last_epoch is not None and last_epoch not in dict(capture.leader_epoch_checkpoint):
        return f"its leader-epoch-checkpoint lacks epoch {last_epoch} of its log"
    if capture.replica == log.leader:
        return _silence(capture, "it may have been down")
    # Where it was copied after the leader, that log does not show what it lacked.
    return _silence(capture, "it may lag") if capture.captured_at > log.as_of else None


def _silence(capture: Capture, fear: str) -> str | None:
    """A leader appends a NoOpRecord every half second: a log without a new one is that of no running quorum.

    Only against a leader that appends can followers be measured. fear: what may be the case, in words.
    """
    silent = capture.captured_at - capture.epoch_ranges[-1].last_appended_at if capture.epoch_ranges else None
    if silent is None or silent <= FETCH_TIMEOUT_MS:
        return None
    return f"it appended nothing for {length(silent, digits=1)} before it was captured, so {fear}"


def _clock_gap(capture: Capture) -> str | None:
    """Why the time of a capture does not show for how long it lagged or was silent: it is before its records.

    The clock that states it is behind the leader's, or the leader's was set back: by how much is not known.
    """
    newest = capture.epoch_ranges[-1].last_appended_at if capture.epoch_ranges else capture.captured_at
    behind = newest - capture.captured_at
    if behind <= FETCH_TIMEOUT_MS:
        return None
    return (
        f"the stated time of its capture is {length(behind, digits=1)} before its newest record, so it may "
        "have lagged, or been down, for as long"
    )


def _has_diverged(log: LeaderLog, capture: Capture) -> bool:
    """Whether its last batch lies above the end of that epoch in the leader's log."""
    if not capture.epoch_ranges:
        return False
    last = capture.epoch_ranges[-1]
    end = log.epochs.end_offset_for(last.leader_epoch, log.end_offset)
    return end is not None and (end.leader_epoch != last.leader_epoch or end.end_offset < last.end_offset)


def _of_one_id(member: Member, captured: Mapping[ReplicaKey, Capture]) -> Member:
    """A directory whose node was captured later with another one is gone: it neither leads nor is in sync."""
    capture = captured.get(member.key)
    if capture is None:
        return member
    others = [other for key, other in captured.items() if key.id == member.key.id and other is not capture]
    if any(other.captured_until is not None and copied_before(capture, other) for other in others):
        words, standing = "another directory of this id was captured later", Standing.REPLACED
    elif not all(copied_before(other, capture) for other in others):
        words = "another directory of this id may have been captured later"
        standing = member.standing if member.standing is Standing.LEADER else Standing.NOT_KNOWN
    else:
        return member
    return replace(member, standing=standing, words=words, gap=words, log_gap=words)


def _doubled(member: Member, members: list[Member], voters: VoterSet | None) -> Member:
    """One id counts once: where voters have no directory ids, two live directories count for nothing."""
    entry = voters.voter_for(member.key) if voters else None
    if entry is None or entry.key.directory_id is not None or member.captured_at is None:
        return member
    others = [
        one
        for one in members
        if one.key.id == member.key.id
        and one.key != member.key
        and one.captured_at is not None
        and abs(one.captured_at - member.captured_at) <= SAME_MOMENT_MS
    ]
    if not others:
        return member
    words = f"{len(others) + 1} directories of id {member.key.id} were captured at the same time"
    standing = member.standing if member.standing is Standing.LEADER else Standing.NOT_KNOWN
    return replace(member, standing=standing, words=words, gap=words, log_gap=words)


def _records(count: int) -> str:
    return "record" if count == 1 else f"{count} records"
