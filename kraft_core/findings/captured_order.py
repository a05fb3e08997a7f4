"""Batches of captured logs that are out of order in their files, without a lake."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, pairwise

from kraft_core.evidence.facts import Capture
from kraft_core.findings.facts import MOST_ORDER_FAULTS, LogOrderFault
from kraft_core.format.batch import BatchHeader
from kraft_core.format.controller_dir import ControllerDir
from kraft_core.format.mapped_file import mapped
from kraft_core.format.segment import OrderCheck, scan


def order_faults(
    captures: Iterable[Capture], directories: Mapping[str, ControllerDir]
) -> Iterator[LogOrderFault]:
    """Of captures whose epoch ranges, sorted by offset, are not those of one log. Raises OSError.

    directories: of the captures by their ids.
    """
    for capture in captures:
        directory = directories.get(capture.capture_id)
        if directory is not None and _is_disordered(capture):
            yield from islice(_faults(capture, directory), MOST_ORDER_FAULTS)


def _is_disordered(capture: Capture) -> bool:
    """Each range of a log begins an epoch where the one before ends."""
    ranges = capture.epoch_ranges
    if ranges and ranges[0].first_offset != capture.log_start_offset:
        return True
    return any(
        after.first_offset != before.end_offset or after.leader_epoch <= before.leader_epoch
        for before, after in pairwise(ranges)
    )


def _faults(capture: Capture, directory: ControllerDir) -> Iterator[LogOrderFault]:
    check = OrderCheck(capture.log_start_offset)
    for segment in directory.segments:
        with mapped(segment.path) as buf:
            for item in scan(buf, end=segment.size_bytes, next_offset=segment.base_offset):
                for fault in check.faults(item):
                    assert isinstance(item, BatchHeader), "only batches have an order"
                    yield LogOrderFault(
                        capture.capture_id, item.base_offset, item.leader_epoch, fault.kind, fault.expected
                    )
