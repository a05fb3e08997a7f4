"""All rules over one cluster's captures.

raft.rules lists for each number the requirement, its source, and the function here that checks it;
RULES_OF and LOG_RULES_OF are those functions.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.facts import Capture
from kraft_core.findings import (
    agreement_rules,
    broker_rules,
    byte_rules,
    completeness_rules,
    directory_rules,
    election_rules,
    life_rules,
    log_rules,
    observed_quorum,
    replay_rules,
    snapshot_rules,
    voter_rules,
    watermark_order_rules,
    watermark_rules,
)
from kraft_core.findings.cluster_view import ClusterView
from kraft_core.findings.facts import RuleFacts
from kraft_core.findings.finding import Breach, Finding, findings_of

RuleFunction = Callable[[ClusterView], Iterator[Breach]]
LogRuleFunction = Callable[[ClusterView, Capture], Iterator[Breach]]

# Called capture by capture, so that a captured log is assembled once. Whether they find anything depends on
# ClusterView.content alone, except where voter_rules.depends_on_time.
LOG_RULES_OF: dict[int, LogRuleFunction] = {
    0: byte_rules.batches_follow_each_other,
    2: log_rules.epochs_never_go_back,
    10: log_rules.epoch_cache_matches_batches,
    11: log_rules.epochs_begin_with_leader_change,
    12: voter_rules.one_change_uncommitted,
    13: voter_rules.one_voter_at_a_time,
    15: voter_rules.kraft_version_allows_voters,
    19: log_rules.starts_under_a_snapshot,
    20: voter_rules.removed_leader_changes_no_more,
    21: log_rules.epoch_is_not_behind_log,
    46: directory_rules.log_is_not_behind_its_files,
    48: directory_rules.copied_after_it_was_written,
}
RULES_OF: dict[int, tuple[RuleFunction, ...]] = {
    0: (byte_rules.bytes_are_readable,),
    1: (agreement_rules.one_leader_an_epoch,),
    3: (agreement_rules.logs_match,),
    4: (agreement_rules.committed_agree, election_rules.believed_commits_agree),
    5: (completeness_rules.committed_stay,),
    6: (watermark_order_rules.high_watermark_rises, watermark_order_rules.high_watermark_is_above_floor),
    7: (completeness_rules.leader_is_complete,),
    8: (watermark_rules.majority_holds_high_watermark,),
    9: (watermark_rules.high_watermark_in_epoch,),
    14: (voter_rules.changes_follow_a_commit,),
    16: (election_rules.kafka_goes_by_its_log,),
    17: (snapshot_rules.snapshots_carry_the_log, snapshot_rules.snapshots_of_one_id_agree),
    18: (snapshot_rules.snapshots_are_aligned,),
    22: (snapshot_rules.snapshots_equal_the_replay,),
    23: (election_rules.leader_change_names_the_set,),
    24: (watermark_rules.leader_outside_voters_is_not_counted,),
    44: (directory_rules.stored_stays, directory_rules.led_is_kept),
    45: (directory_rules.one_directory_per_static_id,),
    47: (observed_quorum.one_quorum_per_cluster_id, life_rules.one_life_per_cluster_id),
    49: (replay_rules.records_can_be_replayed,),
    50: (observed_quorum.static_voters_stay,),
    51: (directory_rules.one_node_per_directory_id,),
    52: (broker_rules.held_replicas_are_assigned,),
}

_NO_FACTS = RuleFacts()


def judge(known: Conclusions, facts: RuleFacts = _NO_FACTS) -> list[Finding]:
    """Every broken rule that the captures show, by rule and offset.

    The same for any order of captures and facts, and for duplicates.
    """
    return findings_of(known, _breaches(ClusterView(known.at_face_value(), facts)))


def _breaches(view: ClusterView) -> Iterator[Breach]:
    # A capture in which nothing is found speaks for those of any replica that differ in their times alone.
    flawless: set[Hashable] = set()
    for capture in view.known.facts.captures:
        content = view.content(capture)
        if content in flawless:
            continue
        found = [breach for log_rule in LOG_RULES_OF.values() for breach in log_rule(view, capture)]
        if not found and not voter_rules.depends_on_time(view, capture):
            flawless.add(content)
        yield from found
    for functions in RULES_OF.values():
        for rule in functions:
            yield from rule(view)
