"""KRaft's rules by number: the one place where any rule of KIP-595, KIP-630 and KIP-853 is found.

A row links the requirement of a rule to its source, to the functions that enforce or check it when logs are
replayed and quorums simulated (engine), and to those that check it on captures (finding).
Numbers are the API of findings. 25 to 43 are rules that have no finding of their own.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule; engine and finding name functions below kraft_core, a test resolves each.

    engine: the invariant that checks the rule comes first, then what keeps it. finding: () where captures
    cannot show a breach of their own. reported_as: the number that its findings have, None for its own.
    note: why engine or finding is empty.
    """

    number: int
    name: str
    demands: str
    source: str
    engine: tuple[str, ...] = ()
    finding: tuple[str, ...] = ()
    reported_as: int | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken rule: its number, the offset and the epoch of the breach, and what is wrong there."""

    rule: int
    offset: int
    leader_epoch: int
    detail: str


READABLE = Rule(
    0,
    "bytes_are_readable",
    "every captured byte can be read",
    "Kafka's record format, version 2",
    finding=("findings.byte_rules.bytes_are_readable",),
    note="the engine reads whole batches",
)
ORDERED = Rule(
    0,
    "batches_follow_each_other",
    "a log has no gaps and no duplicates",
    "KIP-595, Fetch",
    engine=("raft.replay._append",),
    finding=("findings.byte_rules.batches_follow_each_other",),
)

RULES = {
    rule.number: rule
    for rule in (
        Rule(
            1,
            "one_leader_an_epoch",
            "an epoch has one leader",
            "KIP-595, Leader Election",
            engine=("raft.quorum_invariants.one_leader_an_epoch", "protocol.checks.has_consistent_leader"),
            finding=("findings.agreement_rules.one_leader_an_epoch",),
        ),
        Rule(
            2,
            "epochs_never_go_back",
            "epochs never decrease within a log",
            "KIP-595, Fetch",
            engine=("raft.invariants.epochs_never_go_back",),
            finding=("findings.log_rules.epochs_never_go_back",),
        ),
        Rule(
            3,
            "logs_match",
            "same offset and epoch mean the same batch and the same prefix",
            "KIP-595, Fetch; Raft, log matching",
            engine=("raft.quorum_invariants.logs_match", "raft.log.ReplicaLog.validate"),
            finding=("findings.agreement_rules.logs_match",),
        ),
        Rule(
            4,
            "committed_agree",
            "two different batches at an offset are never both committed",
            "Raft, state machine safety",
            engine=("raft.quorum_invariants.committed_agree",),
            finding=(
                "findings.agreement_rules.committed_agree",
                "findings.election_rules.believed_commits_agree",
            ),
        ),
        Rule(
            5,
            "committed_stay",
            "a replica never loses a batch that was committed",
            "KIP-595, Leader Election",
            engine=("raft.quorum_invariants.committed_stay", "raft.replay._truncate"),
            finding=("findings.completeness_rules.committed_stay",),
        ),
        Rule(
            6,
            "high_watermark_rises",
            "a leader's high watermark never decreases",
            "KIP-853, High watermark",
            engine=(
                "raft.quorum_invariants.high_watermark_rises",
                "raft.watermark.leader_reached",
                "raft.watermark.follower_fetched",
            ),
            finding=(
                "findings.watermark_order_rules.high_watermark_rises",
                "findings.watermark_order_rules.high_watermark_is_above_floor",
            ),
        ),
        Rule(
            7,
            "leader_is_complete",
            "a leader holds everything that was committed before its epoch",
            "KIP-595, Vote; Raft, leader completeness",
            engine=("raft.quorum_invariants.leader_is_complete", "protocol.voting.log_is_up_to_date"),
            finding=("findings.completeness_rules.leader_is_complete",),
        ),
        Rule(
            8,
            "majority_holds",
            "a majority holds everything below a high watermark",
            "KIP-595, Fetch, check 3",
            engine=("raft.quorum_invariants.majority_holds", "raft.watermark.majority_end_offset"),
            finding=("findings.watermark_rules.majority_holds_high_watermark",),
        ),
        Rule(
            9,
            "high_watermark_is_in_epoch",
            "a leader's first high watermark is above its epoch's start",
            "KIP-595, Fetch, check 3",
            engine=(
                "raft.quorum_invariants.high_watermark_is_in_epoch",
                "raft.watermark.leader_reached",
                "raft.watermark.follower_fetched",
            ),
            finding=("findings.watermark_rules.high_watermark_in_epoch",),
        ),
        Rule(
            10,
            "epoch_cache_matches_batches",
            "the epoch cache agrees with the batches",
            "KIP-101; Kafka's LeaderEpochFileCache",
            engine=("raft.invariants.epoch_cache_matches_batches", "raft.epochs.EpochCache.assign"),
            finding=("findings.log_rules.epoch_cache_matches_batches",),
        ),
        Rule(
            11,
            "epochs_begin_with_leader_change",
            "an epoch's first record is its LEADER_CHANGE",
            "KIP-595, LeaderChangeMessage",
            engine=("raft.invariants.epochs_begin_with_leader_change", "protocol.records.start_of_epoch"),
            finding=("findings.log_rules.epochs_begin_with_leader_change",),
        ),
        Rule(
            12,
            "one_change_uncommitted",
            "at most one voter change is uncommitted",
            "KIP-853, AddVoter, step 1",
            engine=(
                "raft.invariants.one_change_uncommitted",
                "protocol.membership.change_error",
                "protocol.membership.voters_are_committed",
            ),
            finding=("findings.voter_rules.one_change_uncommitted",),
        ),
        Rule(
            13,
            "one_voter_at_a_time",
            "one voter is added or removed at a time",
            "KIP-853, VotersRecord",
            engine=(
                "raft.invariants.one_voter_at_a_time",
                "protocol.membership.handle_add_voter",
                "protocol.membership.handle_remove_voter",
            ),
            finding=("findings.voter_rules.one_voter_at_a_time",),
        ),
        Rule(
            14,
            "changes_follow_a_commit",
            "voters change only after a commit in the leader's own epoch",
            "KIP-853, AddVoter, step 2",
            engine=("raft.quorum_invariants.changes_follow_a_commit", "protocol.membership.change_error"),
            finding=("findings.voter_rules.changes_follow_a_commit",),
        ),
        Rule(
            15,
            "kraft_version_allows_voters",
            "no VotersRecord with kraft.version 0; kraft.version never decreases",
            "KIP-853, UpdateFeatures",
            engine=("raft.invariants.kraft_version_allows_voters", "protocol.membership.change_error"),
            finding=("findings.voter_rules.kraft_version_allows_voters",),
        ),
        Rule(
            16,
            "kafka_goes_by_its_log",
            "a replica uses the voter set of its log",
            "KIP-853, Internal listener",
            engine=(
                "raft.invariants.kafka_goes_by_its_log",
                "raft.log.voters_of_log",
                "raft.emulation.voters_kafka_would_use",
            ),
            finding=("findings.election_rules.kafka_goes_by_its_log",),
        ),
        Rule(
            17,
            "snapshots_carry_the_log",
            "a snapshot contains the voters and kraft.version of the log below its end",
            "KIP-853, Snapshots",
            engine=("raft.invariants.snapshots_carry_the_log", "raft.emulation.snapshot_kafka_would_write"),
            finding=(
                "findings.snapshot_rules.snapshots_carry_the_log",
                "findings.snapshot_rules.snapshots_of_one_id_agree",
            ),
        ),
        Rule(
            18,
            "snapshots_are_aligned",
            "a snapshot ends at or below the high watermark, on a batch boundary",
            "KIP-630, Snapshots",
            engine=("raft.invariants.snapshots_are_aligned", "raft.replay._create_snapshot"),
            finding=("findings.snapshot_rules.snapshots_are_aligned",),
        ),
        Rule(
            19,
            "starts_under_a_snapshot",
            "a log that does not start at 0 has a snapshot that covers its start",
            "KIP-630, Log deletion",
            engine=("raft.invariants.starts_under_a_snapshot", "raft.replay._delete_before"),
            finding=("findings.log_rules.starts_under_a_snapshot",),
        ),
        Rule(
            20,
            "removed_leader_changes_no_more",
            "a leader that removed itself no longer changes the voters",
            "KIP-853, Removing voters",
            engine=(
                "raft.invariants.removed_leader_changes_no_more",
                "protocol.leading.own_removal_committed",
            ),
            finding=("findings.voter_rules.removed_leader_changes_no_more",),
        ),
        Rule(
            21,
            "epoch_is_not_behind_log",
            "a replica's epoch is not behind its log",
            "KIP-595, Quorum state",
            engine=("raft.invariants.epoch_is_not_behind_log", "raft.replay._append_as_follower"),
            finding=("findings.log_rules.epoch_is_not_behind_log",),
        ),
        Rule(
            22,
            "snapshots_equal_the_replay",
            "a snapshot equals the replay of the log below its end",
            "KIP-630, Snapshots",
            finding=("findings.snapshot_rules.snapshots_equal_the_replay",),
            note="the raft layer does not interpret metadata: kraft_core.image.snapshot_check compares it",
        ),
        Rule(
            23,
            "leader_change_names_the_set",
            "a LEADER_CHANGE contains the voter set in force below it, and a majority of it granted the vote",
            "KIP-595, LeaderChangeMessage",
            engine=("raft.invariants.leader_change_names_the_set", "protocol.records.start_of_epoch"),
            finding=("findings.election_rules.leader_change_names_the_set",),
        ),
        Rule(
            24,
            "leader_outside_voters_is_not_counted",
            "a leader outside the voter set does not count itself for the high watermark",
            "KIP-853, High watermark",
            engine=(
                "raft.quorum_invariants.leader_outside_voters_is_not_counted",
                "raft.watermark.counted_end_offsets",
            ),
            finding=("findings.watermark_rules.leader_outside_voters_is_not_counted",),
        ),
        Rule(
            25,
            "granting_voters_are_a_majority",
            "a candidate leads once a majority of its voters has granted it their vote",
            "KIP-595, Vote",
            engine=(
                "raft.invariants.granting_voters_are_a_majority",
                "protocol.replica.Votes.has_granted_majority",
            ),
            finding=("findings.election_rules.leader_change_names_the_set",),
            reported_as=23,
        ),
        Rule(
            26,
            "kraft_version_never_falls",
            "kraft.version is never lowered",
            "KIP-853, UpdateFeatures",
            engine=("raft.invariants.kraft_version_never_falls", "protocol.features.is_downgrade"),
            finding=("findings.voter_rules.kraft_version_allows_voters",),
            reported_as=15,
        ),
        Rule(
            27,
            "follower_keeps_committed",
            "a follower never truncates below its high watermark",
            "KIP-595, Fetch; Kafka's KafkaRaftLog",
            engine=("raft.replay._truncate",),
            finding=("findings.completeness_rules.committed_stay",),
            reported_as=5,
        ),
        Rule(
            28,
            "removed_leader_resigns",
            "a leader resigns once its own removal commits",
            "KIP-853, Removing voters; EndQuorumEpoch",
            engine=("protocol.leading.own_removal_committed", "protocol.timers.resign_if_asked"),
            finding=("findings.voter_rules.removed_leader_changes_no_more",),
            reported_as=20,
        ),
        Rule(
            29,
            "data_follows_epoch_commit",
            "a leader writes metadata only once its LEADER_CHANGE has committed",
            "KAFKA-15345",
            finding=("findings.watermark_rules.majority_holds_high_watermark",),
            reported_as=8,
            note="the raft layer appends what the controller passes; the controller waits",
        ),
        Rule(
            30,
            "log_is_up_to_date",
            "a vote goes to a candidate whose log is at least as up to date as the voter's",
            "KIP-595, Vote; Raft, election restriction",
            engine=("protocol.voting.log_is_up_to_date", "protocol.voting.can_grant"),
            note="no file records the voter's log end at its vote; a leader elected in spite of it "
            "violates rule 7",
        ),
        Rule(
            31,
            "one_vote_per_epoch",
            "a replica votes for one candidate per epoch, and stores the vote before it answers",
            "KIP-595, Vote; KIP-853, Vote",
            engine=("protocol.voting.has_voted_for", "protocol.transitions.vote_for"),
            note="quorum-state contains only the last vote; two leaders of one epoch violate rule 1",
        ),
        Rule(
            32,
            "pre_vote_comes_first",
            "a replica raises its epoch only after a majority would vote for it",
            "KIP-996; KIP-853, Vote",
            engine=("protocol.voting.begin_election", "protocol.transitions.to_prospective"),
            note="pre-votes are not recorded in files",
        ),
        Rule(
            33,
            "requests_name_their_voter",
            "a voter answers only requests meant for its id and directory id",
            "KIP-853, Vote; BeginQuorumEpoch",
            engine=("protocol.checks.is_meant_for",),
            note="requests are not recorded in files",
        ),
        Rule(
            34,
            "stale_epochs_are_fenced",
            "a request of an older epoch is refused",
            "KIP-595, Vote; Fetch",
            engine=("protocol.checks.voter_request_error", "protocol.checks.leader_request_error"),
            note="requests are not recorded in files; the batches of a fenced leader violate rule 2",
        ),
        Rule(
            35,
            "voters_match_by_directory",
            "a voter is a replica id with a directory id; an entry without one matches any",
            "KIP-853, Key terms",
            engine=("raft.voters.Voter.matches", "raft.voters.VoterSet.voter_for"),
            note="no violation of its own: every rule that counts voters matches them this way",
        ),
        Rule(
            36,
            "fetch_is_validated",
            "a follower whose log is not a prefix of the leader's log truncates to the diverging epoch",
            "KIP-595, Fetch, check 2",
            engine=(
                "protocol.fetch_validation.fetch_validity",
                "raft.log.ReplicaLog.validate",
                "raft.log.ReplicaLog.truncation_offset",
            ),
            note="a tail that was not truncated violates rule 3; truncations are rows of table truncations",
        ),
        Rule(
            37,
            "fetch_below_start_gets_snapshot",
            "a fetch below the leader's log start is answered with a snapshot",
            "KIP-630, Fetch",
            engine=("protocol.fetch_validation.fetch_validity", "raft.log.ReplicaLog.validate"),
            note="responses are not recorded in files; a log without the snapshot below its start violates "
            "rule 19",
        ),
        Rule(
            38,
            "majority_keeps_fetching",
            "a leader that no majority of the voters fetches from resigns",
            "KIP-853, Fetch; Kafka's LeaderState (check-quorum)",
            engine=("protocol.leading.majority_has_fetched", "protocol.leading.update_check_quorum"),
            note="fetches are not recorded in files",
        ),
        Rule(
            39,
            "new_voter_is_caught_up",
            "a voter is added only once it has caught up with the leader",
            "KIP-853, AddVoter",
            engine=("protocol.membership.is_caught_up",),
            note="the leader keeps fetch times in memory only",
        ),
        Rule(
            40,
            "voters_support_kraft_version",
            "kraft.version rises only as far as every voter supports, and a new voter supports it",
            "KIP-853, UpdateFeatures; AddVoter",
            engine=(
                "protocol.features.all_voters_support",
                "protocol.membership.handle_api_versions_response",
            ),
            note="the leader asks the voter itself; no file records the answer of a voter that it refused",
        ),
        Rule(
            41,
            "voter_ids_are_unique",
            "a voter id is added once, whatever its directory id",
            "Kafka's AddVoterHandler",
            engine=("protocol.membership.handle_add_voter",),
            note="KIP-853 allows two directories of one id; two live ones of a static id are counted once",
        ),
        Rule(
            42,
            "last_voter_stays",
            "the last voter is not removed",
            "KIP-853, RemoveVoter",
            engine=("protocol.membership.handle_remove_voter",),
            note="an empty VotersRecord is read as unknown and proves nothing",
        ),
        Rule(
            43,
            "first_leader_writes_the_voters",
            "the first leader writes kraft.version and the voters to the log",
            "KIP-853, First leader",
            engine=("protocol.records.start_of_epoch",),
            note="not judged: a log of kraft.version 0 is lawful without them",
        ),
        Rule(
            44,
            "stored_stays",
            "a replica loses what it stored only to a higher epoch, and its own epoch never decreases",
            "KIP-595, Quorum state; Fetch",
            engine=("protocol.transitions.to_unattached", "protocol.transitions.to_follower"),
            finding=("findings.directory_rules.stored_stays", "findings.directory_rules.led_is_kept"),
        ),
        Rule(
            45,
            "one_directory_per_static_id",
            "a voter that is identified by id alone keeps its directory",
            "KIP-853, Motivation",
            finding=("findings.directory_rules.one_directory_per_static_id",),
            note="the engine's voters have one directory each",
        ),
        Rule(
            46,
            "log_is_not_behind_its_files",
            "a log reaches the offsets in the files beside it",
            "KIP-101; Kafka's LeaderEpochFileCache",
            finding=("findings.directory_rules.log_is_not_behind_its_files",),
            note="the engine writes a replica's files at once",
        ),
        Rule(
            47,
            "one_quorum_per_cluster_id",
            "a cluster id belongs to one quorum",
            "KIP-78, Cluster Id",
            finding=(
                "findings.observed_quorum.one_quorum_per_cluster_id",
                "findings.life_rules.one_life_per_cluster_id",
            ),
            note="the engine's replicas refuse requests with another cluster id; each of its quorums has one",
        ),
        Rule(
            48,
            "copied_after_it_was_written",
            "the stated time of a copy is not earlier than its content",
            "Kafka's record format, version 2: timestamps",
            finding=("findings.directory_rules.copied_after_it_was_written",),
            note="a replica does not know when it is copied",
        ),
        Rule(
            49,
            "records_can_be_replayed",
            "a record can be replayed onto the log below it",
            "Kafka's ReplicationControlManager, ClusterControlManager, MetadataDelta and others",
            finding=("findings.replay_rules.records_can_be_replayed",),
            note="the engine's logs contain no metadata records",
        ),
        Rule(
            50,
            "static_voters_stay",
            "all nodes of a static quorum are configured with the voters in its LEADER_CHANGE records",
            "KIP-853, Quorum state: CurrentVoters",
            finding=("findings.observed_quorum.static_voters_stay",),
            note="the static voters of the engine's replicas do not change",
        ),
        Rule(
            51,
            "one_node_per_directory_id",
            "a directory id belongs to one node",
            "KIP-858, directory.id",
            finding=("findings.directory_rules.one_node_per_directory_id",),
            note="each directory of the engine's quorums has a distinct id",
        ),
        Rule(
            52,
            "held_replicas_are_assigned",
            "a broker holds the replicas that the metadata assigns to it",
            "KIP-858, Broker; Kafka's LogManager.isStrayReplica",
            finding=("findings.broker_rules.held_replicas_are_assigned",),
            note="the engine has no brokers",
        ),
    )
}
