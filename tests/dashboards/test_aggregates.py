"""Many rows to few: nothing is made up, and what the pictures say stays true."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dashboards.report import aggregates
from dashboards.report.aggregates import MOST_CAPTURES, MOST_EPOCHS, MOST_PROOFS
from tests.dashboards.worlds import (
    BEGAN,
    DIRECTORIES,
    SECOND,
    at,
    capture,
    epoch,
    proof,
    reported_epoch,
    story,
)

Row = dict[str, Any]


def storm(epochs: int) -> list[Row]:
    """Nodes 1 to 3 lead one after the other, a minute each, 2 s apart."""
    return [epoch(n, n % 3 + 1, at(n * 62), 2_000) for n in range(1, epochs + 1)]


def test_few_epochs_are_told_each() -> None:
    rows = aggregates.leading([epoch(3, 2, at(47), 16_000), epoch(1, 1, at(0)), epoch(4, None, None)])
    assert [(r["first_epoch"], r["leader_id"], r["from_ms"], r["until_ms"], r["epochs"]) for r in rows] == [
        (1, 1, at(0), at(31), 1),
        (3, 2, at(47), at(47), 1),
    ]
    assert [r["leaderless_ms"] for r in rows] == [None, 16_000]


def test_no_leader_leads_through_a_later_epoch_whose_leader_is_not_known() -> None:
    """A log that begins within epoch 2 has no LEADER_CHANGE of it, and its batches."""
    nameless = epoch(2, None, None) | {"known_from": at(100), "known_to": at(500)}
    for known_to, until in ((at(90), at(90)), (None, at(100))):
        rows = aggregates.leading(
            [epoch(1, 1, at(0)) | {"known_to": known_to}, nameless, epoch(3, 2, at(510), 10_000)]
        )
        assert [(r["first_epoch"], r["until_ms"]) for r in rows] == [(1, until), (3, None)]
    (row,) = aggregates.leading([epoch(1, 1, at(0)), epoch(2, None, None)])
    assert (row["from_ms"], row["until_ms"]) == (at(0), at(0))


def test_an_epoch_lasts_to_its_last_batch_where_the_time_after_it_is_not_known() -> None:
    """It is not drawn to the next election, nor the last one to the newest capture."""
    lasting = [epoch(1, 1, at(0)), epoch(3, 2, at(47)), epoch(4, 1, at(60), 5_000)]
    lasting = [e | {"known_to": e["elected_at"] + 9_000} for e in lasting]
    rows = aggregates.leading(lasting)
    assert [(r["from_ms"], r["until_ms"]) for r in rows] == [
        (at(0), at(9)),
        (at(47), at(55)),
        (at(60), at(69)),
    ]


def test_reported_leaders_are_apart() -> None:
    rows = [reported_epoch(0, 3, at(-9), at(-5)), epoch(1, 1, at(0)), epoch(2, None, None)]
    assert [(r["leader_epoch"], r["from_ms"], r["until_ms"]) for r in aggregates.reported_leaders(rows)] == [
        (0, at(-9), at(-5))
    ]
    assert aggregates.elections_not_covered(rows) == 3
    assert aggregates.elections_not_covered([epoch(0, 1, at(0)), epoch(2, 2, at(1), 300)]) == 0


def test_ten_thousand_epochs_are_few_rows_that_add_up() -> None:
    epochs = storm(10_000)
    rows = aggregates.leading(epochs)
    assert len(rows) <= 3 * MOST_EPOCHS
    assert sum(r["epochs"] for r in rows) == 10_000
    assert sum(r["leaderless_ms"] for r in rows) == 20_000_000
    assert sum(r["led_ms"] for r in rows) == 9_999 * 60_000
    assert min(r["from_ms"] for r in rows) == epochs[0]["elected_at"]
    assert [r["until_ms"] is None for r in rows].count(True) == 1
    assert all(r["led_ms"] <= (r["until_ms"] or at(10**9)) - r["from_ms"] for r in rows)


def test_an_epoch_that_began_before_its_clock_lasts_no_time() -> None:
    """Leaders' clocks differ: the next election may be stamped earlier."""
    rows = aggregates.leading([epoch(1, 1, at(10)), epoch(2, 2, at(5), None)])
    assert [(r["from_ms"], r["until_ms"], r["led_ms"]) for r in rows] == [
        (at(10), at(10), 0),
        (at(5), None, 0),
    ]


def test_leaders() -> None:
    rows = aggregates.leaders([epoch(1, 1, at(0)), epoch(2, 2, at(9), 500), epoch(4, 2, at(20), 700),
                               epoch(5, None, None)])  # fmt: skip
    assert [(r["leader_id"], r["epochs"], r["leaderless_ms"], r["longest_leaderless_ms"]) for r in rows] == [
        (2, 2, 1_200, 700),
        (1, 1, None, None),
        (None, 1, None, None),
    ]


proofs = st.lists(
    st.builds(
        lambda when, bound, is_lower: proof(when, bound, None) if is_lower else proof(when, None, bound),
        st.integers(0, 50),
        st.integers(0, 50),
        st.booleans(),
    ),
    max_size=30,
)


def bounds_at(rows: list[Row], when: int) -> tuple[int | None, int | None]:
    """By the meaning of the table: lower bounds hold from their moment on, upper bounds up to it."""
    lowers = [r["lower_bound"] for r in rows if r["lower_bound"] is not None and r["as_of"] <= when]
    uppers = [r["upper_bound"] for r in rows if r["upper_bound"] is not None and r["as_of"] >= when]
    return max(lowers, default=None), min(uppers, default=None)


@given(proofs)
def test_the_proofs_that_are_kept_say_as_much_as_all(rows: list[Row]) -> None:
    kept = aggregates.tight_bounds(rows)
    assert all(row in rows for row in kept)
    for when in range(-1, 52):
        assert bounds_at(kept, when) == bounds_at(rows, when)
    for row in kept:
        others = [r for r in kept if r is not row]
        assert any(bounds_at(others, when) != bounds_at(kept, when) for when in range(-1, 52))


def test_of_very_many_proofs_some_are_kept_and_none_is_changed() -> None:
    rows = [proof(at(n), lower=n) for n in range(5_000)] + [proof(at(n), upper=n + 10) for n in range(5_000)]
    kept = aggregates.tight_bounds(rows)
    assert 100 < len(kept) <= MOST_PROOFS + 2
    assert all(row in rows for row in kept)
    assert max(r["lower_bound"] or 0 for r in kept) == 4_999


def test_what_a_leader_only_believed_proves_nothing() -> None:
    assert aggregates.tight_bounds([proof(at(1), lower=5, believed=9)]) == []


def test_captures_are_thinned_to_the_newest_of_each_bin() -> None:
    rows = [capture(1, BEGAN + n * 86_400 * SECOND, n) for n in range(365)] + [capture(2, at(1), 7)]
    kept = aggregates.sampled_captures(rows)
    of_first = [r for r in kept if r["node_id"] == 1]
    assert len(of_first) <= MOST_CAPTURES
    assert max(r["log_end_offset"] for r in of_first) == 364
    assert {r["captures"] for r in of_first} == {365}
    assert [r["captures"] for r in kept if r["node_id"] == 2] == [1]


def test_snapshots_with_their_holders() -> None:
    rows = story()
    assert aggregates.snapshot_rows(rows["snapshots"], rows["captures"]) == [
        {"end_offset": 321, "leader_epoch": 1, "copies": 1, "complete": True, "written_at": at(20),
         "size_bytes": 6345, "node_ids": sorted(DIRECTORIES)},
    ]  # fmt: skip
