"""What each replica is known to have stored, and what its captures lack.

Followers append what the leader sends and truncate only what a later leader replaces, so a replica had stored
by the time of a capture what the capture has of an epoch. Whether it stored it while in that epoch
is another question (Raft, figure 8): only then did it count for that epoch's leader. quorum-state answers it,
because no batch of an epoch reaches a replica before the epoch does.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import accumulate, groupby, pairwise
from operator import itemgetter, le

from kraft_core.evidence.facts import Capture, EpochRange
from kraft_core.evidence.shared_parts import distinct_ranges
from kraft_core.raft.voters import ReplicaKey, Voter


@dataclass(slots=True)
class StoredEnds:
    """Up to where a replica had stored an epoch, by when.

    by: (captured_until, end offset), both rising. end: the highest, also of captures whose time is unknown.
    """

    by: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    end: int = 0

    def add(self, at: int | None, end: int) -> None:
        """Note a capture. Those of a known time come by time."""
        self.end = max(self.end, end)
        if at is not None and (not self.by or end > self.by[-1][1]):
            self.by.append((at, end))

    def steps(self) -> Iterator[tuple[int | None, int]]:
        """(ms, end offset) where the end rises; None: by the time of reading."""
        yield from self.by
        if self.end > (self.by[-1][1] if self.by else 0):
            yield None, self.end


@dataclass(slots=True)
class EpochHolding:
    """What one replica held of one epoch, over its captures.

    ranges: (first, end offset) of each captured range, with captured_at of its first and last capture. held:
    everything of its log below an end, where no gap lies that no other log fills; held_in_epoch counts only
    captures whose quorum-state was still in the epoch.
    """

    ranges: dict[tuple[int, int], tuple[int, int]] = field(
        default_factory=dict[tuple[int, int], tuple[int, int]]
    )
    held: StoredEnds = field(default_factory=StoredEnds)
    held_in_epoch: StoredEnds = field(default_factory=StoredEnds)


@dataclass(frozen=True, slots=True)
class Holdings:
    """by_epoch: holdings by epoch and replica. captures: each replica's, by captured_at, the newest last.

    went_back: ids of captures whose directory held more before, and nothing shows that a leader overruled
    it: an old disk or a restored backup. Such a log says nothing about what its replica had stored.
    lacks_own: ids of captures of a leader in its epoch that lack what it had written by then, as other logs
    show: a part of the log is missing, or the time is wrong. They say no more about what it had stored.
    lacks_committed: ids of captures that lack what a majority had stored by then (lacking_copies.py): some of
    them are not whole, or their times are wrong.
    elsewhere: replicas that another life of the cluster id holds captures of (kraft_core.evidence.elsewhere).
    copied: replicas whose directory id other nodes also have: it is not known whose directory was copied.
    new_disks: ids of captures that may be of a disk which replaced a static voter's (new_disks.py).
    """

    by_epoch: dict[int, dict[ReplicaKey, EpochHolding]]
    captures: dict[ReplicaKey, tuple[Capture, ...]]
    went_back: frozenset[str]
    lacks_own: frozenset[str]
    elsewhere: frozenset[ReplicaKey]
    copied: frozenset[ReplicaKey]
    lacks_committed: frozenset[str] = frozenset()
    new_disks: frozenset[str] = frozenset()

    def shows_end(self, capture: Capture) -> bool:
        """Whether what a capture lacks its replica lacked then, as far as other captures show.

        Of a voter that is known by id alone see may_be_new_disk, too.

        An empty log without quorum-state does not: it may be a disk that was formatted again.
        """
        id_ = capture.capture_id
        is_new = (
            not capture.epoch_ranges and not capture.log_end_offset and capture.quorum_state_epoch is None
        )
        return not (is_new or id_ in self.went_back or id_ in self.lacks_own or id_ in self.lacks_committed)

    def may_be_new_disk(self, capture: Capture, voter: Voter) -> bool:
        """Whether another disk of the node that the voter's id names may have stored what this one lacks."""
        return voter.key.directory_id is None and capture.capture_id in self.new_disks

    def is_doubtful(self, voter: Voter) -> bool:
        """Whether it proves nothing: captures of another life may be of it, or its own of another node."""
        return self.is_copied(voter) or any(voter.matches(replica) for replica in self.elsewhere)

    def is_copied(self, voter: Voter) -> bool:
        """Whether the captures of a voter that is known by id alone may be of another node."""
        return voter.key.directory_id is None and any(voter.matches(replica) for replica in self.copied)

    def replicas_of(self, voter: Voter) -> list[ReplicaKey]:
        """The captured replicas that match a voter: several if it has no directory id."""
        return [replica for replica in self.captures if voter.matches(replica)]


def holdings_of(
    captures: tuple[Capture, ...], leaders: Mapping[int, int], elsewhere: frozenset[ReplicaKey]
) -> Holdings:
    """The holdings that (distinct, time-ordered) captures show.

    leaders: node ids by epoch, where that is known. elsewhere: as in Holdings.
    """
    by_epoch: defaultdict[int, dict[ReplicaKey, EpochHolding]] = defaultdict(dict)
    by_replica: defaultdict[ReplicaKey, list[Capture]] = defaultdict(list)
    whole = _whole(captures)
    placed: defaultdict[tuple[int, int], set[ReplicaKey]] = defaultdict(set)
    alike = _with_equal_logs(captures)
    for capture, *_ in alike:
        for epoch_range in capture.epoch_ranges[capture.whole_ranges :]:
            placed[epoch_range.leader_epoch, epoch_range.first_offset].add(capture.replica)
    for capture in captures:
        by_replica[capture.replica].append(capture)
    for same in alike:
        capture, last_at = same[0], same[-1].captured_at
        below_gap = capture.whole_ranges
        for nth, epoch_range in enumerate(capture.epoch_ranges):
            of_epoch = by_epoch[epoch_range.leader_epoch]
            holding = of_epoch.get(capture.replica)
            if holding is None:
                holding = of_epoch[capture.replica] = EpochHolding()
            place = (epoch_range.leader_epoch, epoch_range.first_offset)
            is_whole = nth < below_gap or any(
                first < place[1] < end or (place[1] == end and len(placed[place]) > 1)
                for first, end in whole[epoch_range.leader_epoch]
            )
            _add(holding, epoch_range, capture, last_at, is_whole=is_whole)
    of_replica = {key: tuple(by_replica[key]) for key in sorted(by_replica)}
    went_back = frozenset(capture.capture_id for held in of_replica.values() for capture in _went_back(held))
    lacks_own = frozenset(capture.capture_id for capture in _lacks_own(captures, leaders))
    return Holdings(dict(by_epoch), of_replica, went_back, lacks_own, elsewhere, _copied(of_replica))


def _lacks_own(captures: tuple[Capture, ...], leaders: Mapping[int, int]) -> Iterator[Capture]:
    """As Holdings.lacks_own. In the epoch that it leads, a node truncates nothing (KIP-595)."""
    written: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    for held in distinct_ranges(captures):
        if held.leader_epoch in leaders:
            written[held.leader_epoch].append((held.last_appended_at, held.end_offset))
    ends = {epoch: rising(each) for epoch, each in written.items()}
    for capture in captures:
        epoch, since = capture.last_epoch, capture.captured_from
        if since is None or leaders.get(epoch) != capture.node_id or capture.in_epoch not in (None, epoch):
            continue
        if (highest(ends[epoch], since + 1) or 0) > capture.segments_end:
            yield capture


def rising(found: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    """Times, and the highest value up to each."""
    found.sort()
    return [at for at, _ in found], list(accumulate((value for _, value in found), max))


def highest(found: tuple[list[int], list[int]] | None, before: int) -> int | None:
    """The highest value of a time before another, of what rising gives; None if there is none."""
    count = bisect_left(found[0], before) if found else 0
    return found[1][count - 1] if found and count else None


def _copied(replicas: Iterable[ReplicaKey]) -> frozenset[ReplicaKey]:
    """Those that share a directory id: formatting gives each directory one of its own (KIP-858)."""
    by_directory: defaultdict[str, list[ReplicaKey]] = defaultdict(list)
    for replica in replicas:
        if replica.directory_id is not None:
            by_directory[replica.directory_id].append(replica)
    return frozenset(replica for same in by_directory.values() if len(same) > 1 for replica in same)


def _whole(captures: tuple[Capture, ...]) -> defaultdict[int, set[tuple[int, int]]]:
    """By epoch the (first, end offset) of ranges below the first gap of their capture; {} without any gap."""
    found: defaultdict[int, set[tuple[int, int]]] = defaultdict(set)
    if all(capture.is_contiguous for capture in captures):
        return found
    for capture in captures:
        for epoch_range in capture.epoch_ranges[: capture.whole_ranges]:
            found[epoch_range.leader_epoch].add((epoch_range.first_offset, epoch_range.end_offset))
    return found


def _with_equal_logs(captures: Iterable[Capture]) -> Iterable[list[Capture]]:
    """Captures by time in groups, by the first of each, that add nothing to it but when they were taken.

    Of stated times the first counts; a time that is not stated says that a replica had stored the log by then
    only where no stated one does.
    """
    found: defaultdict[Hashable, list[Capture]] = defaultdict(list)
    for capture in captures:
        log = capture.log_start_offset, id(capture.epoch_ranges), capture.in_epoch
        found[capture.node_id, capture.directory_id, *log, capture.captured_until is None].append(capture)
    return found.values()


def _add(
    holding: EpochHolding, epoch_range: EpochRange, capture: Capture, last_at: int, *, is_whole: bool
) -> None:
    """last_at: captured_at of the last capture that says the same.

    is_whole: no gap lies below it that no other log fills, with a batch of another replica above it, too.

    No CRC covers the offset at which a batch begins, so a gap may be the damage of an offset. Where another
    log holds that offset, too, the two batches are compared: different ones contest the epoch.
    """
    at, until, bounds = (
        capture.captured_at,
        capture.captured_until,
        (epoch_range.first_offset, epoch_range.end_offset),
    )
    first, last = holding.ranges.get(bounds, (at, at))
    holding.ranges[bounds] = first, max(last, last_at)
    if not is_whole:
        return
    holding.held.add(until, epoch_range.end_offset)
    if capture.in_epoch == epoch_range.leader_epoch:
        holding.held_in_epoch.add(until, epoch_range.end_offset)


def copied_by(capture: Capture) -> int | None:
    """When a capture had been made (ms), as far as it shows; None where nothing states its time.

    The stated time is when copying began: what is in the copy and was appended later was copied later.
    """
    until, ranges = capture.captured_until, capture.epoch_ranges
    if until is None or not ranges:
        return until
    return max(until, ranges[-1].last_appended_at)


def _went_back(captures: tuple[Capture, ...]) -> Iterator[Capture]:
    """Of one replica: from the first capture on that lacks what an earlier one held, in no higher epoch.

    Only a higher epoch truncates, and quorum-state keeps it from then on. Where the directory id is not known
    (before Kafka 3.7), it may be a new disk of the node, which forgot as much.
    """
    stated = [c for c in captures if c.captured_until is not None and _has_log(c)]
    held = list(map(_held, stated))
    if all(map(le, held, held[1:])) and all(map(le, held, map(_reached, stated))):
        return
    copied = sorted((copied_by(c) or 0, of_it) for c, of_it in zip(stated, held, strict=True))
    gone, nth, highest = False, 0, (-1, 0)
    for captured_at, same_time in groupby(stated, key=lambda capture: capture.captured_at):
        found = list(same_time)
        while nth < len(copied) and copied[nth][0] < captured_at:
            highest = max(highest, copied[nth][1])
            nth += 1
        gone = gone or any(_reached(capture) < highest for capture in found)
        yield from (found if gone else ())


def _has_log(capture: Capture) -> bool:
    """Whether what the capture lacks can be seen: it was read as a whole, and has a segment."""
    return capture.readable and capture.log_start_offset is not None


def _reached(capture: Capture) -> tuple[int, int]:
    """The epoch that its files show, and where its log ends."""
    return max(_held(capture)[0], capture.quorum_state_epoch or -1), capture.log_end_offset or 0


def _held(capture: Capture) -> tuple[int, int]:
    """The last epoch and the end of its batches, or the epoch it was in if that is higher."""
    ranges, in_epoch = capture.epoch_ranges, capture.in_epoch
    epoch, end = (ranges[-1].leader_epoch, ranges[-1].end_offset) if ranges else (-1, 0)
    return (in_epoch, 0) if in_epoch is not None and in_epoch > epoch else (epoch, end)


def cached_epoch(capture: Capture, offset: int) -> int | None:
    """An offset's epoch by leader-epoch-checkpoint; None where that does not say.

    Kafka drops its first entries with the beginning of the log.
    """
    entries = capture.leader_epoch_checkpoint or ()
    nth = bisect_right(entries, offset, key=itemgetter(1))
    return entries[nth - 1][0] if nth else None


def contradicts_epochs(capture: Capture) -> bool:
    """Whether the log has another epoch where an entry of leader-epoch-checkpoint begins.

    Then some of its segments were copied at another moment, or the log is damaged.
    """
    ranges = capture.epoch_ranges
    for epoch, start in capture.leader_epoch_checkpoint or ():
        nth = bisect_right(ranges, start, key=lambda held: held.first_offset) - 1
        if nth >= 0 and start < ranges[nth].end_offset and ranges[nth].leader_epoch != epoch:
            return True
    return False


def lacks(capture: Capture, leader_epoch: int, first_offset: int) -> bool:
    """Whether a captured log had nothing of an epoch's batches from an offset on.

    It ended at or below the offset, or has another epoch's batch there. A log whose prefix is deleted, or
    that has a hole there, may have held them; so may one of segments that are older than
    leader-epoch-checkpoint. What lies below a hole may be older than what is above: no log has one.
    """
    if capture.known_end is None:
        return False
    if capture.known_end <= first_offset:
        return True
    nth = (
        bisect_right(capture.epoch_ranges, first_offset, key=lambda epoch_range: epoch_range.first_offset) - 1
    )
    if nth < 0 or first_offset >= capture.epoch_ranges[nth].end_offset:
        return False
    if any(below.end_offset < above.first_offset for below, above in pairwise(capture.epoch_ranges[nth:])):
        return False
    return leader_epoch not in (capture.epoch_ranges[nth].leader_epoch, cached_epoch(capture, first_offset))
