"""What captured logs hold beside the source's: what may be lost by it, and what never counted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kraft_core.evidence.conclusions import Conclusions
from kraft_core.evidence.facts import Capture
from kraft_core.findings.recovery import lacking, truncated
from kraft_core.format.controller_dir import ControllerDir
from kraft_core.image.image import Image
from kraft_core.restore.choice import COMMITTED_RECORDS, OTHER_LINE, OTHER_TAILS, Choice
from kraft_core.restore.later import Seen
from kraft_core.restore.replay import Cut, ReplayedLog, UnusableLogError, replayed_until, without_transaction


@dataclass(frozen=True, slots=True)
class CapturedLog:
    """A captured directory and the metadata at the end of its log."""

    capture: Capture
    directory: ControllerDir
    log: ReplayedLog


def has_tails(choice: Choice) -> bool:
    """Whether other captures hold beside the source what may have been committed: losses name it."""
    return any(loss.name in (OTHER_TAILS, OTHER_LINE, COMMITTED_RECORDS) for loss in choice.losses)


def tails(
    known: Conclusions, choice: Choice, source: CapturedLog, logs: Iterable[CapturedLog]
) -> Iterator[Seen]:
    """What other captures hold beside the source, where nothing proves that it was not committed.

    The metadata at the end of their logs and, if known, where they diverge from the source's.
    """
    if not has_tails(choice):
        return
    names = {loss.name for loss in choice.losses}
    lacked = lacking(known, source.capture)
    for each in logs:
        begins = _first_of(lacked, each.capture)
        if begins is not None:
            yield without_transaction(each.log).image, _shared(each, source, begins)
        elif OTHER_LINE in names and not _is_prefix(each, source):
            yield without_transaction(each.log).image, None


def committable(
    known: Conclusions, choice: Choice, source: CapturedLog | None, logs: Iterable[CapturedLog]
) -> Iterator[ReplayedLog]:
    """The logs, each only up to what certainly was not committed. source: None where there is none.

    A broker replays committed records alone. So what it knows, and only such a tail explains, it has from
    records that no log holds.
    """
    names = {loss.name for loss in choice.losses}
    never = [] if names & {OTHER_LINE, COMMITTED_RECORDS} else truncated(known)
    if source is not None and not has_tails(choice):
        never += lacking(known, source.capture)
    for each in logs:
        end = None if each is source else _first_of(never, each.capture)
        log = each.log if end is None else _until(each, end)
        if log is not None:
            yield log


def _first_of(ranges: Iterable[tuple[str, int, int, int]], capture: Capture) -> int | None:
    """The first offset that a capture's log has of some ranges, as of lacking(); None for none."""
    found = (
        max(first, epoch_range.first_offset)
        for _, epoch, first, end in ranges
        for epoch_range in capture.epoch_ranges
        if epoch_range.leader_epoch == epoch
        and epoch_range.first_offset < end
        and first < epoch_range.end_offset
    )
    return min(found, default=None)


def _shared(held: CapturedLog, source: CapturedLog, end: int) -> Image | None:
    """The metadata below an offset (exclusive) if both logs led to it; None where they may differ there, too.

    So does a restored quorum, which begins with metadata that the source does not lead to.
    """
    there, ours = _before(held, end), _before(source, end)
    return there if there is not None and ours is not None and there.tables == ours.tables else None


def _is_prefix(held: CapturedLog, source: CapturedLog) -> bool:
    """Whether the source led to the same metadata where this log ends."""
    there = _before(source, held.log.end_offset)
    return there is not None and there.tables == without_transaction(held.log).image.tables


def _before(held: CapturedLog, end: int) -> Image | None:
    log = _until(held, end)
    return None if log is None else without_transaction(log).image


def _until(held: CapturedLog, end: int) -> ReplayedLog | None:
    """None where the log does not reach back so far, or its files are gone."""
    try:
        return replayed_until(held.directory, Cut(end))
    except (UnusableLogError, OSError):
        return None
