"""What several captures share: those of one log hold most of their parts as the same objects."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TypeVar

from kraft_core.evidence.facts import Capture, EpochRange

Part = TypeVar("Part")


def each_once(parts: Iterable[Part]) -> Collection[Part]:
    """Each object once, in the order of its first place; equal ones are not compared."""
    return {id(part): part for part in parts}.values()


def distinct_ranges(captures: Iterable[Capture]) -> Collection[EpochRange]:
    """The epoch ranges of captures, each object once."""
    logs = each_once(capture.epoch_ranges for capture in captures)
    return each_once(epoch_range for log in logs for epoch_range in log)
