"""The lives (kraft_core.evidence.lives) of captures that were read as a whole."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from kraft_core.evidence.compared_batches import RunBatches
from kraft_core.evidence.facts import Capture, SnapshotFacts
from kraft_core.evidence.life_lines import BatchPlace, LoggedCapture, LoggedCheckpoint, LoggedRange
from kraft_core.evidence.lives import ClusterLife, lives_of, places_to_compare
from kraft_core.messages.uuid_text import ZERO_UUID


def collected_lives(
    captures: Sequence[Capture], batches: Iterable[RunBatches], snapshots: Iterable[SnapshotFacts]
) -> list[ClusterLife]:
    """The lives of one cluster id, the newest last. batches: of each run of the captures, in their order."""
    each = iter(batches)
    runs: defaultdict[str, list[RunBatches]] = defaultdict(list)
    for capture in captures:
        runs[capture.capture_id] += [next(each) for _ in capture.runs]
    checkpoints: defaultdict[str, set[LoggedCheckpoint]] = defaultdict(set)
    for s in snapshots:
        for capture_id in s.held_in if s.proves else ():
            checkpoints[capture_id].add(LoggedCheckpoint(s.end_offset, s.leader_epoch, s.content_digest))
    logged = [
        LoggedCapture(
            capture.capture_id,
            tuple(_ranges(capture, runs[capture.capture_id])),
            checkpoints=frozenset(checkpoints[capture.capture_id]),
            directory=None if capture.directory_id == ZERO_UUID else (capture.node_id, capture.directory_id),
        )
        for capture in captures
    ]
    found = {place: frozenset(_crcs(place, runs[place.owner])) for place in places_to_compare(logged)}
    return lives_of(logged, found)


def _ranges(capture: Capture, batches: Iterable[RunBatches]) -> Iterator[LoggedRange]:
    for run, held in zip(capture.runs, batches, strict=False):
        yield LoggedRange(
            run.leader_epoch,
            run.first_offset,
            run.end_offset,
            run.first_appended_at,
            run.last_appended_at,
            held.contents[0] >> 31,
        )


def _crcs(place: BatchPlace, runs: Iterable[RunBatches]) -> Iterator[int]:
    for run in runs:
        nth = bisect_left(run.bases, place.base_offset)
        if (
            run.leader_epoch == place.leader_epoch
            and nth < len(run.bases)
            and run.bases[nth] == place.base_offset
        ):
            yield run.contents[nth] >> 31
