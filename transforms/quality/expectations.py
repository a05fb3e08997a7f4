"""The expectations of the data, run by Great Expectations: results as rows of expectation_results.

Spark aggregates each relation of a suite to one row a cluster (failing rows by expectation, or a measure);
Great Expectations judges that frame. It is imported late, and only here: it takes seconds.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache, reduce
from importlib import resources
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from transforms.lake import delta_rs, tables
from transforms.lake.arrow_rows import to_frame, to_rows
from transforms.lake.lake import Lake, in_clusters
from transforms.lake.tables import EXPECTATION_RESULTS, HISTORIES, TABLES, Table
from transforms.quality.expectation_suites import (
    COMMON,
    WHOLE_LAKE,
    Check,
    Expectation,
    Suite,
    all_filled,
    suites,
)

Row = dict[str, Any]
Frames = Mapping[str, DataFrame]
# Suite, then expectation, to what is changed of it: allowed, severity.
Overrides = Mapping[str, Mapping[str, Mapping[str, Any]]]
# Too large to be looked at whole by every run, beside the histories.
BIG = (tables.BATCHES, tables.RECORDS, tables.SNAPSHOT_RECORDS)
LISTED_ROWS = 20
# Smaller tables are not read by Spark.
AT_HAND_BYTES = 1024 * 1024
SEVERITIES = {"error": "critical", "warning": "warning"}


class UnknownExpectationError(ValueError):
    """A threshold for an expectation that there is not, or one that means nothing; the message says which."""


@dataclass(frozen=True, slots=True)
class Scope:
    """What is looked at: clusters (None = all), and of big tables only what came with runs (None = all)."""

    clusters: Sequence[str] | None = None
    new_rows_of: Collection[str] | None = None


WHOLE = Scope()


# --- the lake --------------------------------------------------------------------------------------


def expect(
    lake: Lake,
    run_id: str,
    started_at: datetime,
    now: datetime,
    scope: Scope = WHOLE,
    overrides: Overrides | None = None,
) -> list[Row]:
    """Run every suite over the lake, append the results to expectation_results and return them.

    `scope` limits what is looked at, but freshness, which is judged for all clusters. Raises
    UnknownExpectationError for overrides of what there is not.
    """
    chosen = configured(suites(), overrides)
    every = held(lake)
    frames = scoped(every, scope)
    found = [
        row | {"run_id": run_id, "loaded_at": started_at}
        for row in results(chosen, frames, every, now, scope.clusters)
    ]
    if found:
        lake.append(
            EXPECTATION_RESULTS,
            to_frame(lake.spark, found, EXPECTATION_RESULTS.schema),
            f"expectations:{run_id}",
        )
    return found


def held(lake: Lake) -> dict[str, DataFrame]:
    """Every table of the lake."""
    small = {t for t in TABLES if lake.exists(t) and delta_rs.size_bytes(lake.path, t) < AT_HAND_BYTES}
    return {t.name: lake.read_at_hand(t) if t in small else lake.read(t) for t in TABLES}


def failing_rows(
    lake: Lake,
    name: str,
    now: datetime,
    clusters: Sequence[str] | None = None,
    overrides: Overrides | None = None,
) -> DataFrame:
    """All rows that fail the expectation named suite.expectation. Raises UnknownExpectationError."""
    for suite in configured(suites(), overrides):
        for check in suite.checks:
            for expectation in check.expectations:
                if f"{suite.table.name}.{expectation.name}" == name:
                    frames = scoped(held(lake), Scope(clusters))
                    return relation(suite, check, frames, now).where(~holds(expectation))
    raise UnknownExpectationError(
        f"there is no expectation {name}; they are named like captures.log_is_gapless"
    )


def overtaken(results: DataFrame, before: datetime) -> DataFrame:
    """Keys of the rows of expectation_results from before a time that a later answer replaced."""
    later = Window.partitionBy("cluster_id", "suite", "expectation").orderBy(
        F.desc("loaded_at"), F.desc("run_id")
    )
    ordered = results.withColumn("nth", F.row_number().over(later))
    return ordered.where((F.col("nth") > 1) & (F.col("loaded_at") < F.lit(before))).select(
        *EXPECTATION_RESULTS.key
    )


def scoped(every: Frames, scope: Scope) -> dict[str, DataFrame]:
    """The tables limited to the scope, big ones as new_..., and in `scopes` where their new rows begin."""
    frames = dict(every)
    if scope.clusters is not None:
        limit = in_clusters(scope.clusters)
        frames = {name: f.where(limit) if "cluster_id" in f.columns else f for name, f in frames.items()}
    if scope.new_rows_of is not None:
        return frames | of_runs(frames, scope.new_rows_of)
    begin = F.lit(0).cast("bigint").alias("scope_from")
    scopes = frames["captures"].select("cluster_id", begin).distinct()
    return frames | {"scopes": scopes} | {f"new_{t.name}": frames[t.name].select("*", begin) for t in BIG}


def of_runs(frames: Frames, run_ids: Collection[str]) -> dict[str, DataFrame]:
    """Of the big tables what came with these runs, and what lies above it in the same clusters.

    A record is read with the batch that holds it, so the batches tell where the new ones begin.
    """
    new = F.col("run_id").isin(sorted(run_ids))
    begin = F.min("base_offset").alias("scope_from")
    first = frames["batches"].where(new).groupBy("cluster_id").agg(begin)
    rows = to_rows(first)
    # As a literal too, so that files below it are not even opened.
    lowest = min((row["scope_from"] for row in rows), default=0)
    since = F.broadcast(to_frame(first.sparkSession, rows, first.schema))
    fresh = F.broadcast(frames["snapshots"].where(new).select(*tables.SNAPSHOTS.key))
    # The batch just below is looked at too: the first new one begins where it ends.
    batches = frames["batches"].where(F.col("last_offset") >= lowest - 1).join(since, "cluster_id")
    records = frames["records"].where(F.col("batch_base_offset") >= lowest).join(since, "cluster_id")
    return {
        "scopes": since,
        "new_batches": batches.where("last_offset >= scope_from - 1"),
        "new_records": records.where("batch_base_offset >= scope_from"),
        "new_snapshot_records": frames["snapshot_records"].join(
            fresh, list(tables.SNAPSHOTS.key), "left_semi"
        ),
        **{table.name: versions_since(frames[table.name], since, lowest) for table in HISTORIES},
    }


def versions_since(history: DataFrame, since: DataFrame, lowest: int) -> DataFrame:
    """The versions that began where there are new records: only they can have a key twice."""
    begun = history.where(F.col("valid_from_offset") >= lowest).join(since, "cluster_id")
    return begun.where("valid_from_offset >= scope_from").select(history.columns)


# --- metrics ---------------------------------------------------------------------------------------


def results(
    chosen: Iterable[Suite], frames: Frames, every: Frames, now: datetime, clusters: Sequence[str] | None
) -> Iterator[Row]:
    """Rows of expectation_results but the columns of the run."""
    checks = [
        (suite, check)
        for suite in chosen
        for check in suite.checks
        if clusters or clusters is None or check.every_cluster or is_of_lake(suite.table)
    ]
    counted = metrics(checks, frames, every, now)
    known = sorted(clusters if clusters is not None else clusters_of(every["captures"]))
    judgements: list[list[Row]] = []
    for (suite, check), metric in zip(checks, counted, strict=True):
        owners = [WHOLE_LAKE] if is_of_lake(suite.table) else known
        judgements.append(list(judged(suite.table, check, filled_up(metric, check, owners))))
    broken = {position for position, rows in enumerate(judgements) if any(not row["success"] for row in rows)}
    examples = listed(checks, broken, frames, every, now) if broken else {}
    for row in (row for rows in judgements for row in rows):
        if not row["success"]:
            row["failing_rows"] = examples.get((row["suite"], row["expectation"], row["cluster_id"]), [])
        yield row


def is_of_lake(table: Table) -> bool:
    """Whether its rows belong to no cluster."""
    return "cluster_id" not in table.names


def clusters_of(captures: DataFrame) -> list[str]:
    return [r["cluster_id"] for r in to_rows(captures.select("cluster_id").distinct())]


def relation(suite: Suite, check: Check, frames: Frames, now: datetime) -> DataFrame:
    """The rows that the check speaks of."""
    if check.rows is None:
        return keys([suite.table], frames)
    used = {name: frame for name, frame in frames.items() if f"{{{name}}}" in check.rows}
    spark = next(iter(used.values())).sparkSession
    clock = f"TIMESTAMP '{now.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}'"
    return spark.sql(check.rows.replace("{now}", clock), args=None, **used)


def keys(of: Iterable[Table], frames: Frames) -> DataFrame:
    """The rows that COMMON speaks of: one a key of these tables, which `row` holds as JSON."""
    rows = [
        frames[table.name].select(
            F.lit(table.name).alias("suite"),
            F.lit(WHOLE_LAKE).alias("cluster_id") if is_of_lake(table) else F.col("cluster_id"),
            F.to_json(F.struct(*table.key), {"ignoreNullFields": "false"}).alias("row"),
            F.expr(all_filled("", table)).alias("is_filled"),
        )
        for table in of
    ]
    copies = F.count("*").alias("copies"), F.bool_and("is_filled").alias("is_filled")
    return reduce(DataFrame.union, rows).groupBy("suite", "cluster_id", "row").agg(*copies)


def holds(expectation: Expectation) -> Any:
    """The condition on a row, as a column that is never null."""
    text = expectation.holds or f"{expectation.measure} <= {expectation.allowed}"
    return F.coalesce(F.expr(text), F.lit(expectation.measure is not None))


def metrics(
    checks: Sequence[tuple[Suite, Check]], frames: Frames, every: Frames, now: datetime
) -> list[pd.DataFrame]:
    """For each check one row a cluster: the failing rows by expectation, or its largest measure.

    All are asked in one query: on small tables a query costs more than its work.
    """
    asked = [
        rows.groupBy("check", "cluster_id").agg(
            F.array(*(number(e) for e in check.expectations)).alias("numbers")
        )
        for check, rows in relations(checks, range(len(checks)), frames, every, now)
    ]
    found: list[list[Row]] = [[] for _ in checks]
    for row in to_rows(reduce(DataFrame.union, asked)):
        names = [e.name for e in checks[row["check"]][1].expectations]
        numbers = dict(zip(names, row["numbers"], strict=True))
        found[row["check"]].append({"cluster_id": row["cluster_id"], **numbers})
    return [
        pd.DataFrame(rows, columns=pd.Index(["cluster_id", *(e.name for e in check.expectations)]))
        for (_, check), rows in zip(checks, found, strict=True)
    ]


def relations(
    checks: Sequence[tuple[Suite, Check]],
    chosen: Iterable[int],
    frames: Frames,
    every: Frames,
    now: datetime,
) -> Iterator[tuple[Check, DataFrame]]:
    """Relations of the chosen checks, each row with the position of its `check`; COMMON is one relation."""
    common = {checks[n][0].table.name: n for n in chosen if checks[n][1].rows is None}
    if common:
        numbers = F.create_map(*(F.lit(v) for item in common.items() for v in item))
        rows = keys([checks[n][0].table for n in common.values()], frames)
        yield COMMON, rows.withColumn("check", numbers[F.col("suite")])
    for n in chosen:
        suite, check = checks[n]
        if check.rows is not None:
            rows = relation(suite, check, every if check.every_cluster else frames, now)
            shown = rows.withColumn("row", as_json(suite.table, rows))
            yield check, shown.withColumn("check", F.lit(n))


def number(expectation: Expectation) -> Any:
    counted = F.max(expectation.measure) if expectation.measure else F.count_if(~holds(expectation))
    return counted.cast("double")


def filled_up(metric: pd.DataFrame, check: Check, owners: Iterable[str]) -> pd.DataFrame:
    """A row for every owner too: where a table has no rows of a cluster, none of them fails."""
    wanted = sorted({*owners, *metric["cluster_id"]})
    whole = metric.set_index("cluster_id").reindex(wanted)
    counts = [e.name for e in check.expectations if e.measure is None]
    whole[counts] = whole[counts].astype("float64").fillna(0)
    return whole.rename_axis("cluster_id").reset_index()


def listed(
    checks: Sequence[tuple[Suite, Check]], broken: set[int], frames: Frames, every: Frames, now: datetime
) -> dict[tuple[str, str, str], list[str]]:
    """Some failing rows as JSON, by suite, expectation and cluster; they too are asked for in one query."""
    asked = []
    for check, rows in relations(checks, sorted(broken), frames, every, now):
        failed = F.array_compact(F.array(*(F.when(~holds(e), F.lit(e.name)) for e in check.expectations)))
        asked.append(
            rows.select("check", "cluster_id", "row", F.explode(failed).alias("expectation"))
            .groupBy("check", "cluster_id", "expectation")
            .agg(F.slice(F.sort_array(F.collect_list("row")), 1, LISTED_ROWS).alias("rows"))
        )
    return {
        (checks[row["check"]][0].table.name, row["expectation"], row["cluster_id"]): row["rows"]
        for row in to_rows(reduce(DataFrame.union, asked))
    }


def as_json(table: Table, rows: DataFrame) -> Any:
    """A row as JSON: its key where the rows are a table's, else all columns."""
    key = [name for name in table.key if name in rows.columns]
    return F.to_json(F.struct(*(key if len(key) == len(table.key) else rows.columns)))


# --- Great Expectations ----------------------------------------------------------------------------


def judged(table: Table, check: Check, frame: pd.DataFrame) -> Iterator[Row]:
    """A row an expectation and cluster of a frame with one row a cluster and one column an expectation."""
    failed = verdicts(table.name, check.expectations, frame)
    for expectation in check.expectations:
        for owner, value in zip(frame["cluster_id"], frame[expectation.name], strict=True):
            yield {
                "cluster_id": owner,
                "suite": table.name,
                "expectation": expectation.name,
                "sentence": expectation.sentence,
                "severity": expectation.severity,
                "success": owner not in failed[expectation.name],
                "observed": None if pd.isna(value) else float(value),
                "allowed": float(expectation.allowed),
                "failing_rows": [],
            }


def verdicts(suite: str, expectations: Sequence[Expectation], frame: pd.DataFrame) -> dict[str, set[str]]:
    """The clusters that fail, by expectation."""
    gx, context = great_expectations()
    wanted = gx.ExpectationSuite(suite)
    for expectation in expectations:
        wanted.add_expectation(
            gx.expectations.ExpectColumnValuesToBeBetween(
                column=expectation.name,
                max_value=expectation.allowed,
                severity=SEVERITIES[expectation.severity],
            )
        )
    asset = context.data_sources.add_or_update_pandas(suite).add_dataframe_asset(suite)
    batch = asset.add_batch_definition_whole_dataframe(suite).get_batch({"dataframe": frame})
    form = {"result_format": "COMPLETE", "unexpected_index_column_names": ["cluster_id"]}
    failed: dict[str, set[str]] = {e.name: set() for e in expectations}
    for result in batch.validate(wanted, result_format=form).results:
        if result.exception_info.get("raised_exception"):
            raise RuntimeError(f"{suite}: {result.exception_info['exception_message']}")
        name = result.expectation_config.kwargs["column"]
        failed[name] = {row["cluster_id"] for row in result.result.get("unexpected_index_list") or []}
    return failed


@cache
def great_expectations() -> tuple[Any, Any]:
    """The library and a context of it that keeps nothing, told not to send anything anywhere."""
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    import great_expectations as gx

    context: Any = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    return gx, context


# --- thresholds ------------------------------------------------------------------------------------


def configured(chosen: Iterable[Suite], overrides: Overrides | None = None) -> list[Suite]:
    """The suites with what expectations.toml and then `overrides` allow."""
    text = resources.files("transforms.quality").joinpath("expectations.toml").read_text()
    changed = list(chosen)
    for settings in (tomllib.loads(text), overrides or {}):
        check_settings(changed, settings)
        changed = [with_settings(suite, settings.get(suite.table.name, {})) for suite in changed]
    return changed


def check_settings(chosen: Iterable[Suite], settings: Overrides) -> None:
    """Raises UnknownExpectationError where settings name what there is not."""
    names = {suite.table.name: {e.name for e in suite.expectations} for suite in chosen}
    for suite, expectations in settings.items():
        if suite not in names:
            raise UnknownExpectationError(
                f"there is no suite {suite}: it is one of {', '.join(sorted(names))}"
            )
        for name, changes in expectations.items():
            if name not in names[suite]:
                known = ", ".join(sorted(names[suite]))
                raise UnknownExpectationError(
                    f"suite {suite} has no expectation {name}: it is one of {known}"
                )
            check_changes(f"{suite}.{name}", changes)


def check_changes(name: str, changes: Mapping[str, Any]) -> None:
    unknown = sorted(set(changes) - {"allowed", "severity"})
    if unknown:
        raise UnknownExpectationError(f"{name}: {unknown[0]} is neither allowed nor severity")
    if changes.get("severity", "error") not in SEVERITIES:
        raise UnknownExpectationError(f"{name}: severity is error or warning, not {changes['severity']}")
    allowed = changes.get("allowed", 0)
    if isinstance(allowed, bool) or not isinstance(allowed, int | float):
        raise UnknownExpectationError(f"{name}: allowed is a number, not {allowed!r}")


def with_settings(suite: Suite, settings: Mapping[str, Mapping[str, Any]]) -> Suite:
    return replace(
        suite,
        checks=tuple(
            replace(c, expectations=tuple(replace(e, **settings.get(e.name, {})) for e in c.expectations))
            for c in suite.checks
        ),
    )
