"""Rules 12, 13, 14, 15 and 20: how the voters and kraft.version may change along a log.

The rules themselves are raft.invariants and raft.quorum_invariants. What was committed when a leader changed
the voters is judged by upper bounds of the high watermark alone: the lower bounds that a VotersRecord proves
presuppose these rules. Upper bounds count by the log's voter sets; a leader that was elected by an older set
(rule 23 reports it) counts by that one, so what it considered committed is not checked by them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from kraft_core.evidence.facts import Capture
from kraft_core.evidence.holdings import copied_by
from kraft_core.evidence.states import record_set
from kraft_core.findings.capture_order import taken_by
from kraft_core.findings.cluster_view import ClusterView, replicas_of
from kraft_core.findings.finding import Breach, Severity, of_rule
from kraft_core.raft import invariants, quorum_invariants
from kraft_core.raft.batches import Batch
from kraft_core.raft.batches import ControlRecord as EngineRecord
from kraft_core.raft.log import ReplicaLog
from kraft_core.raft.rules import Violation


def one_change_uncommitted(view: ClusterView, capture: Capture) -> Iterator[Breach]:
    """Rule 12: a change is uncommitted if the high watermark cannot have reached it at the capture."""
    if not depends_on_time(view, capture):
        return
    bound = view.upper_bound_at(copied_by(capture))
    for log in view.logs.of(capture).sections:
        high_watermark = log.end_offset if bound is None else bound
        for found in invariants.one_change_uncommitted(log, high_watermark):
            if not view.known.in_force.is_unlawful(found.leader_epoch):
                yield _breach(found, "error", (capture,), _bounded(bound))


def depends_on_time(view: ClusterView, capture: Capture) -> bool:
    """Whether it depends on when a capture was taken if rule 12 finds anything in it."""
    return bool(view.logs.of(capture).in_sections(_with_nothing_committed))


def _with_nothing_committed(log: ReplicaLog) -> Iterator[Violation]:
    """All that rule 12 can find: the higher the high watermark, the less."""
    return invariants.one_change_uncommitted(log, 0)


def one_voter_at_a_time(view: ClusterView, capture: Capture) -> Iterator[Breach]:
    """Rule 13, a warning: Kafka's own check is weaker."""
    return _of_sections(view, capture, invariants.one_voter_at_a_time, "warning")


def kraft_version_allows_voters(view: ClusterView, capture: Capture) -> Iterator[Breach]:
    """Rule 15."""
    return _of_sections(view, capture, invariants.kraft_version_allows_voters, "error")


def removed_leader_changes_no_more(view: ClusterView, capture: Capture) -> Iterator[Breach]:
    """Rule 20, of a later VotersRecord; other batches of a removed leader are lawful."""
    return _of_sections(view, capture, invariants.removed_leader_changes_no_more, "error")


def changes_follow_a_commit(view: ClusterView) -> Iterator[Breach]:
    """Rule 14, of every VotersRecord that is alone in its batch, if its epoch's start is captured."""
    for record in view.known.facts.control_records:
        line = view.known.lineage.lines.get(record.leader_epoch)
        voters = record_set(record) if record.type == "KRaftVoters" else None
        captures = view.holding(record.leader_epoch, record.offset) if voters is not None else ()
        if voters is None or line is None or line.start is None or line.contested or not captures:
            continue
        if view.known.in_force.is_unlawful(record.leader_epoch):
            continue
        bound = view.upper_bound_at(taken_by(captures))
        if bound is None:
            continue
        batch = Batch(
            record.batch_base_offset,
            record.batch_end_offset - 1,
            record.leader_epoch,
            control_records=tuple(
                EngineRecord(at, voters.voters)
                for at in range(record.batch_base_offset, record.batch_end_offset)
            ),
        )
        leader = ReplicaLog(known_high_watermark=bound)
        for found in quorum_invariants.changes_follow_a_commit(leader, line.start, (batch,)):
            yield _breach(found, "error", captures, _bounded(bound))


def _of_sections(
    view: ClusterView,
    capture: Capture,
    rule: Callable[[ReplicaLog], Iterator[Violation]],
    severity: Severity,
) -> Iterator[Breach]:
    for found in view.logs.of(capture).in_sections(rule):
        yield _breach(found, severity, (capture,), "")


def _bounded(bound: int | None) -> str:
    return "" if bound is None else f"by captured log ends the high watermark was at most {bound}"


def _breach(found: Violation, severity: Severity, captures: tuple[Capture, ...], evidence: str) -> Breach:
    """A breach by a record, whichever replicas hold it."""
    return Breach(
        of_rule(found.rule),
        severity,
        (found.offset, found.leader_epoch),
        f"The record at {found.offset} of epoch {found.leader_epoch} {found.detail}.",
        evidence,
        first_offset=found.offset,
        end_offset=found.offset + 1,
        leader_epochs=(found.leader_epoch,),
        replicas=replicas_of(captures),
        captures=captures,
    )
