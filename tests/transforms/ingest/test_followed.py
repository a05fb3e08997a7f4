"""Which captures of a followed log have nothing that another one lacks."""

from __future__ import annotations

from typing import Any

from kraft_core.format.capture import FOLLOWED_NODE_ID
from transforms.ingest.followed import is_superseded


def followed(capture_id: str, start: int, end: int, directory_id: str = "d") -> dict[str, Any]:
    return {
        "capture_id": capture_id,
        "node_id": FOLLOWED_NODE_ID,
        "directory_id": directory_id,
        "log_start_offset": start,
        "log_end_offset": end,
    }


def test_a_copy_that_has_grown_has_what_it_had() -> None:
    before = followed("a", 0, 10)
    assert is_superseded(before, [followed("b", 0, 20)])
    assert not is_superseded(followed("b", 0, 20), [before])
    assert not is_superseded(before, [before])
    assert not is_superseded(before, [])


def test_the_next_copy_of_the_log_has_not() -> None:
    assert not is_superseded(followed("a", 0, 10), [followed("b", 10, 20)])
    assert not is_superseded(followed("a", 0, 10), [followed("b", 0, 20, "another")])


def test_a_replica_s_captures_all_stay() -> None:
    before, after = (followed(name, 0, end) | {"node_id": 1} for name, end in (("a", 10), ("b", 20)))
    assert not is_superseded(before, [after])
