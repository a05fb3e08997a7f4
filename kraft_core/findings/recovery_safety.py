"""May a quorum be recovered from its best captured log? One decision, with every reason against it.

Any two majorities of a voter set intersect, so one of the logs has everything that the set committed:
as of the earliest of those captures, if each shows a whole log of that very voter, and if no captured file
contradicts the protocol on the way there. reasons_against() lists what forbids "safe"; each reason says what
to capture or to state to resolve it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.facts import Capture, TimeSource, label
from kraft_core.evidence.holdings import contradicts_epochs
from kraft_core.evidence.states import SetInForce
from kraft_core.findings.capture_order import have_one_log, newest_readable
from kraft_core.findings.finding import Finding
from kraft_core.findings.observed_quorum import static_voters_differ, static_voters_reported
from kraft_core.raft.voters import ReplicaKey, Voter
from kraft_core.wording import first_named

MOST_NAMED = 5
"""At most this many reasons of one kind are listed."""

# Rules about the files of one directory: they concern no other replica's log.
_OF_ONE_DIRECTORY = frozenset({0, 10, 19, 21, 46})
# A voter that forgot what it had acknowledged: another voter may have lost it since, and no log shows it.
_FORGETTING = frozenset({44, 45})
# What a leader of an unlawful election believed, and that election: no evidence against another epoch's log.
_BELIEFS = frozenset({6, 8, 9, 23, 24})
# Committed records that another history replaced stay lost, whatever newer captures show.
_LASTING = frozenset({4, 7})
NONE_CUT: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class RecoveryCase:
    """What the decision is about.

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


@dataclass(frozen=True, slots=True)
class Safety:
    """as_of (ms): the captures that count were taken then or later, None if there are none. why: in words.

    time_source: what says so; None where as_of is.
    """

    is_safe: bool
    why: str
    as_of: int | None
    time_source: TimeSource | None


def decided(case: RecoveryCase) -> Safety:
    """Whether recovery from the best claim keeps every record that was committed by as_of."""
    counts = "; ".join(_counts(case, voters) for voters in case.counting)
    reasons = list(dict.fromkeys(reasons_against(case)))
    verdict = (
        "the best claim has every committed record, as of the captures"
        if not reasons
        else f"committed records may be missing. {' '.join(reasons)}"
    )
    counted = [c for voters in case.counting for v in voters.voters for c in [_counted(case, v)] if c]
    dated = [(c.captured_from, c) for c in (*counted, *case.best) if c.captured_from is not None]
    as_of, earliest = min(dated, key=_stated_first, default=(None, None))
    why = f"{counts}: {verdict}" if counts else verdict
    return Safety(not reasons, why, as_of, earliest.time_source if earliest else None)


def _stated_first(dated: tuple[int, Capture]) -> tuple[int, bool]:
    captured_from, capture = dated
    return captured_from, capture.captured_until is None


def reasons_against(case: RecoveryCase) -> Iterator[str]:
    """Why the best claim is not safe; nothing if it is. The one place where that is decided."""
    yield from _without_choice(case)
    yield from _too_few_voters(case)
    yield from _other_voters(case)
    yield from _unusable_choice(case)
    yield from _lost_records(case)
    yield from _voted_for_less(case)
    yield from _of_another_disk(case)
    yield from _contested_epochs(case)
    yield from _captured_elsewhere(case)
    yield from _open_errors(case)


def is_usable(case: RecoveryCase, capture: Capture) -> bool:
    """Whether one captured log has no objection: that of an observer may then be recommended, too."""
    has_errors = any(
        f.severity == "error" and not f.resolved and _names(f, {capture.replica}) for f in case.findings
    )
    return not has_errors and _why_not_known(case, capture.replica) is None


def _without_choice(case: RecoveryCase) -> Iterator[str]:
    if not case.counting:
        reported = static_voters_reported(case.known)
        so_far = f" ({reported}, which proves no majority)" if reported else ""
        yield f"No voter set is known{so_far}: capture a controller whose log or checkpoint names the voters."
    has_logs = any(capture.epoch_ranges for newest in case.newest.values() for capture in newest)
    remain = any(v.key.id not in case.gone for voters in case.counting for v in voters.voters)
    if not case.best and (remain if case.counting else not has_logs):
        yield "No captured log of a voter could be read: capture the voters."


def _too_few_voters(case: RecoveryCase) -> Iterator[str]:
    """Each voter that would be needed and does not count, with what would make it count."""
    for voters in case.counting:
        missing = [v for v in voters.voters if _counted(case, v) is None]
        if len(voters.voters) - len(missing) < voters.voters.majority:
            for voter in missing:
                yield why_not_counted(case, voter) or ""


def _other_voters(case: RecoveryCase) -> Iterator[str]:
    """Static voters may be reconfigured at any restart: a majority of the new ones may have stored more."""
    differ = static_voters_differ(case.known)
    if differ is not None and case.counting and case.counting[0].source == "static":
        yield f"Node {differ}: compare controller.quorum.voters of all controllers, and capture both sets."


def _unusable_choice(case: RecoveryCase) -> Iterator[str]:
    said = set(_too_few_voters(case))
    for capture in case.best:
        reason = _why_not_known(case, capture.replica)
        if reason and reason not in said:
            yield f"Node {label(capture.replica)} has the best claim and does not count. {reason}"


def _lost_records(case: RecoveryCase) -> Iterator[str]:
    """What is proven committed and lies beyond the best claim."""
    if case.lost:
        yield f"The best claim lacks {case.lost}: find out how they were lost before you delete anything."
    ends = [capture.known_end for capture in case.best if capture.known_end is not None]
    end = max(ends, default=None)
    committed = max((p.end_offset for p in case.known.commit.prefixes.values()), default=0)
    if end is not None and end < committed:
        yield (
            f"Everything below {committed} was committed, and the best claim ends at {end}: capture the "
            "replicas that reach there."
        )


def _voted_for_less(case: RecoveryCase) -> Iterator[str]:
    """A voter that voted in a later epoch than its quorum-state has, and holds what the best claim lacks.

    Either its files were copied before that vote, or its disk was replaced: then it may have forgotten what
    it had acknowledged, as the captured files may show.
    """
    voters = [voter for counted in case.counting for voter in counted.voters]
    for replica, newest in case.newest.items():
        if any(voter.matches(replica) for voter in voters) and any(
            not capture.consistent and capture.epoch_ranges and not _is_held(capture, case.best)
            for capture in newest
        ):
            yield (
                f"Node {label(replica)} voted in a later epoch than its captured quorum-state has, and its "
                "captured log holds what the best claim lacks: capture it again, or find out whether its "
                "disk was replaced."
            )


def _of_another_disk(case: RecoveryCase) -> Iterator[str]:
    """A voter by id alone, not always captured with its directory id, that held what the best claim lacks.

    Of one directory that was truncated; of two, the disk was replaced, and the voter forgot it.
    """
    for voter in dict.fromkeys(v for counted in case.counting for v in counted.voters):
        replicas = case.known.holdings.replicas_of(voter)
        if voter.key.directory_id is not None or len(replicas) < 2:
            continue
        captures = [c for replica in replicas for c in case.known.holdings.captures[replica]]
        if any(capture.epoch_ranges and not _is_held(capture, case.best) for capture in captures):
            yield (
                f"Node {label(voter.key)} is identified by id alone, not every capture of it contains its "
                f"directory id, and it held what the best claim lacks: find out whether its disk was "
                f"replaced."
            )


def _is_held(capture: Capture, best: Sequence[Capture]) -> bool:
    """Whether the best claim's logs hold a captured log to its end."""
    last = capture.epoch_ranges[-1]
    return all(
        any(
            epoch_range.leader_epoch == last.leader_epoch and epoch_range.end_offset >= last.end_offset
            for epoch_range in one.epoch_ranges
        )
        for one in best
    )


def _contested_epochs(case: RecoveryCase) -> Iterator[str]:
    """Two histories of one epoch prove nothing: a cloned cluster, a shared cluster id, or damage."""
    contested = case.known.lineage.contested_epochs
    if contested:
        yield (
            f"Captured logs contradict each other in epoch {_some(contested)}, like the logs of two "
            f"clusters with one id: load the captures of one cluster only."
        )


def _captured_elsewhere(case: RecoveryCase) -> Iterator[str]:
    """A capture of another life may show that a disk was replaced, or what became of this log."""
    for one in case.known.facts.elsewhere[:1]:
        yield f"{one.words[0].upper()}{one.words[1:]}."


def _open_errors(case: RecoveryCase) -> Iterator[str]:
    errors = [f for f in case.findings if _concerns(case, f)]
    for finding in errors[:MOST_NAMED]:
        yield f"Rule {finding.rule} is broken: {finding.sentence}"
    if len(errors) > MOST_NAMED:
        yield f"{len(errors) - MOST_NAMED} more errors: see the findings."


def _concerns(case: RecoveryCase, error: Finding) -> bool:
    """Whether a finding concerns the recommended or counted logs; a warning only if a voter lost data."""
    if error.rule in _FORGETTING:
        return True
    if error.severity != "error":
        return False
    if error.rule in _LASTING:
        return True
    if error.resolved:
        return False
    if any(_is_off_line(case, epoch) for epoch in error.leader_epochs) and error.rule in _BELIEFS:
        unlawful = [e for e in error.leader_epochs if case.known.in_force.is_unlawful(e)]
        if any(_is_off_line(case, epoch) for epoch in unlawful):
            return False
    names_them = _names(error, _involved(case))
    if error.rule in _OF_ONE_DIRECTORY:
        return names_them
    return names_them or not all(_is_off_line(case, epoch) for epoch in error.leader_epochs)


def _names(error: Finding, replicas: set[ReplicaKey]) -> bool:
    """Whether an error is one of any of these replicas.

    One of an unknown directory of a node may be one of each of its directories.
    """
    return any(_may_be(name, replica) for name in error.replicas for replica in replicas)


def _may_be(name: str, replica: ReplicaKey) -> bool:
    node, _, directory_id = name.partition("@")
    is_same = not directory_id or replica.directory_id in (None, directory_id)
    return int(node) == replica.id and is_same


def _is_off_line(case: RecoveryCase, epoch: int) -> bool:
    """Whether the best claim's logs have no batch of an epoch; what lies below their start is not known."""
    return bool(case.best) and all(
        capture.epoch_ranges
        and capture.epoch_ranges[0].leader_epoch <= epoch
        and all(epoch_range.leader_epoch != epoch for epoch_range in capture.epoch_ranges)
        for capture in case.best
    )


def _involved(case: RecoveryCase) -> set[ReplicaKey]:
    """The replicas that are advised, and those that are counted."""
    counted = {c.replica for s in case.counting for v in s.voters for c in [_counted(case, v)] if c}
    return counted | {capture.replica for capture in case.best}


# --- which voters count ---------------------------------------------------------------------------


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
    return _why_not_known(case, replicas[0])


def _why_not_known(case: RecoveryCase, replica: ReplicaKey) -> str | None:
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


def _counted(case: RecoveryCase, voter: Voter) -> Capture | None:
    """The capture by which a voter counts."""
    if why_not_counted(case, voter) is not None:
        return None
    (replica,) = case.known.holdings.replicas_of(voter)
    return case.newest[replica][-1]


def _counts(case: RecoveryCase, voters: SetInForce) -> str:
    counted = [voter for voter in voters.voters if _counted(case, voter) is not None]
    ids = ", ".join(str(voter.key.id) for voter in counted) or "none"
    count = "count" if len(counted) > 1 else "counts"
    majority = voters.voters.majority
    return (
        f"of voters {voters.words}, {ids} {count}, and {majority} {'is' if majority == 1 else 'are'} needed"
    )


def _some(epochs: Sequence[int]) -> str:
    return first_named([str(epoch) for epoch in epochs], MOST_NAMED)
