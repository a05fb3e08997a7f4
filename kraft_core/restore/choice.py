"""From which captured log the metadata is restored, what forbids it, and what may be lost by it.

The source is the log with the best claim (last epoch, then log end), whoever holds it: where the majority
is gone, an observer or a broker may hold more than any voter that is left. What the captures prove about it
is the answer of findings.recovery; what they do not prove is a possible loss; contradictions are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.facts import CLOCK_SKEW_MS, Capture, label
from kraft_core.findings.capture_order import copied_before
from kraft_core.findings.finding import Finding
from kraft_core.findings.recovery import (
    RecoveryAdvice,
    RecoveryCandidate,
    counting_sets,
    lacking,
    ranges_text,
    recovery_advice,
)
from kraft_core.findings.recovery_case import NONE_CUT, newest_of
from kraft_core.raft.voters import Voter

UNSEEN_RECORDS, AFTER_CAPTURES, OTHER_TAILS = "unseen-records", "after-captures", "other-tails"
OTHER_LINE, COMMITTED_RECORDS = "other-line", "committed-records"
# With these the restored metadata may be older than what brokers know.
OLDER_METADATA = frozenset({UNSEEN_RECORDS, AFTER_CAPTURES, OTHER_TAILS, OTHER_LINE, COMMITTED_RECORDS})
# The epoch of a log's last batch, and its end offset (exclusive).
Line = tuple[int, int]

# What a voter forgot, and what another history replaced, stays lost whatever newer captures show.
_LASTING_RULES = frozenset({4, 7, 44, 45})
# Broken where there are two histories: one may be chosen by name. Whatever else is broken stays refused.
_RULES_OF_ONE_HISTORY = frozenset({1, 3, 4, 5, 7, 8, 23, 25, 27, 30, 44, 45, 47})

# In words that follow the node's name: the capture may be a backup.
_MAY_HAVE_GONE_ON = (
    "is stated to be gone, so what it stored after its capture is not known: omit it from --gone if it was "
    "captured after it had stopped for good."
)
_MAY_BE_OF_A_FORMER_DISK = (
    "has another directory, which may have been captured later, so what it stored after its capture is not "
    "known: capture it again, after the other one, if its disk is there."
)


@dataclass(frozen=True, slots=True)
class PossibleLoss:
    """Something that may be lost. name: as --accept-loss repeats it."""

    name: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Choice:
    """The source and the objections to it. capture: None if no captured log can be a source."""

    capture: Capture | None
    advice: RecoveryAdvice
    refusals: tuple[str, ...]
    losses: tuple[PossibleLoss, ...]


def choose(
    known: Conclusions,
    findings: Sequence[Finding],
    gone: frozenset[int],
    are_stopped: bool,
    line: Line | None = None,
    other_lives: Sequence[Conclusions] = (),
    cut: Mapping[str, str] = NONE_CUT,
    beside: Sequence[str] = (),
) -> Choice:
    """The best captured log. findings: the cluster's, by findings.judge.

    gone: ids of voters that never come back; a capture of one may be a backup. are_stopped: all controllers
    had stopped before the captures were taken, as somebody states. line: the end of the log that somebody
    chose where captures contradict each other. other_lives: of the same cluster id. cut: by id captures whose
    log may have gone on, and why. beside: what else shows two histories, in sentences.
    """
    backups = {c.capture_id: _MAY_HAVE_GONE_ON for c in known.facts.captures if c.node_id in gone}
    # Of running controllers, nobody states that nothing follows.
    former = _of_former_disks(known.facts.captures) if are_stopped else ()
    cut = {**{c.capture_id: _MAY_BE_OF_A_FORMER_DISK for c in former}, **cut, **backups}
    advice = recovery_advice(known, findings, cut=cut, backups_of=gone)
    candidates = sorted((*advice.best, *advice.others), key=lambda candidate: _claim(candidate, gone))
    captures = {capture.capture_id: capture for capture in known.facts.captures}
    contested = [*_lives(known, other_lives), *_contested(known, findings), *beside]
    refusals = [*_broken(findings), *_uncaptured(known, gone)]
    best = candidates[0] if candidates else None
    chosen = best if line is None else next((c for c in candidates if _line(c) == line), None)
    lines = _lines_text([*candidates, *(c for life in other_lives for c in _candidates(life))])
    if contested and line is None:
        refusals += contested
        refusals.append(f"Choose the history to restore by the end of its log (--line): {lines}.")
    if chosen is None:
        refusals.append(
            "No captured log could be read: capture a controller, or a broker's metadata log."
            if line is None
            else f"No captured log of this history ends at {line[0]}@{line[1]}; there are {lines}."
        )
        return Choice(None, advice, tuple(refusals), ())
    capture = captures[chosen.capture_id]
    refusals += _unusable(capture)
    losses = list(_losses(known, capture, advice, are_stopped))
    given_up = list(_given_up(known, capture))
    if line is None:
        refusals += given_up
    else:
        losses += (PossibleLoss(COMMITTED_RECORDS, sentence) for sentence in given_up)
        if contested or _line(chosen) != _line(candidates[0]):
            words = f"The log that ends at {line[0]}@{line[1]} is restored, of these: {lines}."
            losses.append(PossibleLoss(OTHER_LINE, " ".join((*contested, words))))
    return Choice(capture, advice, tuple(refusals), tuple(losses))


def _of_former_disks(captures: Iterable[Capture]) -> Iterator[Capture]:
    """Captures of a directory that its node may have lost since: another one of it may be a later capture."""
    of_node: dict[int, list[Capture]] = {}
    for capture in captures:
        of_node.setdefault(capture.node_id, []).append(capture)
    for each in of_node.values():
        for capture in each:
            others = (other for other in each if other.replica != capture.replica)
            if not all(copied_before(other, capture, CLOCK_SKEW_MS) for other in others):
                yield capture


def line_ends(known: Conclusions) -> set[Line]:
    """The ends of the captured logs."""
    return {_line(candidate) for candidate in _candidates(known)}


def _candidates(known: Conclusions) -> list[RecoveryCandidate]:
    advice = recovery_advice(known, ())
    return [*advice.best, *advice.others]


def _line(candidate: RecoveryCandidate) -> Line:
    return candidate.last_leader_epoch, candidate.log_end_offset


def _lines_text(candidates: Iterable[RecoveryCandidate]) -> str:
    """5@5306 (node 2, 4), 4@5206 (node 1)."""
    nodes: dict[Line, list[int]] = {}
    for candidate in candidates:
        nodes.setdefault(_line(candidate), []).append(candidate.node_id)
    return ", ".join(
        f"{epoch}@{end} (node {', '.join(map(str, sorted(nodes[epoch, end])))})"
        for epoch, end in sorted(nodes, reverse=True)
    )


def _claim(candidate: RecoveryCandidate, gone: frozenset[int]) -> tuple[int, int, bool, bool, int, str]:
    """Best first; of equal logs a voter's, then one that is not gone, then the lowest id's."""
    epoch, end, node = candidate.last_leader_epoch, candidate.log_end_offset, candidate.node_id
    return -epoch, -end, candidate.is_observer, node in gone, node, candidate.directory_id


def _lives(known: Conclusions, others: Sequence[Conclusions]) -> Iterator[str]:
    if others:
        id_ = known.facts.cluster_id.partition("/")[0]
        yield f"The captures of cluster id {id_} are of several histories: give those of only one."


def _contested(known: Conclusions, findings: Sequence[Finding]) -> Iterator[str]:
    """Evidence of two histories."""
    contested = known.lineage.contested_epochs
    if contested:
        yield f"Captured logs contradict each other in epoch {', '.join(map(str, contested))}."
    for one in known.facts.elsewhere:
        yield f"{one.words[0].upper()}{one.words[1:]}."
    for finding in findings:
        if _is_open(finding) and finding.rule in _RULES_OF_ONE_HISTORY:
            yield f"Rule {finding.rule} is broken: {finding.sentence}"


def _broken(findings: Sequence[Finding]) -> Iterator[str]:
    """Evidence that KRaft could not have written in any history."""
    for finding in findings:
        if _is_open(finding) and finding.rule not in _RULES_OF_ONE_HISTORY:
            yield f"Rule {finding.rule} is broken: {finding.sentence}"


def _is_open(finding: Finding) -> bool:
    return (finding.severity == "error" and not finding.resolved) or finding.rule in _LASTING_RULES


def _uncaptured(known: Conclusions, gone: frozenset[int]) -> Iterator[str]:
    """A voter that may come back with unknown records and epochs."""
    voters: dict[Voter, None] = {v: None for counted in counting_sets(known) for v in counted.voters}
    for voter in voters:
        if voter.key.id not in gone and not known.holdings.replicas_of(voter):
            yield (
                f"Node {label(voter.key)} is a voter and was not captured: capture it or, if its disk is "
                f"gone for good, state it (--gone {voter.key.id})."
            )


def _unusable(capture: Capture) -> Iterator[str]:
    """What keeps the chosen log from being whole."""
    name = f"Node {label(capture.replica)} has the best claim, but"
    if not capture.readable:
        yield f"{name} files of its log could not be read: capture it as a user that may read them."
    if capture.tail_damaged:
        yield f"{name} its log is damaged at the end, and what followed is not known."
    if not capture.is_contiguous:
        yield f"{name} its captured log has a gap: capture it again."


def _given_up(known: Conclusions, capture: Capture) -> Iterator[str]:
    """What is proven to have been committed and to be missing from the chosen log."""
    name = f"The log of node {label(capture.replica)}"
    lost = [held for held in lacking(known, capture) if held[0] == "committed"]
    end = capture.log_end_offset or 0
    committed = max((p.end_offset for p in known.commit.prefixes.values()), default=0)
    if lost:
        yield f"{name} lacks {ranges_text(lost)}: find out how they were lost."
    elif end < committed:
        yield f"{name} ends at {end}, and everything below {committed} was committed."


def _losses(
    known: Conclusions, capture: Capture, advice: RecoveryAdvice, are_stopped: bool
) -> Iterator[PossibleLoss]:
    is_proven = advice.is_safe and capture.capture_id in {c.capture_id for c in advice.best}
    end = capture.log_end_offset or 0
    if not is_proven:
        yield PossibleLoss(
            UNSEEN_RECORDS,
            f"Records from offset {end} on that no capture contains may have been committed: created, "
            f"changed or deleted topics, configs, users and ACLs, and changes of ISRs, so that a broker "
            f"that lacks acknowledged messages may lead. {advice.why[:1].upper()}{advice.why[1:]}",
        )
    if capture.older_log is not None:
        yield PossibleLoss(
            UNSEEN_RECORDS,
            f"Node {label(capture.replica)} held more than its captured log shows: {capture.older_log}.",
        )
    tails = lacking(known, capture)
    if tails and not is_proven:
        yield PossibleLoss(
            OTHER_TAILS, f"Other captures contain records that the source does not: {ranges_text(tails)}."
        )
    if not are_stopped:
        yield PossibleLoss(
            AFTER_CAPTURES,
            "Whatever was committed after the captures were taken: capture the stopped controllers, and "
            "state that all had stopped before (--controllers-stopped).",
        )
    for early in _before_the_end(known) if are_stopped else ():
        yield PossibleLoss(
            AFTER_CAPTURES,
            f"Node {label(early.replica)} was captured while a controller still appended records, so not all "
            "had stopped: capture it again, or give its newest capture alone.",
        )


def _before_the_end(known: Conclusions) -> Iterator[Capture]:
    """Newest captures of voters that were taken before the newest captured record was appended."""
    appended = [
        epoch_range.last_appended_at
        for capture in known.facts.captures
        for epoch_range in capture.epoch_ranges
    ]
    last = max(appended, default=-1)
    newest = newest_of(known)
    for replica, captures in newest.items():
        is_voter = any(v.matches(replica) for counted in counting_sets(known) for v in counted.voters)
        for capture in captures if is_voter else ():
            if capture.captured_until is not None and capture.captured_until + CLOCK_SKEW_MS < last:
                yield capture
