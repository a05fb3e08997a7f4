"""What the captures prove, by kraft_core.evidence: one row of facts a cluster in, rows of the tables out."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, StringType, StructField, StructType, TimestampType

from kraft_core.evidence.conclusions import Conclusions, conclude
from kraft_core.evidence.derive import tables
from kraft_core.findings.describe import observed_watermarks
from kraft_core.findings.facts import RuleFacts
from kraft_core.findings.judge import judge
from kraft_core.findings.recovery import recovery_advice
from kraft_core.findings.truncations import observed_truncations
from transforms.evidence.fact_values import cluster_facts
from transforms.ingest.quarantine import quarantined
from transforms.lake.arrow_rows import arrow_schema, moment
from transforms.lake.tables import (
    EPOCHS,
    FINDINGS,
    HIGH_WATERMARKS,
    LOG_RANGES,
    QUARANTINE,
    RECOVERIES,
    REPLICA_RANGES,
    TRUNCATIONS,
    VOTER_CHANGES,
    VOTER_SETS,
    Table,
)
from transforms.quality.findings import finding_rows, rule_facts

EVIDENCE: tuple[Table, ...] = (LOG_RANGES, REPLICA_RANGES, EPOCHS, VOTER_SETS, VOTER_CHANGES)
DERIVED: tuple[Table, ...] = (*EVIDENCE, HIGH_WATERMARKS, QUARANTINE, TRUNCATIONS, FINDINGS, RECOVERIES)
Row = dict[str, Any]


def derive_clusters(facts: DataFrame) -> DataFrame:
    """One row a cluster: cluster_id, `failure` (null if it went well) and an array a table of DERIVED."""
    types = {table.name: row_type(table) for table in DERIVED}
    schema = derived_schema(types)
    arrow = arrow_schema(schema)

    def derive_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for nth in range(len(batch)):
                one = batch.slice(nth, 1)
                row = derived_row(one["cluster_id"][0].as_py(), lambda one=one: one.to_pylist()[0], types)
                yield pa.RecordBatch.from_pylist([row], schema=arrow)

    return facts.mapInArrow(derive_rows, schema)


def derive_at_hand(clusters: Mapping[str, Callable[[], Row]]) -> pa.Table:
    """The same in this process, from what reads the facts of each cluster."""
    types = {table.name: row_type(table) for table in DERIVED}
    rows = [derived_row(cluster, read, types) for cluster, read in clusters.items()]
    return pa.Table.from_pylist(rows, schema=arrow_schema(derived_schema(types)))


def derived_schema(types: Mapping[str, StructType]) -> StructType:
    columns = [StructField("cluster_id", StringType(), False), StructField("failure", StringType())]
    return StructType([*columns, *(StructField(name, ArrayType(type_)) for name, type_ in types.items())])


def row_type(table: Table) -> StructType:
    """The columns of a derived table but cluster_id."""
    return StructType([f for f in table.schema.fields if f.name != "cluster_id"])


def rows_of(derived: DataFrame, table: Table) -> DataFrame:
    """The rows of one table."""
    return derived.select("cluster_id", F.explode(table.name).alias("row")).select("cluster_id", "row.*")


def derived_row(cluster: str, read: Callable[[], Row], types: Mapping[str, StructType]) -> Row:
    """A cluster's conclusions, by the types of their rows. One that cannot be derived says so, alone.

    `read` gives its row of transforms.evidence.cluster_facts.
    """
    row: Row = {"cluster_id": cluster, "failure": None}
    try:
        facts = read()
        known = conclude(cluster_facts(facts))
        lost = quarantined(facts["captures"], facts["snapshots"])
        seen = rule_facts(facts, lost)
        drawn = conclusions(known, seen)
        row |= {name: [column(item, types[name]) for item in items] for name, items in drawn.items()}
        row[QUARANTINE.name] = lost
        row[FINDINGS.name] = finding_rows(judge(known, seen), facts["acknowledgements"])
    except Exception as error:  # whatever is wrong with one cluster must not fail a thousand others
        at = traceback.extract_tb(error.__traceback__)[-1]
        row["failure"] = f"{type(error).__name__}: {error} ({at.name}, line {at.lineno})"
        row |= {table.name: [] for table in DERIVED}
    return row


def conclusions(known: Conclusions, seen: RuleFacts) -> dict[str, list[Any]]:
    """What is concluded, by table: dataclasses with the fields that the table's columns name."""
    evidence = tables(known)
    drawn: dict[str, list[Any]] = {table.name: getattr(evidence, table.name) for table in EVIDENCE}
    drawn[HIGH_WATERMARKS.name] = [
        *evidence.high_watermarks,
        *observed_watermarks(known, seen.observations),
    ]
    drawn[TRUNCATIONS.name] = observed_truncations(known)
    drawn[RECOVERIES.name] = [recovery_advice(known)]
    return drawn


def column(value: Any, type_: DataType) -> Any:
    """A field of a conclusion as a column: times from milliseconds, dataclasses as structs."""
    if value is None:
        return None
    if isinstance(type_, TimestampType):
        return moment(value)
    if isinstance(type_, ArrayType):
        return [column(item, type_.elementType) for item in value]
    if isinstance(type_, StructType):
        return {f.name: column(getattr(value, f.name), f.dataType) for f in type_.fields}
    return value
