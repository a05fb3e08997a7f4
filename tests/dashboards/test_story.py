"""What happened, in sentences: each says no more than the captures prove."""

from __future__ import annotations

import re
from typing import Any

from dashboards.report.lanes import lanes_of
from dashboards.report.queries import few
from dashboards.report.story import MOST_EVENTS, story
from dashboards.report.view import View
from tests.dashboards.worlds import at, change, epoch, finding, reported_epoch, voter_set
from tests.dashboards.worlds import story as world

Row = dict[str, Any]


def sentences(rows: dict[str, list[Row]], admin_events: list[Row] | None = None) -> list[str]:
    """The events as text, times without their date."""
    shown = few(rows) | {"admin_events": admin_events or []}
    found = story(View(None, shown, lanes_of(shown), at(100), "c"))  # type: ignore[arg-type]
    text = re.sub(r"<[^>]*>", "", re.sub(r"<h4>[^<]*</h4>", "", str(found)).replace("</li>", "\n"))
    return re.findall(r"^(.*) Evidence$", re.sub(r"2026-\d\d-\d\d |(?<=\d)Z", "", text), re.MULTILINE)


def without_times(words: str) -> str:
    return re.sub(r"\d\d:\d\d:\d\d", "T", words)


def test_elections_changes_and_truncations_in_the_order_of_time() -> None:
    found = sentences(world() | {"findings": []})
    assert [without_times(words) for words in found] == [
        "At T the first voter set was written: nodes 1, 2 and 3 (offset 2 of epoch 1). The change was "
        "committed.",
        "At T node 1 became leader of epoch 1, elected by nodes 1 and 2 of voters 1, 2 and 3.",
        "At T node 4 was added to the voters (offset 355 of epoch 1). The change was lost: epoch 3 truncated "
        "it.",
        "At T node 2 became leader of epoch 3, elected by nodes 1 and 2 of voters 1, 2 and 3. Before that "
        "there was no leader for at most 16 s: the last record before this epoch was appended at T.",
        "Between T and T node 1 (dlQnpR) truncated its log to offset 352 and lost 17 offsets of epoch 1.",
    ]
    assert found[3].startswith("At 09:00:47 node 2")
    assert found[3].endswith("was appended at 09:00:31.")


def test_no_more_is_said_than_is_proven() -> None:
    """A leader that is only reported, one without a time, and a gap that no capture bounds."""
    assert story(View(None, few({}), None, at(100), "c")) is None  # type: ignore[arg-type]
    reported = reported_epoch(2, 3, at(5), at(9))
    rows = {"epochs": [reported, epoch(3, 2, at(47), 16_000), epoch(4, None, None), epoch(5, 1, at(60))]}
    assert [without_times(words) for words in sentences(rows)] == [
        "At T node 2 became leader of epoch 3, elected by nodes 1 and 2 of voters 1, 2 and 3. Before that "
        "there was no leader for at most 16 s: the last record before this epoch was appended at T.",
        "At T node 1 became leader of epoch 5, elected by nodes 1 and 2 of voters 1, 2 and 3.",
    ]
    alone = epoch(1, 1, at(3)) | {"granting_voters": [1], "voter_ids": [1]}
    assert [without_times(words) for words in sentences({"epochs": [alone]})] == [
        "At T node 1 became leader of epoch 1, elected by itself, the only voter."
    ]
    no_votes = epoch(3, 2, at(47)) | {"granting_voters": None}
    assert [without_times(words) for words in sentences({"epochs": [no_votes]})] == [
        "At T node 2 became leader of epoch 3."
    ]


def test_what_became_of_a_change() -> None:
    outcomes = {
        "committed": "The change was committed.",
        "uncommitted": "The change is not committed.",
        "undecided": "The captures do not prove whether the change was committed.",
    }
    for status, outcome in outcomes.items():
        changed = change(90, 2, "removed", 3, status, at(40)) | {"changed_exact": False}
        rows = {"sets": [voter_set(90, 2, (1, 2), status)], "changes": [changed]}
        assert [without_times(words) for words in sentences(rows)] == [
            f"At or before T node 3 was removed from the voters (offset 90 of epoch 2). {outcome}"
        ]


def test_an_unlawful_election_and_open_errors() -> None:
    broken = finding("error", "open", "elected unlawfully") | {"leader_epochs": [4]}
    told = sentences(
        {"epochs": [epoch(4, 2, at(20))], "findings": [broken, finding("warning", "open", "no")]}
    )
    assert without_times(told[0]).endswith("No majority of the voters in force elected it.") == bool(
        few({"findings": [broken]})["unlawful_epochs"]
    )
    assert without_times(told[1]) == "A capture of T shows: elected unlawfully"
    assert len(told) == 2


def test_brokers_are_told_of_once_their_record_is_committed() -> None:
    fenced = {
        "offset": 400, "changed_at": at(60), "operation": "fence broker", "resource_type": "BROKER",
        "subject": "11", "before": "unfenced", "after": "fenced", "commit_status": "committed",
        "is_exact": True, "times": 3, "since": at(50),
    }  # fmt: skip
    others = [fenced | {"commit_status": "undecided"}, fenced | {"operation": "create topic"}]
    assert sentences({}, [fenced, *others]) == ["At 09:01:00 broker 11 was fenced; 3 times since 09:00:50."]


def test_only_the_newest_are_told() -> None:
    epochs = [epoch(n, 1 + n % 3, at(n)) for n in range(1, 40)]
    told = sentences({"epochs": epochs})
    assert len(told) == MOST_EVENTS
    assert "leader of epoch 39" in told[-1]


def broker_event(operation: str, broker: str, when: float) -> Row:
    return {
        "offset": round(when), "changed_at": at(when), "operation": operation, "resource_type": "BROKER",
        "subject": broker, "before": None, "after": None, "commit_status": "committed", "is_exact": True,
        "times": 1, "since": at(when),
    }  # fmt: skip


def test_what_one_broker_did_successively_is_one_sentence() -> None:
    events = [
        broker_event("controlled shutdown", "12", 60),
        broker_event("fence broker", "12", 61),
        broker_event("unregister broker", "12", 64),
        broker_event("fence broker", "11", 70),
        broker_event("unfence broker", "11", 100_000),
        broker_event("controlled shutdown", "12", 100_004.1),
        broker_event("fence broker", "12", 100_004.2),
    ]
    assert sentences({}, events) == [
        "From 09:01:00 to 09:01:04 broker 12 began a controlled shutdown, then was fenced, "
        "then was unregistered.",
        "At 09:01:10 broker 11 was fenced.",
        "At 12:46:40 broker 11 was unfenced.",
        "At 12:46:44 broker 12 began a controlled shutdown, then was fenced.",
    ]


def test_brokers_leave_room_for_the_quorum() -> None:
    """A restart of many brokers hides no election; what is left out is counted."""
    brokers = [broker_event("fence broker", str(n), 50 + n) for n in range(30)]
    shown = few({"epochs": [epoch(n, 1, at(n)) for n in (1, 2)]}) | {"admin_events": brokers}
    text = str(story(View(None, shown, lanes_of(shown), at(100), "c")))  # type: ignore[arg-type]
    assert text.count("became leader") == 2
    assert text.count("was fenced") == MOST_EVENTS - 2
    assert "20 other events, earlier or of brokers, in the sections below." in text


def test_times_of_another_day_have_their_date() -> None:
    """The sentence stands under its day; midnight lies between the last record and the election."""
    midnight = at(0) + 15 * 3_600_000
    rows = {"epochs": [epoch(3, 2, midnight, 16_000)]}
    shown = few(rows)
    text = re.sub("<[^>]*>", "", str(story(View(None, shown, lanes_of(shown), at(100), "c"))))  # type: ignore[arg-type]
    assert text.startswith("2026-11-22At 00:00:00Z node 2")
    assert "was appended at 2026-11-21 23:59:44Z." in text
