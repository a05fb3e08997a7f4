"""What a violated rule means for the operator of the cluster, and what to do; docs/findings.md shows the
same.

By the name of the rule, because two rules have the number 0. Replicas are in a finding's sentence.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Advice:
    """What the finding means, and what to do next."""

    meaning: str
    action: str


_CAPTURE_ALL = "Capture every controller before you restart or remove any"
_REPLACE = "kraftlake plan replace prints the steps"
_AGAIN = f"Capture the replica again; if the new copy shows it, too, replace the replica: {_REPLACE}."
_REPORT = "keep the captures and report the defect to Kafka with the evidence"

ADVICE = {
    "bytes_are_readable": Advice(
        "Part of a copy cannot be read. Answers that depend on those bytes are undecided.", _AGAIN
    ),
    "batches_follow_each_other": Advice(
        "The copied log skips or repeats offsets, so no controller can have written it.",
        _AGAIN,
    ),
    "one_leader_an_epoch": Advice(
        "Two controllers led in one epoch: the quorum was split, and one of two histories is lost.",
        f"{_CAPTURE_ALL}. Then compare node.id, controller.quorum.voters and the directory ids of all "
        "controllers: two nodes may share an id, or use different lists of voters.",
    ),
    "epochs_never_go_back": Advice(
        "A log goes back to a lower epoch. Kafka never writes such a log: it was damaged, or assembled "
        "from two copies.",
        _AGAIN,
    ),
    "logs_match": Advice(
        "Two logs differ at the same offset and epoch: they belong to two histories, and nothing of that "
        "epoch is proven.",
        "Check whether the captures are of one cluster: the captures of a clone need an id of their own "
        "(docs/captures.md). If they are of one cluster, capture every controller before you restart or "
        "remove any.",
    ),
    "committed_agree": Advice(
        "Two different batches were committed at one offset: a change that Kafka acknowledged was replaced, "
        "and brokers may disagree about topics, configs and ACLs.",
        f"Stop all metadata changes. {_CAPTURE_ALL}, and compare the two histories with kraftlake diff.",
    ),
    "committed_stay": Advice(
        "A replica lost records that were committed. If it counts for a majority, a change that Kafka "
        "acknowledged may be lost.",
        f"Leave the other voters running, check the replica's disk, and replace it: {_REPLACE}.",
    ),
    "high_watermark_rises": Advice(
        "A leader reported a lower high watermark than was reported before: committed records were lost, "
        "or an output is of another time or cluster.",
        "Check the outputs listed in the evidence, and the clocks of the machines. If both are right, "
        "capture every controller before you restart or remove any.",
    ),
    "leader_is_complete": Advice(
        "A controller became leader without records that were committed. They are lost on every replica "
        "that followed it.",
        f"{_CAPTURE_ALL}. kraftlake diff shows what was lost; repeat those changes.",
    ),
    "majority_holds": Advice(
        "Records counted as committed although no majority had stored them: the loss of one node may lose "
        "changes that Kafka acknowledged.",
        "Capture every voter, so that all logs count. If the finding remains, " + _REPORT + ".",
    ),
    "high_watermark_is_in_epoch": Advice(
        "A leader counted records as committed before a record of its own epoch was committed. A later "
        "leader may lawfully replace them.",
        "Check that the output is of this cluster. If it is, " + _REPORT + ".",
    ),
    "epoch_cache_matches_batches": Advice(
        "The file leader-epoch-checkpoint disagrees with the log beside it. A controller that starts with "
        "them may truncate at the wrong offset.",
        _AGAIN,
    ),
    "epochs_begin_with_leader_change": Advice(
        "An epoch begins without its LEADER_CHANGE, so its leader is not proven.", _AGAIN
    ),
    "one_change_uncommitted": Advice(
        "Two voter changes were in progress at once: there may be two majorities that share no voter.",
        "Do not change voters until kafka-metadata-quorum.sh describe --status shows the newest set. "
        f"{_CAPTURE_ALL}.",
    ),
    "one_voter_at_a_time": Advice(
        "One record adds or removes several voters: a majority of the old set and one of the new set may "
        "share no voter.",
        f"Do not change voters until the newest set is committed. {_CAPTURE_ALL}.",
    ),
    "changes_follow_a_commit": Advice(
        "A leader changed the voters before anything of its epoch was committed: there may be two "
        "majorities that share no voter.",
        f"Do not change voters until the newest set is committed. {_CAPTURE_ALL}.",
    ),
    "kraft_version_allows_voters": Advice(
        "The log changes the voters although they are static by kraft.version, or it lowers kraft.version: "
        "controllers may use different voter sets.",
        "Compare kafka-features.sh describe with controller.quorum.voters on every controller. "
        f"If they agree, {_REPORT}.",
    ),
    "kafka_goes_by_its_log": Advice(
        "A controller used an older voter set than its log has (a known defect of Kafka): it may be elected "
        "without a majority, and committed changes may be lost.",
        "Restart that controller once the others are in sync, so that it reads the voter set again, and do "
        "not change voters while a controller is down. docs/stale-split.md describes a case in full.",
    ),
    "snapshots_carry_the_log": Advice(
        "A controller that starts from this snapshot uses the wrong voters or the wrong kraft.version.",
        "Do not restore from this snapshot, and keep the log below its end until a newer snapshot is "
        "correct.",
    ),
    "snapshots_are_aligned": Advice(
        "A snapshot is incomplete, or contains records that are not proven committed. A node that loads it "
        "may have metadata that no other node has.",
        "Do not restore from this snapshot. " + _AGAIN,
    ),
    "starts_under_a_snapshot": Advice(
        "The beginning of the log is missing, and no snapshot replaces it: no controller can start from "
        "this copy.",
        f"Capture the replica again, with its .checkpoint files. If the controller has none itself, "
        f"replace it: {_REPLACE}.",
    ),
    "removed_leader_changes_no_more": Advice(
        "A leader changed the voters after it had removed itself from them.",
        f"Check the newest voter set with kafka-metadata-quorum.sh describe --status, and {_REPORT}.",
    ),
    "epoch_is_not_behind_log": Advice(
        "The file quorum-state is older than the log. A controller that starts with it may vote twice in an "
        "epoch.",
        _AGAIN,
    ),
    "snapshots_equal_the_replay": Advice(
        "A node that loads the snapshot has different metadata than one that reads the log: what the "
        "evidence lists may be missing or outdated there.",
        "Set again what the evidence lists, such as a credential or a config. A newer snapshot that "
        "agrees with the log resolves the finding.",
    ),
    "leader_change_names_the_set": Advice(
        "A leader was not elected by a majority of the voters in its log. Changes that were acknowledged "
        "before may be lost in its epoch.",
        f"{_CAPTURE_ALL}. Compare the voter sets in section Voters and leaders with the one that elected it.",
    ),
    "leader_outside_voters_is_not_counted": Advice(
        "A leader that is not a voter counted itself toward the majority: records that it reported as "
        "committed may be lost.",
        f"Have a voter elected as leader before you rely on those records, and {_REPORT}.",
    ),
    "stored_stays": Advice(
        "A replica lost what it had stored and acknowledged, and no newer leader replaced it: its disk "
        "lost data, or an older copy was put in its place.",
        f"Do not count on this replica. Check its disk and mounts, and replace it: {_REPLACE}.",
    ),
    "one_directory_per_static_id": Advice(
        "A voter has a second directory. The new one lacks what the old one acknowledged, so a majority "
        "that includes it may lack committed records.",
        "Keep the old directory. Make sure that the other voters form a majority and are in sync; "
        "otherwise start the node with the old one.",
    ),
    "log_is_not_behind_its_files": Advice(
        "The log ends below offsets that other captured files show: it is an older copy, or it lost its end.",
        _AGAIN,
    ),
    "one_quorum_per_cluster_id": Advice(
        "An output is of another quorum with the same cluster id, such as a clone. It is not used.",
        "Keep the outputs of each quorum beside its own captures (docs/captures.md).",
    ),
    "copied_after_it_was_written": Advice(
        "The stated time of the copy is earlier than its records. It is not used, so less can be proven "
        "about the order of captures.",
        "Correct capture.json or --captured-at, and check the clock of the machine that copies.",
    ),
    "records_can_be_replayed": Advice(
        "A record refers to something that the log below it does not have. A controller or broker may stop "
        "at it, and its effect is unknown here.",
        f"If records are missing, capture another replica. If the log is whole, {_REPORT}.",
    ),
    "static_voters_stay": Advice(
        "Controllers are configured with different voters: there may be two majorities that share no "
        "voter, and what counts as committed differs between them.",
        "Compare controller.quorum.voters of all controllers. Set it to the same list before you restart "
        "any.",
    ),
    "one_node_per_directory_id": Advice(
        "A directory was copied under another node id. What one node stored does not prove that two did.",
        "Find out which node the directory belongs to, leave out the copies, and capture each controller "
        "itself.",
    ),
    "held_replicas_are_assigned": Advice(
        "A broker has partitions on disk that the metadata does not place there: it was not running when the "
        "topic was deleted, created again or moved, or a disk was moved. Kafka will not serve them.",
        "Copy what you need of them before the broker starts; kraftlake plan start-broker says what becomes "
        "of them. Delete -stray folders that nobody needs.",
    ),
}
