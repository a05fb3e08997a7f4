"""Lanes and bounds from rows."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from dashboards.report import aggregates
from dashboards.report.bounds import bounds_of, steps_of
from dashboards.report.draw_lanes import draw_lanes
from dashboards.report.lanes import UNKNOWN_DIRECTORY, LaneReplica, Lanes, lanes_of
from dashboards.report.queries import few
from tests.dashboards.test_aggregates import bounds_at, proofs, storm
from tests.dashboards.worlds import (
    DIRECTORIES,
    at,
    capture,
    change,
    epoch,
    finding,
    reported_set,
    story,
    told,
    voter_set,
)

Row = dict[str, Any]


def lanes(rows: dict[str, list[Row]]) -> Lanes:
    found = lanes_of(few(rows))
    assert found is not None
    return found


def test_the_story() -> None:
    found = lanes_of(told())
    assert found is not None
    assert [lane.replica.node_id for lane in found.lanes] == [1, 2, 3, 4]
    first, second, third, fourth = found.lanes
    assert [(v.start, v.end) for v in first.voting] == [(at(0), at(90))]
    assert [(v.start, v.end) for v in third.voting] == [(at(0), at(90))]
    assert [(led.first_epoch, led.start, led.end) for led in first.led] == [(1, at(0), at(31))]
    assert [(led.first_epoch, led.start, led.end) for led in second.led] == [(3, at(47), at(90))]
    assert fourth.voting == []
    (doubt,) = fourth.doubts
    assert (doubt.kind, doubt.status, doubt.truncated_by_epoch) == ("added", "truncated", 3)
    assert (doubt.start, doubt.end) == (at(32), at(47))
    (gap,) = found.gaps
    assert (gap.start, gap.end, gap.before) == (at(31), at(47), 3)
    assert [(c.offset, c.status, c.truncated_by_epoch, len(c.parts)) for c in found.changes] == [
        (2, "committed", None, 3),
        (355, "truncated", 3, 1),
    ]


def test_no_band_lasts_beyond_the_newest_capture() -> None:
    """A report after it proves nothing about the voters of the log."""
    rows = story()
    rows["sets"].append(reported_set(3, (1, 2), at(95), at(120)))
    first, _, third, _ = lanes(rows).lanes
    assert [(v.end, v.start_exact, v.end_exact) for v in first.voting] == [(at(90), True, True)]
    assert [(v.end, v.start_exact) for v in third.voting] == [(at(90), True)]
    assert [(r.start, r.end, r.epoch) for r in first.reported] == [(at(95), at(120), None)]
    assert third.reported == []


def test_where_only_a_snapshot_shows_a_set_it_is_at_or_before() -> None:
    found = lanes(
        {
            "sets": [
                voter_set(2, 1, (1, 2), "committed", in_force_from=at(0), in_force_to=at(50),
                          in_force_to_exact=False),
                voter_set(90, 1, (1, 3), "committed", source="snapshot", in_force_from=at(50),
                          in_force_from_exact=False),
            ],
            "captures": [capture(1, at(80), 9)],
        }
    )  # fmt: skip
    assert [(v.start, v.end, v.start_exact, v.end_exact) for lane in found.lanes for v in lane.voting] == [
        (at(0), at(80), True, True),
        (at(0), at(50), True, False),
        (at(50), at(80), False, True),
    ]


def test_a_replaced_disk_is_another_lane_and_leads_there() -> None:
    new = "wfavhryGu77Wkav-fwENNQ"
    replaced = voter_set(108, 1, (1, 3), "committed", in_force_from=at(50))
    replaced["voters"].append({"voter_id": 2, "directory_id": new})
    found = lanes(
        {
            "sets": [voter_set(2, 1, (1, 2, 3), "committed", in_force_from=at(0), in_force_to=at(40)),
                     voter_set(96, 1, (1, 3), "committed", in_force_from=at(40), in_force_to=at(50)),
                     replaced],
            "epochs": [epoch(1, 2, at(0)), epoch(2, 2, at(60), 10)],
            "captures": [capture(2, at(80), 9, directory_id=new)],
        }
    )  # fmt: skip
    by_replica = {lane.replica: lane for lane in found.lanes}
    old, fresh = by_replica[LaneReplica(2, DIRECTORIES[2])], by_replica[LaneReplica(2, new)]
    assert [(v.start, v.end) for v in old.voting] == [(at(0), at(40))]
    assert [(v.start, v.end) for v in fresh.voting] == [(at(50), at(80))]
    assert [led.first_epoch for led in old.led] == [1]
    assert [led.first_epoch for led in fresh.led] == [2]
    assert [(v.start, v.end) for v in by_replica[LaneReplica(1, DIRECTORIES[1])].voting] == [(at(0), at(80))]


def test_a_static_voter_is_the_lane_of_its_only_directory() -> None:
    static = voter_set(0, 3, (1, 2), None, source="static", in_force_from=at(0), in_force_to=at(10))
    for voter in static["voters"]:
        voter["directory_id"] = UNKNOWN_DIRECTORY
    found = lanes({"sets": [static, voter_set(620, 9, (1, 2), "committed", in_force_from=at(10))],
                   "captures": [capture(1, at(30), 700), capture(4, at(30), 700)]})  # fmt: skip
    assert [(lane.replica, lane.was_voter) for lane in found.lanes] == [
        (LaneReplica(1, DIRECTORIES[1]), True),
        (LaneReplica(2, DIRECTORIES[2]), True),
        (LaneReplica(4, DIRECTORIES[4]), False),
    ]
    assert [(v.start, v.end) for v in found.lanes[0].voting] == [(at(0), at(30))]


def test_a_removal_that_was_truncated_marks_the_voter_who_stayed() -> None:
    found = lanes(
        {
            "sets": [voter_set(2, 1, (1, 2, 3), "committed", in_force_from=at(0)),
                     voter_set(790, 6, (2, 3), "truncated", in_force_from=at(20), in_force_to=at(30),
                               truncated_by_epoch=7)],
            "changes": [change(790, 6, "removed", 1, "truncated", at(20))],
            "captures": [capture(1, at(60), 900)],
        }
    )  # fmt: skip
    (doubt,) = found.lanes[0].doubts
    assert doubt.kind == "removed"
    assert [(v.start, v.end) for v in found.lanes[0].voting] == [(at(0), at(60))]


def test_an_uncommitted_set_that_is_in_force_lasts_to_the_last_capture() -> None:
    found = lanes(
        {
            "sets": [voter_set(2, 1, (1,), "committed", in_force_from=at(0)),
                     voter_set(9, 1, (1, 2), "uncommitted", in_force_from=at(20))],
            "changes": [change(9, 1, "added", 2, "uncommitted", at(20))],
            "captures": [capture(1, at(60), 900)],
        }
    )  # fmt: skip
    (doubt,) = found.lanes[1].doubts
    assert (doubt.start, doubt.end, doubt.status) == (at(20), at(60), "uncommitted")


def test_no_node_leads_before_it_can_vote() -> None:
    """The LEADER_CHANGE of epoch 1 names its leader; the first set that is known may be a later one's."""
    later = voter_set(90, 2, (1, 2), "committed", in_force_from=at(40), in_force_from_exact=False)
    epochs = [epoch(1, 1, at(5)) | {"known_to": at(30)}, epoch(2, 2, at(41), 11_000)]
    rows = {"sets": [later], "epochs": epochs, "captures": [capture(1, at(60), 900)]}
    first, second = lanes(rows).lanes
    assert [(v.start, v.end, v.start_exact) for v in first.voting] == [(at(5), at(60), False)]
    assert [(v.start, v.end, v.start_exact) for v in second.voting] == [(at(40), at(60), False)]
    first, _ = lanes(rows | {"sets": []}).lanes
    assert (first.voting, first.was_voter) == ([], True)
    exact = lanes(rows | {"sets": [later | {"in_force_from_exact": True}]})
    assert [(v.start, v.end, v.source) for v in exact.lanes[0].voting] == [
        (at(5), at(30), "election"),
        (at(40), at(60), "record"),
    ]
    assert "could vote at" in str(draw_lanes(exact, 1, 3))


@pytest.mark.parametrize(
    ("exact", "bands"),
    [
        (False, [(0, 20, "record"), (30, 60, "record")]),
        (True, [(0, 20, "record"), (30, 34, "election"), (40, 60, "record")]),
    ],
)
def test_no_node_leads_between_two_of_its_bands(exact: bool, bands: list[tuple[int, int, str]]) -> None:
    """It was removed, and elected before the first set that is known to have it again."""
    sets = [
        voter_set(2, 1, (1, 2), "committed", in_force_from=at(0), in_force_to=at(20)),
        voter_set(90, 1, (2,), "committed", in_force_from=at(20), in_force_to=at(25)),
        voter_set(300, 3, (1, 2), "committed", in_force_from=at(40), in_force_from_exact=exact),
    ]
    epochs = [epoch(1, 2, at(0)), epoch(2, 1, at(30), 5_000), epoch(3, 2, at(34), 0)]
    first, _ = lanes({"sets": sets, "epochs": epochs, "captures": [capture(1, at(60), 900)]}).lanes
    assert [(v.start, v.end, v.source) for v in first.voting] == [(at(s), at(e), w) for s, e, w in bands]


def test_a_leader_after_its_last_known_band_was_a_voter_again() -> None:
    sets = [
        voter_set(2, 1, (1, 2), "committed", in_force_from=at(0), in_force_to=at(20)),
        voter_set(90, 1, (2,), "committed", in_force_from=at(20), in_force_to=at(25)),
    ]
    epochs = [epoch(1, 2, at(0)), epoch(7, 1, at(50), 10)]
    first, _ = lanes({"sets": sets, "epochs": epochs, "captures": [capture(1, at(60), 900)]}).lanes
    assert [(v.start, v.end, v.source) for v in first.voting] == [
        (at(0), at(20), "record"),
        (at(50), at(60), "election"),
    ]


def test_a_leader_that_no_majority_elected_is_no_voter() -> None:
    rows = {"epochs": [epoch(4, 2, at(20))], "captures": [capture(2, at(30), 9)]}
    broken = finding("error", "open", "elected unlawfully") | {"leader_epochs": [4]}
    (lane,) = lanes(rows | {"findings": [broken]}).lanes
    assert not lane.was_voter


def test_ten_thousand_epochs_stay_few_bars_and_gaps() -> None:
    found = lanes({"epochs": storm(10_000), "captures": [capture(1, at(700_000), 9)]})
    assert sum(len(lane.led) for lane in found.lanes) <= 720
    assert len(found.gaps) <= 240
    assert sum(led.epochs for lane in found.lanes for led in lane.led) == 10_000
    assert sum(gap.leaderless_ms for gap in found.gaps) == 20_000_000
    assert all(0 < gap.share <= 1 for gap in found.gaps)


def test_an_unlawful_election_is_marked() -> None:
    rows = {"epochs": [epoch(1, 1, at(0)), epoch(4, 2, at(20), 10)], "captures": [capture(1, at(30), 9)]}
    broken = finding("error", "resolved", "elected unlawfully") | {"leader_epochs": [4]}
    for findings, marked in (([], []), ([broken], [4]), ([broken | {"rule": 6}], [])):
        found = lanes(rows | {"findings": findings})
        assert [led.first_epoch for lane in found.lanes for led in lane.led if led.is_unlawful] == marked


def test_without_any_time_there_is_no_picture() -> None:
    assert lanes_of(few({})) is None
    assert bounds_of(few({}), 0, 1) is None


@given(proofs)
def test_between_two_moments_both_bounds_are_those_of_the_table(rows: list[Row]) -> None:
    found = bounds_of({"proofs": aggregates.tight_bounds(rows)}, 0, 50)
    for step in found.steps if found else ():
        assert step.start < step.end
        # A bound of the step's own edges holds within it too.
        inside = [r | {"as_of": r["as_of"] * 2} for r in rows]
        assert (step.lower, step.upper) == bounds_at(inside, step.start + step.end)


def test_steps_reach_from_start_to_end() -> None:
    assert [(s.start, s.end, s.lower, s.upper) for s in steps_of([], 0, 10)] == [(0, 10, None, None)]
