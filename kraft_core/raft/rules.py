"""KRaft's rules by number: the name of each, what it demands, and where that is written.

The numbers are Kraftlake's own; findings, simulations and tests speak of rules by them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """name: of the function that judges it, here, in quorum_invariants or in findings."""

    number: int
    name: str
    demands: str
    source: str


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule: where in the log, in which epoch, and what is wrong there, in words."""

    rule: int
    offset: int
    leader_epoch: int
    detail: str


RULES = {
    rule.number: rule
    for rule in (
        Rule(1, "one_leader_an_epoch", "an epoch has one leader", "KIP-595, Leader Election"),
        Rule(2, "epochs_never_go_back", "epochs never go back within a log", "KIP-595, Fetch"),
        Rule(
            3,
            "logs_match",
            "same offset and epoch mean the same batch and the same prefix",
            "KIP-595, Fetch; Raft, log matching",
        ),
        Rule(
            4,
            "committed_agree",
            "two different batches at an offset are never both committed",
            "Raft, state machine safety",
        ),
        Rule(
            5,
            "committed_stay",
            "a replica never loses a batch that was committed",
            "KIP-595, Leader Election",
        ),
        Rule(6, "high_watermark_rises", "a leader's high watermark never falls", "KIP-853, High watermark"),
        Rule(
            7,
            "leader_is_complete",
            "a leader holds all that was committed before its epoch",
            "KIP-595, Vote; Raft, leader completeness",
        ),
        Rule(
            8,
            "majority_holds",
            "a majority holds what lies below a high watermark",
            "KIP-595, Fetch, check 3",
        ),
        Rule(
            9,
            "high_watermark_is_in_epoch",
            "a leader's first high watermark lies above its epoch's start",
            "KIP-595, Fetch, check 3",
        ),
        Rule(
            10,
            "epoch_cache_matches_batches",
            "the epoch cache is what the batches say",
            "KIP-101; Kafka's LeaderEpochFileCache",
        ),
        Rule(
            11,
            "epochs_begin_with_leader_change",
            "an epoch's first record is its LEADER_CHANGE",
            "KIP-595, LeaderChangeMessage",
        ),
        Rule(
            12,
            "one_change_uncommitted",
            "at most one change of members is uncommitted",
            "KIP-853, AddVoter, step 1",
        ),
        Rule(13, "one_voter_at_a_time", "one voter is added or removed at a time", "KIP-853, VotersRecord"),
        Rule(
            14,
            "changes_follow_a_commit",
            "members change only after a commit in the leader's own epoch",
            "KIP-853, AddVoter, step 2",
        ),
        Rule(
            15,
            "kraft_version_allows_voters",
            "no VotersRecord under kraft.version 0, which never falls",
            "KIP-853, UpdateFeatures",
        ),
        Rule(
            16,
            "kafka_goes_by_its_log",
            "a replica goes by the voter set of its log",
            "KIP-853, Internal listener",
        ),
        Rule(
            17,
            "snapshots_carry_the_log",
            "a snapshot carries the voters and version of the log it ends",
            "KIP-853, Snapshots",
        ),
        Rule(
            18,
            "snapshots_are_aligned",
            "a snapshot lies under the high watermark, on a batch boundary",
            "KIP-630, Snapshots",
        ),
        Rule(
            19,
            "starts_under_a_snapshot",
            "a log that does not begin at 0 begins under a snapshot",
            "KIP-630, Log deletion",
        ),
        Rule(
            20,
            "removed_leader_changes_no_more",
            "a leader that removed itself changes the voters no more",
            "KIP-853, Removing voters",
        ),
        Rule(
            21, "epoch_is_not_behind_log", "a replica's epoch is not behind its log", "KIP-595, Quorum state"
        ),
        Rule(
            22,
            "snapshots_equal_the_replay",
            "a snapshot holds what the log below its end comes to",
            "KIP-630, Snapshots",
        ),
        Rule(
            23,
            "leader_change_names_the_set",
            "a LEADER_CHANGE names the set in force below it and a majority of it",
            "KIP-595, LeaderChangeMessage",
        ),
    )
}
