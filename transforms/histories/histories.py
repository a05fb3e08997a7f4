"""Histories of all kinds but partitions by SQL: records in, versions of every kind of thing out.

For what is too much to be replayed record by record (replayed_histories). The kinds go together
through one frame of events, which is kept, so that each table costs one small job.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from transforms.histories import history_brokers
from transforms.histories.history_brokers import broker_events
from transforms.histories.history_events import (
    ENVELOPE,
    KEPT,
    SMALL,
    TOPIC_CONFIGS,
    kept_events,
    said,
    value_columns,
    whole_events,
)
from transforms.histories.history_line import LOADS, frame_of, line_records, load, with_load_envelope
from transforms.histories.history_versions import in_order, vanished, versions
from transforms.histories.replay_plan import ReplayPlan
from transforms.lake.tables import BROKERS, CONFIGS, TOPICS, Table

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
    *history_brokers.COLUMNS,
)


@dataclass(frozen=True, slots=True)
class Histories:
    """Versions from the offsets on at which the replays start. changed: the names of tables of which anything
    is new."""

    changed: frozenset[str]
    versions: DataFrame

    def rows(self, table: Table) -> DataFrame:
        """The rows of one history."""
        values = set(value_columns(table))
        columns = [F.col(f"{table.name}.{n}" if n in values else n) for n in table.names]
        return self.versions.where(F.col("kind") == table.name).select(columns)


def histories(
    records: DataFrame,
    snapshot_records: DataFrame,
    kept: Mapping[str, DataFrame],
    replays: Sequence[ReplayPlan],
) -> Histories:
    """The histories of the replayed clusters.

    kept: by table, the versions that stand at the offset where their cluster's replay starts.
    """
    types = [*said(), *history_brokers.TYPES]
    line = line_records(records, snapshot_records, replays, types, SMALL_COLUMNS)
    # Checkpoints, not caches: the plans of a dozen tables would each be made from the beginning.
    line = line.localCheckpoint()
    loads = jumps(replays, snapshot_records)
    events = small_events(line, kept, loads).localCheckpoint()
    fresh = events.where(F.col("batch_crc") != KEPT).select("kind").distinct()
    kinds = {row["kind"] for row in fresh.collect()}
    found = versions(with_topic_configs(events), THING, STRUCTS, jumps=loads is not None).localCheckpoint()
    if TOPICS.name in kinds:
        kinds.add(CONFIGS.name)
    return Histories(frozenset(kinds), found)


def jumps(replays: Sequence[ReplayPlan], snapshot_records: DataFrame) -> DataFrame | None:
    """The snapshots that take the place of a state known before, as envelopes; None where there are none."""
    spark = snapshot_records.sparkSession
    rows = [load(replay, c) for replay in replays for c in replay.checkpoints if c is not replay.steps[0]]
    if not rows:
        return None
    loads = with_load_envelope(spark, frame_of(spark, rows, LOADS), replays)
    return (
        loads.withColumn("batch_crc", F.lit(0).cast("bigint"))
        .withColumn("record_type", F.lit(None).cast("string"))
        .select(*ENVELOPE)
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
