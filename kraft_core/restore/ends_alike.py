"""Logs that end alike: of one history, they lead to the same metadata, but for what checkpoints lack by known
defects of Kafka.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from kraft_core.evidence.facts import label
from kraft_core.findings.facts import SnapshotDeviation
from kraft_core.findings.snapshot_deviations import unlawful_deviations
from kraft_core.image.change import Key
from kraft_core.image.image import Image
from kraft_core.image.snapshot_check import Deviation, deviations
from kraft_core.restore.checkpoint import UnwritableError
from kraft_core.restore.choice import Line
from kraft_core.restore.replay import Cut, ReplayedLog, UnusableLogError, replayed_until
from kraft_core.restore.tails import CapturedLog


@dataclass(frozen=True, slots=True)
class ForgottenBySource:
    """What the source restores otherwise than a log that ends alike, by a known defect of Kafka."""

    deviation: SnapshotDeviation
    sentence: str


def check_line(source: CapturedLog, logs: Iterable[CapturedLog], line: Line | None) -> None:
    """Raises UnwritableError where logs of two histories end alike: then no choice was made. Of one history,
    where their checkpoints contradict each other, and no captured log shows which of them is right.
    """
    for each in _others(source, logs):
        end = f"{source.log.leader_epoch}@{source.log.end_offset}"
        if line is not None:
            raise UnwritableError(f"logs of two histories end at {end}: give the captures of only one")
        kind = next(_unexplained(each.log.image, source.log.image), None)
        if kind is not None:
            both = f"{each.directory.path} and {source.directory.path}"
            raise UnwritableError(f"{both} end at {end} with other {kind}")


def forgotten_by(source: CapturedLog, logs: Iterable[CapturedLog]) -> Iterator[ForgottenBySource]:
    """What the source's checkpoint forgot, by what the logs of others lead to."""
    log = source.log
    for each in _others(source, logs):
        both = f"node {label(source.capture.replica)} and {label(each.capture.replica)}"
        found = deviations(each.log.image, log.image)
        for deviation in unlawful_deviations(found, log.end_offset, log.leader_epoch, ""):
            if deviation.explanation:
                yield ForgottenBySource(
                    deviation,
                    f"The logs of {both}, up to {log.leader_epoch}@{log.end_offset}, differ in "
                    f"{deviation.kind} {deviation.subject}: {deviation.explanation}. The first is restored.",
                )


def cut_alike(source: CapturedLog, at: ReplayedLog, logs: Iterable[CapturedLog]) -> Iterator[CapturedLog]:
    """Of the logs that end as the source does, what leads to an earlier moment of it, where that is held.

    Raises OSError.
    """
    for each in _ending_alike(source, logs):
        if each is source:
            continue
        try:
            until = replayed_until(each.directory, Cut(end_offset=at.end_offset))
        except UnusableLogError:
            continue
        yield replace(each, log=until)


def _others(source: CapturedLog, logs: Iterable[CapturedLog]) -> Iterator[CapturedLog]:
    """The logs that end as the source does, with other metadata."""
    for each in _ending_alike(source, logs):
        if each.log.image.tables != source.log.image.tables:
            yield each


def _ending_alike(source: CapturedLog, logs: Iterable[CapturedLog]) -> Iterator[CapturedLog]:
    end = source.log.leader_epoch, source.log.end_offset
    yield from (each for each in logs if (each.log.leader_epoch, each.log.end_offset) == end)


def _unexplained(one: Image, other: Image) -> Iterator[str]:
    """The kinds in which images differ, but for what a known defect of Kafka leaves out in either."""
    found = [*deviations(one, other), *deviations(other, one)]
    explained = {_place(each) for each in found if each.by_design or each.explanation}
    yield from (each.difference.kind for each in found if _place(each) not in explained)


def _place(found: Deviation) -> tuple[str, Key]:
    return found.difference.kind, found.difference.key
