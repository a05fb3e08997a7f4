"""Rule 0: captured bytes can be read, and the batches of a log follow each other.

Not a rule of KRaft, but all others depend on it. A copy of a running node may end with an incomplete batch: a
warning, as is a small file whose content is invalid. Everything else that cannot be read is lost, or was
damaged in copying: an error.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from kraft_core.evidence.facts import Capture, label
from kraft_core.findings.cluster_view import ClusterView
from kraft_core.findings.facts import LogOrderFault, UnreadableBytes
from kraft_core.findings.finding import Breach, Severity
from kraft_core.raft.rules import ORDERED, READABLE
from kraft_core.wording import offset_words

# More places than this that are out of order in a capture are one breach, which names the first.
MOST_APART, MOST_NAMED = 20, 5
_CUT_OFF = "incomplete"  # snapshot.cut_off


def bytes_are_readable(view: ClusterView) -> Iterator[Breach]:
    """One breach per capture and file, however many places are damaged.

    It is over once other captures supply what was lost at each place.
    """
    by_file: defaultdict[tuple[str, str, Severity], list[UnreadableBytes]] = defaultdict(list)
    for lost in view.facts.unreadable:
        capture = view.captures.get(lost.capture_id)
        if capture is not None:
            severity = "warning" if _is_torn_tail(lost, capture) or _is_invalid(lost) else "error"
            by_file[lost.capture_id, lost.file, severity].append(lost)
    for (capture_id, file, severity), places in sorted(by_file.items()):
        capture = view.captures[capture_id]
        lost = [place for place in places if not place.supplied_by]
        suppliers = () if lost else _suppliers(view, capture, places)
        yield _unreadable(capture, file, severity, lost or places, suppliers)


def _suppliers(view: ClusterView, capture: Capture, places: list[UnreadableBytes]) -> tuple[Capture, ...]:
    """The captures that supply what was lost, each as it was first copied."""
    named = {name for place in places for name in place.supplied_by}
    first = {c.capture_id: c for c in reversed(view.known.holdings.captures[capture.replica])}
    return tuple(first[name] for name in sorted(named & first.keys()))


def _is_torn_tail(lost: UnreadableBytes, capture: Capture) -> bool:
    """Whether the log ends there: no batch of the capture lies above."""
    end = max((epoch_range.end_offset for epoch_range in capture.epoch_ranges), default=0)
    at_end = lost.lost_from_offset is None or lost.lost_from_offset >= end
    return lost.reason == "torn_tail" and lost.lost_to_offset is None and at_end


def _is_invalid(lost: UnreadableBytes) -> bool:
    """Whether it is a file beside the log whose content or name is not what Kafka writes."""
    return lost.reason.startswith("invalid: ")


def _unreadable(
    capture: Capture,
    file: str,
    severity: Severity,
    places: list[UnreadableBytes],
    suppliers: tuple[Capture, ...],
) -> Breach:
    places = sorted(places, key=lambda place: place.position)
    size = sum(place.size_bytes for place in places)
    reasons = ", ".join(sorted({place.reason for place in places}))
    first = min((p.lost_from_offset for p in places if p.lost_from_offset is not None), default=None)
    end = max((p.lost_to_offset for p in places if p.lost_to_offset is not None), default=None)
    who = label(capture.replica)
    what = f"{size} bytes of {file} of {who} cannot be read ({reasons})"
    if any(map(_is_invalid, places)):
        what = f"{file} of {who} is not used ({reasons})"
    elif reasons == _CUT_OFF:
        what = f"{file} of {who} lacks its header or footer ({reasons}): a part of it is missing"
    elif not size:
        what = f"{file} of {who} could not be read ({reasons}): its content is not known"
    elif severity == "warning":
        what = f"The last batch of {file} of {who} is incomplete, as in a copy of a running node"
    return Breach(
        READABLE,
        severity,
        (capture.node_id, capture.directory_id, file, severity),
        f"{what}.",
        "; ".join(f"{p.size_bytes} bytes at {p.position}: {p.reason}" for p in places[:20]),
        first_offset=first,
        end_offset=end,
        replicas=(capture.replica,),
        captures=(capture,),
        supplied_by=suppliers,
    )


def batches_follow_each_other(view: ClusterView, capture: Capture) -> Iterator[Breach]:
    """By the order of batches in the files, where that was read, and by the ranges of each capture.

    One breach for each place, or for all of them where they are many.
    """
    faults = {f for f in view.order_faults.get(capture.capture_id, ()) if f.kind != "epoch_regression"}
    places = {fault.offset for fault in faults}
    faults |= {fault for fault in _of_ranges(view, capture) if fault.offset not in places}
    if len(faults) > MOST_APART:
        yield _all_disordered(capture, sorted(faults, key=lambda fault: (fault.offset, fault)))
        return
    for fault in sorted(faults):
        yield _disordered(capture, fault)


def _all_disordered(capture: Capture, faults: Sequence[LogOrderFault]) -> Breach:
    """Many places as one breach; captures keep only a limited number of them."""
    first = faults[0]
    kinds = Counter(fault.kind for fault in faults)
    counts = ", ".join(f"{kind}: {count}" for kind, count in sorted(kinds.items()))
    offsets = ", ".join(str(fault.offset) for fault in faults[:MOST_NAMED])
    return Breach(
        ORDERED,
        "error",
        (capture.node_id, capture.directory_id, "disordered", first.offset, first.leader_epoch),
        f"The log of {label(capture.replica)} is out of order at {len(faults)} places or more, "
        f"the first at offsets {offsets}.",
        f"{counts}; first: {first.kind}, expected {first.expected}, found {first.offset} of epoch "
        f"{first.leader_epoch}",
        first_offset=min(min(fault.expected, fault.offset) for fault in faults),
        end_offset=max(max(fault.expected, fault.offset) for fault in faults),
        leader_epochs=tuple(sorted({fault.leader_epoch for fault in faults})[:MOST_NAMED]),
        replicas=(capture.replica,),
        captures=(capture,),
    )


def _disordered(capture: Capture, fault: LogOrderFault) -> Breach:
    who = label(capture.replica)
    words = {
        "gap": f"The log of {who} has a gap: {offset_words(fault.expected, fault.offset)} missing",
        "overlap": f"The log of {who} has offset {fault.offset} where {fault.expected} is expected",
        "duplicate": f"The log of {who} repeats the batch at offset {fault.offset}",
    }["overlap" if _is_elsewhere(capture, fault) else fault.kind]
    return Breach(
        ORDERED,
        "error",
        (capture.node_id, capture.directory_id, fault.kind, fault.offset, fault.leader_epoch),
        f"{words}.",
        f"{fault.kind}: expected {fault.expected}, found {fault.offset} of epoch {fault.leader_epoch}",
        first_offset=min(fault.expected, fault.offset),
        end_offset=max(fault.expected, fault.offset),
        leader_epochs=(fault.leader_epoch,),
        replicas=(capture.replica,),
        captures=(capture,),
    )


def _is_elsewhere(capture: Capture, fault: LogOrderFault) -> bool:
    """Whether a gap's offsets are in the log, in another place of it."""
    lost = (fault.expected, fault.offset) if fault.kind == "gap" else None
    return lost is not None and any(
        epoch_range.first_offset <= lost[0] and lost[1] <= epoch_range.end_offset
        for epoch_range in capture.epoch_ranges
    )


def _of_ranges(view: ClusterView, capture: Capture) -> Iterator[LogOrderFault]:
    """Faults between ranges, and below the first one, for the first segment is named after its first batch.

    Bytes that could not be read, or that another copy supplied, are not holes.
    """
    expected = capture.log_start_offset
    for epoch_range in capture.epoch_ranges:
        found = epoch_range.first_offset
        if expected is not None and found < expected:
            yield LogOrderFault(capture.capture_id, found, epoch_range.leader_epoch, "overlap", expected)
        elif expected is not None and found > expected and not _is_explained(view, capture, expected, found):
            yield LogOrderFault(capture.capture_id, found, epoch_range.leader_epoch, "gap", expected)
        expected = epoch_range.end_offset


def _is_explained(view: ClusterView, capture: Capture, first: int, end: int) -> bool:
    unreadable = any(
        lost.capture_id == capture.capture_id
        and not lost.supplied_by
        and lost.lost_from_offset is not None
        and lost.lost_from_offset < end
        and (lost.lost_to_offset is None or lost.lost_to_offset > first)
        for lost in view.facts.unreadable
    )
    reached = first
    for other in view.known.holdings.captures[capture.replica]:
        for epoch_range in other.epoch_ranges:
            if epoch_range.first_offset <= reached < epoch_range.end_offset:
                reached = epoch_range.end_offset
    return unreadable or reached >= end
