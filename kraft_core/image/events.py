"""The changes of the things under a path of the tree, in log order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kraft_core.format.record import Record
from kraft_core.image import tree
from kraft_core.image.differences import differences
from kraft_core.image.image import Image
from kraft_core.image.replica import CapturedReplica

CHECKPOINT = "checkpoint"
"""In place of a record type: only a checkpoint shows a change, at or before its end."""


@dataclass(frozen=True, slots=True)
class Event:
    """A change of the thing at a path: its values before and after, None: absent.

    offset, leader_epoch: of the record that made it visible, or of the end of the checkpoint at or before
    which it happened. timestamp: when it took effect, ms: the highest of any up to there, as leaders' clocks
    may go back. record_type: of the record that made it, or CHECKPOINT. batch_base_offset: of the batch of
    the record that made it visible; None where it is not known.
    """

    offset: int
    leader_epoch: int
    timestamp: int
    record_type: str
    path: tree.Path
    kind: str
    before: Any
    after: Any
    batch_base_offset: int | None = None

    @property
    def is_exact(self) -> bool:
        """Whether a record shows it; else it happened at or before its offset and time."""
        return self.record_type != CHECKPOINT

    def is_together_with(self, other: Event) -> bool:
        """Whether both became visible by one batch, which is appended at once."""
        if self.batch_base_offset is None or not (self.is_exact and other.is_exact):
            return False
        return (self.leader_epoch, self.batch_base_offset) == (other.leader_epoch, other.batch_base_offset)


def events(replica: CapturedReplica, patterns: Sequence[tree.Path], last_offset: int) -> Iterator[Event]:
    """Up to an offset (inclusive), of the things whose path matches one of the patterns."""
    image, at = Image(), -1
    for step in replica.steps():
        if step.offset > last_offset:
            return
        at = max(at, step.timestamp)
        batch = None if isinstance(step, Image) else step.batch.base_offset
        changes = _of_checkpoint(image, step) if isinstance(step, Image) else _of_record(image, step)
        if isinstance(step, Image):
            image = step.copy()
        for record_type, kind, before, after in changes:
            path = path_under(patterns, kind, before if after is None else after)
            if path is not None:
                where = (step.offset, step.leader_epoch, at)
                yield Event(*where, record_type, path, kind, before, after, batch)


_Changes = list[tuple[str, str, Any, Any]]


def _of_checkpoint(image: Image, checkpoint: Image) -> _Changes:
    return [(CHECKPOINT, each.kind, each.before, each.after) for each in differences(image, checkpoint)]


def _of_record(image: Image, record: Record) -> _Changes:
    return [
        (made.record.type, made.change.kind, made.before, made.change.value) for made in image.apply(record)
    ]


def path_under(patterns: Sequence[tree.Path], kind: str, value: Any) -> tree.Path | None:
    """A thing's path that matches one of the patterns; by name rather than by id."""
    for path in reversed(tree.paths(kind, value)):
        if any(tree.touches(pattern, path) for pattern in patterns):
            return path
    return None
