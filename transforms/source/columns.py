"""The columns of format("kraft"): plain ones, a record's value as JSON, and structs on demand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import ArrayType, DataType, StructField, StructType

from kraft_core.columnar.schema import RECORDS, message_columns
from kraft_core.messages.schema import Message
from kraft_core.wording import did_you_mean
from transforms.lake.spark_rows import arrow_schema, parse_type
from transforms.source.errors import SourceError

# What all records of a file share.
ORIGIN = ("cluster_id", "node_id", "directory_id", "source", "file")
LOG, SNAPSHOT = "log", "snapshot"
VALUE, CORRUPT_RANGE = "value", "_corrupt_range"
CORRUPT_TYPE = (
    "STRUCT<size_bytes: BIGINT, sha256: STRING, reason: STRING, lost_from_offset: BIGINT, "
    "lost_to_offset: BIGINT>"
)
# Column: its type, its meaning.
PLAIN: dict[str, tuple[str, str]] = {
    "cluster_id": ("STRING", "Cluster id in meta.properties; null if it has none"),
    "node_id": ("INT", "Node id in meta.properties; null if it has none"),
    "directory_id": ("STRING", "Directory id in meta.properties; the zero uuid if it has none"),
    "source": ("STRING", "log: a record of the log; snapshot: a record of a checkpoint"),
    "file": ("STRING", "The segment or checkpoint, below the path that was loaded"),
    "position": (
        "BIGINT",
        "Byte position of the record's batch in the file; for a _corrupt_range, of that range",
    ),
    "position_in_batch": ("INT", "Index of the record in its batch"),
    "offset": (
        "BIGINT",
        "Offset in the log; for a snapshot, the last offset that it covers",
    ),
    "leader_epoch": ("INT", "Leader epoch of that offset"),
    "appended_at": ("TIMESTAMP", "Timestamp of the record: the leader's clock"),
    "type": ("STRING", "Record type, named as by kafka-dump-log; UNKNOWN for a type of a newer Kafka"),
    "version": ("SMALLINT", "Version of the record's schema"),
    "is_control": ("BOOLEAN", "Whether it is a control record"),
    "topic_id": ("STRING", "Topic that the record is about"),
    "topic_name": ("STRING", "Name of the topic, if the record has it"),
    "partition_id": ("INT", "Partition that the record is about"),
    "broker_id": ("INT", "Broker that the record is about"),
    "controller_id": ("INT", "Controller that the record registers or removes"),
    "leader_id": ("INT", "Leader in the record: of the quorum, or of the partition (-1: none)"),
    "resource_type": ("TINYINT", "Kafka's number of the type of a config's or ACL's resource"),
    "resource_name": ("STRING", "Name of that resource"),
    "name": ("STRING", "Name of the config, feature or SCRAM user"),
    VALUE: ("STRING", "The record's value as JSON, as kafka-dump-log prints it; secrets are null"),
    CORRUPT_RANGE: (CORRUPT_TYPE, "Bytes that could not be read, and the offsets lost with them; else null"),
}
# Key facts: the fields, as column.field of schema.RECORDS, of which each record has at most one.
FACTS: dict[str, tuple[str, ...]] = {
    "topic_id": (
        "topic.topic_id",
        "partition.topic_id",
        "partition_change.topic_id",
        "remove_topic.topic_id",
    ),
    "topic_name": ("topic.name", "clear_elr.topic_name"),
    "partition_id": ("partition.partition_id", "partition_change.partition_id"),
    "broker_id": (
        "register_broker.broker_id",
        "unregister_broker.broker_id",
        "fence_broker.id",
        "unfence_broker.id",
        "broker_registration_change.broker_id",
        "producer_ids.broker_id",
    ),
    "controller_id": ("register_controller.controller_id", "unregister_controller.controller_id"),
    "leader_id": ("leader_change.leader_id", "partition.leader", "partition_change.leader"),
    "resource_type": (
        "config.resource_type",
        "access_control_entry.resource_type",
        "access_control.resource_type",
    ),
    "resource_name": (
        "config.resource_name",
        "access_control_entry.resource_name",
        "access_control.resource_name",
    ),
    "name": (
        "config.name",
        "feature_level.name",
        "user_scram_credential.name",
        "remove_user_scram_credential.name",
    ),
}
# In PartitionChangeRecord: the leader stays as it was.
UNCHANGED = {"partition_change.leader": -2}


@cache
def structs() -> dict[str, Message]:
    """The record types by the name of their struct column."""
    return {message.column: message for message in message_columns()}


@cache
def message_names() -> dict[str, Message]:
    """The record types by each name in lower case: Kafka's class, kafka-dump-log's, the column's."""
    found: dict[str, Message] = {}
    for message in message_columns():
        for name in (message.column, message.type_name, message.name):
            found.setdefault(name.lower(), message)
    return found


def declared_schema(columns: Mapping[str, tuple[str, str]]) -> StructType:
    """A Spark schema by declarations such as PLAIN."""
    return StructType([StructField(name, parse_type(type_)) for name, (type_, _) in columns.items()])


def message_of(word: str) -> Message:
    """The record type of a name in option types. Raises SourceError."""
    known = message_names()
    if word.lower() not in known:
        names = list(dict.fromkeys(message.name for message in message_columns()))
        hint = did_you_mean(word, names) or f"; known: {', '.join(names)}"
        raise SourceError(f"option types: unknown record type {word}{hint}")
    return known[word.lower()]


@cache
def _declared() -> Mapping[str, DataType]:
    """The type of every column that can be asked for."""
    found = {name: parse_type(type_) for name, (type_, _) in PLAIN.items()}
    return found | {name: from_arrow_type(RECORDS.field(name).type) for name in structs()}


def default_schema(types: Iterable[Message] = ()) -> StructType:
    """The plain columns, value, a struct for each of the types, _corrupt_range."""
    declared = _declared()
    names = [name for name in PLAIN if name != CORRUPT_RANGE]
    names += [message.column for message in types]
    return StructType([StructField(name, declared[name]) for name in (*names, CORRUPT_RANGE)])


def checked(schema: StructType) -> pa.Schema:
    """A user's schema as Arrow's. Raises SourceError for a column, a field or a type that is not there."""
    for field in schema.fields:
        declared = _declared().get(field.name)
        if declared is None:
            near = did_you_mean(field.name, _declared())
            raise SourceError(
                f"schema: unknown column {field.name}{near}; docs/format.md lists the plain columns; a "
                f"record type's struct is named as in table records, such as partition_change"
            )
        _must_fit(field.name, field.dataType, declared)
    return arrow_schema(schema)


def _must_fit(name: str, wanted: DataType, declared: DataType) -> None:
    """A struct may have fewer fields, at any depth; all else is as declared."""
    if isinstance(wanted, StructType) and isinstance(declared, StructType):
        for field in wanted.fields:
            if field.name not in declared.names:
                near = did_you_mean(field.name, declared.names)
                raise SourceError(f"schema: {name} has no field {field.name}{near}")
            _must_fit(f"{name}.{field.name}", field.dataType, declared[field.name].dataType)
    elif isinstance(wanted, ArrayType) and isinstance(declared, ArrayType):
        _must_fit(f"{name}[]", wanted.elementType, declared.elementType)
    elif wanted != declared:
        raise SourceError(f"schema: {name} is {declared.simpleString()}, not {wanted.simpleString()}")
