"""Rule 22's facts: where a checkpoint differs from the replay of the log below it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

from kraft_core.findings.facts import SnapshotDeviation
from kraft_core.image.change import Key
from kraft_core.image.delegation_tokens import token_digest
from kraft_core.image.differences import Difference
from kraft_core.image.snapshot_check import Deviation
from kraft_core.image.tables import DELEGATION_TOKENS

# At most this many deviations of one checkpoint are kept, the first in order.
MAX_REPORTED = 1000


def unlawful_deviations(
    found: Iterable[Deviation], end_offset: int, leader_epoch: int, content_digest: str
) -> Iterator[SnapshotDeviation]:
    """The deviations of a checkpoint that Kafka does not make by design, as facts."""
    breaches = (deviation for deviation in found if not deviation.by_design)
    for deviation in islice(breaches, MAX_REPORTED):
        difference = deviation.difference
        yield SnapshotDeviation(
            end_offset,
            leader_epoch,
            content_digest,
            difference.kind,
            " ".join(map(_word, _key_without_secrets(difference))),
            difference.after is None,
            difference.before is None,
            deviation.explanation,
        )


def _key_without_secrets(difference: Difference) -> Key:
    """The id of a delegation token is half of the secret: it is replaced by its digest."""
    if difference.kind == DELEGATION_TOKENS:
        return (token_digest(difference.key[0]),)
    return difference.key


def _word(part: Any) -> str:
    return part if isinstance(part, str) else repr(part)
