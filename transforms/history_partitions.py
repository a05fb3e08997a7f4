"""Partitions: registrations and partial changes merged along each partition (kraft_core.image.partitions).

Sums and last non-null values over one ordering of a partition's events: nothing is sorted twice. That a
change names as many directories as there are replicas is taken for granted: Kafka's replay ends at another.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from kraft_core.image import names
from transforms.history_events import ENVELOPE, kept_envelope, value_columns, word
from transforms.history_versions import in_order, vanished, versions
from transforms.tables import PARTITIONS

TYPES = ("PARTITION_RECORD", "PARTITION_CHANGE_RECORD")
COLUMNS = ("partition", "partition_change")
THING = ("topic_id", "topic_seq", "partition_id")
LISTS = (
    "replicas",
    "isr",
    "removing_replicas",
    "adding_replicas",
    "eligible_leader_replicas",
    "last_known_elr",
    "directories",
)
NO_LEADER_CHANGE, NO_STATE_CHANGE = -2, -1
VALUES = tuple(value_columns(PARTITIONS))


def partition_versions(
    line: DataFrame,
    kept: DataFrame | None,
    topics: DataFrame,
    clears: DataFrame | None,
    loads: DataFrame | None,
) -> DataFrame:
    """Rows of PARTITIONS from the records of the line, and from versions that go on.

    topics: every life of a topic (topic_id, name, topic_seq, and end_seq, end_offset, end_at, end_type,
    end_status, null while it lives); what lies outside of one is no partition. clears: events (topic_name,
    ENVELOPE) of ELRs cleared. loads: snapshots that take the place of what was known (ENVELOPE).
    """
    told = spoken(line)
    if kept is not None:
        told = told.unionByName(standing(kept))
    in_topic = (
        (F.col("told.cluster_id") == F.col("topic.cluster_id"))
        & (F.col("told.topic_id") == F.col("topic.topic_id"))
        & (F.col("told.seq") >= F.col("topic.topic_seq"))
        & (F.col("topic.end_seq").isNull() | (F.col("told.seq") < F.col("topic.end_seq")))
    )
    owned = (
        told.alias("told")
        .join(topics.alias("topic"), in_topic)
        .select("told.*", F.col("topic.name").alias("topic_name"), "topic.topic_seq", *END)
    )
    if clears is not None:
        owned = owned.unionByName(cleared(owned, clears))
    if loads is not None:
        gone = vanished(owned, THING, loads, along=("topic_name", *END)).withColumn("says", F.lit("gone"))
        owned = owned.unionByName(gone.where("end_seq IS NULL OR seq < end_seq"))
    states = merged(owned, with_clears=clears is not None, with_gone=loads is not None)
    found = versions(states, THING, VALUES, jumps=loads is not None, end="end")
    return found.select(PARTITIONS.names)


END = ("end_seq", "end_offset", "end_at", "end_type", "end_status")


def spoken(line: DataFrame) -> DataFrame:
    """What each record says; `says` is all (a registration), change, clear or gone."""
    whole, change = F.col("partition"), F.col("partition_change")
    is_whole = F.col("record_type") == "PARTITION_RECORD"
    state = F.when(is_whole, whole["leader_recovery_state"]).otherwise(
        F.nullif(change["leader_recovery_state"], F.lit(NO_STATE_CHANGE).cast("tinyint"))
    )
    empty = F.array().cast("array<int>")

    def said(name: str) -> Column:
        of_whole = whole[name]
        if name in ("eligible_leader_replicas", "last_known_elr"):
            of_whole = F.coalesce(of_whole, empty)
        if name == "directories":
            of_whole = F.coalesce(of_whole, F.array().cast("array<string>"))
        return F.when(is_whole, of_whole).otherwise(change[name])

    return (
        line.where(F.col("record_type").isin(*TYPES) & (whole.isNotNull() | change.isNotNull()))
        .where(state.isNull() | state.isin(*names.LEADER_RECOVERY_STATES))
        .select(
            *ENVELOPE,
            said("topic_id").alias("topic_id"),
            said("partition_id").alias("partition_id"),
            F.when(is_whole, "all").otherwise("change").alias("says"),
            *[said(name).alias(name) for name in LISTS],
            F.when(is_whole, whole["leader"])
            .otherwise(F.nullif(change["leader"], F.lit(NO_LEADER_CHANGE)))
            .alias("leader"),
            word(names.LEADER_RECOVERY_STATES, state).alias("leader_recovery_state"),
            whole["leader_epoch"].alias("leader_epoch"),
            whole["partition_epoch"].alias("partition_epoch"),
        )
    )


def standing(kept: DataFrame) -> DataFrame:
    """Versions that go on (rows of PARTITIONS), as registrations."""
    plain = ("topic_id", "partition_id", *LISTS, "leader", "leader_recovery_state")
    return kept.select(
        *kept_envelope(), *plain, "leader_epoch", "partition_epoch", F.lit("all").alias("says")
    )


def cleared(owned: DataFrame, clears: DataFrame) -> DataFrame:
    """For each record that clears ELRs an event of every partition of its topic that may have one."""
    may_have = (
        owned.where("size(eligible_leader_replicas) > 0 OR size(last_known_elr) > 0")
        .select("cluster_id", *THING, "topic_name", *END)
        .distinct()
    )
    events = clears.withColumnRenamed("topic_name", "named")
    hit = (
        may_have.join(F.broadcast(events), "cluster_id")
        .where((F.col("named") == "") | (F.col("named") == F.col("topic_name")))
        .where((F.col("seq") > F.col("topic_seq")) & F.expr("end_seq IS NULL OR seq < end_seq"))
        .drop("named")
    )
    empty = F.array().cast("array<int>")
    fields = {f.name: f.dataType for f in owned.schema.fields}
    given = {"says": F.lit("clear"), "eligible_leader_replicas": empty, "last_known_elr": empty}
    return hit.select(
        *[
            F.col(name) if name in hit.columns else given.get(name, F.lit(None)).cast(type_).alias(name)
            for name, type_ in fields.items()
        ]
    )


def merged(owned: DataFrame, with_clears: bool, with_gone: bool) -> DataFrame:
    """Each event with all of the partition after it; changes of what is not there are left out."""
    order = in_order(*THING)
    whole, gone = F.col("says") == "all", F.col("says") == "gone"

    def latest(name: str) -> Column:
        return F.last(name, ignorenulls=True).over(order)

    if with_clears:
        before = order.rowsBetween(Window.unboundedPreceding, -1)
        had = [
            F.size(F.last(name, ignorenulls=True).over(before)) > 0
            for name in ("eligible_leader_replicas", "last_known_elr")
        ]
        owned = owned.withColumn("hits", (F.col("says") != "clear") | had[0] | had[1]).where("hits")
    elected = (~whole & F.col("leader").isNotNull()).cast("int")
    counted = owned.select(
        "*",
        F.sum(elected).over(order).alias("elections"),
        F.sum((~whole).cast("int")).over(order).alias("changes"),
        F.last(F.when(whole, True).when(gone, False), ignorenulls=True).over(order).alias("present"),
    )
    directories = latest("directories")
    migrating = F.lit(names.MIGRATING_DIRECTORY)
    unassigned = F.forall(directories, lambda directory: directory == migrating)
    states = counted.select(
        *ENVELOPE,
        *THING,
        "topic_name",
        *END,
        "present",
        *[latest(name).alias(name) for name in LISTS if name != "directories"],
        F.when(unassigned, F.array_repeat(migrating, F.size(latest("replicas"))))
        .otherwise(directories)
        .alias("directories"),
        latest("leader").alias("leader"),
        latest("leader_recovery_state").alias("leader_recovery_state"),
        (
            F.last(F.col("leader_epoch") - F.col("elections"), ignorenulls=True).over(order)
            + F.col("elections")
        )
        .cast("int")
        .alias("leader_epoch"),
        (F.last(F.col("partition_epoch") - F.col("changes"), ignorenulls=True).over(order) + F.col("changes"))
        .cast("int")
        .alias("partition_epoch"),
    )
    return states.where("present" if not with_gone else "present OR record_type = 'snapshot'")
