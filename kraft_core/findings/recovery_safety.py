"""May a quorum be recovered from its best captured log? One decision, with every reason against it.

Any two majorities of a voter set intersect, so one of the logs has everything that the set committed:
as of the earliest of those captures, if each shows a whole log of that very voter, and if no captured file
contradicts the protocol on the way there. reasons_against() lists what forbids "safe"; each reason says what
to capture or to state to resolve it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kraft_core.evidence.facts import Capture, TimeSource, label
from kraft_core.findings.finding import Finding
from kraft_core.findings.observed_quorum import static_voters_differ, static_voters_reported
from kraft_core.findings.recovery_case import (
    RecoveryCase,
    counted_capture,
    counts_text,
    why_not_counted,
    why_not_known,
)
from kraft_core.raft.voters import ReplicaKey
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
    counts = "; ".join(counts_text(case, voters) for voters in case.counting)
    reasons = list(dict.fromkeys(reasons_against(case)))
    verdict = (
        "the best claim has every committed record, as of the captures"
        if not reasons
        else f"committed records may be missing. {' '.join(reasons)}"
    )
    counted = [c for voters in case.counting for v in voters.voters for c in [counted_capture(case, v)] if c]
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
    return not has_errors and why_not_known(case, capture.replica) is None


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
        missing = [v for v in voters.voters if counted_capture(case, v) is None]
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
        reason = why_not_known(case, capture.replica)
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
    counted = {c.replica for s in case.counting for v in s.voters for c in [counted_capture(case, v)] if c}
    return counted | {capture.replica for capture in case.best}


def _some(epochs: Sequence[int]) -> str:
    return first_named([str(epoch) for epoch in epochs], MOST_NAMED)
