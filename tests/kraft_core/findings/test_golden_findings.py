"""What the captures by real Kafka must show: nothing on healthy quorums, all of it on the stale one."""

from __future__ import annotations

import pytest

from kraft_core.evidence.rows import HighWatermarkRow
from kraft_core.evidence.set_history import set_nodes
from kraft_core.evidence.watermarks import high_watermarks
from kraft_core.findings.describe import observed_watermarks
from kraft_core.findings.finding import Finding
from kraft_core.findings.judge import judge
from kraft_core.raft.rules import RULES
from tests.kraft_core.evidence.golden import CLUSTERS
from tests.kraft_core.findings.broken import golden_facts
from tests.kraft_core.findings.golden import EVERY, SCENARIOS, findings, known, observations, rule_facts

NODE_1 = "1@zV44k1BoSVuL2z6npotoXg"
NODE_3 = "3@SSlNc5zfQ8aP-njutJvgKA"
HEALTHY = [name for name in EVERY if "stale-split" not in name]
SPLIT = [name for name in EVERY if "stale-split" in name]
# Which moments of the split show what; by files alone, then by describe outputs too.
SHOWS_ELECTION = {"stale-split/two-of-five", "stale-split/healed", "all of stale-split"}
SHOWS_MINORITY = {"stale-split/healed", "all of stale-split"}


def broken(name: str, severity: str) -> list[tuple[int, int | None, tuple[int, ...]]]:
    return [(f.rule, f.first_offset, f.leader_epochs) for f in findings(name) if f.severity == severity]


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_quorum_has_no_error(name: str) -> None:
    assert broken(name, "error") == []


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_quorum_is_warned_of_kafkas_known_fault_alone(name: str) -> None:
    """Node 1 of dynamic-membership forgot a credential, and wrote three checkpoints without it."""
    expected = [(22, 1955, (4,)), (22, 2938, (6,)), (22, 3691, (9,))] if name == "dynamic-membership" else []
    assert broken(name, "warning") == expected
    for finding in findings(name):
        assert "A known defect of Kafka" in finding.sentence
        assert "lacks scram_users 2 alice" in finding.sentence
        assert [replica[:2] for replica in finding.replicas] == ["1@"]
        assert not finding.resolved


@pytest.mark.parametrize("name", SPLIT)
def test_errors_of_the_stale_split(name: str) -> None:
    expected = [(6, 5096, (4, 5))]
    if name in SHOWS_MINORITY:
        expected += [(8, 5013, (4,)), (8, 5224, (4,))]
    if name in SHOWS_ELECTION:
        expected += [(23, 5006, (4,))]
    assert broken(name, "error") == expected


@pytest.mark.parametrize("name", SPLIT)
def test_without_describe_outputs_files_show_the_election_alone(name: str) -> None:
    errors = [(f.rule, f.first_offset) for f in judge(known(name)) if f.severity == "error"]
    assert errors == ([(23, 5006)] if name in SHOWS_ELECTION else [])


@pytest.mark.parametrize("name", sorted(SHOWS_ELECTION))
def test_healthy_replicas_of_the_split_get_no_blame(name: str) -> None:
    """Node 3 holds what the stale leader wrote; nodes 2, 4 and 5 did nothing wrong."""
    blamed = {finding.rule: finding.replicas for finding in findings(name)}
    assert blamed.pop(23) == (NODE_1, NODE_3)
    assert set(blamed.values()) == {(NODE_1,)}


def one(name: str, rule: int) -> Finding:
    (finding,) = (f for f in findings(name) if f.rule == rule)
    return finding


def test_the_findings_tell_the_whole_story_of_the_split() -> None:
    election = one("all of stale-split", 23)
    assert election.sentence == (
        "Leader 1 of epoch 4 was elected unlawfully: its LEADER_CHANGE at 5006 names the voters [1, 2, 3] "
        "where the log has [1, 2, 3, 4, 5] and was granted by [1, 3] of [1, 2, 3, 4, 5], which is not "
        "a majority. It used {1,2,3} (VotersRecord 2/e1): it never applied the VotersRecords 148/e3, "
        "150/e3 after its log was truncated from 1741 to 129 by epoch 3."
    )
    stale = one("all of stale-split", 16)
    assert (stale.severity, stale.first_offset, stale.end_offset) == ("warning", 148, 151)
    assert stale.evidence.startswith("emulation of Kafka's stale voter set")
    lost = one("all of stale-split", 4)
    assert lost.severity == "warning"
    assert lost.sentence == (
        f"{NODE_1}, leader of epoch 4 by the older set {{1,2,3}}, acknowledged at least offsets 5006 to "
        "5224; by its log's set {1,2,3,4,5} none of it was ever committed: the history of epoch 5 won."
    )
    emulated = "emulation: what that leader considered committed; by its log, nothing was committed twice"
    assert emulated in lost.evidence
    assert "leader 4 of epoch 5 lacked them (rule 7)" in lost.evidence
    assert f"{NODE_1}, {NODE_3} held and lost them (rule 5)" in lost.evidence
    fall = one("all of stale-split", 6)
    assert fall.sentence == (
        "The high watermark fell from 5225 (leader 1, epoch 4) to 5096 (leader 4, epoch 5)."
    )


def test_a_fault_that_newer_captures_no_longer_show_is_resolved() -> None:
    """Once every node was restarted, nodes 1 and 3 took over the winning history."""
    assert not one("stale-split/healed", 23).resolved
    assert all(finding.resolved for finding in findings("all of stale-split"))
    first, last = one("stale-split/two-of-five", 23), one("stale-split/healed", 23)
    both = one("all of stale-split", 23)
    assert (both.first_seen_at, both.last_seen_at) == (first.first_seen_at, last.last_seen_at)
    assert set(both.capture_ids) == {*first.capture_ids, *last.capture_ids}


def test_a_fault_keeps_its_id_while_captures_come_and_go() -> None:
    for rule in (23, 16):
        ids = {one(name, rule).finding_id for name in SHOWS_ELECTION}
        assert len(ids) == 1
        assert all(len(finding_id) == 16 and int(finding_id, 16) >= 0 for finding_id in ids)
    everything = [f.finding_id for name in EVERY for f in findings(name)]
    per_name = [len(findings(name)) == len({f.finding_id for f in findings(name)}) for name in EVERY]
    assert all(per_name)
    assert len(set(everything)) == 9


def test_two_captures_foretell_the_split() -> None:
    """Before any election by the old set: the truncation, and the VotersRecords that came below its end."""

    conclusions, facts = golden_facts("stale-split/before", "stale-split/after")
    (finding,) = judge(conclusions, facts)
    assert (finding.rule, finding.severity, finding.replicas) == (16, "warning", (NODE_1,))
    assert finding.sentence == (
        f"{NODE_1} truncated its log from 1741 to 129: unless it was restarted since, Kafka never reads the "
        "VotersRecords at 148, 150 and uses the older set {1,2,3} instead of its log's {1,2,3,4,5}."
    )
    assert not finding.resolved


@pytest.mark.parametrize("name", EVERY)
def test_findings_are_complete(name: str) -> None:
    for finding in findings(name):
        assert finding.rule in RULES
        assert finding.name == RULES[finding.rule].name
        assert finding.source == RULES[finding.rule].source
        assert finding.sentence.endswith(".")
        assert finding.evidence
        assert 0 < finding.first_seen_at <= finding.last_seen_at
        assert finding.cluster_id == known(name).facts.cluster_id


@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if s != "stale-split"])
def test_all_described_watermarks_lie_inside_the_bounds(scenario: str) -> None:
    """Each by the interval in which it was taken, against every bound of every capture of the cluster."""
    clusters = {known(f"all of {name}").facts.cluster_id: f"all of {name}" for name in CLUSTERS}
    name = next(name for name in EVERY if name.split("/")[0] == scenario)
    conclusions = known(clusters.get(known(name).facts.cluster_id, name))
    proven = high_watermarks(conclusions, set_nodes(conclusions))
    described = observed_watermarks(conclusions, observations(scenario))
    assert described
    assert crossings([*proven, *described]) == []


def crossings(rows: list[HighWatermarkRow]) -> list[tuple[str, str]]:
    lower = [row for row in rows if row.lower_bound is not None]
    upper = [row for row in rows if row.upper_bound is not None]
    return [
        (low.source, high.source)
        for low in lower
        for high in upper
        if low.as_of <= high.as_of and (low.lower_bound or 0) > (high.upper_bound or 0)
    ]


def test_how_many_outputs_were_compared() -> None:
    """85 of describe --status, 129 of --replication, plain and human readable, of all scenarios."""
    outputs = {(o.source, o.kind) for s in SCENARIOS for o in observations(s)}
    kinds = [kind for _, kind in outputs]
    assert (kinds.count("status"), kinds.count("replication")) == (85, 129)
    reported = [o for s in SCENARIOS for o in observations(s) if o.high_watermark is not None]
    assert len(reported) == 85
    assert all(o.observed_from < o.observed_to <= o.observed_from + 10_000 for o in reported)
    assert set(rule_facts()) == {known(name).facts.cluster_id for name in EVERY}
