"""What a life of a cluster id needs from the others: which of its nodes were captured there, too.

If nothing connects such a capture, its life is not known. A disk that was wiped, before or after the captures
of this life, may have lost what its voter had stored: so nothing is concluded from a voter that may be on it.
Only captures that were taken before this life began are irrelevant to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Mapping
from math import inf

from kraft_core.evidence.facts import CLOCK_SKEW_MS, Capture, CapturedElsewhere


def captured_elsewhere(lives: Mapping[str, Iterable[Capture]]) -> dict[str, tuple[CapturedElsewhere, ...]]:
    """For each life, by its cluster id, the nodes of the others; lives: of one cluster id.

    Of each node the newest capture, and of each directory that the life itself holds.
    """
    newest: defaultdict[Hashable, list[CapturedElsewhere]] = defaultdict(list)
    own: dict[str, set[Hashable]] = {}
    for life, captures in lives.items():
        by_key: defaultdict[Hashable, list[Capture]] = defaultdict(list)
        for capture in captures:
            by_key[capture.node_id].append(capture)
            by_key[capture.node_id, capture.directory_id].append(capture)
        own[life] = {key for key in by_key if isinstance(key, tuple)}
        for key, held in by_key.items():
            newest[key].append(_newest(life, held))
    # Of two lives one is another one.
    two = {key: sorted(each, key=_order)[-2:] for key, each in newest.items()}
    return {life: tuple(_of_others(life, own[life], two)) for life in lives}


def _newest(life: str, captures: list[Capture]) -> CapturedElsewhere:
    last = max(captures, key=lambda c: (inf if c.captured_until is None else c.captured_until, c.capture_id))
    return CapturedElsewhere(life, last.node_id, last.directory_id, last.captured_until)


def _order(found: CapturedElsewhere) -> tuple[float, str]:
    return inf if found.until is None else found.until, found.cluster_id


def _of_others(
    life: str, own: set[Hashable], newest: Mapping[Hashable, list[CapturedElsewhere]]
) -> Iterator[CapturedElsewhere]:
    found = {
        others[-1]
        for key, each in newest.items()
        if not isinstance(key, tuple) or key in own
        for others in [[one for one in each if one.cluster_id != life]]
        if others
    }
    yield from sorted(found, key=lambda one: (one.node_id, one.directory_id))


def that_may_be_ours(
    elsewhere: Iterable[CapturedElsewhere], captures: Iterable[Capture]
) -> tuple[CapturedElsewhere, ...]:
    """Those that were not captured before the life of these captures began, as far as that is known.

    Only a log that begins in epoch 1 began with voters that remembered nothing. One that begins later may be
    of the same quorum, in which a voter that lost its disk elected one whose log was still empty.
    """
    firsts = [capture.epoch_ranges[0] for capture in captures if capture.epoch_ranges]
    began = (
        epoch_range.first_appended_at
        for epoch_range in firsts
        if epoch_range.first_offset == 0 and epoch_range.leader_epoch == 1
    )
    born = min(began, default=-inf)
    return tuple(one for one in elsewhere if one.until is None or one.until >= born - CLOCK_SKEW_MS)
