"""Describe outputs are tied to the captured quorum, or prove nothing and are reported as such."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kraft_core.evidence.conclusions import Conclusions, conclude
from kraft_core.evidence.derive import tables
from kraft_core.findings.describe import observed_watermarks
from kraft_core.findings.facts import Observation, RuleFacts
from kraft_core.findings.finding import Finding
from kraft_core.findings.judge import judge
from kraft_core.findings.observed_quorum import observed_epochs, observed_voter_sets
from kraft_core.findings.reports import Reports
from tests.kraft_core.evidence.narrated import Story
from tests.kraft_core.findings.golden import EVERY, known, rule_facts
from tests.kraft_core.findings.test_observed_quorum import status


def story() -> Story:
    """Node 2 led epoch 3 with voters 1 to 3, whose directories the log names."""
    story = Story().leader(3, 0, 2, "1 2 3", sets="1 2 3").data(3, 3)
    return story.capture("2", 3000, "3:0-150", 3)


def findings(about: Conclusions, *outputs: Observation) -> list[tuple[str, int, str]]:
    found: list[Finding] = judge(about, RuleFacts(observations=outputs))
    return [(finding.severity, finding.rule, finding.evidence) for finding in found]


def proven_by(about: Conclusions, *outputs: Observation) -> tuple[int, set[int], int]:
    """Bounds, the epochs that only reports name, and the voter sets that only they name."""
    tied, derived = Reports(about, outputs).tied, tables(about)
    named = {row.leader_epoch for row in observed_epochs(derived.epochs, tied)}
    return (
        len(observed_watermarks(about, tied)),
        named - {row.leader_epoch for row in derived.epochs},
        len(observed_voter_sets(about, derived.voter_sets, tied)),
    )


OURS = (status(1100, 3, 2, "1 2 3", 120), status(3500, 5, 1, "1 2", 160))


def test_an_output_of_the_captured_quorum_is_tied_to_it() -> None:
    about = conclude(story().facts())
    assert proven_by(about, *OURS) == (2, {5}, 1)
    assert findings(about, *OURS) == []


@pytest.mark.parametrize(
    ("output", "why"),
    [
        # Of strangers: other disks. Its high watermark would contradict the captured log.
        (status(3500, 3, 2, "1b 2b 3b", 9000), "its voters have directory ids that no capture has"),
        (status(3500, 5, 1, "1b 2b", 160), "its voters have directory ids that no capture has"),
        # Of a clone: the same disks, another election.
        (status(3500, 3, 1, "1 2 3", 9000), "its leader is 1; LEADER_CHANGE of epoch 3 names 2"),
    ],
)
def test_an_output_of_another_quorum_proves_nothing(output: Observation, why: str) -> None:
    about = conclude(story().facts())
    assert proven_by(about, output) == (0, set(), 0)
    found = findings(about, output)
    assert ("warning", 47, f"{output.source}: {why}") in found
    assert {rule for _, rule, _ in found} <= {1, 47}
    assert proven_by(about, *OURS, output) == (2, {5}, 1)


def test_a_replaced_disk_is_no_other_quorum() -> None:
    about = conclude(story().facts())
    output = status(3500, 5, 1, "1 2 3b", 160)
    assert proven_by(about, output) == (1, {5}, 1)
    assert findings(about, output) == []


def test_outputs_of_old_versions_name_no_directories() -> None:
    about = conclude(story().facts())
    assert proven_by(about, status(3500, 5, 1, "1? 2? 3?", 160))[:2] == (1, {5})


def test_two_leaders_of_an_epoch_by_outputs_alone_are_ambiguous() -> None:
    about = conclude(story().facts())
    one, other = status(3500, 5, 1, "1 2 3", 160), status(3600, 5, 3, "1 2 3", 170)
    assert proven_by(about, one, other) == (0, set(), 0)
    assert [(severity, rule) for severity, rule, _ in findings(about, one, other)] == [
        ("error", 1),
        ("warning", 47),
    ]


def test_captures_of_two_histories_leave_every_report_ambiguous() -> None:
    """Outputs, the leaders and voters of quorum-state files; the captured LEADER_CHANGE stays."""
    one = story().capture("3", 3000, "3:0-120", 7, quorum_state_leader_id=1, current_voters=(1, 9))
    assert {row.leader_epoch for row in tables(conclude(one.facts())).epochs} == {3, 7}
    about = conclude(replace(one.facts(), contested_epochs=(3,)))
    assert proven_by(about, *OURS) == (0, set(), 0)
    assert {row.leader_epoch: row.leader_id for row in tables(about).epochs} == {3: 2}
    (ambiguous,) = [words for _, rule, words in findings(about, *OURS) if rule == 47]
    assert "captures contradict each other about epoch 3, so it may belong to either history" in ambiguous


@pytest.mark.parametrize("name", EVERY)
def test_every_golden_output_is_of_its_quorum(name: str) -> None:
    about = known(name)
    outputs = rule_facts()[about.facts.cluster_id].observations
    assert outputs
    assert Reports(about, outputs).untied == ()


def test_the_order_of_outputs_means_nothing() -> None:
    about = conclude(story().facts())
    outputs = (*OURS, status(3600, 5, 3, "1 2", 170), status(3500, 3, 1, "1 2 3", 9000))
    assert Reports(about, outputs).untied == Reports(about, outputs[::-1]).untied
