"""Which partitions of a checkpoint differ from those of the replay, by comparing columns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from kraft_core.image.change import Change
from kraft_core.image.from_rows import change_of
from kraft_core.image.image import Image
from kraft_core.image.tables import PARTITIONS, TOPICS
from transforms.histories.partition_events import numbers, things_of
from transforms.histories.partition_states import worded
from transforms.histories.standing_partitions import STANDING
from transforms.quality.replayed import Replayed

COMPARED = [name for name in STANDING.names if name not in ("event", "topic_id", "partition_id")]


@contextmanager
def unequal_shown(one: Replayed, other: Replayed, most: int) -> Iterator[tuple[Image, Image]]:
    """The images of both, in which meanwhile are the partitions that are not the same in both.

    most: of how many at most, the first by topic and number.
    """
    shown = (one.image, other.image)
    changes = unequal_partitions(one, other, most)
    for image, some in zip(shown, changes, strict=True):
        for change in some:
            image.tables.put(change)
    yield shown
    for image, some in zip(shown, changes, strict=True):
        for change in some:
            image.tables.put(replace(change, value=None))


def unequal_partitions(one: Replayed, other: Replayed, most: int) -> tuple[list[Change], list[Change]]:
    """The partitions that are not the same in both, as each has them."""
    topics = sorted({*topic_ids(one.partitions), *topic_ids(other.partitions)})
    left, right = Sorted(one.partitions, topics), Sorted(other.partitions, topics)
    common, of_left, of_right = np.intersect1d(left.things, right.things, True, return_indices=True)
    differs = other_names(one.image, other.image, topics)[common >> 32]
    for name in COMPARED:
        differs |= unequal(left.take(name, of_left), right.take(name, of_right))
    lone = np.setxor1d(left.things, right.things, True)
    found = np.sort(np.concatenate([common[differs], lone]))[:most]
    return list(left.changes(found, one.image)), list(right.changes(found, other.image))


def topic_ids(partitions: pa.Table) -> list[str]:
    return pc.unique(partitions["topic_id"]).to_pylist()


def other_names(one: Image, other: Image, topics: list[str]) -> Any:
    """Which topics have different names."""
    names = ([image.tables.get(TOPICS, (topic,)) for topic in topics] for image in (one, other))
    return np.array([a != b for a, b in zip(*names, strict=True)], dtype=bool)


class Sorted:
    """Owns the partitions of one side in the order of things: numbers that sort as topic and number do."""

    def __init__(self, partitions: pa.Table, topics: list[str]) -> None:
        codes = pc.index_in(partitions["topic_id"], pa.array(topics, pa.string()))
        codes = codes.combine_chunks().cast(pa.int64()).to_numpy()
        things = things_of(codes, numbers(partitions, "partition_id"))
        self._order = np.argsort(things)
        self.things = things[self._order]
        self._partitions = partitions

    def take(self, name: str, places: Any) -> pa.Array:
        return self._partitions[name].combine_chunks().take(pa.array(self._order[places]))

    def changes(self, things: Any, image: Image) -> Iterator[Change]:
        """The changes that put partitions into an image, of those of the things that are there."""
        chosen = np.flatnonzero(np.isin(self.things, things))
        rows = self._partitions.take(pa.array(self._order[chosen]))
        words = worded(rows["leader_recovery_state"].combine_chunks()).to_pylist()
        for row, word in zip(rows.to_pylist(), words, strict=True):
            topic: Any = image.tables.get(TOPICS, (row["topic_id"],))
            yield change_of(PARTITIONS, row | {"leader_recovery_state": word, "topic_name": topic.name})


def unequal(one: pa.Array, other: pa.Array) -> Any:
    """Where two columns of the same length, of numbers or of lists, none of them null, differ."""
    if not pa.types.is_list(one.type):
        return pc.not_equal(one, other).to_numpy(zero_copy_only=False)
    lengths = pc.list_value_length(one).to_numpy(), pc.list_value_length(other).to_numpy()
    found = lengths[0] != lengths[1]
    same = np.flatnonzero(~found)
    left, right = (column.take(pa.array(same)).flatten() for column in (one, other))
    differs = np.concatenate([[0], np.cumsum(pc.not_equal(left, right).to_numpy(zero_copy_only=False))])
    ends = np.cumsum(lengths[0][same])
    found[same] = differs[ends] > differs[ends - lengths[0][same]]
    return found
