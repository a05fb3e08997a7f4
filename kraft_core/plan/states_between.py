"""The states between what is proven committed and the end of the leader's log.

The next leader's log may end at any batch there. What is SAFE by both ends may not be SAFE between them: an
ISR shrank and grew again, or min.insync.replicas rose before the ISR did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

from kraft_core.image.change import Change
from kraft_core.image.configs import TOPIC_RESOURCE
from kraft_core.image.image import Image
from kraft_core.image.partitions import Partition
from kraft_core.image.tables import BROKERS, CONFIGS, FEATURES, PARTITIONS, TOPICS, ZK_MIGRATION
from kraft_core.plan.answer import AnswerName
from kraft_core.plan.captured_metadata import CapturedMetadata

MOST_STATES, MOST_CHANGES = 32, 200_000
"""As many are examined, of as many changes; where there are more, the answer is not known."""

_IT_DEPENDS = "it depends on records at the log's end that are not proven committed"
_TOO_MUCH = "too much changed in records at the log's end that are not proven committed: capture again"

Concerns = Callable[[Change, Any | None], bool]
"""Whether an answer may depend on a change of a thing, given what it was before."""


def not_proven(
    metadata: CapturedMetadata, verdict: AnswerName, concerns: Concerns, agrees: Callable[[Image], bool]
) -> Iterator[str]:
    """Why an answer by the log's end may not hold by what is proven committed or, if it is SAFE, between the
    two. agrees: as of unproven_gap.
    """
    if metadata.committed is None:
        yield "the captures do not prove this metadata committed"
    elif not agrees(metadata.committed):
        yield _IT_DEPENDS
    elif verdict == "safe" and (gap := unproven_gap(metadata, concerns, agrees)) is not None:
        yield gap


def unproven_gap(
    metadata: CapturedMetadata, concerns: Concerns, agrees: Callable[[Image], bool]
) -> str | None:
    """Why an answer that holds at both ends may not hold between them; None if it does.

    agrees: whether the answer is the same by an image.
    """
    batches = _changes_above(metadata)
    if batches is None:
        return _TOO_MUCH
    for nth, state in enumerate(_states_between(metadata, batches, concerns)):
        if nth == MOST_STATES:
            return _TOO_MUCH
        if not agrees(state):
            return _IT_DEPENDS
    return None


def _changes_above(metadata: CapturedMetadata) -> list[Sequence[Change]] | None:
    """By batch, those that change nothing left out; None where there are too many."""
    found: list[Sequence[Change]] = []
    count = 0
    for batch in metadata.unproven:
        count += len(batch)
        if count > MOST_CHANGES:
            return None
        found += [batch] if batch else []
    return found


def _states_between(
    metadata: CapturedMetadata, batches: Iterable[Sequence[Change]], concerns: Concerns
) -> Iterator[Image]:
    """The states between the two ends that decide for all of them; one image, which changes as it goes on.

    A partition that changes once is as before or as at the end, both of which are known to agree, unless
    something that counts for several partitions changes, too. So the states around each such change, and
    after each change of a thing that changes again, decide.
    """
    if metadata.committed is None:
        return
    state = metadata.committed.copy()
    left = Counter((change.kind, change.key) for batch in batches for change in batch)
    has_changed = False
    for batch in batches:
        found = [each for each in batch if concerns(each, state.tables.get(each.kind, each.key))]
        topics = _topics_of(batch, state)
        counts_for_several = any(_counts_for_several(each, topics) for each in found)
        if counts_for_several and has_changed:
            yield state
        for each in batch:
            state.tables.put(each)
            left[each.kind, each.key] -= 1
        has_changed = has_changed or bool(found)
        if counts_for_several or any(left[each.kind, each.key] for each in found):
            yield state
            has_changed = False


def _topics_of(batch: Iterable[Change], before: Image) -> set[str]:
    """The names of the topics that a batch creates or removes."""
    found = [each for each in batch if each.kind == TOPICS]
    values = (each.value or before.tables.get(TOPICS, each.key) for each in found)
    return {value.name for value in values if value is not None}


def _counts_for_several(change: Change, topics: Collection[str]) -> bool:
    """Not a new topic or a partition, nor a config that comes or goes with its topic."""
    if change.kind == CONFIGS and change.key[0] == TOPIC_RESOURCE:
        return change.key[1] not in topics
    return change.kind != PARTITIONS and not (change.kind == TOPICS and change.value is not None)


def of_kinds(*kinds: str) -> Concerns:
    """What depends on everything of these kinds."""
    return lambda change, _: change.kind in kinds


def of_broker(broker_id: int, configs: Collection[str] = ()) -> Concerns:
    """What the answer about a broker's replicas depends on: its partitions, all brokers, these configs."""

    def concerns(change: Change, before: Any | None) -> bool:
        if change.kind == PARTITIONS:
            found: list[Partition | None] = [before, change.value]
            return any(each is not None and broker_id in each.replicas for each in found)
        if change.kind == CONFIGS:
            return change.key[2] in configs
        return change.kind in (BROKERS, FEATURES, ZK_MIGRATION)

    return concerns
