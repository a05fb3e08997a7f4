"""A plan in parts: a run holds the rows of a limited number of captures at a time, however large the
fleet."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import replace

from jobs.captures.ingest import without_reading
from jobs.captures.known_copies import KnownCopies
from jobs.captures.new_captures import new_captures
from jobs.captures.planning import ReadPlan
from transforms.lake.storage.location import Location

# What the rows of a small cluster's capture take of the driver's memory until they are committed: 80 KB.
MOST_CAPTURES = 5_000


def parts_of(lake: Location, plan: ReadPlan, known: KnownCopies) -> list[ReadPlan]:
    """Plans of whole clusters that together are the plan, of at most MOST_CAPTURES each if it can be.

    Known captures take no memory: the clusters of which nothing is new are all in the first part.
    """
    if len(plan.captures) <= MOST_CAPTURES:
        return [plan]
    sizes = Counter(copy.who.cluster_id for copy in plan.captures)
    groups = list(_groups({c: sizes[c] for c in sorted(_with_news(lake, plan, known))})) or [set[str]()]
    groups[0] |= sizes.keys() - set[str]().union(*groups)
    groups[0] |= {file.cluster_id for file in (*plan.described, *plan.broker_dirs)} - sizes.keys()
    first, *others = (_of_clusters(plan, group) for group in groups)
    return [first, *(replace(part, left_out=(), ignored_files=0) for part in others)]


def _with_news(lake: Location, plan: ReadPlan, known: KnownCopies) -> set[str]:
    """The clusters of which a run will commit anything."""
    new = new_captures(lake, plan, known)
    owners = {copy.capture_id: copy.who.cluster_id for copy in plan.captures}
    changed = {owners[capture_id] for capture_id in without_reading(plan, new).captures}
    unread = {copy.who.cluster_id for copy in new.unread}
    return changed | unread | {file.cluster_id for file in (*new.described, *new.broker_dirs)}


def _groups(sizes: dict[str, int]) -> Iterator[set[str]]:
    held: set[str] = set()
    captures = 0
    for cluster, size in sizes.items():
        if held and captures + size > MOST_CAPTURES:
            yield held
            held, captures = set(), 0
        held.add(cluster)
        captures += size
    if held:
        yield held


def _of_clusters(plan: ReadPlan, clusters: Collection[str]) -> ReadPlan:
    return replace(
        plan,
        captures=tuple(copy for copy in plan.captures if copy.who.cluster_id in clusters),
        described=tuple(file for file in plan.described if file.cluster_id in clusters),
        broker_dirs=tuple(each for each in plan.broker_dirs if each.cluster_id in clusters),
    )
