"""What derive() gives: one dataclass a table, its fields the table's columns.

Times are ms since the epoch; first_offset is inclusive, end_offset exclusive; None is SQL's null. A row's
key is unique in the result, so equal facts give equal tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kraft_core.evidence.commit import Status


@dataclass(frozen=True, slots=True)
class LogRange:
    """A maximal run of offsets of one epoch with one status. Key: leader_epoch, first_offset."""

    cluster_id: str
    leader_epoch: int
    first_offset: int
    end_offset: int
    commit_status: Status
    evidence: str
    as_of: int | None
    truncated_by_epoch: int | None


@dataclass(frozen=True, slots=True)
class ReplicaRange:
    """A run of offsets of one epoch that a replica held, over its captures. Key: all but the times."""

    cluster_id: str
    node_id: int
    directory_id: str
    leader_epoch: int
    first_offset: int
    end_offset: int
    first_captured_at: int
    last_captured_at: int


EpochSource = Literal["record", "log", "snapshot", "quorum-state", "describe"]
LeaderSource = Literal["record", "quorum-state", "describe"]


@dataclass(frozen=True, slots=True)
class EpochRow:
    """A leader epoch. Key: leader_epoch.

    start_offset: exact where the LEADER_CHANGE was captured, else at or above the true one; None if unknown.
    leaderless_ms: how long there was no leader, at most: from the last append below the LEADER_CHANGE to it,
    by two leaders' clocks; None where these records were not captured.
    source: the best that shows the epoch. leader_source: what names the leader, None where nothing does; only
    a record proves it. known_from: the leader was elected at or before; known_to: its last captured batch;
    None where nothing bounds it. observed_from, observed_to: from the start of the first to the end of the
    last describe command that reported it. previous_epoch: of the offset below its first; None where no
    captured log shows it.
    """

    cluster_id: str
    leader_epoch: int
    leader_id: int | None
    start_offset: int | None
    start_offset_exact: bool
    elected_at: int | None
    voter_ids: tuple[int, ...] | None
    granting_voters: tuple[int, ...] | None
    leaderless_ms: int | None
    source: EpochSource
    leader_source: LeaderSource | None = None
    known_from: int | None = None
    known_to: int | None = None
    observed_from: int | None = None
    observed_to: int | None = None
    previous_epoch: int | None = None


@dataclass(frozen=True, slots=True)
class EndpointRow:
    """A voter's listener."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class VoterRow:
    """A voter in a set. kraft versions are inclusive; None in a static set, which does not know them."""

    voter_id: int
    directory_id: str
    endpoints: tuple[EndpointRow, ...]
    min_kraft_version: int | None
    max_kraft_version: int | None


SetSource = Literal["record", "snapshot", "static", "bootstrap"]
ObservedSource = Literal["describe", "quorum-state"]


@dataclass(frozen=True, slots=True)
class VoterSetRow:
    """A voter set. Key: offset, leader_epoch, source.

    commit_status, as_of: None for static and bootstrap sets. in_force_*: on the set's own line of the log;
    of a truncated set until the end of what was truncated with it. Where in_force_from_exact is False a
    snapshot, or a LEADER_CHANGE under a static configuration, shows the set first: it was in force at or
    before; likewise in_force_to_exact, None while it is in force.
    observed_from, observed_to: of a set that is only observed (findings.observed_quorum), else None; its
    place in the log is not known.
    """

    cluster_id: str
    offset: int
    leader_epoch: int
    source: SetSource | ObservedSource
    voters: tuple[VoterRow, ...]
    voter_ids: tuple[int, ...]
    majority: int
    commit_status: Status | None
    evidence: str
    as_of: int | None
    appended_at: int | None
    in_force_from_offset: int | None
    in_force_to_offset: int | None
    in_force_from: int | None
    in_force_to: int | None
    in_force_from_exact: bool
    in_force_to_exact: bool | None
    truncated_by_epoch: int | None
    observed_from: int | None = None
    observed_to: int | None = None


@dataclass(frozen=True, slots=True)
class VoterChangeRow:
    """A difference between two successive sets. Key: offset, leader_epoch, kind, voter_id, directory_id.

    changed_exact: False where only a snapshot shows it: it happened at or before changed_at.
    """

    cluster_id: str
    offset: int
    leader_epoch: int
    kind: Literal["bootstrapped", "added", "removed", "updated"]
    voter_id: int
    directory_id: str
    detail: str | None
    changed_at: int | None
    commit_status: Status | None
    changed_exact: bool


@dataclass(frozen=True, slots=True)
class HighWatermarkRow:
    """One proof about the high watermark. Key: evidence, source, as_of. describe: see findings.describe.

    live: what a leader answered to kraftlake follow. A lower bound holds from as_of on, an upper bound up to
    as_of. believed_bound: what only the leader of an unlawful election considered committed. One of the three
    is set.
    """

    cluster_id: str
    evidence: Literal["snapshot", "first_data_batch", "voters_record", "log_ends", "describe", "live"]
    source: str
    as_of: int
    leader_epoch: int | None
    lower_bound: int | None
    upper_bound: int | None
    believed_bound: int | None


@dataclass(frozen=True, slots=True)
class ClusterEvidence:
    """Everything that one cluster's captures prove, each list in the order of its key."""

    log_ranges: list[LogRange]
    replica_ranges: list[ReplicaRange]
    epochs: list[EpochRow]
    voter_sets: list[VoterSetRow]
    voter_changes: list[VoterChangeRow]
    high_watermarks: list[HighWatermarkRow]
