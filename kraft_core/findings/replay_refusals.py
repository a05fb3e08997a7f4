"""What a refused record was replayed onto, along the replay path: the facts of rule 49."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kraft_core.findings.facts import ReplayRefusal
from kraft_core.findings.snapshot_replays import Part, digest_of
from kraft_core.image.change import RefusedRecord
from kraft_core.image.replay_path import COMMITTED, PathCheckpoint, Step


def replay_refusal(steps: Iterable[Step], record: RefusedRecord) -> ReplayRefusal | None:
    """The fact of a record that Kafka refuses; None where its path is no checkpoint, and no log from one or
    offset 0. steps: the replay path.
    """
    replayed = _replayed(steps, record)
    if replayed is None:
        return None
    base, log, status = replayed
    return ReplayRefusal(
        record.offset,
        record.leader_epoch,
        record.type,
        record.cause or "",
        record.subject,
        record.reason,
        record.by_controllers_only,
        status,
        base.end_offset if base else 0,
        base.content_digest if base else "",
        digest_of(tuple(log)),
    )


def _replayed(
    steps: Iterable[Step], record: RefusedRecord
) -> tuple[PathCheckpoint | None, list[Part], str] | None:
    """The checkpoint (None: none) and the log that were replayed up to a record, and its commit status."""
    base: PathCheckpoint | None = None
    log: list[Part] = []
    for step in steps:
        if isinstance(step, PathCheckpoint):
            base, log = step, []
            if step.first_offset == record.offset:
                return (base, log, COMMITTED) if step.leader_epoch == record.leader_epoch else None
            continue
        last = step.first_offset <= record.offset < step.end_offset
        end = record.offset + 1 if last else step.end_offset
        if log and log[-1].end_offset != step.first_offset:
            return None
        if log and log[-1].leader_epoch == step.leader_epoch:
            log[-1] = replace(log[-1], end_offset=end)
        else:
            log.append(Part(step.leader_epoch, step.first_offset, end))
        if last:
            begins = base.end_offset if base else 0
            whole = step.leader_epoch == record.leader_epoch and log[0].first_offset == begins
            return (base, log, step.commit_status) if whole else None
    return None
