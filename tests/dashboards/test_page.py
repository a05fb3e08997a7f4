"""The page as a text: one file, bounded, safe whatever a capture holds."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest

from dashboards.report.page import MOST_BYTES, page
from kraft_core.findings.advice import ADVICE
from tests.dashboards.test_lanes import storm
from tests.dashboards.test_markup import read
from tests.dashboards.worlds import (
    NOW,
    at,
    capture,
    change,
    epoch,
    few_of,
    finding,
    reported_epoch,
    reported_set,
    states,
    story,
    told,
    voter_set,
)

HOSTILE = "</script></svg></td><script>parent.alert(1)</script><img src=x onerror=alert(1)>\"'&\x00\u202e"


def test_one_file_that_fetches_nothing_and_runs_only_its_own_script() -> None:
    text = page(states("a"), {"a": told()}, NOW, "lake").text
    seen = read(text)
    tags = [tag for tag, _ in seen.tags]
    assert tags.count("script") == tags.count("style") == 1
    assert not {"link", "img", "iframe", "object", "embed", "base", "form"} & set(tags)
    assert not re.search(r"(src|href|action)=\"(?!#)", text)  # all clusters have room
    assert "url(http" not in text
    assert "@import" not in text
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy
    assert "default-src &#x27;none&#x27;" in policy[1]
    for tag in ("style", "script"):
        body = re.search(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
        assert body
        digest = base64.b64encode(hashlib.sha256(body[1].encode()).digest()).decode()
        assert f"{tag}-src &#x27;sha256-{digest}&#x27;" in policy[1]


def test_what_a_capture_holds_never_becomes_markup() -> None:
    """With hostile text in every place the page has the same elements and attributes as with plain text."""
    plain = {"name": "plain", "environment": "plain", "owner": "plain"}
    calm = read(page(states("a", names=plain), {"a": told("plain")}, NOW, "lake").text)
    whose = {"environment": HOSTILE, "owner": HOSTILE}
    named = states(HOSTILE, names={"name": HOSTILE, **whose})
    hostile = read(page(named, {HOSTILE: told(HOSTILE)}, NOW, HOSTILE).text)
    assert hostile.tags == calm.tags
    assert hostile.text.count("<img src=x onerror=alert(1)>") > 20
    assert not [name for _, names in hostile.tags for name in names if name.startswith("on")]


def test_every_picture_is_followed_by_its_table() -> None:
    text = page(states("a"), {"a": told()}, NOW, "lake").text
    figures = text.split("<figure>")[1:]
    assert len(figures) == 3
    for figure in figures:
        after = figure.split("</figure>", 1)[1]
        assert re.match(r'<div><div class="scroll"[^>]*><table>', after)


def test_sections_say_what_there_is() -> None:
    text = page(states("a"), {"a": told()}, NOW, "lake").text
    headings = re.findall(r"<h3[^>]*>([^<]*)</h3>", text)
    assert headings == [
        "What happened", "Findings", "Expectations", "Voters and leaders", "Epochs",
        "High watermark and log ends",
        "Not committed", "Truncations", "Recovery", "Under min ISR", "Administration", "Captures",
        "Snapshots", "What grows", "Quarantine",
    ]  # fmt: skip
    assert "added node 4" in text
    assert "truncated by epoch 3" in text


def test_the_best_candidates_are_a_sentence() -> None:
    """With one full stop, though the reasons are sentences, too."""
    advice = told()["recovery"][0] | {"is_safe": False, "why": "records may be missing. Capture node 3."}
    two = page(states("a"), {"a": told() | {"recovery": [advice]}}, NOW, "lake").text
    assert "<b>Not safe; the best candidates are node 1 (" in two
    assert "</b>: records may be missing. Capture node 3.</p>" in two
    one = told() | {"recovery": [advice | {"best": advice["best"][:1]}]}
    assert "<b>Not safe; the best candidate is node 1 (" in page(states("a"), {"a": one}, NOW, "lake").text
    assert "Effective min ISR" in two


def test_what_needs_nobody_any_more_is_folded() -> None:
    """Open findings stand on the page; acknowledged ones, with the reason, and resolved ones are unfolded."""
    noted = finding("warning", "acknowledged", "the lab again") | {"reason": "known since May"}
    rows = few_of(story() | {"findings": [*story()["findings"], noted]})
    text = page(states("a"), {"a": rows}, NOW, "lake").text
    is_open, past = text.split('<details class="past">')
    assert 'class="error open"' in is_open
    assert past.startswith(
        "<summary>1 finding acknowledged, 1 finding that newer captures no longer show</summary>"
    )
    assert "acknowledged: known since May" in past
    assert 'class="warning resolved"' in past


def test_one_cause_is_one_card() -> None:
    """A stray directory breaks a rule in each of 124 epochs."""
    stray = [
        finding("error", "open", f"1 lost offset {n} of epoch {n}.")
        | {"finding_id": f"id-{n:03}", "leader_epochs": [n], "replicas": ["1"], "reason": None}
        for n in range(124)
    ]
    rows = few_of(story() | {"findings": [*stray, finding("error", "open", "Epoch 3 has 2 leaders: 1, 2.")]})
    text = page(states("a"), {"a": rows}, NOW, "lake").text
    assert text.count('class="error open"') == 2
    assert "123 more findings like this one, on the same replicas" in text
    assert all(f"<code>id-{n:03}</code>" in text for n in range(41))
    assert "and 83: <code>kraftlake findings list</code>" in text
    assert "The newest" not in text.split('class="findings"')[1].split("</ol>")[0]
    noted = [row | {"state": "acknowledged", "reason": "the lab"} for row in stray]
    text = page(states("a"), {"a": few_of(story() | {"findings": noted})}, NOW, "lake").text
    assert "<summary>124 findings acknowledged</summary>" in text


def test_what_was_updated_of_a_voter_is_told() -> None:
    moved = "endpoints CONTROLLER://a:1 -> CONTROLLER://b:2"
    rows = story() | {"changes": [change(2, 1, "updated", 1, "committed", at(0), detail=moved)]}
    text = page(states("a"), {"a": few_of(rows)}, NOW, "lake").text
    assert "updated node 1<small>endpoints CONTROLLER://<wbr>a:1 → CONTROLLER://<wbr>b:2</small>" in text


def test_sections_with_nothing_to_tell_are_left_out() -> None:
    text = page(states("a"), {"a": few_of({"captures": story()["captures"]})}, NOW, "lake").text
    assert re.findall(r"<h3[^>]*>([^<]*)</h3>", text) == [
        "Findings", "Voters and leaders", "High watermark and log ends", "Captures",
    ]  # fmt: skip
    assert "The captures show no violation of KRaft&#x27;s rules." in text


def test_links_lead_to_something_and_ids_are_unique() -> None:
    text = page(states("a", "b", "c"), {"a": told(), "b": told()}, NOW, "lake").text
    ids = re.findall(r'\bid="([^"]*)"', text)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]*)"', text)) <= set(ids)
    assert set(re.findall(r"url\(#([^)]*)\)", text)) <= set(ids)


def test_a_thousand_clusters_stay_below_two_megabytes() -> None:
    names = [f"cluster-{n:04}-abcdefgh" for n in range(1_000)]
    fleet = states(*names, findings={"errors": 1, "warnings": 0})
    made = page(fleet, {s.cluster_id: told() for s in fleet[:24]}, NOW, "lake")
    assert len(made.text.encode()) < MOST_BYTES
    assert made.detailed == tuple(s.cluster_id for s in fleet[:24])
    assert made.text.count('data-l="State"') == 1_000


def test_a_cluster_of_ten_thousand_epochs_is_a_small_page() -> None:
    rows = few_of({"epochs": storm(10_000), "captures": [capture(1, NOW, 9)]})
    text = page(states("a"), {"a": rows}, NOW, "lake").text
    assert len(text.encode()) < 400_000
    assert "The newest 60 of 10,000 epochs." in text


def test_when_there_is_no_room_the_rest_is_named() -> None:
    rows = told("x" * 60_000)
    made = page(states("a", "b", "c"), dict.fromkeys("abc", rows), NOW, "lake")
    assert 1 <= len(made.detailed) < 3
    assert 'href="clusters/c.html"' in made.text
    assert "each other has a page, in folder <code>clusters</code>" in made.text


def test_what_is_wrong_with_the_lake_itself_is_told() -> None:
    (failed,) = story("the keys of table batches are unique")["expectations"]
    text = page(states("a"), {"a": told()}, NOW, "lake", [failed]).text
    assert "The lake as a whole" in text
    assert "the keys of table batches are unique" in text
    well = page(states("a"), {"a": told()}, NOW, "lake", [failed | {"success": True}]).text
    assert "The lake as a whole" not in well


@pytest.mark.parametrize("clusters", [0, 1])
def test_an_empty_lake_says_so(clusters: int) -> None:
    text = page(states(*"a" * clusters), {}, NOW, "lake").text
    assert ("has no captures yet" in text) == (clusters == 0)


def test_what_is_only_reported_is_no_voter_set_of_the_log() -> None:
    """Leaders and voters of describe outputs stand on the page with their source, and prove nothing."""
    rows = story()
    before = few_of(rows)
    rows["sets"].append(reported_set(1, (1, 2), at(-30), at(-20)))
    rows["epochs"] = [reported_epoch(0, 3, at(-40), at(-20)), *rows["epochs"]]
    reported = few_of(rows)
    text = page(states("a"), {"a": reported}, NOW, "lake").text
    words = " ".join(re.sub(r"<[^>]*>", " ", text).split())
    assert "These voter sets are reported, not proven." in words
    assert "2026-11-21 08:59:30Z 2026-11-21 08:59:40Z 1 {1,2} reported by leader 3; not proven" in words
    assert "0 node 3 reported: describe at or before 2026-11-21 08:59:40Z – – – –" in words
    assert (
        "Node 3 was reported as leader of epoch 0 between 2026-11-21 08:59:20Z and 2026-11-21 08:59:40Z; "
        "not proven"
    ) in words
    assert "Node 1 was reported as a voter between 2026-11-21 08:59:30Z and" in words
    assert (reported["sets"], reported["changes"], reported["leading"]) == (
        before["sets"], before["changes"], before["leading"],
    )  # fmt: skip
    assert "Reported voter sets, not proven" not in page(states("a"), {"a": before}, NOW, "lake").text


def test_nothing_is_at_most_over_a_time_that_no_capture_covers() -> None:
    rows = story()
    rows["epochs"] = [epoch(2, 1, at(0)), epoch(3, 2, at(47), 16_000), reported_epoch(5, 1, at(60), at(61))]
    text = page(states("a"), {"a": few_of(rows)}, NOW, "lake").text
    assert (
        "no leader for at most 16 s before 1 election; for how long before 2 others is not known."
    ) in text
    only = rows | {"epochs": [epoch(2, 1, at(0))]}
    text = page(states("a"), {"a": few_of(only)}, NOW, "lake").text
    assert "; for how long there was no leader before 1 election is not known." in text
    assert "at most</th>" in text
    first = rows | {"epochs": [epoch(0, 1, at(0))]}
    assert "is not known." not in page(states("a"), {"a": few_of(first)}, NOW, "lake").text


def test_a_newest_leader_that_is_only_reported_is_marked() -> None:
    epochs = {"epochs": 3, "leader_epoch": 9, "leader_id": 2, "leader_source": "describe"}
    text = page(states("a", epochs=epochs), {"a": told()}, NOW, "lake").text
    assert text.count("epoch 9, reported: describe") == 2


def test_voters_beside_a_later_leader_name_their_epoch() -> None:
    """The set is of the captured log, which ends in epoch 3; who votes in epoch 9 is reported, if at all."""
    epochs = {"epochs": 3, "leader_epoch": 9, "leader_id": 2, "leader_source": "describe"}
    plain = page(states("a", logged={"leader_epoch": 3}), {"a": told()}, NOW, "lake").text
    assert "in epoch" not in plain.split("</section>")[0]
    later = states("a", epochs=epochs, logged={"leader_epoch": 3})
    assert page(later, {"a": told()}, NOW, "lake").text.count("committed in epoch 3") == 2
    reported = {"leader_epoch": 9, "voter_ids": [2, 3, 4], "source": "describe"}
    named = states("a", epochs=epochs, logged={"leader_epoch": 3}, reported=reported)
    text = page(named, {"a": told()}, NOW, "lake").text
    assert text.count("committed in epoch 3; 2, 3 and 4 in epoch 9, reported: describe") == 2
    older = states("a", epochs=epochs, logged={"leader_epoch": 10}, reported=reported)
    assert "2, 3 and 4 in epoch" not in page(older, {"a": told()}, NOW, "lake").text


def test_what_only_a_snapshot_shows_happened_at_or_before() -> None:
    """In every table of the page; durations are at least or at most."""
    rows = told()
    rows["changes"] = [row | {"changed_exact": False} for row in rows["changes"]]
    rows["admin_events"] = [row | {"is_exact": False} for row in rows["admin_events"]]
    spans = rows["under_min_isr_spans"]
    rows["under_min_isr_spans"] = [
        row | {"topic_name": f"{start}-{end}", "from_exact": start, "to_exact": end}
        for row in spans
        for start in (True, False)
        for end in (True, False)
    ]
    text = page(states("a", changes=LATER), {"a": rows}, NOW, "lake").text
    words = " ".join(re.sub(r"<[^>]*>", " ", text).split())
    assert "at or before 2026-11-21 09:01:00Z 400 create topic" in words
    assert words.count("at or before 2026-11-21 09:00:32Z") == 3  # fleet, chart, changes
    assert "True-True 0–1 2026-11-21 09:00:10Z 2026-11-21 09:00:50Z 40 s" in words
    assert "False-True 0–1 at or before 2026-11-21 09:00:10Z 2026-11-21 09:00:50Z ≥ 40 s" in words
    assert "True-False 0–1 2026-11-21 09:00:10Z at or before 2026-11-21 09:00:50Z ≤ 40 s" in words
    assert "09:00:10Z at or before 2026-11-21 09:00:50Z not known" in words


LATER = {"kind": "added", "voter_id": 4, "changed_at": at(32), "changed_exact": False,
         "commit_status": "truncated"}  # fmt: skip


def test_a_finding_says_what_it_means_and_what_to_do() -> None:
    rows = few_of(story() | {"findings": [finding("error", "open", "stored_stays")]})
    text = page(states("a"), {"a": rows}, NOW, "lake").text
    told_of = ADVICE["stored_stays"]
    assert f"<dt>What it means</dt><dd>{told_of.meaning}</dd>" in text
    assert f"<dt>What to do</dt><dd>{told_of.action}</dd>" in text
    assert "docs/findings.md" in text


def test_replicas_that_voted_one_after_the_other_are_not_counted_at_once() -> None:
    """Node 4 took the place of node 3: sets count as the summary counts them."""
    rows = story()
    rows["sets"] = [
        voter_set(-1, 0, (1, 2, 3), None, in_force_to=at(0)),
        voter_set(2, 1, (1, 2, 3), "committed", in_force_from=at(0), in_force_to=at(20)),
        voter_set(9, 1, (1, 2), "committed", in_force_from=at(20), in_force_to=at(30)),
        voter_set(12, 1, (1, 2, 4), "committed", in_force_from=at(30)),
        reported_set(1, (1, 2), at(-30), at(-20)),
    ]
    text = page(states("a"), {"a": few_of(rows)}, NOW, "lake").text
    assert "4 replicas could vote at some time, at most 3 of them at once; " in text
    assert "; 4 voter sets, 1 of them truncated;" in text
