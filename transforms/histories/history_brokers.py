"""Brokers: registrations and their changes as events that tell all of a broker (kraft_core.image.brokers)."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from transforms.histories.history_events import (
    ENVELOPE,
    end_points,
    supported_features,
    value_columns,
    value_struct,
)
from transforms.histories.history_versions import in_order
from transforms.lake.tables import BROKERS

CHANGE = "BROKER_REGISTRATION_CHANGE_RECORD"
TYPES = (
    "REGISTER_BROKER_RECORD",
    "UNREGISTER_BROKER_RECORD",
    "FENCE_BROKER_RECORD",
    "UNFENCE_BROKER_RECORD",
    CHANGE,
)
COLUMNS = (
    "register_broker",
    "unregister_broker",
    "fence_broker",
    "unfence_broker",
    "broker_registration_change",
)
# What a change may name; the rest stays as it was registered.
CHANGING = ("fenced", "in_controlled_shutdown", "log_dirs", "cordoned_log_dirs")


def broker_events(line: DataFrame, kept: DataFrame | None) -> DataFrame:
    """Events of kind brokers, from records of the line and brokers that go on.

    A change counts only where its broker epoch is that of the registration, as in Kafka's replay; one that
    changes nothing makes no version, while fencing anew does.
    """
    told = spoken(line)
    if kept is not None:
        told = told.unionByName(kept_registrations(kept))
    order = in_order("broker_id")
    # Every registration, and every removal, begins a new life.
    lives = told.withColumn("life", F.sum(F.col("begins").cast("int")).over(order))
    life = in_order("broker_id", "life")
    registered = lives.withColumn("base", F.first("base").over(life))
    valid = registered.where("begins OR base.broker_epoch = changed_epoch")

    def latest(name: str) -> Column:
        return F.last(name, ignorenulls=True).over(life)

    merged = valid.select(
        *ENVELOPE,
        "broker_id",
        "life",
        "begins",
        F.col("base").isNotNull().alias("present"),
        "base",
        F.struct(*[F.coalesce(latest(name), F.col("base")[name]).alias(name) for name in CHANGING]).alias(
            "state"
        ),
    )
    changed = merged.withColumn("before", F.lag("state").over(life)).where(
        f"record_type <> '{CHANGE}' OR NOT (state <=> before)"
    )
    values = {
        name: F.col("state")[name] if name in CHANGING else F.col("base")[name]
        for name in value_columns(BROKERS)
    }
    return changed.select(
        *ENVELOPE,
        F.lit(BROKERS.name).alias("kind"),
        F.array(F.col("broker_id").cast("string")).alias("key"),
        "present",
        F.when(F.col("present"), value_struct(BROKERS, values)).alias(BROKERS.name),
    )


def spoken(line: DataFrame) -> DataFrame:
    """What each record says: base (all of a registration), or the epoch it speaks of and what it changes."""
    register, change = F.col("register_broker"), F.col("broker_registration_change")
    log_dirs = F.sort_array(change["log_dirs"])
    # A record of an older version lacks what later ones may change.
    flag, shutdown = (F.coalesce(change[name], F.lit(0)) for name in ("fenced", "in_controlled_shutdown"))
    type_ = F.col("record_type")
    return (
        line.where(type_.isin(*TYPES))
        .where(F.greatest(*[F.col(name).isNotNull() for name in COLUMNS]))
        .where((type_ != CHANGE) | (flag.between(-1, 1) & shutdown.between(0, 1)))
        .select(
            *ENVELOPE,
            F.coalesce(
                register["broker_id"],
                F.col("unregister_broker.broker_id"),
                F.col("fence_broker.id"),
                F.col("unfence_broker.id"),
                change["broker_id"],
            ).alias("broker_id"),
            (register.isNotNull() | F.col("unregister_broker").isNotNull()).alias("begins"),
            F.when(register.isNotNull(), value_struct(BROKERS, registration())).alias("base"),
            F.coalesce(
                F.col("fence_broker.epoch"), F.col("unfence_broker.epoch"), change["broker_epoch"]
            ).alias("changed_epoch"),
            F.coalesce(
                F.when((type_ == TYPES[2]) | (flag == 1), F.lit(True)),
                F.when((type_ == TYPES[3]) | (flag == -1), F.lit(False)),
            ).alias("fenced"),
            F.when(shutdown == 1, F.lit(True)).alias("in_controlled_shutdown"),
            F.when(F.size(log_dirs) > 0, log_dirs).alias("log_dirs"),
            change["cordoned_log_dirs"].alias("cordoned_log_dirs"),
        )
    )


def registration() -> dict[str, Column]:
    register = F.col("register_broker")
    plain = {name: register[name] for name in ("broker_id", "broker_epoch", "incarnation_id", "rack")}
    return plain | {
        "end_points": end_points(register["end_points"]),
        "features": supported_features(register["features"]),
        "fenced": register["fenced"],
        "in_controlled_shutdown": F.coalesce(register["in_controlled_shutdown"], F.lit(False)),
        "is_migrating_zk_broker": F.coalesce(register["is_migrating_zk_broker"], F.lit(False)),
        "log_dirs": F.sort_array(F.coalesce(register["log_dirs"], F.array().cast("array<string>"))),
        "cordoned_log_dirs": register["cordoned_log_dirs"],
    }


def kept_registrations(kept: DataFrame) -> DataFrame:
    """Brokers that go on (events of kind brokers) as registrations."""
    base = F.col(BROKERS.name)
    return kept.select(
        *ENVELOPE,
        base["broker_id"].alias("broker_id"),
        F.lit(True).alias("begins"),
        base.alias("base"),
        F.lit(None).cast("bigint").alias("changed_epoch"),
        F.lit(None).cast("boolean").alias("fenced"),
        F.lit(None).cast("boolean").alias("in_controlled_shutdown"),
        F.lit(None).cast("array<string>").alias("log_dirs"),
        F.lit(None).cast("array<string>").alias("cordoned_log_dirs"),
    )
