"""All histories of the metadata of some clusters: records in, versions of every kind of thing out.

Small kinds go together through one frame of events, which is kept, so that each of their tables costs one
small job; partitions, of which there are most, go through a frame of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transforms import history_brokers, history_partitions
from transforms.history_brokers import broker_events
from transforms.history_events import (
    ENVELOPE,
    KEPT,
    SMALL,
    TOPIC_CONFIGS,
    kept_events,
    said,
    value_columns,
    whole_events,
)
from transforms.history_line import LOADS, frame_of, line_records, load, with_floors
from transforms.history_partitions import partition_versions
from transforms.history_versions import ENDS, in_order, vanished, versions, without_repetition
from transforms.replays import Replay
from transforms.tables import BROKERS, CONFIGS, PARTITIONS, TOPICS, Table

CLEAR_ELR = "CLEAR_ELR_RECORD"
REMOVE_TOPIC = "REMOVE_TOPIC_RECORD"
THING = ("kind", "key")
STRUCTS = tuple(table.name for table in SMALL)
SMALL_COLUMNS = (
    "redacted",
    "topic",
    "remove_topic",
    "register_controller",
    "unregister_controller",
    "config",
    "access_control_entry",
    "remove_access_control_entry",
    "client_quota",
    "user_scram_credential",
    "remove_user_scram_credential",
    "delegation_token",
    "remove_delegation_token",
    "feature_level",
    "remove_feature_level",
    "producer_ids",
    "zk_migration_state",
    "clear_elr",
    *history_brokers.COLUMNS,
)


@dataclass(frozen=True, slots=True)
class Histories:
    """Versions from the offsets on at which the replays start, by table. changed: the names of tables of
    which anything is new."""

    changed: frozenset[str]
    small: DataFrame
    partitions: DataFrame

    def rows(self, table: Table) -> DataFrame:
        """The rows of one history."""
        if table is PARTITIONS:
            return self.partitions
        values = set(value_columns(table))
        columns = [F.col(f"{table.name}.{n}" if n in values else n) for n in table.names]
        return self.small.where(F.col("kind") == table.name).select(columns)


def histories(
    records: DataFrame,
    snapshot_records: DataFrame,
    kept: Mapping[str, DataFrame],
    replays: Sequence[Replay],
) -> Histories:
    """The histories of the replayed clusters.

    kept: by table, the versions that stand at the offset where their cluster's replay starts.
    """
    line = line_records(
        records,
        snapshot_records,
        replays,
        [*said(), *history_brokers.TYPES, CLEAR_ELR],
        SMALL_COLUMNS,
    )
    # Checkpoints, not caches: the plans of a dozen tables would each be made from the beginning.
    line = line.localCheckpoint()
    loads = jumps(replays, snapshot_records)
    events = small_events(line, kept, loads).localCheckpoint()
    of_partitions = line_records(
        records, snapshot_records, replays, history_partitions.TYPES, history_partitions.COLUMNS
    )
    fresh = events.where(F.col("batch_crc") != KEPT).select("kind")
    clears = line.where(F.col("record_type") == CLEAR_ELR)
    others = [of_partitions.select(F.lit(PARTITIONS.name)).limit(1), clears.select(F.lit(CLEAR_ELR)).limit(1)]
    kinds = {row[0] for row in fresh.union(others[0]).union(others[1]).distinct().collect()}
    small = versions(with_topic_configs(events), THING, STRUCTS, jumps=loads is not None).localCheckpoint()
    partitions = partition_versions(
        of_partitions,
        kept.get(PARTITIONS.name),
        topic_lives(events, loads is not None),
        clears.select(*ENVELOPE, "clear_elr.topic_name") if CLEAR_ELR in kinds else None,
        loads,
    )
    if kinds & {TOPICS.name, CLEAR_ELR}:
        kinds.add(PARTITIONS.name)
    if TOPICS.name in kinds:
        kinds.add(CONFIGS.name)
    return Histories(frozenset(kinds), small, partitions)


def jumps(replays: Sequence[Replay], snapshot_records: DataFrame) -> DataFrame | None:
    """The snapshots that take the place of a state known before, as envelopes; None where there are none."""
    spark = snapshot_records.sparkSession
    rows = [load(replay, c) for replay in replays for c in replay.checkpoints if c is not replay.steps[0]]
    if not rows:
        return None
    loads = (
        frame_of(spark, rows, LOADS)
        .withColumn("seq", F.col("end_offset") - 1)
        .withColumn("at", F.col("load_at"))
    )
    return with_floors(spark, loads, "seq", replays).select(
        "cluster_id",
        "seq",
        F.lit(0).cast("bigint").alias("batch_crc"),
        F.col("seq").alias("visible_offset"),
        F.col("at").alias("effective_at"),
        F.lit("committed").alias("commit_status"),
        F.lit(None).cast("bigint").alias("record_offset"),
        F.lit(None).cast("string").alias("record_type"),
        F.col("leader_epoch").alias("record_leader_epoch"),
        F.col("load_at").alias("appended_at"),
        F.col("seq").alias("known_from_offset"),
        F.lit(True).alias("loaded"),
    )


def small_events(line: DataFrame, kept: Mapping[str, DataFrame], loads: DataFrame | None) -> DataFrame:
    """Events of all kinds but partitions."""
    standing = kept_events(kept)
    brokers = None if standing is None else standing.where(F.col("kind") == BROKERS.name)
    of_brokers = broker_events(line, brokers if BROKERS.name in kept else None)
    events = whole_events(line).unionByName(of_brokers, allowMissingColumns=True)
    if standing is not None:
        others = standing.where(F.col("kind") != BROKERS.name)
        events = events.unionByName(others, allowMissingColumns=True)
    if loads is not None:
        events = events.unionByName(vanished(events, THING, loads))
    return events.select(*ENVELOPE, *THING, "present", *STRUCTS)


def with_topic_configs(events: DataFrame) -> DataFrame:
    """The events, and for each topic removed an end of each of its configs."""
    order = in_order(*THING)
    removed = (
        events.where(F.col("kind") == TOPICS.name)
        .withColumn("name", F.lag(F.when(F.col("present"), F.col("topics.name"))).over(order))
        .where((F.col("record_type") == REMOVE_TOPIC) & F.col("name").isNotNull())
        .select(*ENVELOPE, "name")
    )
    config = F.col(CONFIGS.name)
    keys = (
        events.where((F.col("kind") == CONFIGS.name) & (config["resource_type"] == TOPIC_CONFIGS))
        .select("cluster_id", config["resource_name"].alias("name"), "key")
        .distinct()
    )
    ends = removed.join(keys, ["cluster_id", "name"]).select(
        *ENVELOPE,
        F.lit(CONFIGS.name).alias("kind"),
        "key",
        F.lit(False).alias("present"),
        *[F.lit(None).cast(events.schema[name].dataType).alias(name) for name in STRUCTS],
    )
    return events.unionByName(ends)


def topic_lives(events: DataFrame, jumps: bool) -> DataFrame:
    """Each life of a topic under its id: from the event that made it to the one that ended it."""
    order = in_order("key")
    topics = events.where(F.col("kind") == TOPICS.name)
    if jumps:
        topics = without_repetition(topics, order, [TOPICS.name])
    return (
        topics.select(
            "cluster_id",
            "present",
            F.col("key")[0].alias("topic_id"),
            F.col("topics.name").alias("name"),
            F.col("seq").alias("topic_seq"),
            F.lead("seq").over(order).alias("end_seq"),
            F.lead("visible_offset").over(order).alias("end_offset"),
            F.lead("effective_at").over(order).alias("end_at"),
            F.lead(F.expr(ENDS)).over(order).alias("end_type"),
            F.lead("commit_status").over(order).alias("end_status"),
        )
        .where("present")
        .drop("present")
    )
