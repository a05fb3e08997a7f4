"""Answers of production code about captures, compared with the execution.

A claim is unsound if the execution it was drawn from makes it false:

committed     the high watermark had not reached the batch by as_of, and a replica without it could win
truncated     committed by the last capture; where for good, a replica with it could still win
uncommitted   by as_of a leader had committed it, or a majority of the leader's set had stored it in its epoch
bounds        the high watermark at as_of is below a lower bound or above an upper one
safe          the best claim lacks a batch that was committed by as_of
nothing lost  by a restoration, and the chosen log lacks a batch that was committed by as_of
plan safe     afterwards no majority of the voters is left that holds what was committed by then
findings      an error, in a lawful execution, that no missing file explains

Rule 0 reports segments that are missing between others or damaged; rule 19 first segments that are missing
without a checkpoint at their end, and a missing checkpoint, also one that was written after checkpoints were
copied, and before the segments below it were. Both are right: the copies show a log that no
replica can have, and only other copies could tell that the directory was whole.

The clocks that state the times of copies may differ. A claim as of a time is then false only if it is false
for as long before and after as they do. What is in a copy was there when its log was copied, which may be
later than stated. The rules of TIMED compare two such times, and those of ORDERED two times by one clock,
which may be set back in between, or two copies that were made at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from kraft_core.evidence.commit import CommitVerdict
from kraft_core.evidence.conclusions import Conclusions, conclude
from kraft_core.evidence.derive import tables
from kraft_core.evidence.facts import ClusterFacts, label
from kraft_core.evidence.rows import ClusterEvidence, VoterSetRow
from kraft_core.findings.describe import observed_watermarks
from kraft_core.findings.facts import Observation, RuleFacts
from kraft_core.findings.finding import Finding
from kraft_core.findings.judge import judge
from kraft_core.findings.observed_quorum import observed_epochs
from kraft_core.findings.recovery import RecoveryAdvice, recovery_advice
from kraft_core.findings.reports import Reports
from kraft_core.plan.captured_quorum import CapturedQuorum, quorum_of
from kraft_core.plan.registrations import Registered
from kraft_core.raft.batches import Batch
from kraft_core.raft.voters import VoterSet
from tests.soundness.captures import Copy, clock_error, facts_of, held_by, is_disordered
from tests.soundness.clocks import largest_error
from tests.soundness.execution import (
    Execution,
    Place,
    can_be_lost,
    can_commit,
)
from tests.soundness.following import Follower, followed_logs, observations_of, with_followed
from tests.soundness.plan_claims import not_safe, registering_all, safe_actions
from tests.soundness.restoring import NOTHING_STATED, Stated, choices_that_lose_nothing

TIMED = (8, 12, 14, 18)
ORDERED = (5, 6, 44)


@dataclass(frozen=True, slots=True)
class Unsound:
    """A false answer. part: of Kraftlake that gave it; claim: its kind; words: it, and the truth."""

    part: str
    claim: str
    words: str


@dataclass(frozen=True, slots=True)
class Answers:
    """Everything that production code says of some captures. reports: what it attributes to the quorum."""

    known: Conclusions
    evidence: ClusterEvidence
    findings: list[Finding]
    recovery: RecoveryAdvice
    quorum: CapturedQuorum | None
    reports: tuple[Observation, ...]

    @property
    def errors(self) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == "error"]


def answers_to(facts: ClusterFacts, rule_facts: RuleFacts | None = None) -> Answers:
    known = conclude(facts)
    quorum = quorum_of(known, Registered(()))
    quorum = None if quorum is None else registering_all(quorum)
    rule_facts = rule_facts or RuleFacts()
    findings, reports = judge(known, rule_facts), Reports(known, rule_facts.observations).tied
    epoch = max((one.leader_epoch for one in reports if one.leader_epoch is not None), default=None)
    recovery = recovery_advice(known, findings, reported_epoch=epoch)
    return Answers(known, tables(known), findings, recovery, quorum, reports)


class ClaimCheck:
    """One execution, some copies of its directories, and the answers that they give.

    followers: what else is held. stated: of a quorum to restore. apart: by how much (ms) two clocks that
    state times may differ. later: how long after the stated time a log was copied.
    """

    def __init__(
        self,
        execution: Execution,
        copies: tuple[Copy, ...],
        answers: Answers | None = None,
        followers: tuple[Follower, ...] = (),
        stated: Stated = NOTHING_STATED,
    ) -> None:
        self.execution = execution
        self.stated = stated
        self.copies = copies
        self.followed = [log for each in followers for log in followed_logs(execution, each)]
        self.facts = with_followed(facts_of((execution,), copies), execution, followers)
        observations = tuple(observations_of(execution, followers))
        self.answers = answers or answers_to(self.facts, RuleFacts(observations=observations))
        asked = [ask.ended for follower in followers for ask in follower.asks]
        self.last_copied = max((copy.log_at for copy in copies), default=0)
        self.last = max([self.last_copied, *asked])
        errors = [abs(clock_error(execution, copy)) for copy in copies]
        errors += [largest_error(execution.clocks), *(each.clock.error for each in followers)]
        self.apart = 2 * max(errors)
        self.later = max((execution.at[copy.log_at] - execution.at[copy.begun] for copy in copies), default=0)
        self.disordered = is_disordered(copies) or any(each.clock.goes_back for each in followers)

    def unsound(self, nodes: Collection[int] | None = None) -> Iterator[Unsound]:
        """Every answer that is false, in a lawful execution; of the plans those on `nodes`, None: all."""
        yield from self.unsound_answers(nodes)
        for finding in self.answers.errors:
            excused = (*(TIMED if self.apart else ()), *(ORDERED if self.disordered else ()))
            if not self._is_of_missing_files(finding) and finding.rule not in excused:
                yield Unsound("findings", f"error of rule {finding.rule}", finding.sentence)

    def unsound_answers(self, nodes: Collection[int] | None = None) -> Iterator[Unsound]:
        """The same without the errors that are found."""
        for batch in self.captured_batches():
            yield from self.unsound_verdict(batch)
        yield from self.unsound_bounds()
        yield from self._epochs()
        for row in self.answers.evidence.voter_sets:
            yield from self._voter_set(row)
        yield from self.unsound_recovery(nodes if nodes is not None else self._node_ids())
        yield from self.unsound_restoration()
        yield from self.unsound_plans(nodes)

    def _is_of_missing_files(self, finding: Finding) -> bool:
        """Rule 0 or 19, of replicas whose copies lack segments, or the checkpoint below them."""
        lacking = {
            label(capture.replica)
            for copy, capture in zip(self.copies, self.facts.captures, strict=True)
            if copy.missing.segments[1]
            or (finding.rule == 19 and (copy.missing.checkpoints or copy.has_other_checkpoints))
        }
        return finding.rule in (0, 19) and set(finding.replicas) <= lacking

    # --- commit status

    def captured_batches(self) -> list[Batch]:
        places = {
            (batch.base_offset, batch.leader_epoch)
            for copy in self.copies
            for log in (self.execution.moments[copy.log_at][copy.slot].log, held_by(self.execution, copy))
            for batch in log.batches
        }
        places |= {(b.base_offset, b.leader_epoch) for log in self.followed for b in log.batches}
        return [self.execution.batches[place] for place in sorted(places)]

    def verdict_on(self, batch: Batch) -> CommitVerdict:
        return self.answers.known.commit.of_batch(batch.leader_epoch, batch.base_offset, batch.end_offset)

    def unsound_verdict(self, batch: Batch) -> Iterator[Unsound]:
        verdict = self.verdict_on(batch)
        if verdict.status == "undecided":
            return
        place = (batch.base_offset, batch.leader_epoch)
        said = f"{_named(batch)} is {verdict.status} as of {self._when(verdict.as_of)}: {verdict.evidence}"
        # What holds from no known time on holds when it is read.
        as_of = self.execution.at[self.last] if verdict.as_of is None else verdict.as_of
        if verdict.as_of is None and verdict.status == "uncommitted":
            yield Unsound("evidence", "uncommitted at no time", said)
        found = {
            "committed": self._not_committed,
            "truncated": self._not_truncated,
            "uncommitted": self._not_uncommitted,
        }[verdict.status](batch, place, as_of)
        if found:
            yield Unsound("evidence", verdict.status, f"{said}; in truth {found}")

    def _not_committed(self, batch: Batch, place: Place, as_of: int) -> str | None:
        as_of += self.apart + self.later
        if _by(self.execution.committed_at, place, as_of):
            return None
        moment = self.execution.moment_at(as_of)
        if _by(self.execution.appended_at, place, as_of) and not can_be_lost(self.execution, moment, batch):
            return None
        return f"it was {self._since(self.execution.committed_at, place, 'committed')} and could be lost then"

    def _not_truncated(self, batch: Batch, place: Place, as_of: int) -> str | None:
        if _by(self.execution.committed_at, place, self.execution.at[self.last]):
            return f"it was {self._since(self.execution.committed_at, place, 'committed')}"
        if can_commit(self.execution, self.execution.moment_at(as_of + self.apart + self.later), batch):
            return "a replica that holds it could still be elected"
        return None

    def _not_uncommitted(self, _: Batch, place: Place, as_of: int) -> str | None:
        for name, times in (
            ("committed", self.execution.committed_at),
            ("stored by a majority in its epoch", self.execution.stored_at),
        ):
            if _by(times, place, as_of - self.apart):
                return f"it was {self._since(times, place, name)}"
        return None

    # --- bounds and epochs

    def unsound_bounds(self) -> Iterator[Unsound]:
        reported = observed_watermarks(self.answers.known, self.answers.reports)
        for row in (*self.answers.evidence.high_watermarks, *reported):
            least, true, most = (
                self.execution.high_watermark_at(row.as_of + off)
                for off in (-self.apart, 0, self.apart + self.later)
            )
            words = f"at {self._when(row.as_of)} it was {true}: {row.evidence}, {row.source}"
            if row.lower_bound is not None and row.lower_bound > most:
                yield Unsound("evidence", "lower bound", f"high watermark >= {row.lower_bound}; {words}")
            if row.upper_bound is not None and row.upper_bound < least:
                yield Unsound("evidence", "upper bound", f"high watermark <= {row.upper_bound}; {words}")
            if row.believed_bound is not None:
                yield Unsound(
                    "evidence", "believed bound", f"{row.believed_bound} of a lawful leader; {words}"
                )

    def _epochs(self) -> Iterator[Unsound]:
        for row in observed_epochs(self.answers.evidence.epochs, self.answers.reports):
            leader_id, start = self.execution.leaders.get(row.leader_epoch, (None, None))
            if row.leader_id is not None and leader_id not in (None, row.leader_id):
                words = f"{row.leader_id} led epoch {row.leader_epoch}; in truth {leader_id} did"
                yield Unsound("evidence", "leader", words)
            if row.start_offset_exact and row.start_offset != start:
                words = f"epoch {row.leader_epoch} begins at {row.start_offset}; in truth at {start}"
                yield Unsound("evidence", "start of an epoch", words)

    def _voter_set(self, row: VoterSetRow) -> Iterator[Unsound]:
        """A committed set is in force at its offset in the log that was committed."""
        if row.commit_status != "committed" or row.source not in ("record", "snapshot"):
            return
        true = self._committed_set_at(row.offset)
        if true is not None and true.ids != row.voter_ids:
            words = (
                f"voters {row.voter_ids} are committed at {row.offset} ({row.source}); in truth {true.ids}"
            )
            yield Unsound("evidence", "voter set", words)

    def _committed_set_at(self, offset: int) -> VoterSet | None:
        """None where no leader knew the offset to be committed."""
        if offset >= self.execution.high_watermarks[-1]:
            return None
        found: VoterSet | None = None
        for place in sorted(self.execution.committed_at):
            for record in self.execution.batches[place].control_records:
                if isinstance(record.value, VoterSet) and record.offset <= offset:
                    found = record.value
        return found

    # --- recovery and plans

    def unsound_recovery(self, nodes: Collection[int] = ()) -> Iterator[Unsound]:
        """Safe, and yet the best claim lacks what was committed; also without each of some nodes."""
        yield from self._unsound_advice(self.answers.recovery, "safe")
        for node in nodes:
            advice = recovery_advice(self.answers.known, self.answers.findings, without=(node,))
            yield from self._unsound_advice(advice, "safe without a node")

    def _unsound_advice(self, advice: RecoveryAdvice, claim: str) -> Iterator[Unsound]:
        if not advice.is_safe:
            return
        as_of = self._as_of(advice)
        chosen = {candidate.capture_id: candidate for candidate in advice.best}
        for copy, capture_id in self._captured():
            lacked = self._lacked_by(copy, as_of - self.apart) if capture_id in chosen else []
            if lacked:
                candidate = chosen.pop(capture_id)
                words = f"node {candidate.node_id} is safe as of {self._when(as_of)} ({advice.why})"
                yield Unsound("findings", claim, f"{words}; it lacks the committed {_listed(lacked)}")

    def _as_of(self, advice: RecoveryAdvice) -> int:
        if advice.as_of is not None:
            return advice.as_of
        listed = {candidate.capture_id for candidate in (*advice.best, *advice.others)}
        return self._earliest([copy for copy, capture_id in self._captured() if capture_id in listed])

    def unsound_restoration(self) -> Iterator[Unsound]:
        """Nothing is said to be lost, and yet the chosen log lacks what was committed."""
        copies = {capture_id: copy for copy, capture_id in self._captured()}
        said = choices_that_lose_nothing(self.answers.known, self.answers.findings, self.stated)
        for capture, advice in said:
            as_of = self.execution.at[-1] if self.stated.are_stopped else self._as_of(advice) - self.apart
            lacked = self._lacked_by(copies[capture.capture_id], as_of)
            if lacked:
                words = f"{self.stated}: node {capture.node_id} is chosen ({advice.why})"
                yield Unsound("restore", "nothing lost", f"{words}; it lacks the committed {_listed(lacked)}")

    def _node_ids(self) -> set[int]:
        return {capture.node_id for capture in self.facts.captures}

    def _captured(self) -> Iterator[tuple[Copy, str]]:
        return zip(self.copies, (capture.capture_id for capture in self.facts.captures), strict=True)

    def _earliest(self, copies: list[Copy]) -> int:
        return min((self.execution.at[copy.begun] for copy in copies), default=self.execution.at[0])

    def _lacked_by(self, copy: Copy, as_of: int) -> list[Batch]:
        log = held_by(self.execution, copy)
        committed = self.execution.committed_by(as_of)
        return [batch for batch in committed if not log.covers(batch, self.execution.committed_at)]

    def unsound_plans(self, nodes: Collection[int] | None) -> Iterator[Unsound]:
        """Changes and losses of voters that are said to be safe; nodes: as of `unsound`."""
        quorum = self.answers.quorum
        if quorum is None or quorum.voters is None:
            return
        earliest = self._earliest(list(self.copies)) - self.apart
        for action, verdict in safe_actions(quorum, nodes):
            found = not_safe(
                self.execution, quorum, action, earliest, {*self._moments(quorum), self.last_copied}
            )
            if found:
                words = f"{action} is safe as of {self._when(quorum.evidence_from)}: {verdict.reason}"
                yield Unsound("plan", type(action).__name__, f"{words}; in truth {found}")

    def _moments(self, quorum: CapturedQuorum) -> Iterator[int]:
        """Those that may be the one at which the evidence of a plan ends."""
        assert quorum.evidence_from is not None
        for off in (-self.apart, 0, self.apart):
            yield self.execution.moment_at(quorum.evidence_from + off)

    # --- words

    def _when(self, time: int | None) -> str:
        if time is None:
            return "no time"
        return f"{(time - self.execution.at[0]) / 1000:g} s"

    def _since(self, times: dict[Place, int], place: Place, what: str) -> str:
        at = times.get(place)
        return f"never {what}" if at is None else f"{what} at {self._when(at)}"


def _by(times: dict[Place, int], place: Place, time: int) -> bool:
    at = times.get(place)
    return at is not None and at <= time


def _named(batch: Batch) -> str:
    return f"{batch.base_offset} to {batch.last_offset} of epoch {batch.leader_epoch}"


def _listed(batches: list[Batch]) -> str:
    return ", ".join(map(_named, batches))
