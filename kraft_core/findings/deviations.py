"""Rule 22's facts: where a checkpoint is not what the log below it comes to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from kraft_core.findings.facts import SnapshotDeviation
from kraft_core.image.change import Key
from kraft_core.image.delegation_tokens import token_digest
from kraft_core.image.differences import Difference
from kraft_core.image.image import Image
from kraft_core.image.snapshot_check import Deviation, deviations
from kraft_core.image.tables import DELEGATION_TOKENS

# What is told of one checkpoint: this many things, the first in order.
MOST_TOLD = 1000


def snapshot_deviations(
    replayed: Image, checkpoint: Image, end_offset: int, leader_epoch: int, content_digest: str
) -> Iterator[SnapshotDeviation]:
    """The deviations of a checkpoint that Kafka has no right to, from the replay of the log up to its end."""
    return unlawful(deviations(replayed, checkpoint), end_offset, leader_epoch, content_digest)


def unlawful(
    found: Iterable[Deviation], end_offset: int, leader_epoch: int, content_digest: str
) -> Iterator[SnapshotDeviation]:
    """Those of a checkpoint's deviations that Kafka has no right to, as facts."""
    breaches = (deviation for deviation in found if not deviation.lawful)
    for deviation in islice(breaches, MOST_TOLD):
        yield told(deviation, end_offset, leader_epoch, content_digest)


def told(deviation: Deviation, end_offset: int, leader_epoch: int, content_digest: str) -> SnapshotDeviation:
    """A deviation as a fact of one checkpoint; what the thing holds, secrets too, is left out."""
    difference = deviation.difference
    return SnapshotDeviation(
        end_offset,
        leader_epoch,
        content_digest,
        difference.kind,
        " ".join(map(_word, _shown(difference))),
        difference.after is None,
        difference.before is None,
        deviation.explanation,
    )


def _shown(difference: Difference) -> Key:
    """A thing's key without secrets: that of a token is half of one."""
    if difference.kind == DELEGATION_TOKENS:
        return (token_digest(difference.key[0]),)
    return difference.key


def _word(part: Any) -> str:
    return part if isinstance(part, str) else repr(part)
