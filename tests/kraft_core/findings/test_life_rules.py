"""Rule 47: a cluster id that names several histories is one finding, of the newest of them."""

from __future__ import annotations

from kraft_core.evidence.conclusions import conclude
from kraft_core.evidence.facts import ClusterFacts
from kraft_core.findings.facts import OtherLife, RuleFacts
from kraft_core.findings.judge import judge

OLDER = OtherLife("tutorial/00000001", "tutorial", 1, (1,), 1_700_000_000_000)
EMPTY = OtherLife("tutorial/00000002", "tutorial", 2, (1, 2), None)


def test_one_finding_names_all_other_lives() -> None:
    known = conclude(ClusterFacts("tutorial/00000003"))
    assert judge(known, RuleFacts()) == []
    (finding,) = judge(known, RuleFacts(other_lives=(EMPTY, OLDER, OLDER)))
    assert (finding.rule, finding.severity, finding.resolved) == (47, "warning", False)
    assert finding.sentence == (
        "Cluster id tutorial has 3 unconnected histories; this one has the newest record."
    )
    assert finding.evidence.startswith(
        "tutorial/00000001: 1 capture of node 1 with records up to 2023-11-14 22:13:20Z; "
        "tutorial/00000002: 2 captures of nodes 1, 2 with no batch."
    )
    (same,) = judge(known, RuleFacts(other_lives=(OLDER,)))
    assert same.finding_id == finding.finding_id


def test_many_other_lives_are_counted() -> None:
    others = tuple(OtherLife(f"t/{n:08x}", "t", 1, (1,), n) for n in range(14))
    (finding,) = judge(conclude(ClusterFacts("t/ffffffff")), RuleFacts(other_lives=others))
    assert "has 15 unconnected histories" in finding.sentence
    assert "; and 4 more. " in finding.evidence
    assert finding.evidence.startswith("t/0000000d: ")
