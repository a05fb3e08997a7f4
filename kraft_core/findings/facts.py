"""What the rules read beside kraft_core.evidence.facts: the lake finds it by queries.

All of it is rare: it grows with faults, not with batches. Times are ms since the epoch; offsets
first_ inclusive, end_ exclusive; a directory id is Kafka's text of the uuid, the zero uuid where unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from kraft_core.format.segment import OrderFaultKind

Holder = tuple[int, str]
"""(node id, directory id) of a replica."""


@dataclass(frozen=True, slots=True, order=True)
class BatchCopy:
    """One of several different batches of one epoch that hold an offset, and which replicas held it."""

    end_offset: int
    crc: int
    size_bytes: int
    held_by: tuple[Holder, ...]


# At most this many refused records of a cluster, and batches out of order of a capture, are facts: the first.
MOST_REFUSED, MOST_ORDER_FAULTS = 1000, 1000
# Of an epoch in which batches differ, the conflicts at this many of the lowest base offsets are facts.
MAX_CONFLICTS = 16


@dataclass(frozen=True, slots=True, order=True)
class BatchConflict:
    """Captured batches of one epoch that hold base_offset and differ (by end, crc or size).

    They begin there, or one of them below.
    """

    leader_epoch: int
    base_offset: int
    copies: tuple[BatchCopy, ...]


@dataclass(frozen=True, slots=True, order=True)
class LogOrderFault:
    """A batch that does not follow the one before it in a captured log (kraft_core.format.segment).

    offset, leader_epoch: of the batch. expected: the lowest offset (for an epoch_regression, epoch) that
    would be in order. Judged over all segments of a directory: a log begins at the offset in its first
    segment's name.
    """

    capture_id: str
    offset: int
    leader_epoch: int
    kind: OrderFaultKind
    expected: int

    @property
    def held_twice(self) -> tuple[int, int] | None:
        """The offsets that two batches of the log hold, end exclusive, of an overlap.

        One of them is at wrong offsets: no CRC covers where a batch begins.
        """
        return (self.offset, self.expected) if self.kind == "overlap" else None


@dataclass(frozen=True, slots=True)
class UnreadableBytes:
    """Bytes of a captured file that could not be read, or were not used.

    lost_from_offset: the first offset that may have been there. lost_to_offset: of the next batch read, None
    at the end of the file. Both None for files that are not segments.
    supplied_by: ids of the captures of the same replica that hold what was lost, () where none does.
    """

    capture_id: str
    file: str
    position: int
    size_bytes: int
    reason: str
    lost_from_offset: int | None
    lost_to_offset: int | None
    supplied_by: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, order=True)
class SnapshotDeviation:
    """Something in which a checkpoint differs from the replay of the log up to its end (rule 22).

    Only unlawful ones of kraft_core.image.snapshot_check. kind: of tables.KINDS; subject: its key in words.
    is_missing, is_extra: the checkpoint lacks it, or has it and the log does not. explanation: the known
    fault of Kafka that causes it, "" if there is none.
    """

    end_offset: int
    leader_epoch: int
    content_digest: str
    kind: str
    subject: str
    is_missing: bool
    is_extra: bool
    explanation: str


@dataclass(frozen=True, slots=True, order=True)
class ReplayRefusal:
    """A record that Kafka refuses to replay (rule 49); nothing that may explain it was missing in the replay.

    cause, subject, reason, by_controllers_only: of kraft_core.image.change.Refusal. It was replayed onto the
    checkpoint base_end_offset, base_content_digest (0, "": onto nothing) and the log with log_digest
    (snapshot_replays.digest_of), which ends with it. One of that checkpoint itself has its last offset.
    """

    offset: int
    leader_epoch: int
    type: str
    cause: str
    subject: str
    reason: str
    by_controllers_only: bool
    commit_status: str
    base_end_offset: int
    base_content_digest: str
    log_digest: str

    @property
    def is_in_checkpoint(self) -> bool:
        return self.offset < self.base_end_offset


@dataclass(frozen=True, slots=True)
class Observation:
    """What kafka-metadata-quorum describe printed of a quorum or of one replica: see findings.describe.

    kind: status has one Observation per output: node_id is the leader, high_watermark what it reported (None:
    -1, unknown), voters and observers as (node id, directory id). replication has one per replica: its
    log_end_offset (of others than the leader their last fetch offset, None: unknown), lag_records,
    last_fetch_at, last_caught_up_at (None: unknown or, in human-readable outputs, not printed to the ms) and
    its status: Leader, Follower or Observer.
    cluster_id: None if the output does not print it.
    source: the output's name. observed_from, observed_to: it was true at one moment between these.
    """

    cluster_id: str | None
    source: str
    observed_from: int
    observed_to: int
    kind: Literal["status", "replication"]
    node_id: int
    directory_id: str
    status: str
    leader_epoch: int | None = None
    high_watermark: int | None = None
    log_end_offset: int | None = None
    lag_records: int | None = None
    last_fetch_at: int | None = None
    last_caught_up_at: int | None = None
    voters: tuple[Holder, ...] = ()
    observers: tuple[Holder, ...] = ()


@dataclass(frozen=True, slots=True, order=True)
class OtherLife:
    """Another history of the cluster's id (rule 47): its own name, and what its captures are.

    cluster_id: as the tables name it; kafka_cluster_id: of meta.properties. captures: how many.
    last_appended_at: of its newest record (ms), None where its captures hold none.
    """

    cluster_id: str
    kafka_cluster_id: str
    captures: int
    nodes: tuple[int, ...]
    last_appended_at: int | None


@dataclass(frozen=True, slots=True, order=True)
class UnassignedReplica:
    """A partition that a broker's log directory held at captured_at (ms), where the metadata did not place it
    (rule 52).

    state: of table broker_partitions, one of broker_rules.EFFECTS.
    """

    broker_id: int
    directory_id: str
    captured_at: int
    topic_name: str
    partition_id: int
    topic_id: str
    state: str


@dataclass(frozen=True, slots=True)
class RuleFacts:
    """Everything of one cluster that the rules read beside its ClusterFacts. Order carries no meaning."""

    batch_conflicts: tuple[BatchConflict, ...] = ()
    order_faults: tuple[LogOrderFault, ...] = ()
    unreadable: tuple[UnreadableBytes, ...] = ()
    snapshot_deviations: tuple[SnapshotDeviation, ...] = ()
    observations: tuple[Observation, ...] = ()
    replay_refusals: tuple[ReplayRefusal, ...] = ()
    other_lives: tuple[OtherLife, ...] = ()
    unassigned_replicas: tuple[UnassignedReplica, ...] = ()


def distinct(facts: RuleFacts) -> RuleFacts:
    """The same facts in one order, each once."""
    return RuleFacts(
        tuple(sorted(set(facts.batch_conflicts))),
        tuple(sorted(set(facts.order_faults))),
        tuple(sorted(set(facts.unreadable), key=repr)),
        tuple(sorted(set(facts.snapshot_deviations))),
        tuple(sorted(set(facts.observations), key=repr)),
        tuple(sorted(set(facts.replay_refusals))),
        tuple(sorted(set(facts.other_lives), key=repr)),
        tuple(sorted(set(facts.unassigned_replicas))),
    )
