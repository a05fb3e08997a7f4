"""A quorum born on Kafka 3.4, whose first leader wrote a record before its LEADER_CHANGE (KAFKA-15345)."""

from __future__ import annotations

import pytest

from kraft_core.evidence.collect import collect
from kraft_core.evidence.conclusions import Conclusions, conclude
from kraft_core.evidence.derive import derive
from kraft_core.findings.judge import judge
from kraft_core.findings.recovery import recovery_advice
from kraft_core.format.controller_dir import find_controller_dirs
from tests.kraft_core.plan.captured import GOLDEN


def known(*nodes: int) -> Conclusions:
    folders = [GOLDEN / "born-on-3.4" / f"node-{node}" for node in nodes]
    (facts,) = collect(find_controller_dirs(folders).directories)
    return conclude(facts)


def ranges(conclusions: Conclusions) -> list[tuple[int, int, int, str]]:
    rows = derive(conclusions.facts).log_ranges
    return [(row.leader_epoch, row.first_offset, row.end_offset, row.commit_status) for row in rows]


def test_no_rule_is_broken_and_the_voters_are_known_from_the_first_leader_on() -> None:
    quorum = known(1, 2, 3)
    assert not judge(quorum)
    (voters,) = derive(quorum.facts).voter_sets
    assert (voters.source, voters.offset, voters.voter_ids) == ("static", 1, (1, 2, 3))
    assert ranges(quorum) == [
        (4, 0, 149, "committed"),
        (6, 149, 337, "committed"),
        (6, 337, 338, "uncommitted"),
    ]
    advice = recovery_advice(quorum, judge(quorum))
    assert (advice.is_safe, [best.node_id for best in advice.best]) == (True, [3])


@pytest.mark.parametrize(("node", "committed"), [(1, 336), (2, 337), (3, 301)])
def test_one_node_proves_what_the_leader_had_and_what_its_snapshots_cover(node: int, committed: int) -> None:
    quorum = known(node)
    assert not judge(quorum)
    assert max(end for *_, end, status in ranges(quorum) if status == "committed") == committed
    assert not recovery_advice(quorum, judge(quorum)).is_safe
