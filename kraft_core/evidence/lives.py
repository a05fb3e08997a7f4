"""The lives of a cluster id: which captures are of one history, and which only have the same id.

An id copied from a tutorial, a reformatted node, a restored copy that diverged: one
cluster.id may name several histories, and evidence of one says nothing about another. A life is a set of
captures whose logs are connected.

- Two captures that hold the same batch (offset, epoch, CRC) are of one life, and so is all that is connected
  by such batches: below a batch that two logs share, they are equal (log matching, KIP-595). What differs
  above it is for the rules to judge: a truncated tail, or a clone of the cluster that was captured while both
  still held their common past (rules 1, 3 and 4).
- So are two captures that hold the same checkpoint file above offset 0, and the captures of one directory id,
  since Kafka gives every formatted directory its own (KIP-858). A cloned disk or image keeps the id: it
  connects nothing where that would join logs that contest each other.
- Logs that are not connected contest each other if they hold different batches at one offset, or if what lies
  below in offset was appended later, or in a higher epoch, than what lies above: offsets, epochs and, apart
  from the clocks of leaders, times increase together in one history; so do those of checkpoints. Logs that
  contest each other are of different lives.
- Logs that are not connected meet if one would say what of the other was committed, or with which voters it
  begins: they hold batches of one epoch, one begins where the other ends, or a checkpoint of one lies in the
  other. They may be of one history; nothing shows it, so they are of different lives.
- Where none contest each other or meet, all captures are of one life: logs that were captured years apart
  may have no batch in common. Where some do, captures that nothing connects, those without any batch among
  them, are lives of their own: which one they belong to is not known.

It is safe to tell apart what belongs together: every conclusion holds for a part of the captures, too. So a
log that was truncated to its very first offset counts as another life where no capture shows the way.
The lives depend on the set of captures only. A life is named by its lowest captured batch, and lives are
sorted by the time of their newest record.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from itertools import combinations

from kraft_core.evidence.life_contests import any_meet, contest
from kraft_core.evidence.life_lines import (
    BatchPlace,
    FoundBatches,
    Line,
    LoggedCapture,
    Sets,
    known_batches,
    lines_of,
)


@dataclass(frozen=True, slots=True)
class ClusterLife:
    """One history. capture_ids are sorted.

    first_offset, first_appended_at: of its lowest captured batch; last_appended_at: of its newest (ms by the
    leaders' clocks). None where its captures hold no batch.
    """

    name: str
    capture_ids: tuple[str, ...]
    first_offset: int | None
    first_appended_at: int | None
    last_appended_at: int | None


def _none(_: Set[BatchPlace]) -> FoundBatches:
    """Nothing can be read."""
    return {}


def lives_of(
    captures: Iterable[LoggedCapture], read: Callable[[Set[BatchPlace]], FoundBatches] = _none
) -> list[ClusterLife]:
    """The lives of one cluster id, the newest last; at least one where there are captures.

    read: reads the batches at places that must be compared to tell the lives. Of a place that it leaves out,
    the logs are not connected there.
    """
    every = list(captures)
    lines = lines_of(every, {})
    places = _places_to_compare(every, lines)
    found: FoundBatches = read(places) if places else {}
    if found:
        lines = lines_of(every, found)
    contested = {(a, b) for a, b in combinations(range(len(lines)), 2) if contest(lines[a], lines[b])}
    groups = _joined_by_directories(lines, contested)
    if not contested and not any(any_meet(one, other) for one, other in combinations(groups, 2)):
        return [_life(lines)] if lines else []  # nothing tells them apart
    return sorted(map(_life, groups), key=_by_newest_record)


def _places_to_compare(every: Sequence[LoggedCapture], lines: Sequence[Line]) -> set[BatchPlace]:
    """The batches that must be read to tell the lives; lines: by what is known without.

    Logs that share a batch of an epoch share the first one that both hold of it, where a range of one of them
    begins. So in epochs of which several lines hold something, all logs are compared at all such offsets.
    """
    if len(lines) == 1:
        return set()
    held_by = Counter(epoch for line in lines for epoch in {held.leader_epoch for held, _ in line.ranges})
    firsts: defaultdict[int, set[int]] = defaultdict(set)
    for capture in every:
        for held in capture.ranges:
            if held_by[held.leader_epoch] > 1:
                firsts[held.leader_epoch].add(held.first_offset)
    places: set[BatchPlace] = set()
    ordered = {epoch: sorted(offsets) for epoch, offsets in firsts.items()}
    for capture in every:
        known = {(epoch, offset) for epoch, offset, _ in known_batches(capture, ())}
        for held in capture.ranges:
            offsets = ordered.get(held.leader_epoch, [])
            low, high = (bisect_left(offsets, bound) for bound in (held.first_offset, held.end_offset))
            places |= {
                BatchPlace(capture.owner, held.leader_epoch, offset)
                for offset in offsets[low:high]
                if (held.leader_epoch, offset) not in known
            }
    # A life is named by its lowest batch.
    lowest = [(_lowest_place(line), line) for line in lines if line.ranges]
    places |= {p for p, line in lowest if (p.leader_epoch, p.base_offset) not in line.batches}
    return places


def _joined_by_directories(lines: Sequence[Line], contested: set[tuple[int, int]]) -> list[list[Line]]:
    """The lines in groups of one directory id, unless that joins what is contested."""
    holders: defaultdict[tuple[int, str], set[int]] = defaultdict(set)
    for number, line in enumerate(lines):
        for capture in line.captures:
            if capture.directory is not None:
                holders[capture.directory].add(number)
    sets = Sets(list(range(len(lines))))
    for numbers in holders.values():
        sets.join(numbers)
    groups: list[list[Line]] = []
    for group in sets.groups():
        if any(pair in contested for pair in combinations(sorted(group), 2)):
            groups += [[lines[number]] for number in group]
        else:
            groups.append([lines[number] for number in group])
    return groups


# --- lives ---


def _life(lines: Sequence[Line]) -> ClusterLife:
    captures = [capture for line in lines for capture in line.captures]
    ids = tuple(sorted({id_ for capture in captures for id_ in (capture.capture_id, *capture.copies)}))
    ranges = [held for line in lines for held, _ in line.ranges]
    if not ranges:
        return ClusterLife(_digest(ids[0]), ids, None, None, None)
    lowest = min(
        (line for line in lines if line.ranges),
        key=lambda line: (_lowest_place(line).base_offset, _lowest_place(line).leader_epoch),
    )
    _, epoch, offset = _lowest_place(lowest)
    crcs = sorted(lowest.batches.get((epoch, offset), ()))
    first_at = min(ranges, key=lambda held: (held.first_offset, held.leader_epoch)).first_appended_at
    last_at = max(held.last_appended_at for held in ranges)
    return ClusterLife(_digest(f"{offset}/{epoch}/{crcs[:1]}"), ids, offset, first_at, last_at)


def _lowest_place(line: Line) -> BatchPlace:
    """Where the lowest batch of a line with ranges begins."""
    held, owner = min(line.ranges, key=lambda each: (each[0].first_offset, each[0].leader_epoch))
    return BatchPlace(owner, held.leader_epoch, held.first_offset)


def _digest(identity: str) -> str:
    return hashlib.sha256(identity.encode()).hexdigest()[:8]


def _by_newest_record(life: ClusterLife) -> tuple[int, str]:
    return -1 if life.last_appended_at is None else life.last_appended_at, life.name
