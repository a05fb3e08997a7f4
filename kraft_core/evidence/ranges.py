"""The ranges of offsets that captures hold: by commit status, and by replica."""

from __future__ import annotations

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.holdings import holdings_of
from kraft_core.evidence.rows import LogRange, ReplicaRange
from kraft_core.messages.uuid_text import ZERO_UUID


def log_ranges(known: Conclusions) -> list[LogRange]:
    """Everything any capture holds, by epoch, cut where the status changes or nothing is held."""
    return [
        LogRange(
            known.facts.cluster_id,
            line.leader_epoch,
            first,
            end,
            verdict.status,
            verdict.evidence,
            verdict.as_of,
            verdict.truncated_by_epoch,
        )
        for line in known.lineage.lines.values()
        for first, end, verdict in known.commit.ranges(line)
    ]


def replica_ranges(known: Conclusions) -> list[ReplicaRange]:
    """What each replica held of each epoch: the union over its captures, gaps left open.

    What was followed is listed as that of a node FOLLOWED_NODE_ID.
    """
    followed = holdings_of(known.facts.followed, {}, frozenset()).by_epoch
    rows = [
        ReplicaRange(
            known.facts.cluster_id,
            replica.id,
            replica.directory_id or ZERO_UUID,
            epoch,
            first,
            end,
            first_captured_at,
            last_captured_at,
        )
        for by_epoch in (known.holdings.by_epoch, followed)
        for epoch, of_epoch in by_epoch.items()
        for replica, holding in of_epoch.items()
        for first, end, first_captured_at, last_captured_at in _union(holding.ranges)
    ]
    return sorted(rows, key=lambda r: (r.node_id, r.directory_id, r.leader_epoch, r.first_offset))


def _union(ranges: dict[tuple[int, int], tuple[int, int]]) -> list[tuple[int, int, int, int]]:
    """Ranges joined where they touch, with the first and the last capture of any part."""
    joined: list[tuple[int, int, int, int]] = []
    for (first, end), (first_at, last_at) in sorted(ranges.items()):
        if joined and first <= joined[-1][1]:
            known = joined[-1]
            joined[-1] = (known[0], max(known[1], end), min(known[2], first_at), max(known[3], last_at))
        else:
            joined.append((first, end, first_at, last_at))
    return joined
