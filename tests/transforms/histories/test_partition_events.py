"""Events of partitions find the life of their topic."""

from __future__ import annotations

import pyarrow as pa
import pytest

from transforms.histories.partition_events import EVENTS, Life, in_lives

ONE, OTHER, UNKNOWN = "one", "other", "unknown"


def events(*named: tuple[str, int]) -> pa.Table:
    """Events of a topic at an offset."""
    columns = [[{"topic_id": topic, "seq": seq}.get(field.name) for topic, seq in named] for field in EVENTS]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, EVENTS, strict=True)], schema=EVENTS)


def life(topic_id: str, first: int, end: int | None) -> Life:
    return Life(topic_id, "t", first, end, None, None, None, None, None)


@pytest.mark.parametrize("base", [0, (1 << 40) - 50, 1 << 40, (1 << 62) + 7])
def test_an_event_is_in_the_newest_life_of_its_topic_by_then(base: int) -> None:
    lives = [
        life(OTHER, base + 5, None),
        life(ONE, base + 60, base + 80),
        life(ONE, base + 10, base + 40),
    ]
    wanted = [
        (ONE, 9, None),
        (ONE, 10, 2),
        (ONE, 39, 2),
        (ONE, 40, None),
        (ONE, 60, 1),
        (ONE, 99, None),
        (OTHER, 4, None),
        (OTHER, 99, 0),
        (UNKNOWN, 20, None),
    ]
    inside, places, outside = in_lives(events(*((topic, base + seq) for topic, seq, _ in wanted)), lives)
    assert places.tolist() == [place for *_, place in wanted if place is not None]
    assert inside["seq"].to_pylist() == [base + seq for _, seq, place in wanted if place is not None]
    assert outside["seq"].to_pylist() == [base + seq for _, seq, place in wanted if place is None]
    none, _, all_ = in_lives(events((ONE, base)), [])
    assert (len(none), len(all_)) == (0, 1)
