"""format("kraft") in a session: CPU seconds of JVM and Python for a million records, by what is asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.bench.frame import ROUNDS, Bench, Row
from tests.bench.inputs import mixed_log
from transforms.source.columns import VALUE, default_schema

TICKS = os.sysconf("SC_CLK_TCK")
# Columns: all of which Spark computes, whatever a query selects; the aim, in CPU seconds a million.
PLAIN = [field.name for field in default_schema() if field.name != VALUE]
ASKED = (
    ("plain columns", PLAIN, 2.5),
    ("offset, epoch, type and value as JSON", ["offset", "leader_epoch", "type", VALUE], 4.5),
    ("all default columns", [*PLAIN, VALUE], 5.0),
    ("offset and type", ["offset", "type"], 1.5),
)


def rows(bench: Bench) -> Iterator[Row]:
    """Each read is thrown away by Spark's noop sink, in a warm session; the best of some rounds."""
    for full in (1_000_000, 10_000_000):
        records = bench.size(full, full // 20)
        log = mixed_log(bench, records)
        for name, columns, aim in ASKED:
            rounds = ROUNDS + 1 if full == 1_000_000 else 1
            spent = min(cpu_of_read(bench.spark, log, columns) for _ in range(rounds))
            detail = f"{spent:.1f} CPU-s"
            yield Row(f"{name}, {records:,} records", spent / records * 1e6, "s/M", aim, detail=detail)


def cpu_of_read(spark: Any, log: Path, columns: list[str]) -> float:
    """CPU seconds of this process and of all below it."""
    whole = default_schema()
    schema = ", ".join(f"`{name}` {whole[name].dataType.simpleString()}" for name in columns)
    began = tree_seconds(os.getpid())
    spark.read.format("kraft").schema(schema).load(str(log)).write.format("noop").mode("overwrite").save()
    return tree_seconds(os.getpid()) - began


def tree_seconds(root: int) -> float:
    """CPU seconds of a process, of all that it started, and of those of them that have ended."""
    children: dict[int, list[int]] = {}
    spent: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            try:
                words = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            children.setdefault(int(words[1]), []).append(int(folder.name))
            spent[int(folder.name)] = sum(map(int, words[11:15]))
    pending, ticks = [root], 0
    while pending:
        process = pending.pop()
        ticks += spent.get(process, 0)
        pending += children.get(process, [])
    return ticks / TICKS
