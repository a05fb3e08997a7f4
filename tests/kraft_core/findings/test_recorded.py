"""Findings on quorums that Kafka's own classes ran: what is wrong there, and nothing else, is found.

In cluster-rewound Kafka's stale voter set is mended: no error is left but those of rule 20, which Kafka
breaks where the request to remove a leader times out before the removal commits. In `cluster` it is not, and
errors are found only in the quorums where a replica did go by an older set (tests/kraft_core/raft judges the
same quorums step by step, with the processes' beliefs at hand).
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from random import Random

import pytest

from kraft_core.evidence.conclusions import conclude
from kraft_core.evidence.facts import ClusterFacts
from kraft_core.findings.facts import Observation, RuleFacts
from kraft_core.findings.finding import Finding
from kraft_core.findings.judge import judge
from tests.kraft_core.evidence.golden import union
from tests.kraft_core.evidence.recorded_quorums import RecordedQuorum, recorded_quorums
from tests.kraft_core.raft.test_invariants_on_traces import BROKEN

TRACES = Path(__file__).parents[2] / "traces"
# Of `cluster`: what follows from the stale set in the one quorum in which it split the history.
SPLIT = {4: {18}, 6: {18}, 7: {18}, 8: {18}}


def reported_by_leaders(quorum: RecordedQuorum, random: Random) -> list[Observation]:
    """What some of those who lead, or do not know yet that they lead no more, would answer now."""
    return [
        Observation(
            "recorded",
            f"{quorum.now}-{name}",
            quorum.now,
            quorum.now,
            "status",
            node.node_id,
            node.directory_id,
            "Leader",
            leader_epoch=node.epoch,
            high_watermark=node.high_watermark,
        )
        for name, node in quorum.nodes.items()
        if node.role == "leader" and node.high_watermark and random.random() < 0.2
    ]


def findings_of(name: str, seed: int) -> dict[tuple[int, str], dict[int, list[Finding]]]:
    """By rule, severity and case: of some captures of each quorum, of more, and of all."""
    random = Random(seed)
    found: dict[tuple[int, str], dict[int, list[Finding]]] = defaultdict(lambda: defaultdict(list))
    for states in recorded_quorums(TRACES / f"{name}.jsonl.gz"):
        captures: list[ClusterFacts] = []
        reported: list[Observation] = []
        quorum = None
        for quorum in states:
            captures += [n.capture(quorum.now) for n in quorum.nodes.values() if random.random() < 0.15]
            reported += reported_by_leaders(quorum, random)
        assert quorum is not None
        for share in (0.1, 0.4, 1.0):
            chosen = [capture for capture in captures if random.random() < share]
            for finding in (
                judge(conclude(union(chosen)), RuleFacts(observations=tuple(reported))) if chosen else ()
            ):
                found[finding.rule, finding.severity][quorum.case].append(finding)
    return found


def cases_of(found: dict[tuple[int, str], dict[int, list[Finding]]], severity: str) -> dict[int, set[int]]:
    return {rule: set(cases) for (rule, of), cases in found.items() if of == severity}


def check_mended(seed: int) -> None:
    found = findings_of("cluster-rewound", seed)
    errors, warnings = cases_of(found, "error"), cases_of(found, "warning")
    assert set(errors) == {20}
    assert errors[20] <= BROKEN["cluster-rewound"][20]
    # By files alone, a replica that was restarted or mended cannot be told apart from one that was not.
    assert set(warnings) == {16}


def check_stale(seed: int) -> dict[tuple[int, str], dict[int, list[Finding]]]:
    found = findings_of("cluster", seed)
    for rule, cases in cases_of(found, "error").items():
        assert cases <= BROKEN["cluster"].get(rule, set()) | SPLIT.get(rule, set()), rule
    for rule, cases in cases_of(found, "warning").items():
        assert rule == 16 or cases <= BROKEN["cluster"][rule], rule
    return found


def test_a_mended_kafka_breaks_no_rule_but_one() -> None:
    check_mended(11)


def test_a_stale_kafka_is_found_out() -> None:
    found = check_stale(11)
    assert set(found[23, "error"]) == BROKEN["cluster"][23]
    assert set(found[17, "error"]) >= {5, 28}
    assert set(found[7, "error"]) == set(found[6, "error"]) == {18}


def test_a_stale_leader_that_changes_the_voters_breaks_rule_23_alone() -> None:
    """Leader 6 of quorum 17 counts by the set of three that its log's set of four replaced.

    By that set its epoch had begun to commit when it changed the voters; by the log's it had not, and these
    captures bound the high watermark: no breach of rule 14, but of rule 23.
    """
    found = check_stale(31)
    assert 17 in found[23, "error"]
    assert not {rule for rule, severity in found if rule in (12, 14)}


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_other_captures_of_the_same_quorums(seed: int) -> None:
    check_mended(seed)
    check_stale(seed)
