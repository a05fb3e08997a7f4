"""What was compared, what was left out and why, and where engine and Kafka disagree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SHOWN = 20  # mismatches printed for a file; all are counted


@dataclass(frozen=True, slots=True)
class Mismatch:
    place: str
    field: str
    engine: Any
    kafka: Any

    def __str__(self) -> str:
        return f"{self.place} {self.field}: engine {self.engine!r}, kafka {self.kafka!r}"


@dataclass(slots=True)
class Tally:
    """The result of comparing one trace file."""

    steps: Counter[str] = field(default_factory=Counter)
    values: Counter[str] = field(default_factory=Counter)
    unsound: Counter[str] = field(default_factory=Counter)
    mismatches: list[Mismatch] = field(default_factory=list)

    def step(self, kind: str) -> None:
        """Count a step of the trace that is compared."""
        self.steps[kind] += 1

    def leave_out(self, reason: str) -> None:
        """Count something that the trace format declares unsound."""
        self.unsound[reason] += 1

    def compare(self, place: str, field_name: str, engine: Any, kafka: Any) -> None:
        self.values[field_name] += 1
        if engine != kafka:
            self.mismatches.append(Mismatch(place, field_name, engine, kafka))

    def compare_all(self, place: str, engine: Mapping[str, Any], kafka: Mapping[str, Any]) -> None:
        """Every field of both sides; one that only one side knows is a mismatch."""
        for name in sorted({*engine, *kafka}):
            self.compare(place, name, engine.get(name, "absent"), kafka.get(name, "absent"))

    def lines(self, title: str) -> list[str]:
        """The counts and the first mismatches for people to read."""
        return [
            f"{title}: {self.steps.total():,} steps compared ({_counts(self.steps)})",
            f"  {self.values.total():,} values ({_counts(self.values)})",
            f"  left out: {_counts(self.unsound) or 'nothing'}",
            f"  mismatches: {len(self.mismatches)}",
            *(f"    {mismatch}" for mismatch in self.mismatches[:SHOWN]),
        ]


def _counts(of: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(of.items()))
