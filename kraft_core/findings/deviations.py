"""Rule 22's facts: where a checkpoint is not what the log below it comes to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kraft_core.findings.facts import SnapshotDeviation
from kraft_core.image.image import Image
from kraft_core.image.snapshot_check import Deviation, deviations


def snapshot_deviations(
    replayed: Image, checkpoint: Image, end_offset: int, leader_epoch: int, content_digest: str
) -> Iterator[SnapshotDeviation]:
    """The deviations of a checkpoint that Kafka has no right to, from the replay of the log up to its end."""
    for deviation in deviations(replayed, checkpoint):
        if not deviation.lawful:
            yield told(deviation, end_offset, leader_epoch, content_digest)


def told(deviation: Deviation, end_offset: int, leader_epoch: int, content_digest: str) -> SnapshotDeviation:
    """A deviation as a fact of one checkpoint; what the thing holds, secrets too, is left out."""
    difference = deviation.difference
    return SnapshotDeviation(
        end_offset,
        leader_epoch,
        content_digest,
        difference.kind,
        " ".join(map(_word, difference.key)),
        difference.after is None,
        difference.before is None,
        deviation.explanation,
    )


def _word(part: Any) -> str:
    return part if isinstance(part, str) else repr(part)
