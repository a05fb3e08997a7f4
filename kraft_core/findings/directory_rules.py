"""Rules 44 to 46, 48: a directory never goes back, and a voter identified by id alone has only one.

KRaft trusts the disk: what a voter has stored it still has after a restart (KIP-595, Quorum state and Fetch).
A restored backup, an old disk or a second directory violates that, and invalidates every count of a majority.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

from kraft_core.evidence.consistency import COPY_MS
from kraft_core.evidence.elections import Election
from kraft_core.evidence.facts import CLOCK_SKEW_MS, Capture, label, labels
from kraft_core.evidence.holdings import copied_by
from kraft_core.evidence.states import SetInForce
from kraft_core.findings.capture_order import is_later, successive
from kraft_core.findings.cluster_view import ClusterView, epoch_at, holds
from kraft_core.findings.finding import Breach, Severity, of_rule
from kraft_core.raft.voters import ReplicaKey, Voter
from kraft_core.wording import length, offset_words


def stored_stays(view: ClusterView) -> Iterator[Breach]:
    """Rule 44, between two captures of one directory in known order.

    A follower truncates only in a higher epoch, and keeps that epoch in its quorum-state. A warning where the
    later capture's files do not fit its log, and of a directory without an id (before Kafka 3.7): it may be a
    new disk, and of a node that is not a voter by id alone a lawful one. An observer does not flush what it
    fetches and may lose it; its epoch it keeps.
    """
    for replica, captures in view.known.holdings.captures.items():
        for before, after in successive(captures):
            is_voter = view.is_voter(before)
            if is_voter:
                yield from _lost_within_epoch(view, before, after)
            if is_voter or replica.directory_id is not None:
                yield from _fallen_epoch(view, before, after)


@dataclass(frozen=True, slots=True)
class _Led:
    """An epoch that a voter led. kept: the end of what was committed of its line by then."""

    election: Election
    kept: int

    @property
    def epoch(self) -> int:
        return self.election.leader_epoch


def led_is_kept(view: ClusterView) -> Iterator[Breach]:
    """Rule 44, of one capture: a voter that has led an epoch holds what was committed of its line by then.

    It wrote the epoch, and held what lies below before it stood for election. What was committed only in a
    later epoch it may have lost to a leader between. A warning of a voter that is known by id alone: the
    capture may be of a new disk. One, too, where it is not known to have held that before its log was
    copied: quorum-state is copied later.
    """
    for leader, led in _committed_while_leading(view).items():
        epochs = [each.epoch for each in led]
        for replica in view.known.holdings.replicas_of(leader):
            for capture in view.known.holdings.captures[replica]:
                count = bisect_right(epochs, -1 if capture.in_epoch is None else capture.in_epoch)
                if capture.known_end is None or not count:
                    continue
                # The epoch it is in it may have begun to lead after its log was copied.
                last = led[count - 1]
                before = led[count - 2].kept if count > 1 else 0
                is_in = last.epoch == capture.in_epoch
                kept = max(before, min(last.election.offset, last.kept)) if is_in else last.kept
                if capture.known_end < kept:
                    held_at = _held_at(view, led[:count], capture.known_end)
                    yield _forgot(leader, capture, last.epoch, kept, held_at)


def _committed_while_leading(view: ClusterView) -> dict[Voter, list[_Led]]:
    """Of each voter the epochs it led, rising."""
    known, ends = view.known, dict[int, int]()
    found: defaultdict[Voter, list[_Led]] = defaultdict(list)
    for epoch, line in known.lineage.lines.items():
        if line.contested:
            continue
        ends[epoch], below = _committed_by(view, epoch, epoch), line.below
        if below is not None:
            end = max(ends.get(below.parent, 0), _committed_by(view, below.parent, epoch))
            ends[epoch] = max(ends[epoch], min(end, below.end_offset))
        election = known.elections.get(epoch)
        there = known.in_force.voters_at(epoch, election.batch_end_offset - 1) if election else None
        leader = known.in_force.leader_among(there.voters, epoch) if there else None
        if election is not None and leader is not None and not known.holdings.is_doubtful(leader):
            before = found[leader][-1].kept if found[leader] else 0
            found[leader].append(_Led(election, max(ends[epoch], before)))
    return found


def _held_at(view: ClusterView, led: list[_Led], offset: int) -> int | None:
    """When (ms) the leader of these epochs had stored an offset of their line, as far as logs show."""
    lines = view.known.lineage.lines
    times = (lines[each.epoch].all_appended_by(offset + 1) for each in led)
    return min((at for at in times if at is not None), default=None)


def _committed_by(view: ClusterView, line_epoch: int, epoch: int) -> int:
    """Up to where an epoch's line was committed in a given epoch or an earlier one; 0 if not known."""
    prefix = view.known.committed_in.get(line_epoch)
    committed = prefix.committed_by(epoch) if prefix else None
    return committed[0] if committed else 0


def _forgot(leader: Voter, capture: Capture, epoch: int, end: int, held_at: int | None) -> Breach:
    first, since = capture.known_end or 0, capture.captured_from
    is_later = held_at is not None and since is not None and held_at + CLOCK_SKEW_MS < since
    otherwise = "" if is_later else ", or its quorum-state was copied later than its log: capture it again"
    return _went_back(
        "error" if is_later and leader.key.directory_id is not None else "warning",
        (capture.node_id, capture.directory_id, "led", epoch),
        f"{label(capture.replica)} had stored the committed {offset_words(first, end)} by the time it led "
        f"epoch {epoch}, and its log ends at {first}, as after {_causes(leader.key)}{otherwise}.",
        f"LEADER_CHANGE of epoch {epoch}; quorum-state: epoch {capture.in_epoch}",
        capture.replica,
        (capture,),
        (first, end, epoch),
    )


def _lost_within_epoch(view: ClusterView, before: Capture, after: Capture) -> Iterator[Breach]:
    for epoch_range in before.epoch_ranges:
        epoch, end = epoch_range.leader_epoch, epoch_range.end_offset
        first = _first_lost(after, epoch, epoch_range.first_offset, end)
        if first is not None:
            fits = after.in_epoch is not None and after.older_log is None
            state = (
                f"its quorum-state has epoch {after.in_epoch}"
                if fits
                else "the files beside it do not fit: a higher epoch may have truncated it"
            )
            them = "it" if end == first + 1 else "them"
            yield _went_back(
                "error" if fits and before.replica.directory_id is not None else "warning",
                (before.node_id, before.directory_id, epoch, first),
                f"{label(before.replica)} had stored {offset_words(first, end)} of epoch {epoch} and lost "
                f"{them}, although no higher epoch replaced {them}, as after {_causes(before.replica)}.",
                f"its later log ends at {after.log_end_offset}; {state}",
                before.replica,
                tuple(c for c in _from(view, after) if _has_lost(c, epoch, first)),
                (first, end, epoch),
            )
            return


def _first_lost(after: Capture, epoch: int, first: int, end: int) -> int | None:
    """The first of a captured range that a later log has lost within the epoch; None if there is none."""
    if _holds_all(after, epoch, first, end):
        return None
    bounds = [
        after.log_end_offset or 0,
        *(
            at
            for epoch_range in after.epoch_ranges
            for at in (epoch_range.first_offset, epoch_range.end_offset)
        ),
    ]
    inside = sorted({first, *(bound for bound in bounds if first < bound < end)})
    return next((offset for offset in inside if _has_lost(after, epoch, offset)), None)


def _holds_all(after: Capture, epoch: int, first: int, end: int) -> bool:
    """Whether one range of a log holds an epoch's offsets, and no other one begins among them."""
    ranges = after.epoch_ranges
    nth = bisect_right(ranges, first, key=lambda epoch_range: epoch_range.first_offset)
    there = ranges[nth - 1] if nth else None
    is_apart = nth == len(ranges) or ranges[nth].first_offset >= end
    return is_apart and there is not None and there.leader_epoch == epoch and there.end_offset >= end


def _has_lost(after: Capture, epoch: int, offset: int) -> bool:
    """Whether a log has neither the epoch's batch at an offset nor a higher epoch that may have truncated it.

    It ends at or below the offset, or has a lower epoch's batch there.
    """
    if after.log_start_offset is None or after.log_end_offset is None:
        return False
    if after.tail_damaged or after.ends_inside_batch or not after.readable:
        return False
    there, state = epoch_at(after, offset), after.quorum_state_epoch
    is_lacking = offset >= after.log_end_offset if there is None else there < epoch
    newest = max((epoch_range.leader_epoch for epoch_range in after.epoch_ranges), default=-1)
    return is_lacking and newest <= epoch and (state is None or state <= epoch)


def _from(view: ClusterView, after: Capture) -> list[Capture]:
    """A capture and the later ones of its replica."""
    captures = view.known.holdings.captures[after.replica]
    return [capture for capture in captures if capture is after or is_later(capture, after)]


def _fallen_epoch(view: ClusterView, before: Capture, after: Capture) -> Iterator[Breach]:
    """quorum-state is written before its epoch is acted upon, and never goes back.

    It is copied last, and nothing says when: of two copies that were made one soon after the other, the first
    one's may be newer.
    """
    was, now = before.in_epoch, after.in_epoch
    if was is None or now is None or now >= was:
        return
    in_log = any(held.leader_epoch > now for held in before.epoch_ranges[-1:])
    copied, since = copied_by(before), after.captured_from
    is_apart = copied is None or since is None or copied + COPY_MS < since
    yield _went_back(
        "error" if before.replica.directory_id is not None and (in_log or is_apart) else "warning",
        (before.node_id, before.directory_id, "quorum-state", was),
        f"{label(before.replica)} went back from epoch {was} to epoch {now}, as after "
        f"{_causes(before.replica)}.",
        f"quorum-state: epoch {was}, later {now}",
        before.replica,
        tuple(c for c in _from(view, after) if c.in_epoch is not None and c.in_epoch < was),
        (None, None, was),
    )


def _causes(replica: ReplicaKey) -> str:
    return "a restored backup or an old disk" if replica.directory_id else "a restored backup or a new disk"


def _went_back(
    severity: Severity,
    identity: tuple[int | str, ...],
    sentence: str,
    evidence: str,
    replica: ReplicaKey,
    captures: tuple[Capture, ...],
    lost: tuple[int | None, int | None, int],
) -> Breach:
    """lost: first and end offset, None for none, and the epoch."""
    first, end, epoch = lost
    return Breach(
        of_rule(44),
        severity,
        identity,
        sentence,
        evidence,
        first_offset=first,
        end_offset=end,
        leader_epochs=(epoch,),
        replicas=(replica,),
        captures=captures,
    )


def one_directory_per_static_id(view: ClusterView) -> Iterator[Breach]:
    """Rule 45, of voters that a set names by id alone: an error where two directories were live at once.

    A new disk is a warning: what the old one had acknowledged, the new one does not know.
    """
    by_id = {voter for node in view.sets for voter in node.voters.voters if voter.key.directory_id is None}
    for voter in sorted(by_id, key=lambda voter: voter.key.id):
        directories = _with_logs(view, voter)
        if len(directories) > 1:
            yield _doubled(view, voter, directories)


def _with_logs(view: ClusterView, voter: Voter) -> list[ReplicaKey]:
    """The voter's directories of which a capture holds any of the log; an unknown directory is none."""
    return [
        replica
        for replica in view.known.holdings.replicas_of(voter)
        if replica.directory_id is not None
        and any(c.epoch_ranges for c in view.known.holdings.captures[replica])
        and not _came_later(view, replica)
    ]


def _came_later(view: ClusterView, replica: ReplicaKey) -> bool:
    """Whether each of its logs goes on above a set that names another directory of its id.

    Such as that of the upgrade of kraft.version: since then nothing counts it by its id.
    """
    logs = [c for c in view.known.holdings.captures[replica] if c.epoch_ranges]
    named = [
        node.voters
        for node in view.sets
        if node.source == "record"
        for voter in node.voters.voters
        if voter.key.id == replica.id and voter.key.directory_id not in (None, replica.directory_id)
    ]
    return any(all(_is_above(log, voters) for log in logs) for voters in named)


def _is_above(log: Capture, voters: SetInForce) -> bool:
    return log.epoch_ranges[0].first_offset > voters.offset or holds(log, voters.leader_epoch, voters.offset)


def _doubled(view: ClusterView, voter: Voter, directories: list[ReplicaKey]) -> Breach:
    node = voter.key.id
    live = any(
        _written_after(view, one, other) and _written_after(view, other, one)
        for nth, one in enumerate(directories)
        for other in directories[:nth]
    )
    what = (
        f"Two directories of voter {node} were live at once, and the voters are identified by id alone: "
        f"each may vote and be counted for it."
        if live
        else f"Voter {node}, identified by id alone, has {len(directories)} directories: the newer one may "
        f"lack what the older one acknowledged."
    )
    return Breach(
        of_rule(45),
        "error" if live else "warning",
        (node,),
        what,
        f"logs in {labels(directories)}",
        replicas=tuple(directories),
        captures=tuple(c for replica in directories for c in view.known.holdings.captures[replica]),
    )


def _written_after(view: ClusterView, one: ReplicaKey, other: ReplicaKey) -> bool:
    """Whether one directory has a batch that was appended after the other was captured with a log."""
    captures = view.known.holdings.captures
    written = max(
        epoch_range.last_appended_at for capture in captures[one] for epoch_range in capture.epoch_ranges
    )
    taken = [c.captured_until for c in captures[other] if c.epoch_ranges and c.captured_until is not None]
    return bool(taken) and written > min(taken)


def one_node_per_directory_id(view: ClusterView) -> Iterator[Breach]:
    """Rule 51: an error where the id alone says which voter a directory is of."""
    by_directory: defaultdict[str, list[ReplicaKey]] = defaultdict(list)
    for replica in view.known.holdings.copied:
        by_directory[replica.directory_id or ""].append(replica)
    voters = {voter for node in view.sets for voter in node.voters.voters}
    for directory_id, found in sorted(by_directory.items()):
        replicas = sorted(found, key=lambda replica: replica.id)
        counts = any(voter.matches(r) for r in replicas for voter in voters if not voter.key.directory_id)
        nodes = ", ".join(str(replica.id) for replica in replicas)
        yield Breach(
            of_rule(51),
            "error" if counts else "warning",
            (directory_id,),
            f"Nodes {nodes} were captured with one directory id, {directory_id}: one is a copy of the other.",
            "meta.properties; kafka-storage format gives each directory its own id",
            replicas=tuple(replicas),
            captures=tuple(c for replica in replicas for c in view.known.holdings.captures[replica]),
        )


def log_is_not_behind_its_files(_: ClusterView, capture: Capture) -> Iterator[Breach]:
    """Rule 46, a warning: the files may have been copied later than the log, else the log lost its end."""
    if capture.older_log is not None:
        yield Breach(
            of_rule(46),
            "warning",
            (capture.node_id, capture.directory_id),
            f"The captured log of {label(capture.replica)} is older than other captured files: it ends at "
            f"{capture.segments_end}, and {capture.older_log}. Copy it again; if it still ends there, it "
            f"lost records.",
            capture.older_log,
            first_offset=capture.segments_end,
            replicas=(capture.replica,),
            captures=(capture,),
        )


def copied_after_it_was_written(_: ClusterView, capture: Capture) -> Iterator[Breach]:
    """Rule 48, a warning: the stated time lies before what the copy holds, by more than clocks differ."""
    newest = capture.captured_from
    if not capture.has_wrong_time or newest is None:
        return
    stated, source = capture.captured_at, capture.captured_at_source
    yield Breach(
        of_rule(48),
        "warning",
        (capture.node_id, capture.directory_id, stated),
        f"The stated time of a capture of {label(capture.replica)}, {_utc(stated)} ({source}), is "
        f"{length(newest - stated)} before its newest timestamp, and is ignored. State the correct time "
        f"with --captured-at, or copy with kraftlake capture.",
        f"newest timestamp inside: {_utc(newest)}",
        replicas=(capture.replica,),
        captures=(capture,),
    )


def _utc(ms: int) -> str:
    return f"{datetime.fromtimestamp(ms // 1000, UTC):%Y-%m-%d %H:%M:%SZ}"
