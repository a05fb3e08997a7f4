"""Which clusters need action, and in which order."""

from __future__ import annotations

import re

import pytest

from dashboards.report.fleet_view import verdict
from dashboards.report.formatting import HOUR
from dashboards.report.page import page
from dashboards.report.state import ClusterState, Need
from kraft_core.evidence.watermark_at import WatermarkAt
from kraft_core.restore.rehearsal import Rehearsal
from tests.dashboards.worlds import NOW, at, states, told

CALM = {"voter_ids": [1, 2, 3], "commit_status": "committed"}


def test_a_sound_cluster_needs_nobody() -> None:
    (state,) = states("a")
    assert state.need == Need.NONE
    assert state.reasons == ()
    assert (state.voter_ids, state.leader_id, state.leader_epoch) == ((1, 2, 3), 2, 3)
    assert (state.watermark, state.committed_end_offset) == (WatermarkAt(at(90), 353, 507), 507)


@pytest.mark.parametrize(
    ("rows", "need", "said", "section"),
    [
        ({"findings": {"errors": 2, "warnings": 0}}, Need.ACTION, "2 open errors", "findings"),
        ({"findings": {"errors": 0, "warnings": 1}}, Need.LOOK, "1 open warning", "findings"),
        ({"expectations": {"errors": 1, "warnings": 0}}, Need.ACTION, "1 expectation failed", "expectations"),
        ({"expectations": {"errors": 0, "warnings": 2}}, Need.LOOK, "2 expectations not met", "expectations"),
        (
            {"quarantine": {"ranges": 2, "size_bytes": 2_500}},
            Need.ACTION,
            "2 unreadable byte ranges, 2.5 KB that no copy supplied",
            "quarantine",
        ),
        (
            {"resolved": {"errors": 4, "last_seen_at": NOW - 2 * HOUR}},
            Need.LOOK,
            "4 errors that newer captures no longer show, last seen 2 h ago",
            "findings",
        ),
        (
            {"failures": {"failure": "OverflowError: date value out of range"}},
            Need.ACTION,
            "could not be derived from the newest captures; the rest of this report is older: "
            "OverflowError: date value out of range",
            "captures",
        ),
        ({"under_min_isr": {"partitions": 3}}, Need.LOOK, "3 partitions under min ISR", "isr"),
        (
            {"voters": CALM | {"commit_status": "undecided"}},
            Need.LOOK,
            "the newest voter set {1, 2 and 3} is undecided",
            "voters",
        ),
    ],
)
def test_what_needs_a_person(rows: dict[str, dict[str, object]], need: Need, said: str, section: str) -> None:
    state = states("a", **rows)[0]
    assert state.need == need
    assert [(r.words, r.section) for r in state.reasons] == [(said, section)]


def test_the_bounds_of_the_high_watermark_are_those_of_one_moment() -> None:
    known = {"at": at(90), "lower": 1215, "upper": 1230, "later_lower": 1222, "later_at": at(93)}
    text = page(states("a", watermarks=known), {"a": told()}, NOW, "lake").text
    words = re.sub(r"<[^>]*>", "", text)
    assert "1,215 … 1,230at 2026-11-21 09:01:30Zcommitted up to 507" in words
    assert "1,215 … 1,230at 2026-11-21 09:01:30Z; at least 1,222 from 2026-11-21 09:01:33Z" in words
    nothing = re.sub(r"<[^>]*>", "", page(states("a", watermarks={"at": None}), {}, NOW, "lake").text)
    assert "? … ?no bound with a known time" in nothing


def test_a_late_capture_is_worth_a_look() -> None:
    (state,) = states("a", now=at(90) + 27 * HOUR)
    assert [r.words for r in state.reasons] == ["last captured 1 d 3 h ago, overdue after 1 d 2 h"]
    assert states("a", now=at(90) + 26 * HOUR)[0].need == Need.NONE


def rehearsed(is_restorable: bool) -> dict[str, Rehearsal]:
    refusals = () if is_restorable else ("Rule 1 is broken.",)
    found = Rehearsal(at(90), is_restorable, "LOSES", refusals, None, (), at(90), 1, 3692, 3698)
    return {"rehearsal": found}


def test_a_rehearsal_that_failed_or_is_overdue_is_a_reason() -> None:
    assert states("a", rehearsals=rehearsed(True))[0].reasons == ()
    (failed,) = states("a", now=at(90) + HOUR, rehearsals=rehearsed(False))
    words = "not restorable from the captures rehearsed 1 h ago"
    assert [(r.need, r.words) for r in failed.reasons] == [(Need.ACTION, words)]
    (late,) = states("a", now=at(90) + 27 * HOUR, rehearsals=rehearsed(True))
    overdue = "restoration last rehearsed 1 d 3 h ago, overdue after 1 d 2 h"
    assert (Need.LOOK, overdue) in [(r.need, r.words) for r in late.reasons]


def test_the_page_says_what_a_restoration_would_lose() -> None:
    text = page(states("a", rehearsals=rehearsed(True)), {"a": told()}, NOW, "lake").text
    words = " ".join(re.sub(r"<[^>]*>", "", text).split())
    lost = "would lose at most offsets 3692 to 3697 of those seen."
    assert f"Restorable as of 2026-11-21 09:01:30Z; {lost}" in words
    assert "from the log of node 1 up to offset 3,692 (exclusive)" in words


def words_of(fleet: list[ClusterState]) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", page(fleet, {}, NOW, "lake").text.split("</section>")[0]).split())


def test_what_every_cluster_has_is_said_once() -> None:
    """A fleet whose captures are old, and of which one expectation fails."""
    failed = {"errors": 0, "warnings": 2, "stale": 1}
    late = at(90) + 27 * HOUR
    fleet = [states(name, now=late, expectations=failed)[0] for name in "abcdef"]
    words = words_of(fleet)
    assert words.count("last captured") == 1
    assert "6 clusters were last captured more than 1 d 2 h ago." in words
    assert words.count("overdue, ") == len(fleet)
    assert words.count("1 expectation not met") == 1
    assert "Every cluster: 1 expectation not met." in words
    assert fleet[0].need == Need.LOOK
    (alone,) = states("a", now=late, expectations=failed | {"warnings": 1})
    assert [r.words for r in alone.reasons] == ["last captured 1 d 3 h ago, overdue after 1 d 2 h"]
    (fresh,) = states("a", expectations=failed | {"warnings": 1})
    assert [r.words for r in fresh.reasons] == ["1 expectation not met"]
    other = [*fleet[:-1], states("f", now=late)[0]]
    assert words_of(other).count("1 expectation not met") == 5


def test_the_page_says_above_the_table_whose_details_follow() -> None:
    fleet = states("a", "b", "c")
    text = page(fleet, {"a": told(), "b": told()}, NOW, "lake").text
    above = " ".join(re.sub(r"<[^>]*>", " ", text.split("<table")[0]).split())
    said = "Details of the 2 most urgent clusters follow the table; each other has a page, in folder clusters"
    assert said in above
    assert "each other has a page" not in page(fleet, dict.fromkeys("abc", told()), NOW, "lake").text


def test_voters_that_are_only_reported_are_named_where_no_others_are() -> None:
    """A log that begins above its LEADER_CHANGEs, beside a quorum-state of version 0."""
    reported = {"leader_epoch": 3, "voter_ids": [1, 2, 3], "source": "quorum-state"}
    (state,) = states("a", voters={}, logged={"leader_epoch": 3}, reported=reported)
    words = re.sub(r"<[^>]*>", " ", page([state], {"a": told()}, NOW, "lake").text)
    assert " ".join(words.split()).count("1, 2 and 3 reported: quorum-state, not proven") == 2
    assert state.voter_ids == ()
    (unknown,) = states("a", voters={}, logged={"leader_epoch": 3})
    assert "unknown no voter set in the captures" in " ".join(
        re.sub(r"<[^>]*>", " ", page([unknown], {"a": told()}, NOW, "lake").text).split()
    )


def test_a_name_stands_for_the_id_and_says_whose_it_is() -> None:
    (state,) = states("a", names={"name": "billing", "environment": "prod", "owner": "team-kafka"})
    assert (state.title, state.whose) == ("billing", "prod · team-kafka")
    text = page([state], {}, NOW, "lake").text
    assert ">billing</a><code>a</code><small>prod · team-kafka</small>" in text


def test_an_error_of_long_ago_is_history() -> None:
    assert states("a", resolved={"errors": 4, "last_seen_at": NOW - 8 * 24 * HOUR})[0].need == Need.NONE


def test_those_that_need_a_person_come_first_and_a_dead_lab_last() -> None:
    """Of equal clusters, those captured last: what nobody has captured for a year is not the most urgent."""
    found = states("b", "a", "c", findings={"errors": 1, "warnings": 0})
    assert [s.cluster_id for s in found] == ["b", "a", "c"]
    late = states("c", "b", "a", captures={"captures": 1, "replicas": 1, "last_captured_at": at(10),
                                           "log_end_offset": None})  # fmt: skip
    assert [s.cluster_id for s in late] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (states("a"), "The cluster is healthy."),
        (states("a", "b"), "Both clusters are healthy."),
        (states("a", "b", "c"), "All 3 clusters are healthy."),
        (states("a", findings={"errors": 1, "warnings": 0}), "1 of 1 cluster needs action."),
        (
            states("a", "b", findings={"errors": 0, "warnings": 1}),
            "No cluster needs action; 1 of 2 is worth a look.",
        ),
    ],
)
def test_the_verdict(found: list[object], said: str) -> None:
    assert said in verdict(found)  # type: ignore[arg-type]


def test_a_cluster_known_by_captures_only() -> None:
    """Ingested, not derived: nothing but the captures is there."""
    from dashboards.report.state import fleet

    row = {"cluster_id": "a", "captures": 1, "replicas": 1, "last_captured_at": NOW, "log_end_offset": None}
    kinds = ("voters", "epochs", "changes", "watermarks", "committed", "quarantine",
             "findings", "resolved", "expectations", "names", "failures")  # fmt: skip
    (state,) = fleet({"captures": [row], **{kind: [] for kind in kinds}}, NOW)
    assert (state.voter_ids, state.leader_id, state.epochs) == ((), None, 0)
