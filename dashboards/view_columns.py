"""The meaning of every column of every view, in the order of its columns.

A column that a view takes from a table as it is has the table's comment. dashboards.definitions puts these
into the catalog, docs/data-dictionary.md lists them, and a test holds them against the views.
"""

from __future__ import annotations

from transforms.lake.tables import (
    BROKER_PARTITIONS,
    BROKERS,
    CAPTURES,
    CLUSTER_NAMES,
    CONFIGS,
    DERIVATIONS,
    EPOCHS,
    EXPECTATION_RESULTS,
    FEATURES,
    HISTORIES,
    LOG_RANGES,
    PARTITIONS,
    RECORDS,
    TOPICS,
    VOTER_CHANGES,
    VOTER_SETS,
    Table,
)

Comments = dict[str, str]


def _of(table: Table, names: str = "") -> Comments:
    """The named columns of a table with its comments; all, if none is named."""
    comments = {column.name: column.comment for column in table.columns}
    return {name: comments[name] for name in names.split() or comments}


CLUSTER_ID = _of(VOTER_SETS, "cluster_id")
AT_OR_BEFORE = {
    "is_exact": "Whether a record shows it; false: only a snapshot shows it, and it happened at or before",
    "earliest_offset": "Unless is_exact, the lowest offset at which it can have happened; null: not bounded",
    "earliest_at": "Time of earliest_offset: it did not happen before",
}
STATUS = {"commit_status": "Commit status of the record that shows it: committed, uncommitted or undecided"}
OFFSET = {"offset": "Offset at which it took effect; at or before it unless is_exact"}
CHANGED_AT = {"changed_at": "Time of offset, by the running maximum of the batches' timestamps"}
TOPIC_PARTITION = _of(PARTITIONS, "topic_id topic_name partition_id")
PERIOD = {
    "from_offset": "First offset of the period; at or before it unless from_exact",
    "to_offset": "Offset at which it ended, exclusive; at or before it unless to_exact; null if it has not "
    "ended",
    "from_at": "Time of from_offset; likewise at or before it",
    "to_at": "Time of to_offset; likewise at or before it; null if it has not ended",
    "from_exact": "Whether a record shows the beginning; false: only a snapshot does",
    "to_exact": "Whether a record shows the end; false: only a snapshot does; null if it has not ended",
}


def _period(names: str) -> Comments:
    return {name: PERIOD[name] for name in names.split()}


QUORUM: dict[str, Comments] = {
    "voter_history": _of(
        VOTER_SETS,
        "cluster_id offset leader_epoch source voter_ids majority commit_status truncated_by_epoch "
        "in_force_from in_force_to in_force_from_offset in_force_to_offset evidence "
        "in_force_from_exact in_force_to_exact observed_from observed_to",
    ),
    "current_voters": _of(
        VOTER_SETS,
        "cluster_id offset leader_epoch source voter_ids voters majority commit_status in_force_from "
        "in_force_from_exact",
    ),
    "membership_changes_not_committed": (
        _of(
            VOTER_CHANGES,
            "cluster_id offset leader_epoch kind voter_id directory_id changed_at commit_status",
        )
        | _of(VOTER_SETS, "truncated_by_epoch evidence")
        | _of(VOTER_CHANGES, "changed_exact")
    ),
    "leader_timeline": (
        _of(EPOCHS, "cluster_id leader_epoch leader_id start_offset elected_at")
        | {"next_elected_at": "elected_at of the next known epoch; null for the last"}
        | _of(
            EPOCHS,
            "granting_voters leaderless_ms leader_source known_from known_to observed_from observed_to",
        )
    ),
    "watermark_bounds": CLUSTER_ID
    | {
        "as_of": "Last time with an upper bound; if there is none, the time of the highest lower bound",
        "lower_bound": "The high watermark was at least this at as_of; null: nothing is proven for that time",
        "lower_evidence": "Kind of proof of lower_bound",
        "lower_as_of": "Time since which lower_bound holds",
        "latest_upper_bound": "The high watermark was at most this at upper_as_of; null if there is no "
        "upper bound",
        "upper_as_of": "Time up to which latest_upper_bound holds",
        "later_lower_bound": "A higher lower bound that holds only after as_of; null if there is none",
        "later_lower_as_of": "Time since which later_lower_bound holds",
    },
    "committed_ends": CLUSTER_ID
    | {
        "committed_end_offset": "End of what is proven committed, exclusive: records below it can never be "
        "lost. The high watermark was at least this, and may have been higher"
    },
    "record_status": _of(RECORDS) | _of(LOG_RANGES, "commit_status truncated_by_epoch"),
    "high_watermark_timeline": CLUSTER_ID
    | {
        "from_at": "Start of the interval between two proofs; null before the first",
        "to_at": "End of the interval; null after the last",
        "lower_bound": "The high watermark was at least this; null: nothing is proven",
        "upper_bound": "The high watermark was at most this; null: nothing is proven",
        "lower_evidence": "Kind of proof of lower_bound: snapshot, first_data_batch, log_ends, ...",
        "lower_source": "What lower_bound was derived from, as text",
        "upper_evidence": "Kind of proof of upper_bound",
        "upper_source": "What upper_bound was derived from, as text",
    },
    "voter_sets_in_force": _of(
        VOTER_SETS,
        "cluster_id in_force_from in_force_to offset leader_epoch source voter_ids majority commit_status "
        "truncated_by_epoch in_force_from_exact in_force_to_exact observed_from observed_to",
    ),
    "log_growth": CLUSTER_ID
    | {
        "day": "Day of the records' timestamps (UTC): the leader's clock",
        "type": "Record type, named as by kafka-dump-log",
        "topic_name": "Topic that the records concern; null for none, or if its name was not captured",
        "cause": "Why such records are written: topics, leader change, ISR change, reassignment, replica "
        "state, configs, idle leader (NoOpRecords of metadata.max.idle.interval.ms), broker fenced, broker "
        "unfenced, controlled shutdown, registrations, producer ids, features, ACLs, quotas, credentials, "
        "metadata transactions, quorum, or unknown",
        "records": "How many, committed or not",
        "size_bytes": "Bytes of their keys and values, and an even share of the rest of their batches",
        "first_offset": "Offset of the first of them",
        "last_offset": "Offset of the last of them, inclusive",
    },
    "log_space": _of(CAPTURES, "cluster_id node_id directory_id captured_at log_start_offset log_end_offset")
    | {
        "segments": "Segments of the captured log",
        "log_bytes": "Size of the segments",
        "snapshots": "Checkpoints in the directory, without bootstrap.checkpoint and 0-0",
        "snapshot_bytes": "Size of these checkpoints",
        "snapshot_end_offset": "End offset of the newest of them, exclusive; null without any",
        "oldest_snapshot_at": "When the oldest of them was written, by its header",
        "new_bytes": "Bytes of the log that are not in the newest of them",
        "new_since": "Timestamp of the first batch of those; null if there is none",
        "new_ms": "How long before captured_at that was",
        "oldest_snapshot_ms": "How long before captured_at the oldest was written",
        "snapshot_is_late": "Whether new_bytes is above 20 MiB or new_ms above an hour: Kafka's defaults of "
        "metadata.log.max.record.bytes.between.snapshots and metadata.log.max.snapshot.interval.ms",
        "deletion_is_late": "Whether there is an older snapshot although log and snapshots take more than "
        "100 MiB, or it is older than 7 days: the defaults of metadata.max.retention.bytes and .ms",
    },
    "formatted_directories": _of(CAPTURES, "cluster_id node_id directory_id")
    | {
        "first_captured_at": "When its first capture was made",
        "formatted_as": "only voter, initial voter or no voter; null: the captures do not show it",
        "initial_voters": "Number of voters in its first checkpoint; null: that checkpoint was not captured",
    },
    "flapping_controllers": CLUSTER_ID
    | {
        "node_id": "Controller's node id",
        "kind": "What happened repeatedly: elected, or added or removed",
        "turns_in_an_hour": "Highest number of times within one hour",
        "until": "End of that hour",
    },
    "replica_lag": (
        _of(CAPTURES, "cluster_id node_id directory_id captured_at log_end_offset last_leader_epoch")
        | {
            "lag_records": "Offsets by which it was behind the longest log that any capture of the cluster "
            "had by captured_at",
            "is_voter": "Whether it is in the voter set in force; null if that is not known",
        }
    ),
    "expectations_now": _of(
        EXPECTATION_RESULTS,
        "cluster_id suite expectation sentence severity success observed allowed failing_rows is_own run_id "
        "loaded_at",
    ),
    "clusters": (
        CLUSTER_ID
        | _of(CLUSTER_NAMES, "name environment owner")
        | {
            "captures": "Number of captures, not counting expired ones",
            "last_captured_at": "Time of the newest of them",
            "leader_epoch": "Highest known leader epoch",
            "leader_id": "Leader of that epoch, from leader_source; null if unknown",
        }
        | _of(VOTER_SETS, "voter_ids")
        | _of(DERIVATIONS, "failure")
        | _of(EPOCHS, "leader_source")
        | {
            "is_newest_life": "Whether no other life of its cluster id has a newer record; null if the id "
            "has only one life"
        }
    ),
}

LEADER_CHANGES = (
    CLUSTER_ID
    | TOPIC_PARTITION
    | OFFSET
    | CHANGED_AT
    | {"leader_before": "Broker id of the former leader; -1 if there was none"}
    | _of(PARTITIONS, "leader leader_epoch")
    | {
        "cause": "fenced, controlled shutdown, unregistered (the former leader), reassignment, "
        "preferred leader, elected, or leader found; null unless is_exact",
        "caused_by_broker": "Former leader, if it caused the change; null if no broker left",
        "caused_by_offset": "Offset since which it was fenced or in controlled shutdown; null if neither",
        "is_unclean": "Whether the new leader was outside ISR and ELR; null if not known",
    }
    | STATUS
    | AT_OR_BEFORE
)

METADATA: dict[str, Comments] = {
    "partition_changes": _of(PARTITIONS)
    | {"before": "The version before it: leader, ISR, replicas and reassignment; null for the first"},
    "leader_changes": LEADER_CHANGES,
    "unclean_elections": LEADER_CHANGES,
    "reassignments": CLUSTER_ID
    | TOPIC_PARTITION
    | {
        "state": "requested, immediate, completed, cancelled, superseded or deleted; null: ended, unknown "
        "how",
        "begun_offset": "Offset at which it began; at or before it unless begun_exact",
        "begun_at": "Time of begun_offset",
        "done_offset": "Offset at which it ended; at or before it unless done_exact; null: in progress",
        "done_at": "Time of done_offset; null: in progress",
        "replicas_before": "Replicas before it; null if not known",
        "target_replicas": "Requested replicas",
        "replicas_after": "Replicas after it; null while it is in progress",
        "added_replicas": "Replicas that it adds, ascending",
        "removed_replicas": "Replicas that it removes, ascending",
        "ended_by": "Type of the record that ended it; snapshot if only one shows the end",
        "commit_status": "Commit status of its beginning",
        "begun_exact": "Whether a record shows the beginning; false: only a snapshot does",
        "earliest_begun_offset": "Unless begun_exact, the lowest offset at which it can have begun",
        "earliest_begun_at": "Time of earliest_begun_offset",
        "done_exact": "Whether a record shows the end; false: only a snapshot does; null: in progress",
        "done_commit_status": "Commit status of its end; null: in progress",
        "earliest_done_offset": "Unless done_exact, the lowest offset at which it can have ended",
        "earliest_done_at": "Time of earliest_done_offset",
    },
    "min_isr_periods": CLUSTER_ID
    | _of(PARTITIONS, "topic_id topic_name")
    | {"min_isr": "min.insync.replicas in effect: the topic's, else the cluster's default in the log, else 1"}
    | _period("from_offset from_at to_offset to_at from_exact to_exact"),
    "under_min_isr": CLUSTER_ID
    | TOPIC_PARTITION
    | _period("from_offset to_offset from_at to_at")
    | {
        "least_isr": "Size of the smallest ISR in the period",
        "isr": "In-sync replicas at its end",
        "min_isr": "min.insync.replicas in effect at its end, at most the number of replicas",
        "commit_status": "Commit status of its records: committed, uncommitted or undecided",
    }
    | _period("from_exact to_exact")
    | {"under_ms": "Duration in ms; null while it lasts; only a bound if an end is not exact"},
    "fenced_times": CLUSTER_ID
    | {"broker_id": "Broker id"}
    | _period("from_offset to_offset from_at to_at")
    | {
        "fenced_by": "Type of the record that fenced it; a registration does, too",
        "ended_by": "Type of the record that ended it; snapshot if only a snapshot shows the end; null "
        "while it lasts",
        "commit_status": "Commit status of its records: committed, uncommitted or undecided",
    }
    | _period("from_exact to_exact")
    | {"fenced_ms": "Duration in ms; null while it lasts; only a bound if an end is not exact"},
    "broker_lifecycles": CLUSTER_ID
    | _of(BROKERS, "broker_id broker_epoch incarnation_id")
    | {
        "incarnation_before": "For a registration: incarnation id of the previous process; null for the "
        "first",
        "state": "fenced, active, controlled shutdown or unregistered",
        "began_as": "registered, registered again, unfenced, fenced, controlled shutdown or unregistered; "
        "null unless from_exact",
        "ended_as": "Event that began the next state; null while it lasts, and unless to_exact",
    }
    | _period("from_offset to_offset from_at to_at from_exact to_exact")
    | {
        "commit_status": "Commit status of its records: committed, uncommitted or undecided",
        "state_ms": "Duration in ms; null while it lasts; only a bound if an end is not exact",
    },
    "why_fenced": CLUSTER_ID
    | _of(BROKERS, "broker_id broker_epoch incarnation_id")
    | {
        "cause": "new process, controlled shutdown, or no heartbeat (or it asked for it); null unless "
        "from_exact",
        "state_before": "Its state before, as in broker_lifecycles; null for the first",
    }
    | _period("from_offset to_offset from_at to_at from_exact to_exact")
    | {
        "leaders_moved": "Number of partitions that it led and that another broker or none led afterwards",
        "left_leaderless": "Number of those that no broker led afterwards",
        "commit_status": "Commit status of its records: committed, uncommitted or undecided",
        "fenced_ms": "Duration in ms; null while it lasts; only a bound if an end is not exact",
    },
    "stranded_replicas": CLUSTER_ID
    | {
        "broker_id": "Broker of the replica",
        "directory_id": "Log directory of the replica",
        "directory_state": "offline, unknown, lost or unregistered",
        "registered_until": "Time until which its broker had registered it; null: never",
    }
    | TOPIC_PARTITION
    | _of(PARTITIONS, "leader")
    | {
        "is_in_isr": "Whether the replica is in the ISR",
        "is_only_copy": "Whether no other replica is in ISR or ELR",
        "commit_status": "Commit status of the partition's version",
    },
    "broker_directory_states": _of(
        BROKER_PARTITIONS, "cluster_id broker_id directory_id captured_at state reason"
    )
    | {
        "partitions": "Number of partitions in this state",
        "first_partitions": "Up to ten of them, as TOPIC-PARTITION",
    },
    "stray_replicas": _of(
        BROKER_PARTITIONS,
        "cluster_id broker_id directory_id captured_at state topic_name topic_id partition_id kind "
        "leader_epoch",
    )
    | {"assigned_topic_id": "Id that the topic of that name has now; null: there is none"},
    "offline_directories": CLUSTER_ID
    | {
        "broker_id": "Broker of the directory",
        "directory_id": "Log directory",
        "directory_state": "offline, unknown, lost or unregistered",
        "registered_until": "Time until which its broker had registered it; null: never",
        "partitions": "Number of replicas in it",
        "leaderless": "Number of those whose partition has no leader",
        "only_copies": "Number of those of which no other replica is in ISR or ELR",
    },
    "upgrade_blockers": CLUSTER_ID
    | {
        "feature": "metadata.version, kraft.version, ...",
        "blocked_level": "Highest level that a registered node of the cluster supports",
        "finalized_level": "Finalized level; null: none, which means level 0",
        "kind": "broker or controller",
        "node_id": "Id of the node that does not support blocked_level",
        "fenced": "Whether the broker is fenced, and may be gone; null for controllers",
        "min_supported_version": "Lowest level that it registered; 0 if none",
        "max_supported_version": "Highest level that it registered; 0 if none",
        "commit_status": "Commit status of its registration: committed, uncommitted or undecided",
    },
    "config_changes": CLUSTER_ID
    | OFFSET
    | CHANGED_AT
    | _of(CONFIGS, "resource_type resource_name name")
    | {
        "before": "Value before; null if it was not set, or is a secret",
        "after": "Value after; null: deleted, or, if redacted, a secret",
        "redacted": "Whether the value is a secret",
        "record_type": "Type of the record that changed it; snapshot if only a snapshot shows the change",
    }
    | STATUS
    | AT_OR_BEFORE,
    "recreated_topics": CLUSTER_ID
    | _of(TOPICS, "topic_name topic_id")
    | {
        "offset": "Offset at which the topic was created again; at or before it unless is_exact",
        "created_at": "Time of offset",
        "topic_id_before": "Id of the deleted topic of the same name",
        "deleted_offset": "Offset at which that one was deleted; at or before it unless deleted_exact",
        "deleted_at": "Time of deleted_offset",
    }
    | STATUS
    | {
        "is_exact": "Whether a record shows the creation; false: only a snapshot does",
        "deleted_exact": "Whether a record shows the deletion; false: only a snapshot does",
    },
    "feature_changes": CLUSTER_ID
    | OFFSET
    | CHANGED_AT
    | _of(FEATURES, "name")
    | {
        "level_before": "Level before; null if it was not set, or is not known",
        "level": "Level after; null: removed",
    }
    | STATUS
    | {"record_offset": "Offset of the record that changed it; null if only a snapshot shows that"}
    | AT_OR_BEFORE,
    "zk_migrations": _of(RECORDS, "cluster_id offset")
    | CHANGED_AT
    | {
        "state": "NONE, PRE_MIGRATION, MIGRATION, POST_MIGRATION or ZK",
        "brokers_in_zk_mode": "Brokers registered as in ZooKeeper mode at that offset",
        "finished_early": "Whether POST_MIGRATION came while there were such brokers",
        "is_restart": "Whether an earlier state of a migration came after a later one",
    }
    | _of(LOG_RANGES, "commit_status"),
    "lost_records": _of(RECORDS, "cluster_id offset leader_epoch type appended_at")
    | _of(LOG_RANGES, "truncated_by_epoch evidence"),
    "partition_batches": CLUSTER_ID
    | _of(PARTITIONS, "topic_id")
    | {"offset": "Offset at which the first was created; at or before it unless is_exact"}
    | CHANGED_AT
    | {
        "partition_count": "Number of the partitions",
        "first_partition": "Their lowest id",
        "last_partition": "Their highest id",
        "replication_factor": "Number of replicas of partition 0; null if it is none of them",
        "with_topic": "Whether they were created with the topic; false: added to it later",
    }
    | STATUS
    | AT_OR_BEFORE,
    "admin_events": CLUSTER_ID
    | OFFSET
    | CHANGED_AT
    | {
        "operation": "What was done: create topic, alter config, delete ACL, ...",
        "resource_type": "TOPIC, PARTITION, BROKER, QUOTA, USER, TOKEN, FEATURE, ...",
        "subject": "Object of the operation as text: the topic, the topic and config, the quota and its "
        "key, ...",
        "before": "Previous value as text; null if there was none, or it is not known",
        "after": "New value as text; null if there is none",
    }
    | STATUS
    | AT_OR_BEFORE,
}

# Of each history (dashboards.history_views).
OF_HISTORIES: dict[str, Comments] = {
    f"{table.name}_{kind}": _of(table) for table in HISTORIES for kind in ("now", "committed")
}

VIEWS: dict[str, Comments] = QUORUM | METADATA | OF_HISTORIES

_VALIDITY = {"validity": "valid (proven), observed (reported by describe outputs), or undecided (possible)"}

# Of the table functions about the quorum (dashboards.quorum_functions).
FUNCTIONS: dict[str, Comments] = {
    "voters_at": _of(
        VOTER_SETS,
        "offset leader_epoch source voter_ids majority commit_status truncated_by_epoch in_force_from "
        "in_force_to in_force_from_exact in_force_to_exact",
    )
    | _VALIDITY
    | _of(VOTER_SETS, "observed_from observed_to evidence"),
    "leaders_at": _of(
        EPOCHS,
        "leader_epoch leader_id leader_source elected_at known_from known_to observed_from observed_to",
    )
    | _VALIDITY,
}
