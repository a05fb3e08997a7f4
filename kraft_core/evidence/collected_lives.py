"""The lives (kraft_core.evidence.lives) of captures that were read as a whole."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set

from kraft_core.evidence.compared_batches import RangeBatches
from kraft_core.evidence.facts import Capture, SnapshotFacts
from kraft_core.evidence.life_lines import (
    BatchPlace,
    FoundBatches,
    LoggedCapture,
    LoggedCheckpoint,
    LoggedRange,
)
from kraft_core.evidence.lives import ClusterLife, lives_of
from kraft_core.messages.uuid_text import ZERO_UUID


def collected_lives(
    captures: Sequence[Capture], batches: Iterable[RangeBatches], snapshots: Iterable[SnapshotFacts]
) -> list[ClusterLife]:
    """The lives of one cluster id, the newest last. batches: of all epoch ranges, in order."""
    each = iter(batches)
    epoch_ranges: defaultdict[str, list[RangeBatches]] = defaultdict(list)
    for capture in captures:
        epoch_ranges[capture.capture_id] += [next(each) for _ in capture.epoch_ranges]
    checkpoints: defaultdict[str, set[LoggedCheckpoint]] = defaultdict(set)
    for s in snapshots:
        for capture_id in s.held_in if s.proves else ():
            checkpoints[capture_id].add(LoggedCheckpoint(s.end_offset, s.leader_epoch, s.content_digest))
    logged = [
        LoggedCapture(
            capture.capture_id,
            tuple(_ranges(capture, epoch_ranges[capture.capture_id])),
            checkpoints=frozenset(checkpoints[capture.capture_id]),
            directory=None if capture.directory_id == ZERO_UUID else (capture.node_id, capture.directory_id),
        )
        for capture in captures
    ]

    def read(places: Set[BatchPlace]) -> FoundBatches:
        return {place: frozenset(_crcs(place, epoch_ranges[place.owner])) for place in places}

    return lives_of(logged, read)


def _ranges(capture: Capture, batches: Iterable[RangeBatches]) -> Iterator[LoggedRange]:
    for epoch_range, held in zip(capture.epoch_ranges, batches, strict=False):
        yield LoggedRange(
            epoch_range.leader_epoch,
            epoch_range.first_offset,
            epoch_range.end_offset,
            epoch_range.first_appended_at,
            epoch_range.last_appended_at,
            held.contents[0] >> 31,
        )


def _crcs(place: BatchPlace, epoch_ranges: Iterable[RangeBatches]) -> Iterator[int]:
    for epoch_range in epoch_ranges:
        nth = bisect_left(epoch_range.bases, place.base_offset)
        if (
            epoch_range.leader_epoch == place.leader_epoch
            and nth < len(epoch_range.bases)
            and epoch_range.bases[nth] == place.base_offset
        ):
            yield epoch_range.contents[nth] >> 31
