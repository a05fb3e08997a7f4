"""Captures to Delta on two cores, beside Spark copying the same rows and kafka-dump-log reading the bytes."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import log
from pathlib import Path
from statistics import median

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable

from tests.bench.frame import ROUNDS, Bench, Row, seconds
from tests.bench.inputs import first_segment, made, mixed_log
from tests.bench.lakes import ingest_seconds
from transforms.lake.lake import Lake, existing_lake
from transforms.lake.tables import BATCHES, RECORDS, SNAPSHOT_RECORDS, SNAPSHOTS, Table

WRITTEN = (RECORDS, BATCHES, SNAPSHOT_RECORDS)
APPENDED = (*WRITTEN, SNAPSHOTS)
CORES = 2
# Row groups that a core writes between two readings of the clock.
AT_ONCE = 4


def rows(bench: Bench) -> Iterator[Row]:
    """A session and its first write, logs of growing size, replicas that hold the same."""
    yield Row("session", seconds(lambda: bench.spark), "s", detail="local[2]")
    yield Row("first write", ingest_seconds(bench, mixed_log(bench, 1_000)), "s", detail="1,000 records")
    sizes = [bench.size(full, full // 100) for full in (100_000, 1_000_000, 10_000_000)]
    took: list[float] = []
    for records in sizes:
        rounds = 1 if records == sizes[-1] else ROUNDS
        times = [ingest_seconds(bench, mixed_log(bench, records)) for _ in range(rounds)]
        took.append(median(times))
        if records > sizes[0]:  # the least is there for the exponent: it pays little but what any run costs
            yield from compared(bench, records, times, is_largest=records == sizes[-1])
    exponent = log(took[-1] / took[0]) / log(sizes[-1] / sizes[0])
    yield Row(f"exponent of cost, {sizes[0]:,} to {sizes[-1]:,} records", exponent, "", at_most=1.05)
    five = median(ingest_seconds(bench, *replicas(bench, sizes[1])) for _ in range(ROUNDS))
    detail = f"{five:.1f} s, {took[1]:.1f} s; {sizes[1]:,} records"
    yield Row("five replicas / one", five / took[1], at_most=1.5, detail=detail)


def compared(bench: Bench, records: int, times: list[float], is_largest: bool) -> Iterator[Row]:
    """An ingest that has just been done, in seconds of each round, beside what it is measured by."""
    lake = existing_lake(bench.spark, bench.folder / "lake")
    copy = median(seconds(lambda: copy_rows(lake, bench.folder / "copy")) for _ in times)
    took = median(times)
    first = f" (first {times[0]:.1f} s)" if len(times) > 1 else ""
    speed = f"{took:.1f} s{first}, {records / took / 1000:,.0f} k records/s"
    yield Row(
        f"ingest / Spark copying the rows, {records:,} records",
        took / copy,
        at_most=1.3,
        detail=f"{speed}; copying {copy:.1f} s",
    )
    written = median(parquet_seconds(lake, bench.folder / "parquet") for _ in times)
    yield Row(
        f"ingest / pyarrow writing the rows, {records:,} records",
        took / written,
        at_most=1.3 if is_largest else None,  # what any run costs is most of a short one
        detail=f"{speed}; writing {written:.1f} s, {CORES} threads",
    )
    if bench.kafka is not None:
        log = first_segment(mixed_log(bench, records))
        dump = median(bench.kafka.dump_seconds(log) for _ in times)
        yield Row(
            f"ingest / kafka-dump-log > /dev/null, {records:,} records",
            took / dump,
            at_most=1,
            detail=f"{speed}; kafka-dump-log {dump:.1f} s",
        )


def copy_rows(lake: Lake, folder: Path) -> None:
    """What the big tables hold, read and written again by Spark alone."""
    shutil.rmtree(folder, ignore_errors=True)
    for table in APPENDED:
        lake.read(table).write.format("delta").save(str(folder / table.name))


def parquet_seconds(lake: Lake, folder: Path) -> float:
    """Wall seconds of writing the rows that our tasks write, from memory, as they do.

    docs/scale.md says where the rest of an ingest goes.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    with ThreadPoolExecutor(CORES) as threads:
        return sum(written_seconds(lake, table, folder, threads) for table in WRITTEN)


def written_seconds(lake: Lake, table: Table, folder: Path, threads: ThreadPoolExecutor) -> float:
    """Wall seconds of writing a table's rows to a file of each thread, in row groups of the same size.

    All columns of the table are written, also where a file of the lake lacks some that are null.
    """
    files = [pq.ParquetFile(path) for path in DeltaTable(lake.location(table)).file_uris()]
    schema = pa.unify_schemas([file.schema_arrow for file in files])
    no_rows = schema.empty_table()
    groups = [(file, number) for file in files for number in range(file.num_row_groups)]
    options = {"compression": "snappy", "store_schema": False}
    writers = [
        pq.ParquetWriter(folder / f"{table.name}-{core}.parquet", schema, **options) for core in range(CORES)
    ]

    def write(writer: pq.ParquetWriter, tables: list[pa.Table]) -> None:
        for rows in tables:
            writer.write_table(rows)

    took = 0.0
    for start in range(0, len(groups), CORES * AT_ONCE):
        some = [file.read_row_group(number) for file, number in groups[start : start + CORES * AT_ONCE]]
        held = [pa.concat_tables([no_rows, rows], promote_options="default") for rows in some]
        shares = [held[core::CORES] for core in range(CORES)]
        took += seconds(lambda shares=shares: list(threads.map(write, writers, shares)))
    return took + seconds(lambda: [writer.close() for writer in writers])


def replicas(bench: Bench, records: int) -> list[Path]:
    """Five directories with the same log, of five nodes."""
    log_dir = mixed_log(bench, records)

    def make(folder: Path, node: int) -> None:
        shutil.copytree(log_dir, folder)
        meta = folder / "meta.properties"
        lines = [line for line in meta.read_text().splitlines() if not line.startswith("node.id")]
        lines = [line for line in lines if not line.startswith("directory.id")]
        meta.write_text("\n".join([*lines, f"node.id={node}"]) + "\n")

    place = bench.folder / f"replicas-{records}"
    return [made(place / f"node-{node}", partial(make, node=node)) for node in range(1, 6)]
