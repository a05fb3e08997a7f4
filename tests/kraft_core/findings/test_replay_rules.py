"""Rule 49: a refused record is a fault only if all that was replayed below it is one captured log."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_core.evidence.conclusions import Conclusions, conclude
from kraft_core.findings.facts import LogOrderFault, ReplayRefusal, RuleFacts
from kraft_core.findings.finding import Finding
from kraft_core.findings.judge import judge
from kraft_core.findings.snapshot_replays import LogsBelow, digest_of, log_from
from kraft_core.format.segment import OrderFaultKind
from kraft_core.image import refusals
from tests.kraft_core.findings.broken import golden_facts

TOPIC = "topic AAAAAAAAAAAAAAAAAAAAAQ"


def known() -> Conclusions:
    """Nodes 1 to 3; the log reaches from 0 over epochs 1 and 3 (from 1005), 4 (from 1895) and others."""
    return golden_facts("dynamic-membership")[0]


def refusal(epoch: int, offset: int, base: int = 0, digest: str = "", partition: int = 0) -> ReplayRefusal:
    log = log_from(LogsBelow(known().lineage).log(epoch, offset + 1), base)
    return ReplayRefusal(
        offset=offset,
        leader_epoch=epoch,
        type="PARTITION_CHANGE_RECORD",
        cause=refusals.UNKNOWN_PARTITION,
        subject=TOPIC,
        reason=f"change of unknown partition {partition} of {TOPIC}",
        by_controllers_only=False,
        commit_status="committed",
        base_end_offset=base,
        base_content_digest=digest,
        log_digest=digest_of(log),
    )


def found(
    *refused: ReplayRefusal, of: Conclusions | None = None, faults: tuple[LogOrderFault, ...] = ()
) -> list[Finding]:
    facts = RuleFacts(replay_refusals=refused, order_faults=faults)
    return [f for f in judge(of or known(), facts) if f.rule == 49]


def test_one_finding_names_record_subject_classes_and_captures() -> None:
    (finding,) = found(refusal(3, 1100))
    assert (finding.severity, finding.first_offset, finding.end_offset) == ("error", 1100, 1101)
    assert finding.sentence == (
        "PARTITION_CHANGE_RECORD at offset 1100 of epoch 3 cannot be replayed: change of unknown partition 0 "
        f"of {TOPIC}. Every controller of Kafka 4.3.1 that replays it terminates "
        "(ReplicationControlManager); a broker skips it and continues with other metadata (TopicsDelta)."
    )
    assert finding.evidence == (
        "replayed from the log from offset 0 on, of which nothing is missing; the record is committed"
    )
    assert len(finding.capture_ids) == len(finding.replicas) == 3
    assert finding.resolution is None


def test_what_is_not_committed_yet_and_what_controllers_alone_refuse_is_told() -> None:
    at_the_end = replace(refusal(3, 1100), commit_status="undecided", by_controllers_only=True)
    (finding,) = found(at_the_end)
    assert finding.severity == "error"
    assert finding.sentence.endswith(
        "Every controller of Kafka 4.3.1 that replays it terminates once it is committed "
        "(ReplicationControlManager); brokers apply it (TopicsDelta)."
    )


def test_one_cause_is_one_finding() -> None:
    """By epoch, cause and subject, whatever its reasons; its id stays when more records follow."""
    refused = [refusal(3, 1100), refusal(3, 1103, partition=1), refusal(3, 1110)]
    (finding,) = found(*refused)
    assert (finding.first_offset, finding.end_offset) == (1100, 1111)
    assert ", as 2 more records up to offset 1110: change of unknown partition 0" in finding.sentence
    (first,) = found(refused[0])
    assert first.finding_id == finding.finding_id
    of_another_subject = replace(refused[1], subject="topic u")
    of_another_cause = replace(refused[2], cause=refusals.UNKNOWN_TOPIC)
    assert len(found(refused[0], refusal(4, 1900), of_another_subject, of_another_cause)) == 4


def test_another_path_than_that_of_the_captured_log_proves_nothing() -> None:
    right = refusal(4, 1900)
    assert found(right)
    assert not found(replace(right, log_digest=refusal(4, 1901).log_digest))
    assert not found(replace(right, leader_epoch=3))
    assert not found(replace(right, offset=1_000_000))
    assert not found(replace(right, base_end_offset=1))


@pytest.mark.parametrize("contested", [1, 3, 4])
def test_nothing_is_judged_in_or_above_a_contested_epoch(contested: int) -> None:
    of = conclude(replace(known().facts, contested_epochs=(contested,)))
    kept = [f.leader_epochs[0] for f in found(refusal(1, 500), refusal(3, 1100), refusal(4, 1900), of=of)]
    assert kept == [epoch for epoch in (1, 3, 4) if epoch < contested]


def test_a_log_that_lacks_what_lies_below_proves_nothing() -> None:
    """Each capture without its first range: the log no longer begins at 0."""
    facts = known().facts
    later = [
        replace(c, epoch_ranges=tuple(r for r in c.epoch_ranges if r.leader_epoch != 1))
        for c in facts.captures
    ]
    of = conclude(replace(facts, captures=tuple(later)))
    assert not found(refusal(3, 1100), refusal(4, 1900), of=of)


def test_a_batch_at_wrong_offsets_proves_nothing() -> None:
    """No CRC covers a base offset: if two batches of any captured log hold an offset, one was misplaced."""
    end, digest = checkpoint()
    from_zero, from_checkpoint = refusal(4, 1900), refusal(4, 1900, end, digest)
    capture = known().facts.captures[0].capture_id

    def judged(kind: OrderFaultKind, first: int, expected: int) -> list[int]:
        fault = LogOrderFault(capture, first, 3, kind, expected)
        return [len(found(each, faults=(fault,))) for each in (from_zero, from_checkpoint)]

    assert judged("overlap", 1000, 1010) == [0, 1]
    assert judged("overlap", 1000, end + 1) == judged("overlap", 1890, 1950) == [0, 0]
    assert judged("overlap", 1901, 1950) == judged("gap", 1000, 990) == [1, 1]


def checkpoint() -> tuple[int, str]:
    """The end and the digest of a checkpoint within epoch 3."""
    one = next(s for s in known().facts.snapshots if 1100 < s.end_offset < 1890 and s.leader_epoch == 3)
    return one.end_offset, one.content_digest


def test_a_replay_from_a_checkpoint_must_go_on_from_it() -> None:
    end, digest = checkpoint()
    right = refusal(4, 1900, end, digest)
    (finding,) = found(right)
    assert finding.evidence.startswith(f"replayed from checkpoint {end} and the log from there on")
    assert not found(replace(right, base_content_digest="of no checkpoint"))
    # A log that begins where the checkpoint ends: the same replica held both, or nothing ties them.
    facts = known().facts
    cut = [
        replace(
            c,
            log_start_offset=end,
            epoch_ranges=tuple(
                r if r.first_offset >= end else replace(r, first_offset=end, first_batch_end=None)
                for r in c.epoch_ranges
                if r.end_offset > end
            ),
        )
        for c in facts.captures
    ]
    of_cut = replace(facts, captures=tuple(cut))
    assert found(right, of=conclude(of_cut))
    of_others = [
        replace(s, held_by=((9, "other"),)) if s.content_digest == digest else s for s in facts.snapshots
    ]
    assert not found(right, of=conclude(replace(of_cut, snapshots=tuple(of_others))))


@pytest.mark.parametrize("cause", [refusals.NO_TRANSACTION, refusals.UNKNOWN_CREDENTIAL])
def test_what_a_checkpoint_may_lack_is_judged_from_the_beginning_only(cause: str) -> None:
    end, digest = checkpoint()
    assert found(replace(refusal(4, 1900), cause=cause, type="END_TRANSACTION_RECORD"))
    assert not found(replace(refusal(4, 1900, end, digest), cause=cause, type="END_TRANSACTION_RECORD"))
