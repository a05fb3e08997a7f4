"""What captures prove, by kraft_core.evidence: a group of clusters in, rows of derived tables out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, StringType, StructField, StructType, TimestampType

from kraft_core.evidence.conclusions import Conclusions, conclude
from kraft_core.evidence.derive import tables as evidence_tables
from kraft_core.findings.describe import observed_watermarks
from kraft_core.findings.facts import Observation, RuleFacts
from kraft_core.findings.finding import Finding
from kraft_core.findings.judge import judge
from kraft_core.findings.observed_quorum import observed_epochs, observed_voter_sets
from kraft_core.findings.recovery import recovery_advice
from kraft_core.findings.reports import Reports
from kraft_core.findings.truncations import observed_truncations
from transforms.evidence.cluster_facts import (
    ClusterGroup,
    FreshRows,
    GroupFacts,
    cluster_row,
    group_facts,
)
from transforms.evidence.fact_values import cluster_facts
from transforms.evidence.pinned_tables import PinnedTables
from transforms.ingest.quarantine import faults, quarantined
from transforms.lake.arrow_rows import moment
from transforms.lake.isolation import described, raise_if_of_store
from transforms.lake.spark_rows import arrow_schema
from transforms.lake.spark_tasks import in_tasks
from transforms.lake.storage.location import Location
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
RowTypes = Mapping[str, StructType]


# --- a group of clusters ---


def derive_in_driver(
    tables: PinnedTables, group: ClusterGroup, counted: Callable[[Iterator[Row]], Iterator[Row]] = iter
) -> pa.Table:
    """One row a cluster: cluster_id, `failure` (null if all went well) and an array a table of DERIVED.

    counted: passes the rows on and counts them.
    """
    types = row_types()
    rows = list(counted(_derived_rows(tables, group, types)))
    return pa.Table.from_pylist(rows, schema=_arrow_schema(types))


def derive_by_spark(spark: SparkSession, tables: PinnedTables, groups: Sequence[ClusterGroup]) -> DataFrame:
    """The same rows from Spark's tasks, by group. The lake must be at the same path on every node."""
    types = row_types()
    schema = _arrow_schema(types)

    def derive(group: ClusterGroup) -> Iterator[pa.RecordBatch]:
        for row in _derived_rows(tables, group, types):
            yield pa.RecordBatch.from_pylist([row], schema=schema)

    return in_tasks(spark, groups, derive, schema)


def table_rows(derived: pa.Table, table: Table) -> pa.Table:
    """The rows of one of the tables DERIVED."""
    rows = derived[table.name].combine_chunks()
    clusters = derived["cluster_id"].combine_chunks().take(pc.list_parent_indices(rows))
    values = pc.list_flatten(rows)
    columns = {"cluster_id": clusters} | {n: values.field(n) for n in table.names if n != "cluster_id"}
    return pa.table(columns).select(table.names).cast(table.arrow_schema)


def table_frame(derived: DataFrame, table: Table) -> DataFrame:
    """The same of rows that Spark's tasks derived."""
    return derived.select("cluster_id", F.explode(table.name).alias("row")).select("cluster_id", "row.*")


def row_types() -> RowTypes:
    """By derived table the type of its rows without cluster_id."""
    return {
        table.name: StructType([f for f in table.schema.fields if f.name != "cluster_id"])
        for table in DERIVED
    }


def _derived_schema(types: RowTypes) -> StructType:
    columns = [StructField("cluster_id", StringType(), False), StructField("failure", StringType())]
    return StructType([*columns, *(StructField(name, ArrayType(type_)) for name, type_ in types.items())])


def _arrow_schema(types: RowTypes) -> pa.Schema:
    return arrow_schema(_derived_schema(types))


# --- a cluster ---


def _derived_rows(tables: PinnedTables, group: ClusterGroup, types: RowTypes) -> Iterator[Row]:
    """A row a cluster. One scan of a table serves the group; if it fails, each cluster is read alone."""
    try:
        facts = group_facts(tables, group.clusters, group.fresh)
    except Exception as error:  # a file that cannot be read must fail only the clusters that need it
        raise_if_of_store(error, tables.lake)
        facts = None
    for cluster in group.clusters:
        yield derived_row(cluster, partial(_read_cluster, tables, group, facts, cluster), types, tables.lake)


def _read_cluster(tables: PinnedTables, group: ClusterGroup, facts: GroupFacts | None, cluster: str) -> Row:
    found = group_facts(tables, [cluster], group.fresh) if facts is None else facts
    return cluster_row(found, cluster, group.fresh.get(cluster, FreshRows()))


def derived_row(cluster: str, read: Callable[[], Row], types: RowTypes, lake: Location) -> Row:
    """A cluster's derived rows by table, or its failure: a cluster that cannot be derived fails alone.

    `read` gives its facts (transforms.evidence.cluster_facts.cluster_row), from a lake. Raises OSError where
    the lake's store fails.
    """
    row: Row = {"cluster_id": cluster, "failure": None}
    try:
        facts = read()
        conclusions = conclude(cluster_facts(facts))
        lost = faults(facts["captures"], facts["snapshots"])
        of_rules = rule_facts(facts, lost)
        findings = judge(conclusions, of_rules)
        values = derived_values(conclusions, of_rules, findings)
        row |= {name: [column(item, types[name]) for item in items] for name, items in values.items()}
        row[QUARANTINE.name] = quarantined(lost)
        row[FINDINGS.name] = finding_rows(findings, facts["acknowledgements"])
    except Exception as error:  # whatever is wrong with one cluster must not fail a thousand others
        raise_if_of_store(error, lake)
        row["failure"] = described(error)
        row |= {table.name: [] for table in DERIVED}
    return row


def derived_values(
    conclusions: Conclusions, facts: RuleFacts, findings: Sequence[Finding]
) -> dict[str, list[Any]]:
    """By table what is concluded: dataclasses with the fields that the table's columns name."""
    evidence, observations = evidence_tables(conclusions), Reports(conclusions, facts.observations).tied
    observed_sets = observed_voter_sets(conclusions, evidence.voter_sets, observations)
    return {table.name: getattr(evidence, table.name) for table in EVIDENCE} | {
        EPOCHS.name: observed_epochs(evidence.epochs, observations),
        VOTER_SETS.name: [*evidence.voter_sets, *observed_sets],
        HIGH_WATERMARKS.name: [*evidence.high_watermarks, *observed_watermarks(conclusions, observations)],
        TRUNCATIONS.name: observed_truncations(conclusions),
        RECOVERIES.name: [recovery_advice(conclusions, findings, reported_epoch=_newest_epoch(observations))],
    }


def _newest_epoch(observations: Iterable[Observation]) -> int | None:
    return max((o.leader_epoch for o in observations if o.leader_epoch is not None), default=None)


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
