"""Records as events of the histories: what a record of each type says of which thing, kinds side by side.

An event has an envelope (ENVELOPE), a kind, a key (its parts as text), `present` (false: the thing is gone)
and one struct a kind with the values of the thing, null in events of other kinds. Brokers, whose records tell
changes only, have events of their own (history_brokers); partitions go by columns (partition_columns).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kraft_core.image import names
from transforms.lake.tables import (
    ACLS,
    BROKERS,
    CLIENT_QUOTAS,
    CONFIGS,
    CONTROLLERS,
    DELEGATION_TOKENS,
    FEATURES,
    HISTORIES,
    PARTITIONS,
    PRODUCER_IDS,
    SCRAM_USERS,
    TOPICS,
    VERSION,
    ZK_MIGRATION_STATES,
    Table,
)

# seq: place in the log, a snapshot's last offset for what it holds. visible_offset and effective_at: from
# when the event shows. loaded: told by a snapshot, not by the log.
ENVELOPE = (
    "cluster_id",
    "seq",
    "batch_crc",
    "visible_offset",
    "effective_at",
    "commit_status",
    "record_offset",
    "record_type",
    "record_leader_epoch",
    "appended_at",
    "known_from_offset",
    "loaded",
)
# In place of the CRC of a batch: the event is a version of an earlier run that goes on.
KEPT = -1
# A topic's own configs go with it.
TOPIC_CONFIGS = names.CONFIG_RESOURCE_TYPES[2]
VERSION_COLUMNS = tuple(c.name for c in VERSION)


@dataclass(frozen=True, slots=True)
class Said:
    """What a record of one type says: the key of the thing, its values, and whether it is gone by it."""

    kind: str
    key: tuple[Column, ...]
    values: Mapping[str, Column]
    gone: Column


def word(words: Mapping[int, str], number: Column) -> Column:
    """Kafka's word for a number, as names.word has it."""
    known = F.create_map(*[F.lit(item) for pair in words.items() for item in pair])
    number = number.cast("int")
    unknown = F.concat(F.lit("UNKNOWN("), number.cast("string"), F.lit(")"))
    return F.when(number.isNotNull(), F.coalesce(F.element_at(known, number), unknown))


def end_points(given: Column) -> Column:
    """Listeners by name, as the tables have them."""
    return F.sort_array(
        F.transform(
            given,
            lambda point: F.struct(
                point["name"].alias("name"),
                point["host"].alias("host"),
                point["port"].cast("int").alias("port"),
                word(names.SECURITY_PROTOCOLS, point["security_protocol"]).alias("security_protocol"),
            ),
        )
    )


def supported_features(given: Column) -> Column:
    """Feature ranges by name, as the tables have them."""
    return F.sort_array(
        F.transform(
            given,
            lambda feature: F.struct(
                feature["name"].alias("name"),
                feature["min_supported_version"].alias("min_supported_version"),
                feature["max_supported_version"].alias("max_supported_version"),
            ),
        )
    )


def entity_parts(given: Column) -> Column:
    return F.sort_array(
        F.transform(
            given,
            lambda part: F.struct(
                part["entity_type"].alias("entity_type"), part["entity_name"].alias("entity_name")
            ),
        )
    )


def entity_name(given: Column) -> Column:
    """A quota's entity in words: client-id=c1,user=<default>."""
    parts = F.transform(
        entity_parts(given),
        lambda part: F.concat(
            part["entity_type"], F.lit("="), F.coalesce(part["entity_name"], F.lit("<default>"))
        ),
    )
    return F.when(given.isNotNull(), F.concat_ws(",", parts))


def said() -> dict[str, Said]:
    """What records say, by record type. Needs a session: columns are Spark's."""

    def take(struct: str, *columns: str, **more: Column) -> dict[str, Column]:
        return {name: F.col(struct)[name] for name in columns} | more

    never, always = F.lit(False), F.lit(True)
    config = take(
        "config",
        "resource_name",
        "name",
        "value",
        resource_type=word(names.CONFIG_RESOURCE_TYPES, F.col("config.resource_type")),
        redacted=F.col("redacted"),
    )
    quota_name = entity_name(F.col("client_quota.entity"))
    scram = F.col("credential")
    mechanism = word(names.SCRAM_MECHANISMS, scram["mechanism"])
    level = F.coalesce(F.col("feature_level.feature_level"), F.col("feature_level.max_feature_level"))
    level_name = F.col("feature_level.name")
    zk_state = F.col("zk_migration_state.zk_migration_state")
    return {
        "TOPIC_RECORD": Said(
            TOPICS.name, (F.col("topic.topic_id"),), take("topic", "topic_id", "name"), never
        ),
        "REMOVE_TOPIC_RECORD": Said(TOPICS.name, (F.col("remove_topic.topic_id"),), {}, always),
        "REGISTER_CONTROLLER_RECORD": Said(
            CONTROLLERS.name,
            (F.col("register_controller.controller_id"),),
            take(
                "register_controller",
                "controller_id",
                "incarnation_id",
                "zk_migration_ready",
                end_points=end_points(F.col("register_controller.end_points")),
                features=supported_features(F.col("register_controller.features")),
            ),
            never,
        ),
        "UNREGISTER_CONTROLLER_RECORD": Said(
            CONTROLLERS.name, (F.col("unregister_controller.controller_id"),), {}, always
        ),
        "CONFIG_RECORD": Said(
            CONFIGS.name,
            (config["resource_type"], config["resource_name"], config["name"]),
            config,
            F.col("config.value").isNull() & ~F.col("redacted"),
        ),
        "ACCESS_CONTROL_ENTRY_RECORD": Said(
            ACLS.name,
            (F.col("access_control_entry.id"),),
            take(
                "access_control_entry",
                "id",
                "resource_name",
                "principal",
                "host",
                resource_type=word(names.ACL_RESOURCE_TYPES, F.col("access_control_entry.resource_type")),
                pattern_type=word(names.PATTERN_TYPES, F.col("access_control_entry.pattern_type")),
                operation=word(names.ACL_OPERATIONS, F.col("access_control_entry.operation")),
                permission_type=word(
                    names.ACL_PERMISSION_TYPES, F.col("access_control_entry.permission_type")
                ),
            ),
            never,
        ),
        "REMOVE_ACCESS_CONTROL_ENTRY_RECORD": Said(
            ACLS.name, (F.col("remove_access_control_entry.id"),), {}, always
        ),
        "CLIENT_QUOTA_RECORD": Said(
            CLIENT_QUOTAS.name,
            (quota_name, F.col("client_quota.key")),
            take(
                "client_quota",
                "key",
                "value",
                entity_name=quota_name,
                entity=entity_parts(F.col("client_quota.entity")),
            ),
            F.col("client_quota.remove"),
        ),
        "USER_SCRAM_CREDENTIAL_RECORD": Said(
            SCRAM_USERS.name,
            (mechanism, F.col("user_scram_credential.name")),
            take(
                "user_scram_credential",
                "name",
                mechanism=mechanism,
                iterations=scram["iterations"],
            ),
            never,
        ),
        "REMOVE_USER_SCRAM_CREDENTIAL_RECORD": Said(
            SCRAM_USERS.name,
            (
                word(names.SCRAM_MECHANISMS, F.col("remove_user_scram_credential.mechanism")),
                F.col("remove_user_scram_credential.name"),
            ),
            {},
            always,
        ),
        "DELEGATION_TOKEN_RECORD": Said(
            DELEGATION_TOKENS.name,
            (F.col("delegation_token.token_id"),),
            take(
                "delegation_token",
                "owner",
                "requester",
                "renewers",
                "issue_timestamp",
                "max_timestamp",
                "expiration_timestamp",
                token_digest=F.col("delegation_token.token_id"),
            ),
            never,
        ),
        "REMOVE_DELEGATION_TOKEN_RECORD": Said(
            DELEGATION_TOKENS.name, (F.col("remove_delegation_token.token_id"),), {}, always
        ),
        "FEATURE_LEVEL_RECORD": Said(
            FEATURES.name,
            (level_name,),
            {"name": level_name, "level": level},
            (level == 0) & (level_name != "metadata.version"),
        ),
        "REMOVE_FEATURE_LEVEL_RECORD": Said(FEATURES.name, (F.col("remove_feature_level.name"),), {}, always),
        "PRODUCER_IDS_RECORD": Said(
            PRODUCER_IDS.name,
            (F.lit(""),),
            take("producer_ids", "next_producer_id", "broker_id", "broker_epoch"),
            never,
        ),
        "ZK_MIGRATION_STATE_RECORD": Said(
            ZK_MIGRATION_STATES.name,
            (F.lit(""),),
            {"zk_migration_state": word(names.ZK_MIGRATION_STATES, zk_state)},
            zk_state == 0,
        ),
    }


# Kinds of which every record tells all there is.
WHOLE: tuple[Table, ...] = tuple(table for table in HISTORIES if table not in (PARTITIONS, BROKERS))
# Kinds that go together through one frame of events.
SMALL: tuple[Table, ...] = (*WHOLE, BROKERS)


def value_columns(table: Table) -> list[str]:
    """The columns of a history that tell the thing itself."""
    return [name for name in table.names if name != "cluster_id" and name not in VERSION_COLUMNS]


def value_struct(table: Table, values: Mapping[str, Column]) -> Column:
    """The values as the struct of their kind, typed as the table is."""
    types = {c.name: c.type for c in table.columns}
    return F.struct(*[values[name].cast(types[name]).alias(name) for name in value_columns(table)])


def whole_events(line: DataFrame) -> DataFrame:
    """Events of the kinds in WHOLE, from records of the line (see history_line)."""
    spoken = said()
    credential = F.col("user_scram_credential")
    one = F.struct(credential["mechanism"].alias("mechanism"), credential["iterations"].alias("iterations"))
    # Up to release 3.4 a record held several credentials.
    several = F.transform(
        credential["credential_infos"],
        lambda info: F.struct(info["mechanism"].alias("mechanism"), info["iterations"].alias("iterations")),
    )
    credentials = F.when(credential.isNotNull(), F.coalesce(several, F.array(one)))
    records = line.where(F.col("record_type").isin(list(spoken))).withColumn(
        "credential", F.explode_outer(credentials)
    )
    # Only the control record KRaftVersion decides kraft.version.
    records = records.where(
        (F.col("record_type") != "FEATURE_LEVEL_RECORD") | (F.col("feature_level.name") != "kraft.version")
    )

    def by_type(of: Any) -> Column:
        told = [F.when(F.col("record_type") == type_, of(said)) for type_, said in spoken.items()]
        return F.coalesce(*told)

    structs = [
        F.coalesce(
            *[
                F.when((F.col("record_type") == type_) & ~said.gone, value_struct(table, said.values))
                for type_, said in spoken.items()
                if said.kind == table.name and said.values
            ]
        ).alias(table.name)
        for table in WHOLE
    ]
    events = records.select(
        *ENVELOPE,
        by_type(lambda said: F.lit(said.kind)).alias("kind"),
        by_type(lambda said: F.array(*[part.cast("string") for part in said.key])).alias("key"),
        (~by_type(lambda said: said.gone)).alias("present"),
        *structs,
    )
    # Lakes of an earlier version hold nothing that names a token.
    return events.where(F.forall("key", lambda part: part.isNotNull()))


def kept_events(kept: Mapping[str, DataFrame]) -> DataFrame | None:
    """Events of versions that go on (rows of the histories, by table); None where there are none."""
    frames = [kept_of(table, kept[table.name]) for table in SMALL if table.name in kept]
    if not frames:
        return None
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), frames)


def kept_of(table: Table, rows: DataFrame) -> DataFrame:
    values = {name: F.col(name) for name in value_columns(table)}
    keys = [name for name in table.key if name not in ("cluster_id", "valid_from_offset")]
    return rows.select(
        *kept_envelope(),
        F.lit(table.name).alias("kind"),
        F.array(*[F.col(name).cast("string") for name in keys] or [F.lit("")]).alias("key"),
        F.lit(True).alias("present"),
        value_struct(table, values).alias(table.name),
    )


def kept_envelope() -> list[Column]:
    """The envelope of a version that goes on, as it was."""
    return [
        F.col("cluster_id"),
        F.coalesce("record_offset", "known_from_offset").alias("seq"),
        F.lit(KEPT).cast("bigint").alias("batch_crc"),
        F.col("valid_from_offset").alias("visible_offset"),
        F.col("valid_from_at").alias("effective_at"),
        F.col("commit_status"),
        F.col("record_offset"),
        F.col("record_type"),
        F.col("record_leader_epoch"),
        F.col("appended_at"),
        F.col("known_from_offset"),
        F.lit(False).alias("loaded"),
    ]
