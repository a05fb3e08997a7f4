"""From which captured replica should a quorum be recovered, and what would each choice lose?

The best claim is Raft's: last epoch, then log end (KIP-595, Vote); then, among equals, the leader of that
epoch and the lowest id. Whether it is safe is decided in recovery_safety.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.facts import Capture, TimeSource
from kraft_core.evidence.lineage import union
from kraft_core.evidence.ranges import log_ranges
from kraft_core.evidence.rows import LogRange
from kraft_core.evidence.set_history import SetNode, set_nodes
from kraft_core.evidence.states import SetInForce, static_set
from kraft_core.evidence.static_voters import static_elections
from kraft_core.findings.finding import Finding
from kraft_core.findings.recovery_case import NONE_CUT, RecoveryCase, newest_of
from kraft_core.findings.recovery_safety import decided, is_usable
from kraft_core.messages.uuid_text import ZERO_UUID
from kraft_core.raft.voters import ReplicaKey, VoterSet
from kraft_core.wording import range_words

# First inclusive, end exclusive.
_Offsets = tuple[int, int]


@dataclass(frozen=True, slots=True)
class RecoveryCandidate:
    """A captured replica by its newest capture.

    captured_at (ms): when it was copied, None if nothing states it; captured_from: at the earliest, None if
    nothing dates it; time_source: what says so. is_observer: no voter of the newest committed set; it may be
    chosen by hand, but never counts.
    led_last_epoch: it is the leader of the last epoch in its log. voters_in_force: the set that its log puts
    in force, in words, None if unknown; voters_offset, voters_status: of that set's record, status None for a
    static one. loses: what other captures hold and it does not, by commit status, in words; "" for nothing.
    keeps: what of its log is truncated elsewhere or is not known to be committed.
    """

    node_id: int
    directory_id: str
    capture_id: str
    captured_at: int | None
    captured_from: int | None
    time_source: TimeSource
    last_leader_epoch: int
    log_end_offset: int
    is_observer: bool
    led_last_epoch: bool
    voters_in_force: str | None
    voters_offset: int | None
    voters_status: str | None
    loses: str
    keeps: str


@dataclass(frozen=True, slots=True)
class RecoveryAdvice:
    """as_of (ms): the advice covers what was committed by then, None if nothing counts; as_of_source: what
    says so. By the newest timestamp in a log, the captures were made then or later.

    why: why the choice is safe or not, in words. best: all with the best claim, voters first;
    empty where no captured log has a claim. others: the rest, best claim first. highest_epoch: in any
    quorum-state, log or describe output; a recovered quorum must continue above it.
    """

    cluster_id: str
    as_of: int | None
    as_of_source: TimeSource | None
    is_safe: bool
    why: str
    best: tuple[RecoveryCandidate, ...]
    others: tuple[RecoveryCandidate, ...]
    highest_epoch: int | None


def recovery_advice(
    known: Conclusions,
    findings: Sequence[Finding],
    without: Iterable[int] = (),
    reported_epoch: int | None = None,
    cut: Mapping[str, str] = NONE_CUT,
    backups_of: frozenset[int] = frozenset(),
) -> RecoveryAdvice:
    """The advice that the newest captures of a cluster's replicas give.

    findings: the cluster's, by findings.judge. without: ids of nodes that are gone for good; what their
    captures hold is still known, but they are not candidates and do not count. reported_epoch: the highest
    that a describe output reports. cut: as RecoveryCase has it. backups_of: ids of nodes that are gone, whose
    captures are candidates all the same; of equal logs, those of other voters have the better claim.
    """
    gone = frozenset(without)
    newest = newest_of(known)
    nodes = set_nodes(known)
    counting = _counting(known, nodes)
    ranges = log_ranges(known)
    statuses = {node.key: node.verdict.status if node.verdict else None for node in nodes}
    candidates = [
        _candidate(known, captures[-1], counting[:1], ranges, statuses)
        for replica, captures in newest.items()
        if replica.id not in gone and captures and (captures[-1].epoch_ranges or captures[-1].log_end_offset)
    ]
    candidates.sort(key=_claim)
    voters = [c for c in candidates if not c.is_observer]
    best = [c for c in candidates if voters and _log(c) == _log(voters[0])]
    remaining = [c for c in best if c.node_id not in backups_of]
    best = remaining if any(not c.is_observer for c in remaining) else best
    case = _case(known, counting, best, ranges, findings, gone, backups_of, newest, cut)
    captured = {capture.capture_id: capture for capture in known.facts.captures}
    best = [c for c in best if not c.is_observer or is_usable(case, captured[c.capture_id])]
    safety = decided(case)
    epochs = [c.quorum_state_epoch for c in known.facts.captures if c.quorum_state_epoch is not None]
    epochs += [epoch_range.leader_epoch for c in known.facts.captures for epoch_range in c.epoch_ranges[-1:]]
    epochs += [] if reported_epoch is None else [reported_epoch]
    return RecoveryAdvice(
        known.facts.cluster_id,
        safety.as_of,
        safety.time_source,
        safety.is_safe,
        safety.why,
        tuple(best),
        tuple(c for c in candidates if c not in best),
        max(epochs, default=None),
    )


def counting_sets(known: Conclusions) -> list[SetInForce]:
    """The newest committed voter set first, then every later one that may still count."""
    return _counting(known, set_nodes(known))


def lacking(known: Conclusions, capture: Capture) -> list[tuple[str, int, int, int]]:
    """What other captures hold and this one lacks, in log and checkpoint, except what is truncated.

    (commit status, epoch, first offset, end offset exclusive) of each range.
    """
    start = capture.log_start_offset if capture.log_start_offset is not None else capture.log_end_offset
    return _missing(_by_epoch(capture), start or 0, log_ranges(known))


def unproven(known: Conclusions, capture: Capture) -> list[tuple[str, int, int, int]]:
    """What a capture's log holds that is not known to be committed; ranges as of lacking()."""
    return _unproven(_by_epoch(capture), log_ranges(known))


def truncated(known: Conclusions) -> list[tuple[str, int, int, int]]:
    """What captures hold and a later leader replaced: it was never committed; ranges as of lacking()."""
    return [
        (held.commit_status, held.leader_epoch, held.first_offset, held.end_offset)
        for held in log_ranges(known)
        if held.commit_status == "truncated"
    ]


def ranges_text(ranges: list[tuple[str, int, int, int]]) -> str:
    """Ranges as of lacking(), in words; "" for none."""
    return "; ".join(
        f"{range_words(first, end)} of epoch {epoch} ({status})" for status, epoch, first, end in ranges
    )


def _case(
    known: Conclusions,
    counting: list[SetInForce],
    best: list[RecoveryCandidate],
    ranges: list[LogRange],
    findings: Sequence[Finding],
    gone: frozenset[int],
    backups_of: frozenset[int],
    newest: Mapping[ReplicaKey, tuple[Capture, ...]],
    cut: Mapping[str, str],
) -> RecoveryCase:
    captures = {capture.capture_id: capture for capture in known.facts.captures}
    chosen = tuple(captures[c.capture_id] for c in best if not c.is_observer)
    lost = {
        entry
        for capture in chosen
        for entry in _missing(_by_epoch(capture), capture.log_start_offset or 0, ranges)
        if entry[0] == "committed"
    }
    words = ranges_text(sorted(lost))
    return RecoveryCase(known, tuple(counting), chosen, words, findings, gone, backups_of, newest, cut)


def _counting(known: Conclusions, nodes: list[SetNode]) -> list[SetInForce]:
    recorded = [n for n in nodes if n.verdict is not None and n.verdict.status != "truncated"]
    committed = [n for n in recorded if n.verdict is not None and n.verdict.status == "committed"]
    if committed:
        first = max(committed, key=lambda n: (n.voters.offset, n.voters.leader_epoch)).voters
        return [first, *(n.voters for n in recorded if n.voters.offset > first.offset)]
    configured = _configured(known) or [n.voters for n in nodes if n.source == "bootstrap"]
    return [*configured, *(n.voters for n in recorded)]


def _configured(known: Conclusions) -> list[SetInForce]:
    """The static sets, the newest first, back to the last one whose LEADER_CHANGE is committed.

    Majorities of two of them may have no voter in common: whoever configures them may change any number.
    """
    found: dict[VoterSet, SetInForce] = {}
    for election in reversed(static_elections(known.elections, known.in_force)):
        found.setdefault(election.voter_set, static_set(election))
        prefix = known.commit.prefixes.get(election.leader_epoch)
        if prefix is not None and prefix.proof_of(election.batch_end_offset) is not None:
            break
    return list(found.values())


def _candidate(
    known: Conclusions,
    capture: Capture,
    newest_set: list[SetInForce],
    ranges: list[LogRange],
    statuses: dict[tuple[int, int, str], str | None],
) -> RecoveryCandidate:
    epoch, end = _last_epoch(known, capture), capture.log_end_offset or 0
    voters = known.in_force.voters_at(epoch, end - 1)
    election = known.elections.get(epoch)
    of_epoch = _by_epoch(capture)
    return RecoveryCandidate(
        capture.node_id,
        capture.directory_id or ZERO_UUID,
        capture.capture_id,
        capture.captured_until,
        capture.captured_from,
        capture.time_source,
        epoch,
        end,
        not any(v.matches(capture.replica) for counted in newest_set for v in counted.voters),
        election is not None and _leads(known, capture.replica, epoch),
        voters.words if voters else None,
        voters.offset if voters else None,
        statuses.get((voters.offset, voters.leader_epoch, voters.source)) if voters else None,
        ranges_text(_missing(of_epoch, capture.log_start_offset or 0, ranges)),
        ranges_text(_unproven(of_epoch, ranges)),
    )


def _by_epoch(capture: Capture) -> Mapping[int, Sequence[_Offsets]]:
    """The offsets that a capture holds of each epoch: disjoint ranges, rising."""
    of_epoch: defaultdict[int, list[_Offsets]] = defaultdict(list)
    for epoch_range in capture.epoch_ranges:
        of_epoch[epoch_range.leader_epoch].append((epoch_range.first_offset, epoch_range.end_offset))
    return {epoch: union(ranges) for epoch, ranges in of_epoch.items()}


def _shared(held: Sequence[_Offsets], first: int, end: int) -> Iterator[_Offsets]:
    """Those of disjoint rising ranges that share an offset with another; a log may have a million."""
    for nth in range(bisect_right(held, first, key=itemgetter(1)), len(held)):
        if held[nth][0] >= end:
            break
        yield held[nth]


def _last_epoch(known: Conclusions, capture: Capture) -> int:
    """The epoch of the last batch, or of the checkpoint under which an empty log begins."""
    if capture.epoch_ranges and capture.epoch_ranges[-1].end_offset == capture.log_end_offset:
        return capture.epoch_ranges[-1].leader_epoch
    of_snapshots = [
        s.leader_epoch
        for s in known.facts.snapshots
        if s.end_offset == capture.log_end_offset
        and (capture.node_id, capture.directory_id) in s.held_by
        and s.proves
    ]
    return max(
        [*of_snapshots, *(epoch_range.leader_epoch for epoch_range in capture.epoch_ranges[-1:])], default=-1
    )


def _leads(known: Conclusions, replica: ReplicaKey, epoch: int) -> bool:
    election = known.elections[epoch]
    voters = known.in_force.voters_at(epoch, election.batch_end_offset - 1)
    leader = known.in_force.leader_among(voters.voters, epoch) if voters else None
    return leader.matches(replica) if leader is not None else election.leader_id == replica.id


def _claim(candidate: RecoveryCandidate) -> tuple[int, int, bool, bool, int, str]:
    epoch, end = _log(candidate)
    led = candidate.led_last_epoch
    return -epoch, -end, candidate.is_observer, not led, candidate.node_id, candidate.directory_id


def _log(candidate: RecoveryCandidate) -> tuple[int, int]:
    return candidate.last_leader_epoch, candidate.log_end_offset


def _missing(
    of_epoch: Mapping[int, Sequence[_Offsets]], log_start: int, ranges: list[LogRange]
) -> list[tuple[str, int, int, int]]:
    """(status, epoch, first, end) of what some capture holds and this one lacks, in log and checkpoint.

    of_epoch: what the capture holds.
    """
    found: list[tuple[str, int, int, int]] = []
    for held in ranges:
        if held.commit_status == "truncated":
            continue
        first, end = max(held.first_offset, log_start), held.end_offset
        mine = _shared(of_epoch.get(held.leader_epoch, ()), first, end)
        for mine_first, mine_end in [*mine, (end, end)]:
            if first < mine_first:
                found.append((held.commit_status, held.leader_epoch, first, mine_first))
            first = max(first, mine_end)
    return found


def _unproven(
    of_epoch: Mapping[int, Sequence[_Offsets]], ranges: list[LogRange]
) -> list[tuple[str, int, int, int]]:
    """(status, epoch, first, end) of what the capture holds and is not known to be committed."""
    return [
        (held.commit_status, held.leader_epoch, max(first, held.first_offset), min(end, held.end_offset))
        for held in ranges
        if held.commit_status != "committed"
        for first, end in _shared(of_epoch.get(held.leader_epoch, ()), held.first_offset, held.end_offset)
    ]
