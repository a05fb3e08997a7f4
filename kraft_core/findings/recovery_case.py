"""What the decision about a recovery is about, and which voters' captures count in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.facts import Capture, label
from kraft_core.evidence.holdings import contradicts_epochs
from kraft_core.evidence.states import SetInForce
from kraft_core.findings.capture_order import have_one_log, newest_readable
from kraft_core.findings.finding import Finding
from kraft_core.raft.voters import ReplicaKey, Voter

NONE_CUT: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class RecoveryCase:
    """The case of one cluster.

    counting: the newest committed voter set, then every later one that may count. best: the newest captures
    of the replicas with the best claim, all with equal logs. lost: committed offsets that other captures hold
    and the best claim lacks, in words, "" for none. findings: the broken rules of the cluster. gone: node ids
    that are lost for good; backups_of: likewise, but captures of them may be candidates. newest: of each
    replica the captures that may be its newest; of several nobody knows which. cut: by id captures whose log
    may have gone on, and why, in words after the node's name. unclear: replicas of which these captures have
    different logs.
    """

    known: Conclusions
    counting: tuple[SetInForce, ...]
    best: tuple[Capture, ...]
    lost: str
    findings: Sequence[Finding]
    gone: frozenset[int]
    backups_of: frozenset[int]
    newest: Mapping[ReplicaKey, tuple[Capture, ...]]
    cut: Mapping[str, str]
    unclear: frozenset[ReplicaKey] = field(init=False)

    def __post_init__(self) -> None:
        unclear = (replica for replica, captures in self.newest.items() if not have_one_log(captures))
        object.__setattr__(self, "unclear", frozenset(unclear))


def why_not_counted(case: RecoveryCase, voter: Voter) -> str | None:
    """Why a voter's captures do not count for its set, and what to do; None if they do."""
    name = f"Node {label(voter.key)}"
    if voter.key.id in case.gone:
        return f"{name} is gone: what it stored after its capture is lost."
    replicas = case.known.holdings.replicas_of(voter)
    if not replicas:
        is_lost = voter.key.id in case.backups_of
        return f"{name} {'is gone: what it stored is lost' if is_lost else 'was not captured: capture it'}."
    if case.known.holdings.is_copied(voter):
        return (
            f"{name} was captured with a directory id that another node also has: one is a copy of the "
            f"other, and neither counts: capture the controllers themselves."
        )
    if len(replicas) > 1:
        return (
            f"{name} is identified by id alone and has {len(replicas)} directories, of which the newer may "
            f"lack what the older had stored: capture the other voters."
        )
    newest = case.newest[replicas[0]]
    if any(case.known.holdings.may_be_new_disk(capture, voter) for capture in newest):
        return f"{name} may have a new disk: capture it with quorum-state, or capture the other voters."
    # Formatting again with the same --initial-controllers gives the same directory id.
    if newest and not newest[-1].epoch_ranges and not newest[-1].log_end_offset:
        return f"{name} has an empty log, as on a disk that was formatted again: capture the other voters."
    return why_not_known(case, replicas[0])


def why_not_known(case: RecoveryCase, replica: ReplicaKey) -> str | None:
    """Why no capture shows a replica's newest log as a whole, and what to do; None if one does."""
    name, newest = f"Node {label(replica)}", case.newest[replica]
    if not newest:
        return (
            f"{name} was captured, but its files could not be read: capture it as a user that may read them."
        )
    if replica in case.unclear:
        return (
            f"{name} has several captures, and which is the newest is not known: state when each was taken "
            f"(capture.json or --captured-at)."
        )
    capture = newest[-1]
    if capture.capture_id in case.cut:
        return f"{name} {case.cut[capture.capture_id]}"
    if not capture.is_contiguous:
        return f"{name} has a gap in its captured log: capture it again."
    if capture.older_log is not None:
        return (
            f"{name} has a log that is older than other captured files ({capture.older_log}): capture it "
            "again, or find out what it lost."
        )
    if capture.capture_id in case.known.holdings.lacks_own:
        return (
            f"{name} has a log that lacks what it had written by then, as other logs show: a part of it was "
            "not copied, or it was copied before the time that is stated: capture it again."
        )
    if capture.capture_id in case.known.holdings.lacks_committed:
        return (
            f"{name} has a log that lacks what a majority had stored by then, as other captures show: a part "
            "of it, or of another voter's, was not copied, or a time is wrong: capture the voters again."
        )
    if contradicts_epochs(capture):
        return f"{name} has a leader-epoch-checkpoint that contradicts its log: capture it again."
    if capture.ends_inside_batch and not capture.tail_damaged and capture.readable:
        return (
            f"{name} has a log that ends inside a batch: the node was killed during a write, or the copy was "
            "cut off: compare the size of the last segment's file, or copy it again."
        )
    if capture.known_end is None:
        return f"{name} was captured with a log that could be read only in part: capture it again."
    if not capture.consistent:
        return f"{name} was copied with a quorum-state older than its log: copy it again, quorum-state last."
    if capture.captured_from is None:
        return f"{name} has a capture of unknown time: state when it was taken (capture.json)."
    last = capture.epoch_ranges[-1] if capture.epoch_ranges else None
    if last and case.known.in_force.voters_at(last.leader_epoch, last.end_offset - 1) is None:
        return f"{name} has a log whose voter set in force is not known: capture its checkpoints, too."
    return None


def newest_of(known: Conclusions) -> dict[ReplicaKey, tuple[Capture, ...]]:
    """Of each replica the readable captures that may be its newest, as they are listed."""
    return {replica: newest_readable(captures) for replica, captures in known.holdings.captures.items()}


def counted_capture(case: RecoveryCase, voter: Voter) -> Capture | None:
    """The capture by which a voter counts."""
    if why_not_counted(case, voter) is not None:
        return None
    (replica,) = case.known.holdings.replicas_of(voter)
    return case.newest[replica][-1]


def counts_text(case: RecoveryCase, voters: SetInForce) -> str:
    """Which voters of a set count, and how many are needed."""
    found = [voter for voter in voters.voters if counted_capture(case, voter) is not None]
    ids = ", ".join(str(voter.key.id) for voter in found) or "none"
    count = "count" if len(found) > 1 else "counts"
    majority = voters.voters.majority
    return (
        f"of voters {voters.words}, {ids} {count}, and {majority} {'is' if majority == 1 else 'are'} needed"
    )
