"""A sample of a metric."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Sample:
    name: str
    value: float
    labels: dict[str, str] = field(default_factory=dict)
