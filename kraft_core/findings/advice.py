"""What a broken rule means for whoever runs the cluster, and what to do; docs/findings.md shows the same.

By the name of the rule, as two rules bear the number 0. It names no replica: a finding's sentence does.
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
        "Part of a copy cannot be read. Answers that need those bytes are undecided.", _AGAIN
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
        "A log goes back to a lower epoch. Kafka never writes that: the log was damaged, or put together "
        "from two copies.",
        _AGAIN,
    ),
    "logs_match": Advice(
        "Two logs differ at the same offset and epoch: they have two histories, and nothing of that epoch "
        "is proven.",
        "Check whether the captures are of one cluster: a clone's captures need a name of their own "
        "(docs/captures.md). If they are of one, capture every controller before you restart or remove any.",
    ),
    "committed_agree": Advice(
        "Two different batches were committed at one offset: a change that Kafka acknowledged was replaced, "
        "and brokers may disagree about topics, configs and ACLs.",
        f"Stop changes of metadata. {_CAPTURE_ALL}, and compare the two histories with kraftlake diff.",
    ),
    "committed_stay": Advice(
        "A replica lost records that were committed. If it counts for a majority, a change that Kafka "
        "acknowledged may be lost.",
        f"Leave the other voters running, check the replica's disk, and replace it: {_REPLACE}.",
    ),
    "high_watermark_rises": Advice(
        "A leader reported less to be committed than was reported before: committed records were lost, or "
        "an output is of another time or cluster.",
        "Compare the outputs that the evidence names, and the clocks of the machines. If both are right, "
        "capture every controller before you restart or remove any.",
    ),
    "leader_is_complete": Advice(
        "A controller led without records that were committed. They are lost wherever it was followed.",
        f"{_CAPTURE_ALL}. kraftlake diff shows what was lost: make these changes again.",
    ),
    "majority_holds": Advice(
        "Records counted as committed although no majority stored them: losing one node may lose "
        "changes that Kafka acknowledged.",
        "Capture every voter, so that all logs count. If the finding stays, " + _REPORT + ".",
    ),
    "high_watermark_is_in_epoch": Advice(
        "A leader counted records as committed before one of its own epoch was. A later leader may lawfully "
        "replace them.",
        "Check that the output is of this cluster. If it is, " + _REPORT + ".",
    ),
    "epoch_cache_matches_batches": Advice(
        "The file leader-epoch-checkpoint disagrees with the log beside it. A controller that starts with "
        "both may truncate at the wrong offset.",
        _AGAIN,
    ),
    "epochs_begin_with_leader_change": Advice(
        "An epoch begins without the record of its election, so who led it is not proven.", _AGAIN
    ),
    "one_change_uncommitted": Advice(
        "Two changes of the voters were under way at once: two majorities may exist that share no voter.",
        "Change no voter until kafka-metadata-quorum.sh describe --status shows the newest set. "
        f"{_CAPTURE_ALL}.",
    ),
    "one_voter_at_a_time": Advice(
        "One record adds or removes several voters: a majority of the old set and one of the new may share "
        "no voter.",
        f"Change no voter until the newest set is committed. {_CAPTURE_ALL}.",
    ),
    "changes_follow_a_commit": Advice(
        "A leader changed the voters before anything of its epoch was committed: two majorities may exist "
        "that share no voter.",
        f"Change no voter until the newest set is committed. {_CAPTURE_ALL}.",
    ),
    "kraft_version_allows_voters": Advice(
        "The log changes voters although kraft.version says that they are configured, or lowers the "
        "version: controllers may use different sets.",
        "Compare kafka-features.sh describe with controller.quorum.voters on every controller. "
        f"If they agree, {_REPORT}.",
    ),
    "kafka_goes_by_its_log": Advice(
        "A controller used an older voter set than its log has (a known defect of Kafka): it may be elected "
        "without a majority, and committed changes may be lost.",
        "Restart that controller once the others are in sync, so that it reads the set again, and change "
        "no voters while one is down. docs/stale-split.md describes a whole case.",
    ),
    "snapshots_carry_the_log": Advice(
        "A controller that starts from this snapshot uses wrong voters or a wrong kraft.version.",
        "Do not restore from this snapshot, and keep the log below its end until a newer snapshot is right.",
    ),
    "snapshots_are_aligned": Advice(
        "A snapshot is incomplete, or holds records that nothing proves to be committed. A node that loads "
        "it may have metadata that no other has.",
        "Do not restore from this snapshot. " + _AGAIN,
    ),
    "starts_under_a_snapshot": Advice(
        "The log lacks its beginning, and no snapshot supplies it: nothing can start from this copy.",
        "Capture the replica again, with its .checkpoint files. If the controller itself has none, replace "
        f"it: {_REPLACE}.",
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
        "A node that loads the snapshot has other metadata than one that reads the log: what the evidence "
        "names may be missing or out of date on it.",
        "Set what the evidence names again, such as a credential or a config. A newer snapshot that "
        "agrees with the log resolves the finding.",
    ),
    "leader_change_names_the_set": Advice(
        "A controller was not elected by a majority of the voters that its log names. Changes that were "
        "acknowledged before may be lost in its epoch.",
        f"{_CAPTURE_ALL}. Compare the voter sets in section Voters and leaders with the one that elected it.",
    ),
    "leader_outside_voters_is_not_counted": Advice(
        "A leader that is not a voter counted itself for the majority: records that it called committed may "
        "be lost.",
        f"Let a voter lead before you rely on those records, and {_REPORT}.",
    ),
    "stored_stays": Advice(
        "A replica lost what it had stored and acknowledged, and no newer leader replaced it: its disk "
        "forgot, or an older copy was put in its place.",
        f"Do not count on this replica. Check its disk and mounts, and replace it: {_REPLACE}.",
    ),
    "one_directory_per_static_id": Advice(
        "A voter has a second directory. The new one does not know what the old one had acknowledged, so a "
        "majority with it may lack committed records.",
        "Keep the old directory. See that the other voters form a majority and are in sync; else start the "
        "node with the old one.",
    ),
    "log_is_not_behind_its_files": Advice(
        "The log ends before what other captured files name: it is an older copy, or it lost its end.", _AGAIN
    ),
    "one_quorum_per_cluster_id": Advice(
        "An output is of another quorum with the same cluster id, such as a clone. It bounds nothing here.",
        "Keep the outputs of each quorum beside its own captures (docs/captures.md).",
    ),
    "copied_after_it_was_written": Advice(
        "The time that is stated for the copy is earlier than its records. It is not used, so less can be "
        "proven about the order of captures.",
        "Correct capture.json or --captured-at, and check the clock of the machine that copies.",
    ),
    "records_can_be_replayed": Advice(
        "A record refers to what the log below it lacks. A controller or broker may stop at it, and what it "
        "changed is unknown here.",
        f"If records are missing, capture another replica. If the log is whole, {_REPORT}.",
    ),
    "static_voters_stay": Advice(
        "Controllers are configured with different voters: two majorities may exist that share no voter, and "
        "what counts as committed differs between them.",
        "Compare controller.quorum.voters of all controllers. Set it to one list before any is restarted.",
    ),
    "one_node_per_directory_id": Advice(
        "A directory was copied under another node id. What one node stored is no evidence that two did.",
        "Check which node the directory is of, leave the copies out, and capture each controller itself.",
    ),
}
