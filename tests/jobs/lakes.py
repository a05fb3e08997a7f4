"""Lakes made by the command line inside this process, so that all tests share one Spark session."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import write_deltalake

from dashboards.catalog import AskedLake
from jobs.cli import main
from transforms.lake.delta_rs import arrow_with, rows_with
from transforms.lake.lake import Lake, existing_lake
from transforms.lake.tables import CAPTURES, RECORDS, TABLES

# Columns that say when a row was written, and by which run; and ids that hang on the cluster's.
NOT_COMPARED = {"run_id", "loaded_at", "finding_id", "observation_id"}
# Tables that are no function of the captures.
OF_THE_LAKE = {"runs"}


def run(lake: Path, *captures: Path, verb: str = "run", flags: tuple[str, ...] = ()) -> int:
    """kraftlake run over captures. Returns the exit code."""
    return main([verb, "--lake", str(lake), "--captures", *map(str, captures), *flags])


def report(out: str) -> dict[str, Any]:
    """The JSON line at the end of a job's output."""
    return json.loads(out.strip().splitlines()[-1])


def opened(spark: Any, path: Path) -> Lake:
    return existing_lake(spark, path)


def asking(spark: Any, path: Path) -> Callable[[str], Any]:
    """Frames of SQL over a lake. The catalog gets what is asked for, as by `kraftlake sql`."""
    asked = AskedLake(spark, path)

    def ask(query: str) -> Any:
        asked.register(query)
        return spark.sql(query)

    return ask


def content(lake: Lake, cluster: str) -> dict[str, list[str]]:
    """Every row of a cluster in every table but `runs`, sorted, without the columns of the run.

    What hangs on the cluster's id is named without it, so that clusters of equal captures have equal content:
    a capture by its node and time, the cluster by a dash; ids of findings are left out.
    """
    tables: dict[str, list[str]] = {}
    names = {cluster: "-"}
    for row in rows_with(lake.path, CAPTURES, cluster_id=[cluster]):
        names[row["capture_id"]] = f"{row['node_id']} at {row['captured_at']}"
    for table in TABLES:
        if table.name not in OF_THE_LAKE:
            columns = [n for n in table.names if n not in NOT_COMPARED]
            rows = rows_with(lake.path, table, columns, cluster_id=[cluster])
            tables[table.name] = sorted(renamed(repr(row), names) for row in rows)
    return tables


def renamed(text: str, names: dict[str, str]) -> str:
    """The text with each name replaced."""
    for name, other in names.items():
        text = text.replace(name, other)
    return text


def move_beyond_the_calendar(lake: Path, cluster: str, **wanted: Iterable[Any]) -> None:
    """Give records of a cluster, those with the wanted values, a time of the year 12026, beyond Python's."""
    rows = arrow_with(lake, RECORDS, RECORDS.names, cluster_id=[cluster])
    beyond = pa.scalar(317_330_000_000_000_000, rows.schema.field("appended_at").type)
    chosen = [pc.is_in(rows[name], pa.array(values)) for name, values in wanted.items()]
    times = pc.if_else(reduce(pc.and_, chosen), beyond, rows["appended_at"])
    changed = rows.set_column(rows.column_names.index("appended_at"), "appended_at", times)
    # Statistics of the lake's own writer are values of Python.
    write_deltalake(lake / RECORDS.name, changed, mode="overwrite", predicate=f"cluster_id = '{cluster}'")


def versions(lake: Lake) -> dict[str, int]:
    """The Delta version of every table but `runs`."""
    found = {}
    for table in TABLES:
        if table.name != "runs" and lake.exists(table):
            log = lake.path / table.name / "_delta_log"
            found[table.name] = max(int(f.stem) for f in log.glob("*.json"))
    return found
