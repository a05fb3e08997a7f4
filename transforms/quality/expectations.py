"""Evaluate the expectations of a lake with Great Expectations: results as rows of expectation_results.

Spark aggregates each relation of a suite to one row a cluster: by expectation the number of failing rows, or
the largest measured value. Great Expectations evaluates that frame. It takes seconds to import, so only this
module imports it, and late.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import cache, reduce
from typing import Any

import pandas as pd
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from transforms.lake.lake import Lake, in_clusters
from transforms.lake.spark_rows import interpreted, to_rows
from transforms.lake.tables import EXPECTATION_RESULTS, Table
from transforms.quality.expectation_scope import (
    WHOLE_SCOPE,
    Frames,
    Scope,
    lake_frames,
    read_by_spark,
    scoped,
)
from transforms.quality.expectation_settings import Overrides, UnknownExpectationError, configured
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
# A check of a suite.
SuiteCheck = tuple[Suite, Check]
LISTED_ROWS = 20
GX_SEVERITIES = {"error": "critical", "warning": "warning"}


# --- the lake ---


def expect(
    lake: Lake,
    run_id: str,
    started_at: datetime,
    now: datetime,
    scope: Scope = WHOLE_SCOPE,
    overrides: Overrides | None = None,
) -> list[Row]:
    """Evaluate every suite, append the results to expectation_results and return them.

    `scope` limits what is validated, except freshness, which is evaluated for all clusters. Raises
    UnknownExpectationError for invalid overrides.
    """
    chosen = configured(suites(), overrides)
    large = read_by_spark(lake)
    every = lake_frames(lake, large)
    frames = scoped(every, scope)
    # The query of all suites has fifty stages to compile.
    with nullcontext() if large else interpreted(lake.spark):
        found = [
            row | {"run_id": run_id, "loaded_at": started_at}
            for row in results(chosen, frames, every, now, scope.clusters)
        ]
    if found:
        lake.writer.append_once(EXPECTATION_RESULTS, found, f"expectations:{run_id}")
    return found


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
                    frames = scoped(lake_frames(lake, read_by_spark(lake)), Scope(clusters))
                    failing = _relation(suite, check, frames, now).where(~_condition(expectation))
                    if clusters is None or not check.own:
                        return failing
                    return failing.where(in_clusters(clusters))
    raise UnknownExpectationError(f"there is no expectation {name}; a name is like captures.log_is_gapless")


def superseded(results: DataFrame, before: datetime) -> DataFrame:
    """Keys of the rows of expectation_results from before a time that have a later result."""
    later = Window.partitionBy("cluster_id", "suite", "expectation").orderBy(
        F.desc("loaded_at"), F.desc("run_id")
    )
    ordered = results.withColumn("nth", F.row_number().over(later))
    return ordered.where((F.col("nth") > 1) & (F.col("loaded_at") < F.lit(before))).select(
        *EXPECTATION_RESULTS.key
    )


# --- aggregates by Spark ---


def results(
    chosen: Iterable[Suite], frames: Frames, every: Frames, now: datetime, clusters: Sequence[str] | None
) -> Iterator[Row]:
    """Rows of expectation_results without the columns of the run; `clusters`: None for all."""
    chosen = list(chosen)
    checks: list[SuiteCheck] = [
        (suite, check)
        for suite in chosen
        for check in suite.checks
        if clusters or clusters is None or check.every_cluster or _is_of_lake(suite.table)
        if not check.own
    ]
    of_user = [(suite, check) for suite in chosen for check in suite.checks if check.own]
    every_cluster = _cluster_ids(every["captures"]) if of_user or clusters is None else []
    yield from _results(checks, frames, every, now, every_cluster if clusters is None else clusters)
    # One by one: what is wrong with one must not keep the others from being evaluated.
    for own in of_user:
        try:
            yield from list(_results([own], every, every, now, every_cluster))
        except PySparkException as error:
            yield _not_evaluated(*own, error)


def _results(
    checks: Sequence[SuiteCheck], frames: Frames, every: Frames, now: datetime, clusters: Sequence[str]
) -> Iterator[Row]:
    """The results of some checks, for these clusters."""
    known = sorted(clusters)
    evaluated: list[list[Row]] = []
    for (suite, check), numbers in zip(checks, _numbers(checks, frames, every, now), strict=True):
        of_lake = _is_of_lake(suite.table) or (
            check.own and "cluster_id" not in _queried(check, {}, frames, now).columns
        )
        owners = [WHOLE_LAKE] if of_lake else known
        evaluated.append(list(_evaluated(suite.table, check, _with_all(numbers, check, owners))))
    failed = {position for position, rows in enumerate(evaluated) if any(not row["success"] for row in rows)}
    examples = _failing_examples(checks, failed, frames, every, now) if failed else {}
    for row in (row for rows in evaluated for row in rows):
        if not row["success"]:
            row["failing_rows"] = examples.get((row["suite"], row["expectation"], row["cluster_id"]), [])
        yield row


def _is_of_lake(table: Table) -> bool:
    """Whether the table's rows belong to no cluster."""
    return "cluster_id" not in table.names


def _cluster_ids(captures: DataFrame) -> list[str]:
    return [r["cluster_id"] for r in to_rows(captures.select("cluster_id").distinct())]


def _relation(suite: Suite, check: Check, frames: Frames, now: datetime) -> DataFrame:
    """The rows that the check evaluates; those of an own one that name no cluster are the lake's."""
    if check.rows is None:
        return _keys([suite.table], frames)
    if check.own:
        rows, whole = _queried(check, {}, frames, now), F.lit(WHOLE_LAKE)
        owner = F.coalesce("cluster_id", whole) if "cluster_id" in rows.columns else whole
        return rows.withColumn("cluster_id", owner)
    used = {name: frame for name, frame in frames.items() if f"{{{name}}}" in check.rows}
    return _queried(check, used, frames, now)


def _queried(check: Check, used: Frames, frames: Frames, now: datetime) -> DataFrame:
    """The rows of a check's query, which names the used frames in braces."""
    spark = next(iter(frames.values())).sparkSession
    clock = f"TIMESTAMP '{now.astimezone(UTC):%Y-%m-%d %H:%M:%S.%f}'"
    return spark.sql((check.rows or "").replace("{now}", clock), args=None, **used)


def _not_evaluated(suite: Suite, check: Check, error: PySparkException) -> Row:
    """What cannot be evaluated is not met."""
    (expectation,) = check.expectations
    reason = next(filter(None, map(str.strip, str(error).splitlines())), type(error).__name__)
    return _result(suite.table, expectation, WHOLE_LAKE, None, False) | {
        "is_own": True,
        "failing_rows": [json.dumps({"error": reason}, ensure_ascii=False)],
    }


def _keys(of: Iterable[Table], frames: Frames) -> DataFrame:
    """The rows that COMMON evaluates: one a key of these tables; `row` is the key as JSON."""
    rows = [
        frames[table.name].select(
            F.lit(table.name).alias("suite"),
            F.lit(WHOLE_LAKE).alias("cluster_id") if _is_of_lake(table) else F.col("cluster_id"),
            F.to_json(F.struct(*table.key), {"ignoreNullFields": "false"}).alias("row"),
            F.expr(all_filled("", table)).alias("is_filled"),
        )
        for table in of
    ]
    copies = F.count("*").alias("copies"), F.bool_and("is_filled").alias("is_filled")
    return reduce(DataFrame.union, rows).groupBy("suite", "cluster_id", "row").agg(*copies)


def _condition(expectation: Expectation) -> Column:
    """Whether a row meets the expectation; never null."""
    text = expectation.holds or f"{expectation.measure} <= {expectation.allowed}"
    return F.coalesce(F.expr(text), F.lit(expectation.measure is not None))


def _numbers(
    checks: Sequence[SuiteCheck], frames: Frames, every: Frames, now: datetime
) -> list[pd.DataFrame]:
    """For each check one row a cluster: by expectation the failing rows, or the largest measured value.

    One query for all checks: on small tables a query costs more than its work.
    """
    aggregates = [
        rows.groupBy("check", "cluster_id").agg(
            F.array(*(_number(e) for e in check.expectations)).alias("numbers")
        )
        for check, rows in _relations(checks, range(len(checks)), frames, every, now)
    ]
    found: list[list[Row]] = [[] for _ in checks]
    for row in to_rows(reduce(DataFrame.union, aggregates)):
        names = [e.name for e in checks[row["check"]][1].expectations]
        numbers = dict(zip(names, row["numbers"], strict=True))
        found[row["check"]].append({"cluster_id": row["cluster_id"], **numbers})
    return [
        pd.DataFrame(rows, columns=pd.Index(["cluster_id", *(e.name for e in check.expectations)]))
        for (_, check), rows in zip(checks, found, strict=True)
    ]


def _relations(
    checks: Sequence[SuiteCheck],
    chosen: Iterable[int],
    frames: Frames,
    every: Frames,
    now: datetime,
) -> Iterator[tuple[Check, DataFrame]]:
    """Relations of the chosen checks, each row with its check's position; COMMON has one for all tables."""
    common = {checks[n][0].table.name: n for n in chosen if checks[n][1].rows is None}
    if common:
        numbers = F.create_map(*(F.lit(v) for item in common.items() for v in item))
        rows = _keys([checks[n][0].table for n in common.values()], frames)
        yield COMMON, rows.withColumn("check", numbers[F.col("suite")])
    for n in chosen:
        suite, check = checks[n]
        if check.rows is not None:
            rows = _relation(suite, check, every if check.every_cluster else frames, now)
            with_key = rows.withColumn("row", _row_as_json(suite.table, check, rows))
            yield check, with_key.withColumn("check", F.lit(n))


def _number(expectation: Expectation) -> Column:
    found = F.max(expectation.measure) if expectation.measure else F.count_if(~_condition(expectation))
    return found.cast("double")


def _with_all(numbers: pd.DataFrame, check: Check, owners: Iterable[str]) -> pd.DataFrame:
    """With a row for every owner: if a table has no rows of a cluster, no row fails."""
    wanted = sorted({*owners, *numbers["cluster_id"]})
    whole = numbers.set_index("cluster_id").reindex(wanted)
    counts = [e.name for e in check.expectations if e.measure is None]
    whole[counts] = whole[counts].astype("float64").fillna(0)
    return whole.rename_axis("cluster_id").reset_index()


def _failing_examples(
    checks: Sequence[SuiteCheck], failed: set[int], frames: Frames, every: Frames, now: datetime
) -> dict[tuple[str, str, str], list[str]]:
    """Some failing rows as JSON, by suite, expectation and cluster; one query for all."""
    examples: list[DataFrame] = []
    for check, rows in _relations(checks, sorted(failed), frames, every, now):
        names = (F.when(~_condition(e), F.lit(e.name)) for e in check.expectations)
        failing = F.array_compact(F.array(*names))
        examples.append(
            rows.select("check", "cluster_id", "row", F.explode(failing).alias("expectation"))
            .groupBy("check", "cluster_id", "expectation")
            .agg(F.slice(F.sort_array(F.collect_list("row")), 1, LISTED_ROWS).alias("rows"))
        )
    return {
        (checks[row["check"]][0].table.name, row["expectation"], row["cluster_id"]): row["rows"]
        for row in to_rows(reduce(DataFrame.union, examples))
    }


def _row_as_json(table: Table, check: Check, rows: DataFrame) -> Column:
    """A row as JSON: what identifies it."""
    names = check.names or table.key
    return F.to_json(F.struct(*(names if set(names) <= set(rows.columns) else rows.columns)))


# --- evaluation by Great Expectations ---


def _evaluated(table: Table, check: Check, frame: pd.DataFrame) -> Iterator[Row]:
    """Result rows of a frame with one row a cluster and one column an expectation."""
    failed = failing_clusters(table.name, check.expectations, frame)
    for expectation in check.expectations:
        for owner, value in zip(frame["cluster_id"], frame[expectation.name], strict=True):
            observed = None if pd.isna(value) else float(value)
            success = owner not in failed[expectation.name]
            yield _result(table, expectation, owner, observed, success) | {"is_own": check.own}


def _result(table: Table, expectation: Expectation, owner: str, observed: float | None, success: bool) -> Row:
    return {
        "cluster_id": owner,
        "suite": table.name,
        "expectation": expectation.name,
        "sentence": expectation.sentence,
        "severity": expectation.severity,
        "success": success,
        "observed": observed,
        "allowed": float(expectation.allowed),
        "failing_rows": [],
    }


def failing_clusters(
    suite: str, expectations: Sequence[Expectation], frame: pd.DataFrame
) -> dict[str, set[str]]:
    """By expectation the clusters that fail it."""
    gx, frames = _great_expectations()
    wanted = gx.ExpectationSuite(suite)
    for expectation in expectations:
        wanted.add_expectation(
            gx.expectations.ExpectColumnValuesToBeBetween(
                column=expectation.name,
                max_value=expectation.allowed,
                severity=GX_SEVERITIES[expectation.severity],
            )
        )
    batch = frames.get_batch({"dataframe": frame})
    failed: dict[str, set[str]] = {e.name: set() for e in expectations}
    # Which rows fail takes Great Expectations as long again: it is asked only where some do.
    if batch.validate(wanted, result_format="BOOLEAN_ONLY").success:
        return failed
    form = {"result_format": "COMPLETE", "unexpected_index_column_names": ["cluster_id"]}
    for result in batch.validate(wanted, result_format=form).results:
        if result.exception_info.get("raised_exception"):
            raise RuntimeError(f"{suite}: {result.exception_info['exception_message']}")
        name = result.expectation_config.kwargs["column"]
        failed[name] = {row["cluster_id"] for row in result.result.get("unexpected_index_list") or []}
    return failed


@cache
def _great_expectations() -> tuple[Any, Any]:
    """The library, with analytics disabled, and what makes a batch of a frame, in an ephemeral context."""
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    import great_expectations as gx

    context: Any = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = {"globally": False}
    asset = context.data_sources.add_pandas("lake").add_dataframe_asset("numbers")
    return gx, asset.add_batch_definition_whole_dataframe("whole")
