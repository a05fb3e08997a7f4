"""What the captures prove: ranges, epochs, voter sets, watermarks, truncations, recovery advice."""

from __future__ import annotations

from transforms.lake.tables.columns import (
    AS_OF,
    COMMIT_STATUS,
    DIRECTORY_ID,
    EVIDENCE,
    NODE_ID,
    VOTERS_TYPE,
    WITHIN,
    of_clusters,
)
from transforms.lake.tables.declaration import Column, required

LOG_RANGES = of_clusters(
    "log_ranges",
    "A maximal range of offsets of one epoch with one commit status",
    ("leader_epoch", "first_offset"),
    required("leader_epoch", "INT", "Leader epoch"),
    required("first_offset", "BIGINT", "First offset, inclusive"),
    required("end_offset", "BIGINT", "End offset, exclusive"),
    required(*COMMIT_STATUS),
    EVIDENCE,
    AS_OF,
    Column("truncated_by_epoch", "INT", "Epoch that replaced truncated offsets"),
    recomputed=True,
)

REPLICA_RANGES = of_clusters(
    "replica_ranges",
    "A range of offsets of one epoch that a replica held in any of its captures",
    ("node_id", "directory_id", "leader_epoch", "first_offset"),
    NODE_ID,
    DIRECTORY_ID,
    required("leader_epoch", "INT", "Leader epoch"),
    required("first_offset", "BIGINT", "First offset, inclusive"),
    required("end_offset", "BIGINT", "End offset, exclusive"),
    Column("first_captured_at", "TIMESTAMP", "First capture that holds part of it"),
    Column("last_captured_at", "TIMESTAMP", "Last capture that holds part of it"),
    recomputed=True,
)

EPOCHS = of_clusters(
    "epochs",
    "A leader epoch",
    ("leader_epoch",),
    required("leader_epoch", "INT", "Leader epoch"),
    Column("leader_id", "INT", "Its leader, from leader_source; null if unknown"),
    Column("start_offset", "BIGINT", "First offset of the epoch"),
    Column("start_offset_exact", "BOOLEAN", "Whether the LEADER_CHANGE itself was captured"),
    Column("elected_at", "TIMESTAMP", "Timestamp of the LEADER_CHANGE: the leader's clock"),
    Column("voter_ids", "ARRAY<INT>", "Voters in the LEADER_CHANGE, by id, ascending"),
    Column("granting_voters", "ARRAY<INT>", "Voters that granted their vote, including the leader"),
    Column(
        "leaderless_ms",
        "BIGINT",
        "Upper bound of the time without a leader before it, in ms by the clocks of two leaders: from "
        "the last append below its LEADER_CHANGE to the LEADER_CHANGE; null if these were not captured",
    ),
    Column(
        "source",
        "STRING",
        "What shows the epoch: record (its LEADER_CHANGE), log (its batches or leader-epoch-checkpoint), "
        "snapshot, quorum-state or describe",
    ),
    Column(
        "leader_source",
        "STRING",
        "Source of leader_id: record proves it; quorum-state and describe only report it",
    ),
    Column(
        "known_from",
        "TIMESTAMP",
        "elected_at, else the earliest time at or before which it was elected; null if not bounded",
    ),
    Column(
        "known_to",
        "TIMESTAMP",
        "Time of its last captured batch, when its leader still led; null if none was captured",
    ),
    Column("observed_from", "TIMESTAMP", "Start of the first describe command that reported the leader"),
    Column("observed_to", "TIMESTAMP", "End of the last describe command that reported the leader"),
    Column(
        "previous_epoch",
        "INT",
        "Epoch of the offset below the LEADER_CHANGE in its log; null if no captured log shows it",
    ),
    recomputed=True,
)

VOTER_SETS = of_clusters(
    "voter_sets",
    "A set of voters and what the captures prove about it",
    ("offset", "leader_epoch", "source"),
    required(
        "offset",
        "BIGINT",
        "Offset of the VotersRecord; -1 for bootstrap; for an observed set, the lowest offset that its "
        "record can have, -1 if not bounded",
    ),
    required("leader_epoch", "INT", "Epoch of the record; for an observed set, that of the report"),
    required(
        "source",
        "STRING",
        "record, snapshot, static or bootstrap; describe or quorum-state: an observed set, which none "
        "of the others explains",
    ),
    Column("voters", VOTERS_TYPE, "The voters, by id"),
    Column("voter_ids", "ARRAY<INT>", "Their ids, ascending"),
    Column("majority", "INT", "Votes that make a majority"),
    Column("commit_status", "STRING", COMMIT_STATUS[2] + "; null for static and bootstrap"),
    EVIDENCE,
    AS_OF,
    Column("appended_at", "TIMESTAMP", f"Timestamp of the record: the leader's clock, {WITHIN}"),
    Column(
        "in_force_from_offset",
        "BIGINT",
        "Offset from which the set is in force, inclusive; null for observed sets",
    ),
    Column(
        "in_force_to_offset",
        "BIGINT",
        "Offset at which the next set replaced it; null for the last and for observed sets",
    ),
    Column(
        "in_force_from",
        "TIMESTAMP",
        "Time from which it was in force; at or before it unless in_force_from_exact",
    ),
    Column(
        "in_force_to",
        "TIMESTAMP",
        "Time until which it was in force; at or before it unless in_force_to_exact; null for the last",
    ),
    Column(
        "in_force_from_exact",
        "BOOLEAN",
        "Whether a record put it in force there; false if a snapshot, an election of a static quorum or "
        "a report shows it first: it was in force at or before",
    ),
    Column("in_force_to_exact", "BOOLEAN", "The same for the set that replaced it; null for the last"),
    Column("truncated_by_epoch", "INT", "Epoch that replaced a truncated record"),
    Column(
        "observed_from",
        "TIMESTAMP",
        "For an observed set: start of the first command that reported it, or earliest time of the copy",
    ),
    Column(
        "observed_to",
        "TIMESTAMP",
        "For an observed set: end of the last command that reported it, or latest time of the copy",
    ),
    recomputed=True,
)

VOTER_CHANGES = of_clusters(
    "voter_changes",
    "A difference between two successive voter sets",
    ("offset", "leader_epoch", "kind", "voter_id", "directory_id"),
    required("offset", "BIGINT", "Offset of the set that made the change"),
    required("leader_epoch", "INT", "Epoch of that set"),
    required("kind", "STRING", "bootstrapped, added, removed or updated"),
    required("voter_id", "INT", "The voter"),
    required("directory_id", "STRING", "Its directory id; the zero uuid when unknown"),
    Column("detail", "STRING", "What was updated, as text"),
    Column(
        "changed_at",
        "TIMESTAMP",
        "Timestamp of the record; the change was at or before it unless changed_exact",
    ),
    Column("commit_status", "STRING", "Status of the set that made the change"),
    Column("changed_exact", "BOOLEAN", "Whether a record shows the change; false: only a snapshot shows it"),
    recomputed=True,
)

HIGH_WATERMARKS = of_clusters(
    "high_watermarks",
    "A proof about the high watermark: a lower bound holds from as_of on, an upper bound up to as_of",
    ("evidence", "source", "as_of"),
    required("evidence", "STRING", "Kind of proof: snapshot, first_data_batch, log_ends, live, ..."),
    required("source", "STRING", "What it was derived from, as text"),
    required("as_of", "TIMESTAMP", "Time of the bound"),
    Column("leader_epoch", "INT", "Epoch that the proof refers to"),
    Column("lower_bound", "BIGINT", "The high watermark was at least this; null for an upper bound"),
    Column("upper_bound", "BIGINT", "The high watermark was at most this; null for a lower bound"),
    Column(
        "believed_bound",
        "BIGINT",
        "End offset that only the leader of an unlawful election considered committed",
    ),
    recomputed=True,
)

TRUNCATIONS = of_clusters(
    "truncations",
    "A truncation shown by two captures of a replica: offsets that it held and later no longer held",
    ("node_id", "directory_id", "first_offset", "end_offset", "truncated_by_epoch"),
    NODE_ID,
    DIRECTORY_ID,
    required("first_offset", "BIGINT", "First offset that was lost"),
    required("end_offset", "BIGINT", "End of what was lost, exclusive"),
    required("truncated_by_epoch", "INT", "Epoch whose batches replaced it"),
    Column("leader_epochs", "ARRAY<INT>", "Epochs of the lost batches"),
    Column("voter_set_offsets", "ARRAY<BIGINT>", "Offsets of the VotersRecords that were lost"),
    Column("lost_voter_changes", "STRING", "The voter changes that were lost, as text"),
    Column("held_at", "TIMESTAMP", "Last capture before it"),
    Column("lost_at", "TIMESTAMP", "First capture after it"),
    Column("held_capture_id", "STRING", "Capture that contains what was lost"),
    Column("lost_capture_id", "STRING", "Capture that contains what replaced it"),
    recomputed=True,
)

CANDIDATE_STRUCT = (
    "STRUCT<node_id: INT, directory_id: STRING, capture_id: STRING, captured_at: TIMESTAMP, "
    "captured_from: TIMESTAMP, time_source: STRING, last_leader_epoch: INT, "
    "log_end_offset: BIGINT, is_observer: BOOLEAN, led_last_epoch: BOOLEAN, "
    "voters_in_force: STRING, voters_offset: BIGINT, voters_status: STRING, loses: STRING, keeps: STRING>"
)

RECOVERIES = of_clusters(
    "recoveries",
    "Which replica to recover the cluster from, according to its captures",
    (),
    Column("as_of", "TIMESTAMP", "The advice covers everything committed by this time"),
    Column(
        "as_of_source",
        "STRING",
        "flag or capture.json: the earliest capture was made at as_of; newest timestamp in the log: at "
        "as_of or later",
    ),
    required("is_safe", "BOOLEAN", "Whether the best candidates hold every committed record"),
    required("why", "STRING", "Why it is safe, or what may be missing"),
    Column("best", f"ARRAY<{CANDIDATE_STRUCT}>", "Replicas with the best claim, all equal"),
    Column("others", f"ARRAY<{CANDIDATE_STRUCT}>", "The other replicas, and what each would lose"),
    Column("highest_epoch", "INT", "Highest epoch that any captured replica has seen"),
    recomputed=True,
)
