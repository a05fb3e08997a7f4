"""One cause, one card: findings that differ in numbers only stand together."""

from __future__ import annotations

from random import Random
from typing import Any

from transforms.quality.alike_findings import alike_findings

Row = dict[str, Any]


def lost(epoch: int, **more: Any) -> Row:
    """What a stray directory breaks in each epoch."""
    first, end = 10 * epoch, 10 * epoch + (1 if epoch % 2 else 7)
    what = f"offset {first}" if end == first + 1 else f"offsets {first} to {end - 1}"
    row = {"cluster_id": "c", "rule": 5, "severity": "error", "state": "open", "reason": None}
    sentence = f"1@dlQnpRFNQLyzxMXecUSy_g held the committed {what} of epoch {epoch} and lost it."
    return (
        row
        | {"finding_id": f"id-{epoch}", "replicas": ["1@dlQnpRFNQLyzxMXecUSy_g"], "sentence": sentence}
        | more
    )


def ids(groups: list[list[Row]]) -> list[list[str]]:
    return [[row["finding_id"] for row in group] for group in groups]


def test_those_of_one_cause_are_one_group_in_order() -> None:
    rows = [lost(epoch) for epoch in range(124)]
    Random(3).shuffle(rows)
    (group,) = alike_findings(rows)
    assert group == rows
    assert alike_findings([]) == []


def test_whatever_tells_causes_apart_keeps_them_apart() -> None:
    others: list[Row] = [
        {"cluster_id": "d"},
        {"rule": 44},
        {"severity": "warning"},
        {"state": "acknowledged", "reason": "known"},
        {"state": "acknowledged", "reason": "the lab"},
        {"replicas": ["2@dlQnpRFNQLyzxMXecUSy_g"]},
        {"sentence": "The log of 1 repeats the batch at offset 7."},
    ]
    rows = [lost(1), *(lost(2 + n, **other) for n, other in enumerate(others)), lost(20), lost(21)]
    assert ids(alike_findings(rows)) == [
        ["id-1", "id-20", "id-21"],
        *([f"id-{2 + n}"] for n in range(len(others))),
    ]


def test_two_of_a_kind_stay_apart_in_their_order() -> None:
    rows = [lost(1), lost(2, rule=44), lost(3), lost(4, rule=44), lost(5, rule=44)]
    assert ids(alike_findings(rows)) == [["id-1"], ["id-2", "id-4", "id-5"], ["id-3"]]
