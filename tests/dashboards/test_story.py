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
    text = re.sub(r"<[^>]*>", "", str(found).replace("</li>", "\n"))
    return re.findall(r"^(.*) Evidence$", re.sub(r"2026-\d\d-\d\d |(?<=\d)Z", "", text), re.MULTILINE)


def without_times(words: str) -> str:
    return re.sub(r"\d\d:\d\d:\d\d", "T", words)


def test_elections_changes_and_truncations_in_the_order_of_time() -> None:
    found = sentences(world() | {"findings": []})
    assert [without_times(words) for words in found] == [
        "At T the first voter set was 1, 2 and 3, at offset 2 of epoch 1. The change was committed.",
        "At T node 1 became leader of epoch 1, elected by nodes 1 and 2 of voters 1, 2 and 3.",
        "At T node 4 was added to the voters, at offset 355 of epoch 1. The change was truncated: epoch 3 "
        "replaced it.",
        "The last record that epoch 3 kept was appended at T; 16 s later, at T node 2 became leader of "
        "epoch 3, elected by nodes 1 and 2 of voters 1, 2 and 3.",
        "Between T and T node 1 (dlQnpR) truncated its log to offset 352 and lost 17 offsets of epoch 1.",
    ]
    assert "appended at 09:00:31; 16 s later, at 09:00:47 node 2" in found[3]


def test_no_more_is_said_than_is_proven() -> None:
    """A leader that is only reported, one without a time, and a gap that no capture bounds."""
    assert story(View(None, few({}), None, at(100), "c")) is None  # type: ignore[arg-type]
    reported = reported_epoch(2, 3, at(5), at(9))
    rows = {"epochs": [reported, epoch(3, 2, at(47), 16_000), epoch(4, None, None), epoch(5, 1, at(60))]}
    assert [without_times(words) for words in sentences(rows)] == [
        "The last record that epoch 3 kept was appended at T; 16 s later, at T node 2 became leader of "
        "epoch 3, elected by nodes 1 and 2 of voters 1, 2 and 3.",
        "At T node 1 became leader of epoch 5, elected by nodes 1 and 2 of voters 1, 2 and 3.",
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
            f"At or before T node 3 was removed from the voters, at offset 90 of epoch 2. {outcome}"
        ]


def test_an_unlawful_election_and_open_errors() -> None:
    broken = finding("error", "open", "elected unlawfully") | {"leader_epochs": [4]}
    told = sentences(
        {"epochs": [epoch(4, 2, at(20))], "findings": [broken, finding("warning", "open", "no")]}
    )
    assert without_times(told[0]).endswith("No majority of the voters elected it.") == bool(
        few({"findings": [broken]})["unlawful_epochs"]
    )
    assert without_times(told[1]) == "A capture of T shows: elected unlawfully"
    assert len(told) == 2


def test_brokers_are_told_of_once_their_record_is_committed() -> None:
    fenced = {
        "offset": 400, "changed_at": at(60), "operation": "fence broker", "resource_type": "BROKER",
        "resource": "11", "before": "unfenced", "after": "fenced", "commit_status": "committed",
        "is_exact": True, "times": 3, "since": at(50),
    }  # fmt: skip
    others = [fenced | {"commit_status": "undecided"}, fenced | {"operation": "create topic"}]
    assert sentences({}, [fenced, *others]) == ["At 09:01:00 broker 11 was fenced; 3 times since 09:00:50."]


def test_only_the_newest_are_told() -> None:
    epochs = [epoch(n, 1 + n % 3, at(n)) for n in range(1, 40)]
    told = sentences({"epochs": epochs})
    assert len(told) == MOST_EVENTS
    assert "leader of epoch 39" in told[-1]
