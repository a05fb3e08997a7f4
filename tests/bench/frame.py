"""What a group of the bench gets and gives: sizes, a folder, a session, Kafka's tools; rows of one table."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import tests.bench
from tests.kafka import LAB, RELEASE, SCRIPTS

# How often what takes seconds is measured, for the median: the first time the JVM still compiles.
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table: mostly a ratio ("x"), else a quantity of `unit`.

    at_most, at_least: the aim, where there is one. detail: the two sides of the ratio, in words and figures.
    """

    name: str
    value: float
    unit: str = "x"
    at_most: float | None = None
    at_least: float | None = None
    detail: str = ""

    @property
    def is_met(self) -> bool:
        return (self.at_most is None or self.value <= self.at_most) and (
            self.at_least is None or self.value >= self.at_least
        )

    @property
    def aim(self) -> str:
        if self.at_most is not None:
            return f"<= {self.at_most:g}"
        return "" if self.at_least is None else f">= {self.at_least:g}"


@dataclass(frozen=True, slots=True)
class Kafka:
    """A release of Kafka that tests/kafka fetched."""

    release: str = RELEASE

    @property
    def class_path(self) -> str:
        return f"{LAB / 'classes'}:{LAB / f'kafka-{self.release}' / 'libs'}/*"

    def run(self, *command: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a script, by its path in tests/kafka. options: subprocess's. Raises CalledProcessError."""
        script = [str(SCRIPTS / command[0]), *map(str, command[1:])]
        return subprocess.run(script, check=True, text=True, **options)

    def dump_seconds(self, file: Path) -> float:
        """Wall seconds of kafka-dump-log over a segment or checkpoint, its output thrown away."""
        arguments = ("--cluster-metadata-decoder", "--files", str(file))
        return seconds(
            lambda: self.run("bin/k", self.release, "dump-log", *arguments, stdout=subprocess.DEVNULL)
        )


@dataclass
class Bench:
    """One run of the bench. folder: for inputs, kept between runs; kafka: None where none is set up.

    clusters: of the fleet, None for the usual number.
    """

    folder: Path
    small: bool
    kafka: Kafka | None
    clusters: int | None = None
    say: Callable[[str], None] = field(default=lambda line: print(line, file=sys.stderr, flush=True))

    def size(self, full: int, small: int) -> int:
        """The size to measure: the full one, or a hundredth or so while the bench itself is worked on."""
        return small if self.small else full

    @cached_property
    def spark(self) -> Any:
        """A session on two cores, started at first use, its JVM free to optimise."""
        from jobs.runtime.session import open_session

        return open_session("local[2]", say=self.say)


def seconds(work: Callable[[], Any]) -> float:
    """Wall seconds that a piece of work takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def cpu_seconds(work: Callable[[], Any]) -> float:
    """CPU seconds that a piece of work takes in this process."""
    began = time.process_time()
    work()
    return time.process_time() - began


def best(measure: Callable[[], float], rounds: int = 3) -> float:
    """The least of some measurements: what other processes take away can only add."""
    return min(measure() for _ in range(rounds))


def best_within(limit_seconds: float, measure: Callable[[], float]) -> float:
    """The least of the measurements begun within so many seconds, at least one."""
    end = time.perf_counter() + limit_seconds
    least = measure()
    while time.perf_counter() < end:
        least = min(least, measure())
    return least


def groups() -> dict[str, Callable[[Bench], Iterator[Row]]]:
    """The groups of the table: every module of this package that has a function `rows`."""
    found: dict[str, Callable[[Bench], Iterator[Row]]] = {}
    for module in pkgutil.iter_modules(tests.bench.__path__):
        if module.name == "__main__":
            continue
        rows = getattr(importlib.import_module(f"tests.bench.{module.name}"), "rows", None)
        if rows is not None:
            found[module.name.replace("_", "-")] = rows
    return found


def table(rows: Sequence[tuple[str, Row]]) -> list[str]:
    """The lines of the table, columns aligned."""
    head = ("group", "what", "figure", "aim", "", "measured")
    cells = [
        (group, r.name, f"{figure(r.value)} {r.unit}", r.aim, "" if r.is_met else "MISSED", r.detail)
        for group, r in rows
    ]
    widths = [max(len(row[i]) for row in (head, *cells)) for i in range(len(head))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (head, *cells)
    ]


def figure(value: float) -> str:
    """A number with three digits that count."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
