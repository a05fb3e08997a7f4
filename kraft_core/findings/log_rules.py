"""Rules 2, 10, 11, 19 and 21: what every captured log must satisfy, whatever its voters.

The rules themselves are raft.invariants; here they are applied to captures, which may be incomplete, damaged
or copied while the node ran.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from kraft_core.evidence.facts import Capture, label
from kraft_core.findings.byte_rules import MOST_APART
from kraft_core.findings.captured_logs import JudgedLog
from kraft_core.findings.cluster_view import ClusterView
from kraft_core.findings.finding import Breach, Severity, of_rule
from kraft_core.raft import invariants
from kraft_core.raft.epochs import EpochCache
from kraft_core.raft.rules import Violation


def epochs_never_go_back(view: ClusterView, capture: Capture) -> Iterator[Breach]:
    """Rule 2. One breach for each place, or for all of them where they are many."""
    places = {
        (found.offset, found.leader_epoch, found.detail)
        for found in view.logs.of(capture).in_whole(invariants.epochs_never_go_back)
    }
    places |= {
        (fault.offset, fault.leader_epoch, f"follows a batch of epoch {fault.expected}")
        for fault in view.order_faults.get(capture.capture_id, ())
        if fault.kind == "epoch_regression"
    }
    if len(places) > MOST_APART:
        yield _fallen(capture, *min(places), f"; so at {len(places)} places or more")
        return
    for place in sorted(places):
        yield _fallen(capture, *place)


def _fallen(capture: Capture, offset: int, leader_epoch: int, detail: str, others: str = "") -> Breach:
    sentence = (
        f"In the log of {label(capture.replica)} the batch of epoch {leader_epoch} at {offset} {detail}"
        f"{others}."
    )
    return _of_capture(2, "error", capture, offset, leader_epoch, sentence, detail)


def epoch_cache_matches_batches(view: ClusterView, capture: Capture) -> Iterator[Breach]:
    """Rule 10, of the part of the log above its last gap.

    If it is unknown which old checkpoints a capture held, both lists are cut to the newest one. An epoch that
    is newer than the log and begins below its end was written after a truncation that came after the log was
    copied: a warning.
    """
    log = view.logs.of(capture)
    if log.entries is None or not log.sections:
        return
    yield from _unordered_entries(capture, log.entries)
    for found in log.violations(_against_the_cache):
        yield _cached_otherwise(capture, found, dict(log.entries))


def _against_the_cache(captured: JudgedLog) -> Iterator[Violation]:
    log = replace(captured.sections[-1], snapshots=())
    ends = sorted(s.end_offset for s in captured.snapshots if s.end_offset <= log.end_offset)
    all_known = all(s.held_in for s in captured.snapshots)
    start = max(log.start_offset, (ends[0] if all_known else ends[-1]) if ends else 0)
    epochs = EpochCache(tuple(sorted(captured.entries or ())))
    return invariants.epoch_cache_matches_batches(replace(log, start_offset=start, epochs=epochs))


def _cached_otherwise(capture: Capture, found: Violation, entries: dict[int, int]) -> Breach:
    detail = f"epoch {found.leader_epoch} {found.detail}"
    sentence = f"leader-epoch-checkpoint of {label(capture.replica)} disagrees with its log: {detail}."
    may_be_later = capture.older_log is not None or _is_of_later_log(capture, found, entries)
    severity: Severity = "error" if _is_consistent(capture) and not may_be_later else "warning"
    return _of_capture(10, severity, capture, found.offset, found.leader_epoch, sentence, detail, moves=True)


def _is_of_later_log(capture: Capture, found: Violation, entries: dict[int, int]) -> bool:
    """Whether the log may have come to differ so after it was copied: by a truncation, or a deleted prefix.

    Only a higher epoch truncates, and other epochs may then stand there. A deleted prefix removes the first
    entries, and raises the first one that is left.
    """
    epoch, last_epoch, state = (
        found.leader_epoch,
        capture.epoch_ranges[-1].leader_epoch,
        capture.quorum_state_epoch,
    )
    is_newer_epoch_known = state is None or state > last_epoch or max(entries, default=-1) > last_epoch
    first = min(entries, default=epoch)
    is_first = entries[epoch] > found.offset if epoch in entries else True
    return is_newer_epoch_known or (epoch <= first and is_first)


def _unordered_entries(capture: Capture, entries: tuple[tuple[int, int], ...]) -> Iterator[Breach]:
    for (epoch, start), (next_epoch, next_start) in pairwise(entries):
        if next_epoch <= epoch or next_start < start:
            detail = f"epoch {next_epoch} from {next_start} follows epoch {epoch} from {start}"
            sentence = f"leader-epoch-checkpoint of {label(capture.replica)} is out of order: {detail}."
            yield _of_capture(10, "error", capture, next_start, next_epoch, sentence, detail)


def epochs_begin_with_leader_change(view: ClusterView, capture: Capture) -> Iterator[Breach]:
    """Rule 11; an unreadable LEADER_CHANGE counts as one."""
    for found in view.logs.of(capture).in_sections(invariants.epochs_begin_with_leader_change):
        if (found.leader_epoch, found.offset) not in view.unread_elections:
            place = f"The batch of epoch {found.leader_epoch} at {found.offset}"
            sentence = f"{place} in the log of {label(capture.replica)} {found.detail}."
            yield _of_capture(11, "error", capture, found.offset, found.leader_epoch, sentence, found.detail)


def starts_under_a_snapshot(view: ClusterView, capture: Capture) -> Iterator[Breach]:
    """Rule 19; a checkpoint that could not be read may be there."""
    if not capture.readable:
        return
    for found in view.logs.of(capture).in_whole(invariants.starts_under_a_snapshot):
        sentence = (
            f"The log of {label(capture.replica)} begins at {found.offset}, and {found.detail}: none of "
            f"its files contains what was below."
        )
        yield _of_capture(19, "error", capture, found.offset, None, sentence, found.detail, moves=True)


def epoch_is_not_behind_log(view: ClusterView, capture: Capture) -> Iterator[Breach]:
    """Rule 21, a warning: no file shows that quorum-state was copied after the log.

    A replica stores its epoch before it appends, so it is the capture that is inconsistent, not the quorum.
    """
    if capture.quorum_state_epoch is None:
        return
    log = view.logs.of(capture).whole
    behind = [f.leader_epoch for f in invariants.epoch_is_not_behind_log(log, capture.quorum_state_epoch)]
    if behind or not capture.consistent:
        shown = f"its log has epoch {behind[0]}" if behind else "other logs show that it voted in a later one"
        sentence = (
            f"The capture of {label(capture.replica)} is inconsistent: its quorum-state has epoch "
            f"{capture.quorum_state_epoch}, and {shown}. Copy quorum-state after the log."
        )
        epoch = behind[0] if behind else capture.quorum_state_epoch
        evidence = f"quorum-state: epoch {capture.quorum_state_epoch}; {shown}"
        yield _of_capture(21, "warning", capture, None, epoch, sentence, evidence)


def _is_consistent(capture: Capture) -> bool:
    """Whether quorum-state and leader-epoch-checkpoint were copied after the log, as far as is known."""
    last_epoch = capture.epoch_ranges[-1].leader_epoch if capture.epoch_ranges else -1
    copied_before = capture.quorum_state_epoch is not None and capture.quorum_state_epoch < last_epoch
    return capture.consistent and not copied_before


def _of_capture(
    rule: int,
    severity: Severity,
    capture: Capture,
    offset: int | None,
    leader_epoch: int | None,
    sentence: str,
    evidence: str,
    *,
    moves: bool = False,
) -> Breach:
    """A breach of one replica. moves: its offset changes while the log grows and does not identify it."""
    return Breach(
        of_rule(rule),
        severity,
        (capture.node_id, capture.directory_id, None if moves else offset, leader_epoch),
        sentence,
        evidence,
        first_offset=offset,
        end_offset=None if offset is None else offset + 1,
        leader_epochs=() if leader_epoch is None else (leader_epoch,),
        replicas=(capture.replica,),
        captures=(capture,),
    )
